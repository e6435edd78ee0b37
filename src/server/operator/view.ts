/** The data of the operator view, as JSON under /operator/v1. No audio, no embeddings. */
import type { LastEvaluation } from "../../evaluate/last-evaluation.js";
import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import type { Check, GroupName, GroupSize, OwnerKind, Profile, RecordedConsent, Session } from "../../store/port.js";
import type { Application } from "../../token/applications.js";
import type { FieldRate } from "../../voiceprint/field-rates.js";
import type { CheckPart } from "../../voiceprint/session-decision.js";
import type { LiveCallView } from "../limits/live-calls.js";
import type { WorkQueue } from "../limits/work-queue.js";

/** By the last part of the path; a list and one item of it have different names. */
export interface OperatorAnswers {
  readonly box: BoxView;
  readonly load: LoadView;
  /** Live calls in progress, oldest first. */
  readonly calls: { readonly now: number; readonly capacity: number; readonly calls: readonly LiveCallView[] };
  readonly decisions: readonly DecisionView[];
  readonly profiles: Page<ProfileView>;
  readonly profile: ProfileDetail;
  readonly sessions: Page<SessionView>;
  readonly session: SessionDetail;
  readonly watchlists: Page<WatchlistView>;
  readonly applications: Page<Application>;
  /** How many prints of a scope have moved to the model of its new prints, which comes first. */
  readonly models: { readonly models: readonly PrintsOfModel[] };
  /** For each kind of list and each promised rate; sums over all replicas. */
  readonly promises: { readonly rates: readonly FieldRate[] };
  /** `null` if no evaluation was made yet. */
  readonly evaluation: { readonly evaluation: LastEvaluation | null };
}

export interface Spread {
  readonly median: number;
  /** The 95th percentile. */
  readonly p95: number;
}

export interface LoadSpan {
  /** Start of the span, in milliseconds since 1970. */
  readonly at: number;
  /** Audio operations that were answered. */
  readonly calls: number;
  /** The highest number at a time. */
  readonly running: number;
  readonly waiting: number;
  /** Seconds from the complete request to its response. */
  readonly latency: Spread | null;
  /** Processing time of a recording divided by its length. */
  readonly realTimeFactor: Spread | null;
}

export interface BoxView {
  readonly user: string;
  readonly version: string;
  readonly modelRevision: string;
  readonly calibrationRevision: string;
  /** The biometric scopes that applications of this box are bound to. */
  readonly scopes: readonly string[];
}

export interface LoadView extends Pick<WorkQueue, "running" | "waiting" | "concurrent" | "capacity"> {
  readonly now: number;
  readonly spanMs: number;
  readonly spans: readonly LoadSpan[];
}

/** Names are those of the contract's enumerations, without prefix. */
export interface DecisionView
  extends Pick<Check, "id" | "at" | "operation" | "risk" | "reliability" | "sessionId" | "profileId"> {
  readonly decision: string;
  readonly reason: string;
}

export interface ProfileView extends Pick<Profile, "id" | "tag" | "printVersion" | "createdAt"> {
  readonly kind: OwnerKind;
  readonly ownerId: string;
  /**
   * The contract's status, or OBSOLETE: made by a model that the box does not have, must be trained or enrolled again;
   * or WITHDRAWN: the person has withdrawn consent, the print is not compared; or DAMAGED: what is stored was altered.
   */
  readonly state: string;
  readonly netSpeechSeconds: number | null;
}

export interface ProfileDetail extends ProfileView {
  readonly printType: string | null;
  /** Of the model that made the template; `null` until the print is trained. */
  readonly model: { readonly revision: string; readonly calibrationModelId: string | null } | null;
  readonly snrDb: number | null;
  readonly bandwidthHz: number | null;
  readonly consent: RecordedConsent | null;
  /** The recordings that the print was enrolled from, and the calls that were added by adaptation. */
  readonly enrolled: readonly ProcessedSession[];
  readonly learned: readonly ProcessedSession[];
  readonly lists: readonly Omit<GroupName, "scopeId">[];
}

/** Segments that a session added to a print. */
export interface ProcessedSession {
  readonly at: number;
  readonly sessionId: string;
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
}

export interface SessionView extends Pick<Session, "id" | "externalId" | "startedAt" | "stoppedAt"> {
  readonly type: string;
  /** The person that the decision is about or was to be about, and the one that the latest comparison matched; empty if nobody. */
  readonly person: string;
  readonly matchedPerson: string;
  /** The decision of the session. UNSPECIFIED: no check was made. */
  readonly decision: string;
  readonly reason: string;
  readonly risk: number | null;
  readonly reliability: number | null;
  readonly checkCount: number;
}

export interface SessionDetail extends SessionView {
  readonly engagementId: string;
  /** Oldest first. */
  readonly checks: readonly CheckView[];
  readonly audio: readonly AudioView[];
}

export interface CheckView extends DecisionView {
  readonly parts: readonly CheckPartView[];
}

export interface CheckPartView {
  readonly name: CheckPart;
  /** The calibrated log-likelihood ratio and its threshold; `null` if nothing was scored. */
  readonly ratio: number | null;
  readonly threshold: number | null;
  /** Why the check failed. */
  readonly failure: string | null;
  /** Attack checks: where in the audio the sign of an attack is strongest. */
  readonly strongest: { readonly startSeconds: number; readonly endSeconds: number } | null;
}

/** A recording of a session: its measures, never what was said. */
export interface AudioView {
  readonly id: string;
  readonly at: number;
  /** `null` if the recording was stored but not yet processed. */
  readonly processedFor: "check" | "enrollment" | null;
  /** Whether the audio is still kept. */
  readonly isKept: boolean;
  readonly validity: string | null;
  readonly grossSeconds: number | null;
  readonly netSpeechSeconds: number | null;
  readonly snrDb: number | null;
  readonly rateHz: number;
  readonly channels: number;
}

export type WatchlistView = Omit<GroupSize, "scopeId" | "kind">;

/** A page of a table, and the id to request the next page with. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}
