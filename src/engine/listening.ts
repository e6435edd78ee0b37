/** One recording as it is heard: its state travels to whichever thread is free, its windows are embedded on all of them. */
import { inCall } from "./call.js";
import { EngineError } from "./engine-error.js";
import type { StreamFormat, StreamState, WindowFeatures } from "./listener.js";
import type { AnalyzeOptions, Measures, VoiceAnalysis, VoiceStream, VoiceWindow } from "./port.js";
import type { Threads } from "./threads.js";

/** Samples that one piece of work listens to: the longest that a thread does not look up. */
export const piece = 1 << 20;

export function checkRate(rateHz: number): void {
  if (Number.isInteger(rateHz) && rateHz >= 4_000 && rateHz <= 192_000) return;
  throw new EngineError("BAD_RATE", `the sampling rate must be 4,000 to 192,000 Hz, not ${rateHz}`);
}

export class Listening implements VoiceStream {
  readonly #threads: Threads;
  readonly #format: StreamFormat;
  readonly #options: AnalyzeOptions;
  readonly #revision: string;
  #state: StreamState | null = null;
  /** In the order of the recording. */
  readonly #windows: Promise<VoiceWindow>[] = [];
  /** How many of the first windows are known to be done. */
  #embedded = 0;
  #netSpeechSeconds = 0;
  #ended = false;
  /** Pushes and questions are answered one after the other. */
  #before: Promise<unknown> = Promise.resolve();
  /** What broke the stream: a recording with a gap in it is never analyzed. */
  #broken: { readonly reason: unknown } | null = null;

  constructor(threads: Threads, rateHz: number, revision: string, options: AnalyzeOptions) {
    const { maxNetSpeechSeconds = 0 } = options;
    checkRate(rateHz);
    if (!(maxNetSpeechSeconds >= 0 && maxNetSpeechSeconds < 1e6)) {
      throw new EngineError("BAD_ARGUMENT", "maxNetSpeechSeconds is a number of seconds");
    }
    this.#threads = threads;
    this.#format = { rateHz, mostSpeechSeconds: maxNetSpeechSeconds };
    this.#options = options;
    this.#revision = revision;
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
      const moved = [part.buffer, ...(this.#state ? [this.#state.buffer] : [])] as ArrayBuffer[];
      const heard = await this.#threads.call("hear", [this.#state, this.#format, part], moved, signal);
      this.#state = heard.state;
      this.#ended = heard.ended;
      this.#netSpeechSeconds = heard.netSpeechSeconds;
      for (const window of heard.windows) {
        await this.#room(pause);
        this.#windows.push(this.#embed(window, signal));
      }
    }
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
    // Whoever waits for it is told; nobody may be waiting yet.
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
