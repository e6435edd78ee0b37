/** Checks for synthetic speech and playback, which need the audio itself. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AnalyzeAudioRequest,
  AudioValidity,
  audio as attackTypes,
  Decision,
  StatusCode,
  statusError,
} from "../contract/index.js";
import type { AttackKind, AttackScore, AttackStream, Engine, VoiceAnalysis } from "../engine/port.js";
import type { MediaSegment } from "../store/port.js";
import { decideAttack, type JudgedEvidence, type Outcome, rateOfOneComparison } from "../voiceprint/decision.js";
import { outcomeForValidity } from "../voiceprint/quality-gate.js";
import { riskOf } from "../voiceprint/risk.js";
import type { OpenContext } from "./context.js";
import { type Dependencies, engineOptions } from "./dependencies.js";
import { throwCallFailure } from "./failures.js";
import { duration, riskResult, uniqueId } from "./messages.js";
import { pieces, rawFormat } from "./recorded-audio.js";

export interface AttackResult {
  /** Its contribution to the overall decision. */
  readonly outcome: Outcome;
  readonly evidence: JudgedEvidence | undefined;
  readonly strongest?: AttackScore["strongest"];
  /** Results of both attack kinds have the same shape. */
  readonly message: AttackMessage;
}

type AttackMessage = Pick<
  Extract<MessageInitShape<typeof attackTypes.SyntheticSpeechDetectionResultSchema>, { $typeName?: never }>,
  "decision" | "reason" | "riskEngineResult" | "score" | "gkCalibrationModelRevisionId" | "strongestStretch"
>;

/** The attacks that a request asks to check. One that cannot be checked is an error; it is never silently left out. */
export function wantedAttacks(
  engine: Engine,
  request: Pick<AnalyzeAudioRequest, "syntheticSpeechDetectionParameters" | "channelPlaybackDetectionParameters">,
): AttackKind[] {
  const wanted: AttackKind[] = [
    ...(request.syntheticSpeechDetectionParameters ? (["synthetic"] as const) : []),
    ...(request.channelPlaybackDetectionParameters ? (["playback"] as const) : []),
  ];
  const unknown = wanted.find((kind) => !engine.model.attacks.includes(kind));
  if (unknown === undefined) return wanted;
  throw statusError(StatusCode.NOT_IMPLEMENTED, `the model has no check for ${unknown} speech`);
}

export type AttackResults = Partial<Record<AttackKind, AttackResult>>;

/**
 * More net speech than this changes little; the networks' published error rates are measured at this length. A checkpoint before it stops
 * listening only when the attack checks are already certain.
 */
const enoughSeconds = 8;

/** Sounds with less speech than this are not an attack, whatever they sound like: bells, sirens, a crow. */
const leastSpeechSeconds = 1;

/** The audio to check for attacks. `next` returns the next samples, or `null` when no more have arrived yet. */
export interface AttackSource {
  readonly rateHz: number;
  next(): Float32Array | null;
}

/**
 * The attack checks of one call. They run at the checkpoints of the comparisons, and once at the end, on the audio exactly up to each look, so
 * that the answer does not depend on chunk sizes.
 */
export class AttackChecks {
  #latest: { readonly analysis: VoiceAnalysis; readonly results: AttackResults } | null = null;
  #source: AttackSource | null = null;
  #streams: Map<AttackKind, AttackStream> | null = null;
  /** Samples read from the source but not processed yet. */
  #rest: Float32Array = new Float32Array(0);
  #analyzed = 0;

  constructor(
    private readonly context: OpenContext,
    private readonly kinds: readonly AttackKind[],
    /** Called when the first audio is needed: never if there is nothing to check. */
    private readonly open: () => AttackSource,
  ) {}

  /** Extra checkpoints, in addition to `others`, which are those of the comparisons. */
  checkpoints(others: readonly number[]): number[] {
    return this.kinds.length > 0 && others.some((at) => at < enoughSeconds) ? [enoughSeconds] : [];
  }

  /** `looks` is the number of looks in this call. */
  async isEnough(analysis: VoiceAnalysis, looks: number): Promise<boolean> {
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
    const rate = rateOfOneComparison(this.context.set.targetFalseAlarmRateForAttacks, 1, looks);
    const results: AttackResults = {};
    const isSpoken = analysis !== null && analysis.measures.netSpeechSeconds >= leastSpeechSeconds;
    for (const kind of this.kinds) {
      const found = analysis && (await this.#checkKind(kind, analysis, rate));
      // Audio that is unfit for recognition can still be found to be an attack (one played in a hall, say), but it is never cleared of one.
      const isAttack = isSpoken && found?.outcome.decision === Decision.FRAUD;
      const answers = validity === AudioValidity.AUDIO_OK || isAttack;
      results[kind] = found && answers ? found : withoutScore(validity);
    }
    if (analysis) this.#latest = { analysis, results };
    return results;
  }

  async #checkKind(kind: AttackKind, analysis: VoiceAnalysis, falseAlarmRate: number): Promise<AttackResult> {
    const { engine, options } = this.context;
    try {
      await this.analyze(analysis.measures.grossSeconds);
      const score = await this.#streams!.get(kind)!.score();
      if (!Number.isFinite(score.llr) || Number.isNaN(score.reliability))
        throw new Error("the engine gave no attack score");
      const evidence = { ...score, threshold: engine.attackThreshold(kind, falseAlarmRate) };
      const { decision, reason, general } = decideAttack(kind, evidence);
      return {
        outcome: general,
        evidence,
        strongest: score.strongest,
        message: {
          decision,
          reason,
          riskEngineResult: riskResult(riskOf("attack", evidence)),
          score: score.llr,
          gkCalibrationModelRevisionId: uniqueId(score.revision),
          strongestStretch: score.strongest
            ? {
                start: duration(score.strongest.startSeconds),
                end: duration(score.strongest.endSeconds),
                score: score.strongest.llr,
              }
            : undefined,
        },
      };
    } catch (error) {
      throwCallFailure(error, options.signal);
      const message = `the check for ${kind} speech could not run`;
      throw statusError(StatusCode.INTERNAL_ERROR, message, error);
    }
  }

  /** Processes all available audio, up to `seconds` from the beginning. */
  async analyze(seconds = Number.POSITIVE_INFINITY): Promise<void> {
    this.#source ??= this.open();
    const { rateHz } = this.#source;
    const streams = await this.#opened(rateHz);
    const until = Math.round(seconds * rateHz);
    while (this.#analyzed < until) {
      this.context.options.signal?.throwIfAborted();
      const samples = this.#rest.length > 0 ? this.#rest : this.#source.next();
      if (samples === null) return;
      const part = samples.subarray(0, until - this.#analyzed);
      for (const stream of streams.values()) await stream.push(part);
      this.#analyzed += part.length;
      this.#rest = samples.subarray(part.length);
    }
  }

  async #opened(rateHz: number): Promise<Map<AttackKind, AttackStream>> {
    if (this.#streams) return this.#streams;
    const { engine, options } = this.context;
    const streams = new Map<AttackKind, AttackStream>();
    for (const kind of this.kinds) streams.set(kind, await engine.attackStream(kind, rateHz, engineOptions(options)));
    this.#streams = streams;
    return streams;
  }
}

export function storedAudio(deps: Dependencies, media: MediaSegment, channel: number | null): AttackSource {
  const recording = deps.readRecording(media.audio, rawFormat(media));
  const parts = pieces(recording, channel);
  return { rateHz: recording.rateHz, next: () => parts.next().value ?? null };
}

function withoutScore(validity: AudioValidity): AttackResult {
  const outcome = outcomeForValidity(validity);
  return { outcome, evidence: undefined, message: { decision: outcome.decision, reason: attackReason(validity) } };
}

function attackReason(validity: AudioValidity): attackTypes.DecisionReason {
  if (validity === AudioValidity.MULTIPLE_SPEAKERS_DETECTED) return attackTypes.DecisionReason.LOW_RELIABILITY;
  // The two enumerations use the same numbers for 0 to 7 and 999.
  return validity as number as attackTypes.DecisionReason;
}
