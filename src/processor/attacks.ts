/** Checks for synthetic speech and playback, which need the audio itself. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  DecisionReason,
  type SyntheticSpeechDetectionResultSchema,
} from "../contract/gen/vendor/biosec/v1/audio/attacks_pb.js";
import { AudioValidity, Decision } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import type { AnalyzeAudioRequest } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { StatusCode } from "../contract/gen/vendor/rpc/status_pb.js";
import { StatusError } from "../contract/status-error.js";
import type { AttackKind, VoiceAnalysis } from "../engine/port.js";
import type { MediaSegment } from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import {
  attackThreshold,
  decideAttack,
  type JudgedEvidence,
  type Outcome,
  rateOfOneComparison,
} from "../voiceprint/decision.js";
import { outcomeForValidity } from "../voiceprint/quality-gate.js";
import { riskOf } from "../voiceprint/risk.js";
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

/**
 * Net speech after which more changes little: what the networks' figures are given for. A checkpoint before it ends the
 * hearing only when the checks are sure already.
 */
const enoughSeconds = 8;

/** The attack checks of one call: looks where the comparisons look, then the end. */
export class AttackChecks {
  #latest: { readonly analysis: VoiceAnalysis; readonly results: AttackResults } | null = null;

  constructor(
    private readonly deps: Dependencies,
    private readonly kinds: readonly AttackKind[],
    /** `null` where no check needs the audio itself. */
    private readonly read: ReadAudio | null,
    private readonly set: ConfigurationSet,
    private readonly options: OperationOptions,
  ) {}

  /** Where to look beside `others`, which are the checkpoints of the comparisons. */
  checkpoints(others: readonly number[]): number[] {
    return this.kinds.length > 0 && others.some((at) => at < enoughSeconds) ? [enoughSeconds] : [];
  }

  /** Of `looks` in this call. */
  async heardEnough(analysis: VoiceAnalysis, looks: number): Promise<boolean> {
    const results = await this.#check(analysis, AudioValidity.AUDIO_OK, looks);
    return (
      analysis.measures.netSpeechSeconds >= enoughSeconds ||
      Object.values(results).every(({ outcome }) => outcome.decision !== Decision.UNCERTAIN)
    );
  }

  async conclude(analysis: VoiceAnalysis | null, validity: AudioValidity, looks: number): Promise<AttackResults> {
    return this.#latest && this.#latest.analysis === analysis
      ? this.#latest.results
      : this.#check(analysis, validity, looks);
  }

  async #check(analysis: VoiceAnalysis | null, validity: AudioValidity, looks: number): Promise<AttackResults> {
    const { deps, read, options } = this;
    const rate = rateOfOneComparison(this.set.targetFalseAlarmRateForAttacks, 1, looks);
    const results: AttackResults = {};
    for (const kind of this.kinds)
      results[kind] =
        analysis && validity === AudioValidity.AUDIO_OK
          ? await checkAttack(deps, kind, read!, analysis, attackThreshold(rate), options)
          : withoutScore(validity);
    if (analysis) this.#latest = { analysis, results };
    return results;
  }
}

/** Samples of audio that was heard, so many seconds from there on, read anew for each check: the engine takes them over. */
export type ReadAudio = (from: number, seconds: number) => { readonly samples: Float32Array; readonly rateHz: number };

export const storedAudio =
  (deps: Dependencies, media: MediaSegment, heardChannel: number | null): ReadAudio =>
  (from, seconds) => {
    const recording = openRecording(deps, media);
    if (recording === null) throw new Error("audio that was heard before cannot be read again");
    const channel = media.channels === 1 ? null : heardChannel;
    return { samples: readSamples(recording, channel, seconds, from), rateHz: recording.rateHz };
  };

async function checkAttack(
  deps: Dependencies,
  kind: AttackKind,
  read: ReadAudio,
  analysis: VoiceAnalysis,
  threshold: number,
  options: OperationOptions,
): Promise<AttackResult> {
  try {
    const { from, seconds } = spanOf(analysis);
    const { samples, rateHz } = read(from, seconds);
    const score = await deps.engine.attack(kind, samples, rateHz, engineOptions(options));
    if (!Number.isFinite(score.llr) || Number.isNaN(score.reliability))
      throw new Error("the engine gave no attack score");
    const evidence = { ...score, threshold };
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
