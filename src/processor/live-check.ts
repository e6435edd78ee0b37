/** A check of audio that is still arriving: it looks at the checkpoints and may answer before the speaker has ended. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { AudioValidity } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import {
  AnalyzeAudioRequestSchema,
  type AnalyzeAudioResult,
  AnalyzeAudioResultSchema,
} from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import type { VoiceAnalysis, VoiceStream } from "../engine/port.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { type AnalysisTargets, analysisTargets, concludeAnalysis, partsOf } from "./analyze-audio.js";
import { AttackChecks, longestAttackSeconds, type ReadAudio, wantedAttacks } from "./attacks.js";
import { measuredAudio } from "./audio-model.js";
import { Comparison } from "./check.js";
import { type OpenContext, openContext } from "./context.js";
import { type Dependencies, engineOptions, type OperationOptions } from "./dependencies.js";
import { asStatusError, invalid } from "./failures.js";
import { samplesOf } from "./recorded-audio.js";
import { inSinglePrecision } from "./single-precision.js";

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

export interface LiveState {
  readonly netSpeechSeconds: number;
  /** Set as soon as a checkpoint gave a clear answer: no more audio is needed. */
  readonly result: AnalyzeAudioResult | null;
}

export async function openLiveCheck(
  deps: Dependencies,
  request: LiveRequest,
  options: OperationOptions,
): Promise<LiveCheck> {
  const { rateHz, ...rest } = request;
  if (!Number.isInteger(rateHz) || rateHz < 4_000 || rateHz > 192_000)
    throw invalid("rate", "out_of_range", "the sampling rate must be a whole number from 4,000 to 192,000 Hz");
  const message = create(AnalyzeAudioRequestSchema, rest);
  const context = await openContext(deps, message.context);
  const wanted = wantedAttacks(deps, message);
  const targets = await analysisTargets(deps, context, message);
  const parts = partsOf(targets, context.set);
  const kept = wanted.length > 0 ? new KeptSamples(rateHz) : null;
  const read: ReadAudio | null = kept && ((from, seconds) => ({ samples: kept.read(from, seconds), rateHz }));
  const attacks = new AttackChecks(deps, wanted, read, context.set, options);
  const comparison = new Comparison(deps, context.set, parts, attacks, options, null, message.ignoreCheckpoints);
  const stream = await deps.engine.stream(rateHz, engineOptions(options));
  return new LiveCheck(deps, context, targets, comparison, kept, stream, rateHz);
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

export class LiveCheck {
  #passed = 0;
  #netSpeechSeconds = 0;
  #result: AnalyzeAudioResult | null = null;
  #closed = false;
  /** Chunks are heard in the order in which they were pushed, whether or not the caller waits. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly deps: Dependencies,
    private readonly context: OpenContext,
    private readonly targets: AnalysisTargets,
    private readonly comparison: Comparison,
    private readonly kept: KeptSamples | null,
    private readonly stream: VoiceStream,
    private readonly rateHz: number,
  ) {}

  /** Mono samples in -1..1; the array is handed over. After an answer, more audio is not listened to. */
  push(samples: Float32Array): Promise<LiveState> {
    return this.#next(async () => {
      if (this.#result === null) {
        this.kept?.add(samples, this.#netSpeechSeconds > 0);
        this.#netSpeechSeconds = await this.stream.push(samples);
        const reached = this.comparison.checkpoints.filter((at) => this.#netSpeechSeconds >= at).length;
        if (reached > this.#passed) {
          this.#passed = reached;
          const analysis = await this.stream.analysis();
          if (await this.comparison.look(analysis)) await this.#conclude(analysis);
        }
      }
      return { netSpeechSeconds: this.#netSpeechSeconds, result: this.#result };
    });
  }

  /** The answer on all that was heard. */
  finish(): Promise<AnalyzeAudioResult> {
    return this.#next(async () => this.#result ?? (await this.#conclude(await this.stream.analysis())));
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

  async #conclude(analysis: VoiceAnalysis): Promise<AnalyzeAudioResult> {
    const validity: AudioValidity = audioValidity(measuredAudio(analysis), "verify", this.context.set);
    const { results, attacks } = await this.comparison.conclude(analysis, validity);
    const audio = {
      mediaSegmentId: null,
      processedAudioId: null,
      channel: null,
      mediaChannels: 1,
      mediaRateHz: this.rateHz,
      measures: analysis.measures,
      speakers: analysis.speakers,
    };
    const heard = { audio, validity, analysis, unstored: null };
    const result = await concludeAnalysis(this.deps, this.context, "LiveCheck", this.targets, heard, results, attacks);
    this.#result = inSinglePrecision(AnalyzeAudioResultSchema, create(AnalyzeAudioResultSchema, result));
    await this.#close();
    return this.#result;
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.kept?.wipe();
    await this.stream.close();
  }
}
