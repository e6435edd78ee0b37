/** What profiles and sessions are narrowed down by: the box judges it, the view offers it. */

/** Of the contract, and two that a print can have beside it. */
export const PROFILE_STATES = ["NOT_TRAINED", "BASIC_TRAINED", "OPTIMAL_TRAINED", "OBSOLETE", "WITHDRAWN"] as const;
export const OWNER_KINDS = ["person", "fraudster"] as const;
/** Of the contract; UNSPECIFIED: no check was made. */
export const DECISIONS = [
  "AUTHENTIC",
  "NO_MATCH",
  "FRAUD",
  "UNCERTAIN",
  "FAILED",
  "NO_RISK_DETECTED",
  "UNSPECIFIED",
] as const;
