/** What the operator view shows, as JSON under /operator/v1. No audio, no embeddings. */
import type { LastEvaluation } from "../../evaluate/last-evaluation.js";
import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import type { Consent, GroupKind } from "../../store/port.js";
import type { FieldRate } from "../../voiceprint/field-rates.js";
import type { CheckPart } from "../../voiceprint/session-decision.js";
import type { LiveCallView } from "../limits/live-calls.js";

/** By the last part of the path; one of a list by the name of one. */
export interface OperatorAnswers {
  readonly box: BoxView;
  readonly load: LoadView;
  readonly calls: LiveCallsView;
  readonly decisions: readonly DecisionView[];
  readonly profiles: Page<ProfileView>;
  readonly profile: ProfileDetail;
  readonly sessions: Page<SessionView>;
  readonly session: SessionDetail;
  readonly watchlists: Page<WatchlistView>;
  readonly models: ModelsView;
  readonly promises: PromisesView;
  readonly evaluation: EvaluationView;
}

export interface Spread {
  readonly median: number;
  /** 95 of 100 are below. */
  readonly p95: number;
}

export interface LoadSpan {
  /** Its beginning, in milliseconds since 1970. */
  readonly at: number;
  /** Calls with audio that were answered. */
  readonly calls: number;
  /** The most at a time. */
  readonly running: number;
  readonly waiting: number;
  /** Seconds from a whole request to its answer. */
  readonly latency: Spread | null;
  /** Time worked on a recording over its length. */
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

export interface LoadView {
  readonly now: number;
  readonly running: number;
  readonly waiting: number;
  readonly concurrent: number;
  readonly capacity: number;
  readonly spanMs: number;
  readonly spans: readonly LoadSpan[];
}

/** Live calls under way, oldest first. */
export interface LiveCallsView {
  readonly now: number;
  readonly capacity: number;
  readonly calls: readonly LiveCallView[];
}

/** Names are those of the contract's enumerations, without their prefix. */
export interface DecisionView {
  readonly id: string;
  readonly at: number;
  readonly operation: string;
  readonly decision: string;
  readonly reason: string;
  readonly risk: number | null;
  readonly reliability: number | null;
  readonly sessionId: string;
  readonly profileId: string | null;
}

export interface ProfileView {
  readonly id: string;
  readonly kind: "person" | "fraudster";
  readonly ownerId: string;
  readonly tag: string;
  /**
   * The contract's status; or OBSOLETE: made by a model that the box does not have, it must be trained or enrolled again; or WITHDRAWN:
   * the person took consent back, it is not compared.
   */
  readonly state: string;
  readonly printVersion: number;
  readonly netSpeechSeconds: number | null;
  readonly createdAt: number;
}

export interface ProfileDetail extends ProfileView {
  readonly printType: string | null;
  /** That made the template; `null` until it is trained. */
  readonly model: { readonly revision: string; readonly calibrationModelId: string | null } | null;
  readonly snrDb: number | null;
  readonly bandwidthHz: number | null;
  readonly consent: Consent | null;
  /** The recordings that it was enrolled from, and the calls that it has learned from since. */
  readonly enrolled: readonly HeardSession[];
  readonly learned: readonly HeardSession[];
  readonly lists: readonly { readonly id: string; readonly kind: GroupKind; readonly tag: string }[];
}

/** What a session gave to a print. */
export interface HeardSession {
  readonly at: number;
  readonly sessionId: string;
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
}

export interface SessionView {
  readonly id: string;
  readonly type: string;
  readonly externalId: string;
  readonly startedAt: number;
  /** `null` while it runs. */
  readonly stoppedAt: number | null;
  /** Whom the decision is about, and whom the latest comparison matched; empty where nobody. */
  readonly person: string;
  readonly matchedPerson: string;
  /** Of all its checks. UNSPECIFIED: there was none. */
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
  /** The calibrated log-likelihood ratio, and where the decision turned; `null` where nothing was scored. */
  readonly ratio: number | null;
  readonly threshold: number | null;
  /** Why it could not be done. */
  readonly failure: string | null;
  /** Of an attack check: where in the audio it sounds most like one. */
  readonly strongest: { readonly startSeconds: number; readonly endSeconds: number } | null;
}

/** A recording of a session: what was measured, never what was said. */
export interface AudioView {
  readonly id: string;
  readonly at: number;
  /** `null`: it was stored and not heard yet. */
  readonly heardFor: "check" | "enrollment" | null;
  /** Whether the audio itself is still there. */
  readonly isKept: boolean;
  readonly validity: string | null;
  readonly grossSeconds: number | null;
  readonly netSpeechSeconds: number | null;
  readonly snrDb: number | null;
  readonly rateHz: number;
  readonly channels: number;
}

export interface WatchlistView {
  readonly id: string;
  readonly tag: string;
  readonly profiles: number;
  readonly owners: number;
}

/** A page of a table, and the id to ask for the next one with. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

export interface PromisesView {
  /** For each kind of list and each promised rate; sums of all replicas. */
  readonly rates: readonly FieldRate[];
}

/** How far the prints of a scope have moved to the model of its new prints, which comes first. */
export interface ModelsView {
  readonly models: readonly PrintsOfModel[];
}

export interface EvaluationView {
  /** `null`: none was made yet. */
  readonly evaluation: LastEvaluation | null;
}
