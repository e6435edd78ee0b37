/** A check of audio that is still arriving: it looks at checkpoints and may answer before the speaker has finished. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AnalyzeAudioRequestSchema, type AnalyzeAudioResult, AnalyzeAudioResultSchema } from "../../contract/index.js";
import type { AttackKind, Measures } from "../../engine/port.js";
import type { Id } from "../../store/port.js";
import { analysisTargets, concludeAnalysis, partsOf } from "../analyze-audio.js";
import type { AnalyzedAudio, PartResult } from "../analyzed-audio.js";
import { AttackChecks, type AttackResults, type AttackSource, wantedAttacks } from "../attacks.js";
import type { Separation } from "../caller-voice.js";
import { leftOutMessage } from "../candidates.js";
import { Comparison, type Part } from "../check.js";
import { type OpenContext, openContext } from "../context.js";
import { type Dependencies, engineOptions, type OperationOptions } from "../dependencies.js";
import { failureOf, invalid, isStoreAway } from "../failures.js";
import { type JointAnalysis, type JointStream, listenerOf } from "../joint-analysis.js";
import { inSinglePrecision } from "../single-precision.js";

/** AnalyzeAudio's request without the audio. */
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

/** Progress of a live check. */
export interface LiveState<Result> {
  readonly netSpeechSeconds: number;
  /** Set as soon as a checkpoint gave a clear answer: no more audio is needed. */
  readonly result: Result | null;
}

/** At most this much recent audio is not yet classified as speech or not. */
const undecidedSeconds = 0.2;

/** How often, and for how long, to try to reach a database that is away. Each try may take half a minute. */
const awayPauseMs = 1000;
const longestAwayMs = 60_000;

/** The operation name stored for live checks of a session. */
export const liveOperation = "Listen";

/** What is compared, and how the result is reported. */
export interface CheckPlan<Result> {
  readonly parts: readonly Part[];
  readonly attacks: readonly AttackKind[];
  readonly ignoreCheckpoints: boolean;
  conclude(analyzed: AnalyzedAudio, results: readonly PartResult[], attacks: AttackResults): Promise<Result>;
  /** Called after each look with the result of the first part that was scored, and whether it ends the check. */
  readonly onLook?: (netSpeechSeconds: number, result: PartResult, part: Part, isFinal: boolean) => void;
}

/** Where the audio comes from. */
export interface LiveSource {
  readonly rateHz: number;
  readonly channels: number;
  /** `null` for audio with one channel. */
  readonly channel: number | null;
  /** `null` if one person speaks. */
  readonly separation: Separation | null;
  /** The session is about the first party, unless its claimed person is another. */
  readonly isSecondParty: boolean;
}

export async function openLiveAnalysis(
  deps: Dependencies,
  request: LiveRequest,
  options: OperationOptions,
): Promise<LiveCheck<AnalyzeAudioResult>> {
  const { rateHz, ...rest } = request;
  checkLiveRate(rateHz);
  const message = create(AnalyzeAudioRequestSchema, rest);
  const context = await openContext(deps, message.context, options);
  return openLiveCheck(context, await analysisPlan(context, message), monoSource(rateHz));
}

export function checkLiveRate(rateHz: number): void {
  if (Number.isInteger(rateHz) && rateHz >= 4_000 && rateHz <= 192_000) return;
  const message = `the sampling rate must be a whole number from 4,000 to 192,000 Hz, got ${rateHz}`;
  throw invalid("rate", "out_of_range", message);
}

const monoSource = (rateHz: number): LiveSource => ({
  rateHz,
  channels: 1,
  channel: null,
  separation: null,
  isSecondParty: false,
});

/** The same checks as AnalyzeAudio. */
export async function analysisPlan(
  context: OpenContext,
  request: Parameters<typeof analysisTargets>[1] &
    Parameters<typeof wantedAttacks>[1] & { readonly ignoreCheckpoints: boolean },
): Promise<CheckPlan<AnalyzeAudioResult>> {
  const attacks = wantedAttacks(context.engine, request);
  const targets = await analysisTargets(context, request);
  return {
    parts: partsOf(targets, context.set),
    attacks,
    ignoreCheckpoints: request.ignoreCheckpoints,
    conclude: async (analyzed, results, found) =>
      inSinglePrecision(
        AnalyzeAudioResultSchema,
        create(
          AnalyzeAudioResultSchema,
          await concludeAnalysis(context, liveOperation, targets, analyzed, results, found),
        ),
      ),
  };
}

export async function openLiveCheck<Result>(
  context: OpenContext,
  plan: CheckPlan<Result>,
  source: LiveSource,
): Promise<LiveCheck<Result>> {
  const arrived = new ArrivedSamples(source.rateHz);
  const attacks = new AttackChecks(context, plan.attacks, () => arrived);
  const { separation } = source;
  const comparison = new Comparison(context, plan.parts, attacks, null, plan.ignoreCheckpoints, separation);
  const check = new LiveCheck(context, plan, comparison, plan.attacks.length > 0 ? { arrived, attacks } : null, source);
  await check.open();
  return check;
}

/** Audio that has arrived but was not yet processed by the checks that need the audio itself. */
class ArrivedSamples implements AttackSource {
  readonly #chunks: Float32Array[] = [];

  constructor(readonly rateHz: number) {}

  add(samples: Float32Array): void {
    this.#chunks.push(samples.slice());
  }

  next(): Float32Array | null {
    return this.#chunks.shift() ?? null;
  }

  wipe(): void {
    for (const chunk of this.#chunks) chunk.fill(0);
    this.#chunks.length = 0;
  }
}

/** A check of audio that is still arriving. */
export class LiveCheck<Result> {
  #stream: JointStream | null = null;
  #netSpeechSeconds = 0;
  #score: number | null = null;
  /** The analysis at the look that ended the stream. */
  #ending: JointAnalysis | null = null;
  #result: Result | null = null;
  /** The same in each attempt to store the result, because one that got no answer may have been executed. */
  #checkId: Id | null = null;
  #closed = false;
  /** Chunks are processed in the order in which they were pushed, whether or not the caller waits. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly context: OpenContext,
    private readonly plan: CheckPlan<Result>,
    private readonly comparison: Comparison,
    /** `null` if no check needs the audio itself. */
    private readonly audio: { readonly arrived: ArrivedSamples; readonly attacks: AttackChecks } | null,
    private readonly source: LiveSource,
  ) {}

  /** Must be called before the first audio. */
  async open(): Promise<void> {
    const { deps, options, scopeId } = this.context;
    const { revisions, checkpoints } = this.comparison;
    const listener = await listenerOf(deps.models, scopeId, revisions);
    this.#stream = await listener.stream(this.source.rateHz, {
      ...engineOptions(options),
      separateVoices: this.source.separation !== null,
      checkpoints: { seconds: checkpoints.seconds, look: (analysis) => this.#look(analysis) },
    });
  }

  /** Which prints are not compared, and why; empty if all are. */
  get notCompared(): string {
    return leftOutMessage(this.plan.parts.flatMap(({ candidates }) => candidates.leftOut));
  }

  /** The best score of the last look at the first part that was scored. */
  get score(): number | null {
    return this.#score;
  }

  /** No result is possible within this many seconds: the next checkpoint needs at least that much more speech. */
  get calmSeconds(): number {
    const next = this.comparison.checkpoints.seconds.find((at) => at > this.#netSpeechSeconds);
    return next === undefined ? Number.POSITIVE_INFINITY : next - this.#netSpeechSeconds - undecidedSeconds;
  }

  /** Mono samples in -1..1; ownership of the array passes to the check. Audio after an answer is ignored. */
  push(samples: Float32Array): Promise<LiveState<Result>> {
    return this.#next(async () => {
      if (this.#result === null && !this.#ending) {
        this.audio?.arrived.add(samples);
        this.#netSpeechSeconds = await this.#stream!.push(samples);
        if (!this.#ending) await this.audio?.attacks.analyze();
      }
      if (this.#result === null && this.#ending) await unlessStoreIsAway(this.#conclude(this.#ending));
      return { netSpeechSeconds: this.#netSpeechSeconds, result: this.#result };
    });
  }

  /** Measures of the audio so far. */
  measures(): Promise<Measures> {
    return this.#next(() => this.#stream!.measures());
  }

  /** The answer for all audio so far. */
  finish(): Promise<Result> {
    return this.#next(async () => {
      if (this.#result !== null) return this.#result;
      const analysis = this.#ending ?? (await this.#stream!.analysis());
      return untilStoreIsBack(() => this.#conclude(analysis), this.context.options);
    });
  }

  /** Ends the check without an answer; does nothing after `finish` or an early answer. */
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
        throw failureOf(error);
      }
    });
    this.#turn = done.catch(() => {});
    return done;
  }

  async #look(analysis: JointAnalysis): Promise<boolean> {
    const isFinal = await unlessStoreIsAway(this.comparison.look(analysis));
    // Without the store nobody knows whether a print may still be used. The next look decides, or the end of the call.
    if (isFinal === null) return false;
    if (isFinal) this.#ending = analysis;
    const [looked] = this.comparison.lastLook;
    if (looked) {
      this.#score = looked[1].scored[0]?.score.raw ?? null;
      this.plan.onLook?.(analysis.measures.netSpeechSeconds, looked[1], looked[0], isFinal);
    }
    return isFinal;
  }

  async #conclude(analysis: JointAnalysis): Promise<Result> {
    const { rateHz, channels, channel, isSecondParty } = this.source;
    const { results, attacks, validity, reported, separated } = await this.comparison.conclude(analysis);
    const audio = {
      mediaSegmentId: null,
      processedAudioId: null,
      channel,
      mediaChannels: channels,
      mediaRateHz: rateHz,
      measures: reported!.measures,
      speakers: analysis.speakers,
      separated,
    };
    this.#checkId ??= this.context.deps.ids.next();
    const analyzed = { audio, checkId: this.#checkId, isSecondParty, validity, analysis: reported, unstored: null };
    this.#result = await this.plan.conclude(analyzed, results, attacks);
    await this.#close();
    return this.#result;
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.audio?.arrived.wipe();
    await this.#stream?.close();
  }
}

/** Repeats work that needs a store that is away: the speaker cannot repeat what was said. */
export async function untilStoreIsBack<T>(work: () => Promise<T>, { signal }: OperationOptions): Promise<T> {
  for (const until = performance.now() + longestAwayMs; performance.now() < until; ) {
    const result = await unlessStoreIsAway(work());
    if (result !== null) return result;
    await new Promise((resume) => setTimeout(resume, awayPauseMs));
    signal?.throwIfAborted();
  }
  return work();
}

/** `null` if the work needs a store that cannot be reached. */
async function unlessStoreIsAway<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (isStoreAway(error)) return null;
    throw error;
  }
}
