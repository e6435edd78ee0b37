/** A check of audio that is still arriving: it looks at the checkpoints and may answer before the speaker has ended. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { AudioValidity } from "../../contract/gen/vendor/biosec/v1/common_pb.js";
import {
  AnalyzeAudioRequestSchema,
  type AnalyzeAudioResult,
  AnalyzeAudioResultSchema,
} from "../../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import type { AttackKind, Measures, VoiceAnalysis, VoiceStream } from "../../engine/port.js";
import { audioValidity } from "../../voiceprint/quality-gate.js";
import { analysisTargets, concludeAnalysis, partsOf } from "../analyze-audio.js";
import { AttackChecks, type AttackResults, longestAttackSeconds, type ReadAudio, wantedAttacks } from "../attacks.js";
import { measuredAudio } from "../audio-model.js";
import { Comparison, type HeardAudio, type Part, type PartResult } from "../check.js";
import { type OpenContext, openContext } from "../context.js";
import { type Dependencies, engineOptions, type OperationOptions } from "../dependencies.js";
import { asStatusError, invalid } from "../failures.js";
import { samplesOf } from "../recorded-audio.js";
import { inSinglePrecision } from "../single-precision.js";

/** AnalyzeAudio's request, less the audio. */
export type LiveRequest = Pick<
  Extract<MessageInitShape<typeof AnalyzeAudioRequestSchema>, { $typeName?: never }>,
  | "context"
  | "gkVoiceprintProfileIds"
  | "group"
  | "watchlist"
  | "ignoreCheckpoints"
  | "syntheticSpeechDetectionParameters"
  | "channelPlaybackDetectionParameters"
> & { readonly rateHz: number };

export interface LiveState<Result> {
  readonly netSpeechSeconds: number;
  /** Set as soon as a checkpoint gave a clear answer: no more audio is needed. */
  readonly result: Result | null;
}

/** How the check is named among those of its session. */
export const liveOperation = "Listen";

/** What is compared, and how it is told. */
export interface CheckPlan<Result> {
  readonly parts: readonly Part[];
  readonly attacks: readonly AttackKind[];
  readonly ignoreCheckpoints: boolean;
  conclude(heard: HeardAudio, results: readonly PartResult[], attacks: AttackResults): Promise<Result>;
  /** After each look: what the first part that was scored says, and whether it ends the check. */
  readonly onLook?: (netSpeechSeconds: number, result: PartResult, part: Part, isFinal: boolean) => void;
}

/** Where the audio comes from. */
export interface LiveSource {
  readonly rateHz: number;
  readonly channels: number;
  /** `null` of one channel. */
  readonly channel: number | null;
}

export async function openLiveAnalysis(
  deps: Dependencies,
  request: LiveRequest,
  options: OperationOptions,
): Promise<LiveCheck<AnalyzeAudioResult>> {
  const { rateHz, ...rest } = request;
  if (!Number.isInteger(rateHz) || rateHz < 4_000 || rateHz > 192_000)
    throw invalid(
      "rate",
      "out_of_range",
      `the sampling rate must be a whole number from 4,000 to 192,000 Hz, got ${rateHz}`,
    );
  const message = create(AnalyzeAudioRequestSchema, rest);
  const context = await openContext(deps, message.context);
  return openLiveCheck(deps, context, await analysisPlan(deps, context, message), monoSource(rateHz), options);
}

export const monoSource = (rateHz: number): LiveSource => ({ rateHz, channels: 1, channel: null });

/** As AnalyzeAudio. */
export async function analysisPlan(
  deps: Dependencies,
  context: OpenContext,
  request: Parameters<typeof analysisTargets>[2] &
    Parameters<typeof wantedAttacks>[1] & { readonly ignoreCheckpoints: boolean },
): Promise<CheckPlan<AnalyzeAudioResult>> {
  const attacks = wantedAttacks(deps, request);
  const targets = await analysisTargets(deps, context, request);
  return {
    parts: partsOf(targets, context.set),
    attacks,
    ignoreCheckpoints: request.ignoreCheckpoints,
    conclude: async (heard, results, found) =>
      inSinglePrecision(
        AnalyzeAudioResultSchema,
        create(
          AnalyzeAudioResultSchema,
          await concludeAnalysis(deps, context, liveOperation, targets, heard, results, found),
        ),
      ),
  };
}

export async function openLiveCheck<Result>(
  deps: Dependencies,
  context: OpenContext,
  plan: CheckPlan<Result>,
  source: LiveSource,
  options: OperationOptions,
): Promise<LiveCheck<Result>> {
  const { rateHz } = source;
  const kept = plan.attacks.length > 0 ? new KeptSamples(rateHz) : null;
  const read: ReadAudio | null = kept && ((from, seconds) => ({ samples: kept.read(from, seconds), rateHz }));
  const attacks = new AttackChecks(deps, plan.attacks, read, context.set, options);
  const comparison = new Comparison(deps, context.set, plan.parts, attacks, options, null, plan.ignoreCheckpoints);
  const check = new LiveCheck(deps, context, plan, comparison, kept, source, options);
  await check.open();
  return check;
}

/** More than voice activity needs to decide, and than the checks want before the first speech. */
const keptBeforeSpeechSeconds = 3;

/** What arrived, for the checks that need the audio itself: its beginning, less a long silence before the first speech. */
class KeptSamples {
  readonly #chunks: Float32Array[] = [];
  #length = 0;
  /** How many were let go before those that are kept. */
  #gone = 0;

  constructor(private readonly rateHz: number) {}

  /** `spoken`: there was speech in what was added before. */
  add(samples: Float32Array, spoken: boolean): void {
    const most = longestAttackSeconds * this.rateHz;
    const before = keptBeforeSpeechSeconds * this.rateHz;
    if (samples.length === 0 || (spoken && this.#length >= most + before)) return;
    if (!spoken && this.#gone + this.#length >= most) this.#letGo(before);
    this.#chunks.push(samples.slice());
    this.#length += samples.length;
  }

  read(from: number, seconds: number): Float32Array {
    const skip = Math.max(0, Math.round(from * this.rateHz) - this.#gone);
    return samplesOf(this.#chunks, skip, Math.round(seconds * this.rateHz));
  }

  wipe(): void {
    for (const chunk of this.#chunks) chunk.fill(0);
    this.#chunks.length = 0;
  }

  /** All but the last, `least` at least. */
  #letGo(least: number): void {
    while (this.#length - this.#chunks[0]!.length >= least) {
      const chunk = this.#chunks.shift()!;
      chunk.fill(0);
      this.#length -= chunk.length;
      this.#gone += chunk.length;
    }
  }
}

export class LiveCheck<Result> {
  #stream: VoiceStream | null = null;
  #netSpeechSeconds = 0;
  #score: number | null = null;
  /** What was heard when a look ended the stream. */
  #ending: VoiceAnalysis | null = null;
  #result: Result | null = null;
  #closed = false;
  /** Chunks are heard in the order in which they were pushed, whether or not the caller waits. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly deps: Dependencies,
    private readonly context: OpenContext,
    private readonly plan: CheckPlan<Result>,
    private readonly comparison: Comparison,
    /** `null` where no check needs the audio itself. */
    private readonly kept: KeptSamples | null,
    private readonly source: LiveSource,
    private readonly options: OperationOptions,
  ) {}

  async open(): Promise<void> {
    const { seconds } = this.comparison.checkpoints;
    this.#stream = await this.deps.engine.stream(this.source.rateHz, {
      ...engineOptions(this.options),
      checkpoints: { seconds, look: (analysis) => this.#look(analysis) },
    });
  }

  /** The best score of the last look at the first part that was scored. */
  get score(): number | null {
    return this.#score;
  }

  /** Mono samples in -1..1; the array is handed over. After an answer, more audio is not listened to. */
  push(samples: Float32Array): Promise<LiveState<Result>> {
    return this.#next(async () => {
      if (this.#result === null) {
        this.kept?.add(samples, this.#netSpeechSeconds > 0);
        this.#netSpeechSeconds = await this.#stream!.push(samples);
        if (this.#ending) await this.#conclude(this.#ending);
      }
      return { netSpeechSeconds: this.#netSpeechSeconds, result: this.#result };
    });
  }

  measures(): Promise<Measures> {
    return this.#next(() => this.#stream!.measures());
  }

  /** The answer on all that was heard. */
  finish(): Promise<Result> {
    return this.#next(async () => this.#result ?? (await this.#conclude(await this.#stream!.analysis())));
  }

  /** Ends without an answer; after `finish` or an early answer it does nothing. */
  close(): Promise<void> {
    return this.#next(() => this.#close(), true);
  }

  #next<T>(work: () => Promise<T>, evenClosed = false): Promise<T> {
    const done = this.#turn.then(async () => {
      if (this.#closed && this.#result === null && !evenClosed)
        throw invalid("audio", "closed", "the live check is closed");
      try {
        return await work();
      } catch (error) {
        await this.#close();
        throw asStatusError(error);
      }
    });
    this.#turn = done.catch(() => {});
    return done;
  }

  async #look(analysis: VoiceAnalysis): Promise<boolean> {
    const isFinal = await this.comparison.look(analysis);
    if (isFinal) this.#ending = analysis;
    const [looked] = this.comparison.lastLook;
    if (looked) {
      this.#score = looked[1].scored[0]?.score.raw ?? null;
      this.plan.onLook?.(analysis.measures.netSpeechSeconds, looked[1], looked[0], isFinal);
    }
    return isFinal;
  }

  async #conclude(analysis: VoiceAnalysis): Promise<Result> {
    const { rateHz, channels, channel } = this.source;
    const validity: AudioValidity = audioValidity(measuredAudio(analysis), "verify", this.context.set);
    const { results, attacks } = await this.comparison.conclude(analysis, validity);
    const audio = {
      mediaSegmentId: null,
      processedAudioId: null,
      channel,
      mediaChannels: channels,
      mediaRateHz: rateHz,
      measures: analysis.measures,
      speakers: analysis.speakers,
    };
    const heard = { audio, validity, analysis, unstored: null };
    this.#result = await this.plan.conclude(heard, results, attacks);
    await this.#close();
    return this.#result;
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.kept?.wipe();
    await this.#stream?.close();
  }
}
