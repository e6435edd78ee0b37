/** The filters for profiles and sessions: the view offers them, the box applies them. */

/** The contract's states, and three more that a print can have. */
export const PROFILE_STATES = [
  "NOT_TRAINED",
  "BASIC_TRAINED",
  "OPTIMAL_TRAINED",
  "OBSOLETE",
  "WITHDRAWN",
  "DAMAGED",
] as const;
export const OWNER_KINDS = ["person", "fraudster"] as const;
/** The contract's decisions. UNSPECIFIED: no check was made. */
export const DECISIONS = [
  "AUTHENTIC",
  "NO_MATCH",
  "FRAUD",
  "UNCERTAIN",
  "FAILED",
  "NO_RISK_DETECTED",
  "UNSPECIFIED",
] as const;
