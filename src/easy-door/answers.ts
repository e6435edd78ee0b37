/** The answers of checks, as plain JSON values. */
import { type DescMessage, type MessageJsonType, type MessageShape, toJson } from "@bufbuild/protobuf";
import { secondsOf } from "../contract/duration.js";
import {
  type AnalyzeAudioResult,
  type AnalyzeAudioResultJson,
  AnalyzeAudioResultSchema,
  AudioValidity,
  type AuthenticationScore,
  Decision,
  DecisionReason,
  type FraudDetectionScore,
  type IdentifyResultJson,
  type VerifyResult,
} from "../contract/index.js";
import { type Comparison, comparisonOf } from "../workflow.js";

/** A decision by its name in the contract. */
export type DecisionName = keyof typeof Decision;
/** A reason by its name in the contract. */
export type ReasonName = keyof typeof DecisionReason;

/** The answer of a check, as plain JSON values. */
export interface Answer<Result> extends Comparison {
  readonly decision: DecisionName;
  readonly reason: ReasonName;
  /** 0..1000, higher is riskier. */
  readonly risk: number | null;
  /** 0..100 */
  readonly reliability: number | null;
  readonly netSpeechSeconds: number;
  /** Which prints could not be compared, why, and what to do; empty if all were compared. */
  readonly notCompared: string;
  /** The contract's complete result, as JSON. */
  readonly result: Result;
}

/** A person who was compared. */
export interface NamedScore extends Comparison {
  readonly name: string;
}

/** The answer of `identify`. */
export interface Identification extends Answer<IdentifyResultJson> {
  /** The person identified; `null` unless the decision is AUTHENTIC. */
  readonly person: string | null;
  /** Best first. */
  readonly candidates: readonly NamedScore[];
}

/** The answer of `analyze`: several checks at once. */
export interface Analysis extends Answer<AnalyzeAudioResultJson> {
  readonly validity: keyof typeof AudioValidity;
  /** The most likely person and fraudster among those compared, whatever the decision. */
  readonly likeliestPerson: string | null;
  readonly likeliestFraudster: string | null;
}

export function answerOf<Schema extends DescMessage>(
  schema: Schema,
  result: MessageShape<Schema> & Pick<VerifyResult, "decision" | "reason" | "audioDetails">,
  score: AuthenticationScore | FraudDetectionScore | undefined,
  risk: VerifyResult["riskEngineResult"],
  notCompared = "",
): Answer<MessageJsonType<Schema>> {
  return {
    decision: Decision[result.decision] as DecisionName,
    reason: DecisionReason[result.reason] as ReasonName,
    ...comparisonOf(score),
    risk: risk?.risk ?? null,
    reliability: risk?.reliability ?? null,
    netSpeechSeconds: secondsOf(result.audioDetails?.netAudio),
    notCompared,
    result: toJson(schema, result) as MessageJsonType<Schema>,
  };
}

export function analysisOf(
  result: AnalyzeAudioResult,
  names: ReadonlyMap<string, string>,
  notCompared: string | undefined,
): Analysis {
  const { authenticationResult: person, fraudDetectionResult: fraudster } = result;
  // The values are those of the part that the decision is based on.
  const isFraud = fraudster?.decision === Decision.FRAUD;
  const score = (isFraud ? undefined : person?.authenticationScore) ?? fraudster?.fraudDetectionScore;
  const nameOf = (id: string | undefined) => (id === undefined ? null : (names.get(id) ?? null));
  return {
    ...answerOf(AnalyzeAudioResultSchema, result, score, result.riskEngineGlobalResult, notCompared),
    validity: AudioValidity[result.validity] as keyof typeof AudioValidity,
    likeliestPerson: nameOf(person?.topPersonVoiceprintDetails?.gkVoiceprintProfileId?.value),
    likeliestFraudster: nameOf(fraudster?.topFraudsterVoiceprintDetails?.gkVoiceprintProfileId?.value),
  };
}
