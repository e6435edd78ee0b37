/** One recording while it is processed: its state travels to whichever thread is free, its windows are embedded on all threads. */
import { typeName } from "../type-name.js";
import { badArgument, EngineError } from "./engine-error.js";
import { isMoved, movedSamples } from "./moved.js";
import type { Measures, ModelInfo, StreamOptions, VoiceAnalysis, VoiceStream } from "./port.js";
import { mostSeparatedSeconds, SeparatedVoices } from "./separated-voices.js";
import { pieceFrames, type StreamFormat, type StreamState, type StreamStep } from "./stream-kernel.js";
import type { ThreadWork } from "./thread-work.js";
import type { Threads } from "./threads.js";
import { Turns } from "./turns.js";
import { type AnalyzedStream, OneVoice, type Summaries, stateBuffers, type WindowVoices } from "./window-voices.js";

/** Samples in one piece of work: a thread cannot be interrupted for longer than this. */
export const piece = 1 << 20;

export function checkRate(rateHz: number): void {
  if (Number.isInteger(rateHz) && rateHz >= 4_000 && rateHz <= 192_000) return;
  throw new EngineError("BAD_RATE", `the sampling rate must be 4,000 to 192,000 Hz, got ${rateHz}`);
}

/** Before samples cross threads; the kernels check their values. */
export function checkSampleArray(samples: Float32Array): void {
  if (!(samples instanceof Float32Array))
    throw new EngineError(
      "BAD_SAMPLES",
      `samples must be a Float32Array with values from -1 to 1, got ${typeName(samples)}`,
    );
  if (isMoved(samples.buffer)) throw movedSamples();
}

/** The kernels would wait forever for a checkpoint that is not a number, and skip one that is earlier than the previous one. */
function checkCheckpoints(seconds: readonly number[]): void {
  if (seconds.every((at, i) => typeof at === "number" && at >= (seconds[i - 1] ?? 0))) return;
  throw badArgument(`checkpoints must be at 0 s or later, in ascending order, got ${seconds.join(", ")}`);
}

/** What a stream needs from the model. */
export type StreamModel = Pick<ModelInfo, "windowSeconds"> & Summaries;

export class EngineStream implements VoiceStream {
  readonly #threads: Threads;
  readonly #format: StreamFormat;
  readonly #options: StreamOptions;
  readonly #voices: WindowVoices;
  #state: StreamState | null = null;
  #netSpeechSeconds = 0;
  #ended = false;
  /** Checkpoints already passed. */
  #passed = 0;
  /** Pushes and analyses run one after the other. */
  readonly #turns: Turns;

  constructor(threads: Threads, rateHz: number, model: StreamModel, options: StreamOptions) {
    const { maxNetSpeechSeconds = 0, separateVoices = false } = options;
    checkRate(rateHz);
    if (!(maxNetSpeechSeconds >= 0 && maxNetSpeechSeconds < 1e6))
      throw badArgument(`maxNetSpeechSeconds must be 0 to 1,000,000, got ${maxNetSpeechSeconds}`);
    checkCheckpoints(options.checkpoints?.seconds ?? []);
    this.#threads = threads;
    this.#options = options;
    this.#turns = new Turns(threads, options);
    if (separateVoices) {
      const maxSpeechSeconds = Math.min(maxNetSpeechSeconds || mostSeparatedSeconds, mostSeparatedSeconds);
      this.#format = { rateHz, maxSpeechSeconds, windowFrames: pieceFrames };
      this.#voices = new SeparatedVoices(threads, model, Math.round(model.windowSeconds * 100));
    } else {
      this.#format = { rateHz, maxSpeechSeconds: maxNetSpeechSeconds };
      this.#voices = new OneVoice(threads, model);
    }
  }

  get ended(): boolean {
    return this.#ended;
  }

  push(samples: Float32Array): Promise<number> {
    return this.#turns.next(() => async (signal, pause) => {
      await this.advance(samples, signal, pause);
      return this.#netSpeechSeconds;
    });
  }

  measures(): Promise<Measures> {
    return this.#turns.next(() => async (signal) => {
      const stream = this.#stream();
      const values = [stream.state, stream.format] as const;
      const { state, measures } = await this.#threads.call("peek", [...values], stateBuffers(stream), signal);
      this.#state = state;
      return measures;
    });
  }

  analysis(): Promise<VoiceAnalysis> {
    return this.#turns.next(() => (signal) => this.conclude(signal));
  }

  async close(): Promise<void> {
    await this.#turns.end(new EngineError("CLOSED", "the stream is closed"));
    this.#state = null;
    this.#voices.clear();
  }

  /** Processes the samples in pieces, each in a buffer that can be moved to another thread. */
  async advance(samples: Float32Array, signal: AbortSignal, pause: () => Promise<void>): Promise<void> {
    checkSampleArray(samples);
    const { length } = samples;
    for (let first = 0; first < length && !this.#ended; first += piece) {
      await pause();
      checkSampleArray(samples);
      // Memory that the caller shares with other threads cannot be moved.
      const isMovable = samples.buffer instanceof ArrayBuffer && samples.byteLength === samples.buffer.byteLength;
      const whole = isMovable && samples.length <= piece;
      const part = whole ? samples : samples.slice(first, first + piece);
      await this.#advancePart(part, signal, pause);
    }
  }

  /** Processes audio up to the next checkpoint, analyzes there, and continues. */
  async #advancePart(part: Float32Array, signal: AbortSignal, pause: () => Promise<void>): Promise<void> {
    for (let left: Float32Array | null = part; left !== null && !this.#ended; ) {
      const moved = [left.buffer, ...stateBuffers(this.#stream())] as ArrayBuffer[];
      const until = this.#options.checkpoints?.seconds[this.#passed];
      const values: Parameters<ThreadWork["advance"]> = [this.#state, this.#format, left, until];
      const step: StreamStep = await this.#threads.call("advance", values, moved, signal);
      this.#state = step.state;
      this.#ended = step.ended;
      this.#netSpeechSeconds = step.netSpeechSeconds;
      left = step.rest;
      for (const window of step.windows) await this.#voices.add(window, signal, pause);
      if (until !== undefined && step.netSpeechSeconds >= until) await this.#look(signal);
    }
  }

  /** One analysis for all checkpoints that have been reached. */
  async #look(signal: AbortSignal): Promise<void> {
    const { seconds, look } = this.#options.checkpoints!;
    while (this.#passed < seconds.length && seconds[this.#passed]! <= this.#netSpeechSeconds) this.#passed++;
    if (await look(await this.conclude(signal))) this.#ended = true;
  }

  async conclude(signal: AbortSignal): Promise<VoiceAnalysis> {
    const { state, analysis } = await this.#voices.conclude(this.#stream(), signal);
    this.#state = state;
    return analysis;
  }

  #stream(): AnalyzedStream {
    return { state: this.#state, format: this.#format };
  }
}
