/** What the operator view shows, as JSON under /operator/v1. No audio, no embeddings, no scores of people who are not asked about. */
import type { LastEvaluation } from "../../evaluate/last-evaluation.js";
import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import type { FieldRate } from "../../voiceprint/field-rates.js";
import type { LiveCallView } from "../limits/live-calls.js";

/** By the last part of the path. */
export interface OperatorAnswers {
  readonly box: BoxView;
  readonly load: LoadView;
  readonly calls: LiveCallsView;
  readonly decisions: readonly DecisionView[];
  readonly profiles: Page<ProfileView>;
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
  readonly status: string;
  /** Made by a model that the box does not have: it must be trained or enrolled again. */
  readonly obsolete: boolean;
  readonly printVersion: number;
  readonly netSpeechSeconds: number | null;
  readonly createdAt: number;
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
