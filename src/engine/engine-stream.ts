/** One recording as it is heard: its state travels to whichever thread is free, its windows are embedded on all of them. */
import { inCall } from "./call.js";
import { EngineError } from "./engine-error.js";
import type { Measures, StreamOptions, VoiceAnalysis, VoiceStream, VoiceWindow } from "./port.js";
import type { StreamFormat, StreamState, StreamStep, WindowFeatures } from "./stream-kernel.js";
import type { Threads } from "./threads.js";

/** Samples that one piece of work listens to: the longest that a thread does not look up. */
export const piece = 1 << 20;

export function checkRate(rateHz: number): void {
  if (Number.isInteger(rateHz) && rateHz >= 4_000 && rateHz <= 192_000) return;
  throw new EngineError("BAD_RATE", `the sampling rate must be 4,000 to 192,000 Hz, not ${rateHz}`);
}

export class EngineStream implements VoiceStream {
  readonly #threads: Threads;
  readonly #format: StreamFormat;
  readonly #options: StreamOptions;
  readonly #revision: string;
  #state: StreamState | null = null;
  /** In the order of the recording. */
  readonly #windows: Promise<VoiceWindow>[] = [];
  /** How many of the first windows are known to be done. */
  #embedded = 0;
  #netSpeechSeconds = 0;
  #ended = false;
  /** Checkpoints that are behind. */
  #passed = 0;
  /** Pushes and questions are answered one after the other. */
  #before: Promise<unknown> = Promise.resolve();
  /** What broke the stream: a recording with a gap in it is never analyzed. */
  #broken: { readonly reason: unknown } | null = null;

  constructor(threads: Threads, rateHz: number, revision: string, options: StreamOptions) {
    const { maxNetSpeechSeconds = 0 } = options;
    checkRate(rateHz);
    if (!(maxNetSpeechSeconds >= 0 && maxNetSpeechSeconds < 1e6)) {
      throw new EngineError("BAD_ARGUMENT", `maxNetSpeechSeconds must be 0 to 1,000,000, got ${maxNetSpeechSeconds}`);
    }
    this.#threads = threads;
    this.#format = { rateHz, mostSpeechSeconds: maxNetSpeechSeconds };
    this.#options = options;
    this.#revision = revision;
  }

  get ended(): boolean {
    return this.#ended;
  }

  push(samples: Float32Array): Promise<number> {
    return this.#inTurn(async (signal, pause) => {
      await this.hear(samples, signal, pause);
      return this.#netSpeechSeconds;
    });
  }

  measures(): Promise<Measures> {
    return this.#inTurn(async (signal) => (await this.#peek(signal)).measures);
  }

  analysis(): Promise<VoiceAnalysis> {
    return this.#inTurn((signal) => this.conclude(signal));
  }

  async close(): Promise<void> {
    this.#broken ??= { reason: new EngineError("CLOSED", "the stream is closed") };
    await this.#before.catch(() => {});
    this.#state = null;
    this.#windows.length = 0;
  }

  /** The samples, moved to another thread where they can be. */
  async hear(samples: Float32Array, signal: AbortSignal, pause: () => Promise<void>): Promise<void> {
    for (let first = 0; first < samples.length && !this.#ended; first += piece) {
      await pause();
      const whole = samples.length <= piece && samples.byteLength === samples.buffer.byteLength;
      const part = whole ? samples : samples.slice(first, first + piece);
      await this.#hearPart(part, signal, pause);
    }
  }

  /** As far as the next checkpoint, where there is a look; then on. */
  async #hearPart(part: Float32Array, signal: AbortSignal, pause: () => Promise<void>): Promise<void> {
    for (let left: Float32Array | null = part; left !== null && !this.#ended; ) {
      const moved = [left.buffer, ...(this.#state ? [this.#state.buffer] : [])] as ArrayBuffer[];
      const until = this.#options.checkpoints?.seconds[this.#passed];
      const step: StreamStep = await this.#threads.call(
        "hear",
        [this.#state, this.#format, left, until],
        moved,
        signal,
      );
      this.#state = step.state;
      this.#ended = step.ended;
      this.#netSpeechSeconds = step.netSpeechSeconds;
      left = step.rest;
      for (const window of step.windows) {
        await this.#room(pause);
        this.#windows.push(this.#embed(window, signal));
      }
      if (until !== undefined && step.netSpeechSeconds >= until) await this.#look(signal);
    }
  }

  /** One look for all checkpoints that are reached. */
  async #look(signal: AbortSignal): Promise<void> {
    const { seconds, look } = this.#options.checkpoints!;
    while (this.#passed < seconds.length && seconds[this.#passed]! <= this.#netSpeechSeconds) this.#passed++;
    if (await look(await this.conclude(signal))) this.#ended = true;
  }

  async conclude(signal: AbortSignal): Promise<VoiceAnalysis> {
    const { measures, tail } = await this.#peek(signal);
    const last = tail ? [this.#embed(tail, signal)] : [];
    const windows = await Promise.all([...this.#windows, ...last]);
    const summary = await this.#threads.call("summarize", [windows], [], signal);
    return {
      measures,
      // Copies: what the caller does with them must not change what the stream goes on with.
      windows: windows.map((window) => ({ ...window, embedding: window.embedding.slice() })),
      ...summary,
      revision: this.#revision,
    };
  }

  #peek(signal: AbortSignal): Promise<{ measures: Measures; tail: WindowFeatures | null }> {
    return this.#threads.call("peek", [this.#state, this.#format], [], signal);
  }

  /** Waits until few enough windows are under way: features of hours of speech must not pile up. */
  async #room(pause: () => Promise<void>): Promise<void> {
    while (this.#windows.length - this.#embedded >= 2 * this.#threads.parallel) {
      await this.#windows[this.#embedded];
      this.#embedded++;
      await pause();
    }
  }

  #embed({ features, ...window }: WindowFeatures, signal: AbortSignal): Promise<VoiceWindow> {
    const embedding = this.#threads.call("embed", [features], [features.buffer], signal);
    const embedded = embedding.then((values) => ({ embedding: values, ...window }));
    // Waiters get the error; there may be none yet.
    embedded.catch(() => {});
    return embedded;
  }

  #inTurn<T>(work: (signal: AbortSignal, pause: () => Promise<void>) => Promise<T>): Promise<T> {
    return inCall(this.#threads, this.#options, (signal, pause) => {
      const turn = this.#before.then(async () => {
        if (this.#broken) throw this.#broken.reason;
        try {
          return await work(signal, pause);
        } catch (reason) {
          this.#broken ??= { reason };
          throw reason;
        }
      });
      this.#before = turn.catch(() => {});
      return turn;
    });
  }
}
