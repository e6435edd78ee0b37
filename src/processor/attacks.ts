/** Checks for synthetic speech and playback, which need the audio itself. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  DecisionReason,
  type SyntheticSpeechDetectionResultSchema,
} from "../contract/gen/vendor/biosec/v1/audio/attacks_pb.js";
import { AudioValidity } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import type { AnalyzeAudioRequest } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { StatusCode } from "../contract/gen/vendor/rpc/status_pb.js";
import { StatusError } from "../contract/status-error.js";
import type { AttackKind, VoiceAnalysis } from "../engine/port.js";
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
function assertAttackKnown(deps: Dependencies, kind: AttackKind): void {
  if (!deps.engine.model.attacks.includes(kind))
    throw new StatusError({
      statusCode: StatusCode.NOT_IMPLEMENTED,
      message: `the model has no check for ${kind} speech`,
    });
}

/** An attack is looked for in what was heard, and in no more than this. */
export const longestAttackSeconds = 60;
/** Of longer audio that begins so much before its first speech: callers may wait for minutes before they speak. */
const leadSeconds = 1;

function spanOf({ windows, measures: { grossSeconds } }: VoiceAnalysis): { from: number; seconds: number } {
  const from = grossSeconds > longestAttackSeconds ? Math.max(0, (windows[0]?.startSeconds ?? 0) - leadSeconds) : 0;
  return { from, seconds: Math.min(longestAttackSeconds, grossSeconds - from) };
}

/** Which attacks a request asks about; refused when the model cannot tell. */
export function wantedAttacks(
  deps: Dependencies,
  request: Pick<AnalyzeAudioRequest, "syntheticSpeechDetectionParameters" | "channelPlaybackDetectionParameters">,
): AttackKind[] {
  const wanted: AttackKind[] = [
    ...(request.syntheticSpeechDetectionParameters ? (["synthetic"] as const) : []),
    ...(request.channelPlaybackDetectionParameters ? (["playback"] as const) : []),
  ];
  for (const kind of wanted) assertAttackKnown(deps, kind);
  return wanted;
}

export type AttackResults = Partial<Record<AttackKind, AttackResult>>;

export async function checkAttacks(
  deps: Dependencies,
  kinds: readonly AttackKind[],
  read: ReadAudio,
  heard: HeardAudio,
  set: ConfigurationSet,
  options: OperationOptions,
): Promise<AttackResults> {
  const results: AttackResults = {};
  for (const kind of kinds) results[kind] = await checkAttack(deps, kind, read, heard, set, options);
  return results;
}

/** Samples of audio that was heard, so many seconds from there on, read anew for each check: the engine takes them over. */
export type ReadAudio = (from: number, seconds: number) => { readonly samples: Float32Array; readonly rateHz: number };

export const storedAudio =
  (deps: Dependencies, media: MediaSegment, { audio }: HeardAudio): ReadAudio =>
  (from, seconds) => {
    const recording = openRecording(deps, media);
    if (recording === null) throw new Error("audio that was heard before cannot be read again");
    const channel = media.channels === 1 ? null : audio.channel;
    return { samples: readSamples(recording, channel, seconds, from), rateHz: recording.rateHz };
  };

async function checkAttack(
  deps: Dependencies,
  kind: AttackKind,
  read: ReadAudio,
  heard: HeardAudio,
  set: ConfigurationSet,
  options: OperationOptions,
): Promise<AttackResult> {
  if (heard.validity !== AudioValidity.AUDIO_OK || heard.analysis === null) return withoutScore(heard.validity);
  try {
    const { from, seconds } = spanOf(heard.analysis);
    const { samples, rateHz } = read(from, seconds);
    const score = await deps.engine.attack(kind, samples, rateHz, engineOptions(options));
    if (!Number.isFinite(score.llr) || Number.isNaN(score.reliability))
      throw new Error("the engine gave no attack score");
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
