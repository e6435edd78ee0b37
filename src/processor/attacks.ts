/** Checks for synthetic speech and playback, which need the audio itself. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  DecisionReason,
  type SyntheticSpeechDetectionResultSchema,
} from "../contract/gen/vendor/biosec/v1/audio/attacks_pb.js";
import { AudioValidity } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { StatusCode } from "../contract/gen/vendor/rpc/status_pb.js";
import { StatusError } from "../contract/status-error.js";
import type { AttackKind } from "../engine/port.js";
import type { MediaSegment } from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import { attackThreshold, decideAttack, type JudgedEvidence, type Outcome } from "../voiceprint/decision.js";
import { outcomeForValidity } from "../voiceprint/quality-gate.js";
import { riskOf } from "../voiceprint/risk.js";
import type { HeardAudio } from "./check.js";
import { type Dependencies, engineOptions, type OperationOptions } from "./dependencies.js";
import { callFailure } from "./failures.js";
import { riskResult, uniqueId } from "./messages.js";
import { openRecording, readSamples } from "./recorded-audio.js";

export interface AttackResult {
  /** What it adds to the decision over all factors. */
  readonly outcome: Outcome;
  readonly evidence: JudgedEvidence | undefined;
  /** The two kinds have results of the same shape. */
  readonly message: AttackMessage;
}

type AttackMessage = Pick<
  Extract<MessageInitShape<typeof SyntheticSpeechDetectionResultSchema>, { $typeName?: never }>,
  "decision" | "reason" | "riskEngineResult" | "score" | "gkCalibrationModelRevisionId"
>;

/** A check that was asked for and cannot run is an error, never an absent part. */
export function assertAttackKnown(deps: Dependencies, kind: AttackKind): void {
  if (!deps.engine.model.attacks.includes(kind))
    throw new StatusError({
      statusCode: StatusCode.NOT_IMPLEMENTED,
      message: `the model has no check for ${kind} speech`,
    });
}

/** An attack is looked for in what was heard, and in no more than this. */
const longestSeconds = 60;

export async function checkAttack(
  deps: Dependencies,
  kind: AttackKind,
  media: MediaSegment,
  heard: HeardAudio,
  set: ConfigurationSet,
  options: OperationOptions,
): Promise<AttackResult> {
  const recording = heard.validity === AudioValidity.AUDIO_OK ? openRecording(deps, media) : null;
  if (recording === null || heard.analysis === null) return withoutScore(heard.validity);
  const seconds = Math.min(longestSeconds, heard.analysis.measures.grossSeconds);
  const channel = media.channels === 1 ? null : heard.audio.channel;
  const samples = readSamples(recording, channel, seconds);
  try {
    const score = await deps.engine.attack(kind, samples, recording.rateHz, engineOptions(options));
    if (Number.isNaN(score.llr) || Number.isNaN(score.reliability)) throw new Error("the engine gave no attack score");
    const evidence = { ...score, threshold: attackThreshold(set.targetFalseAlarmRateForAttacks) };
    const { decision, reason, general } = decideAttack(kind, evidence);
    return {
      outcome: general,
      evidence,
      message: {
        decision,
        reason,
        riskEngineResult: riskResult(riskOf("attack", evidence)),
        score: score.llr,
        gkCalibrationModelRevisionId: uniqueId(score.revision),
      },
    };
  } catch (error) {
    options.signal?.throwIfAborted();
    const failure = callFailure(error);
    if (failure) throw failure;
    const unsupported = error instanceof Error && error.name === "NotSupportedError";
    throw new StatusError(
      {
        statusCode: unsupported ? StatusCode.NOT_IMPLEMENTED : StatusCode.INTERNAL_ERROR,
        message: `the check for ${kind} speech could not run`,
      },
      { cause: error },
    );
  }
}

function withoutScore(validity: AudioValidity): AttackResult {
  const outcome = outcomeForValidity(validity);
  return { outcome, evidence: undefined, message: { decision: outcome.decision, reason: attackReason(validity) } };
}

function attackReason(validity: AudioValidity): DecisionReason {
  if (validity === AudioValidity.MULTIPLE_SPEAKERS_DETECTED) return DecisionReason.LOW_RELIABILITY;
  // Up to 7, and 999, the two enumerations number alike.
  return validity as number as DecisionReason;
}
