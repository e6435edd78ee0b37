/** Turns the windows of a stream into the voice of a recording. */
import type { Measures, VoiceAnalysis, VoiceWindow } from "./port.js";
import type { VoiceSummary } from "./scoring.js";
import type { StreamFormat, StreamState, WindowFeatures } from "./stream-kernel.js";
import type { Threads } from "./threads.js";

/** The current state of a stream. It is moved to the thread that analyzes it, and comes back. */
export interface AnalyzedStream {
  readonly state: StreamState | null;
  readonly format: StreamFormat;
}

export const stateBuffers = ({ state }: AnalyzedStream): ArrayBuffer[] => (state ? [state.buffer] : []);

/** Summarizes the windows of a recording. */
export interface Summaries {
  readonly revision: string;
  summarize(windows: readonly VoiceWindow[], signal: AbortSignal): Promise<VoiceSummary>;
}

/** The analysis so far, and the state of the stream, which continues. */
export interface Conclusion {
  readonly state: StreamState | null;
  readonly analysis: VoiceAnalysis;
}

/** Handles a stream's windows. */
export interface WindowVoices {
  /** Waits while too many are in progress: the features of hours of speech must not pile up. */
  add(window: WindowFeatures, signal: AbortSignal, pause: () => Promise<void>): Promise<void>;
  /** The analysis of all windows so far and of the unfinished one. */
  conclude(stream: AnalyzedStream, signal: AbortSignal): Promise<Conclusion>;
  clear(): void;
}

/** Windows being embedded, on all threads, in order. */
export class EmbeddedWindows {
  readonly #windows: Promise<VoiceWindow>[] = [];
  /** How many of the first windows are finished. */
  #embedded = 0;

  constructor(protected readonly threads: Threads) {}

  async add(window: WindowFeatures, signal: AbortSignal, pause: () => Promise<void>): Promise<void> {
    while (this.#windows.length - this.#embedded >= 2 * this.threads.parallel) {
      await this.#windows[this.#embedded];
      this.#embedded++;
      await pause();
    }
    this.#windows.push(embedWindow(this.threads, window, signal));
  }

  all(): Promise<VoiceWindow[]> {
    return Promise.all(this.#windows);
  }

  clear(): void {
    this.#windows.length = 0;
  }
}

/** The features are moved to another thread. */
export function embedWindow(
  threads: Threads,
  { features, ...window }: WindowFeatures,
  signal: AbortSignal,
): Promise<VoiceWindow> {
  const embedding = threads.call("embed", [features], [features.buffer], signal);
  const embedded = embedding.then((values) => ({ embedding: values, ...window }));
  // The error goes to those who wait; there may be none yet.
  embedded.catch(() => {});
  return embedded;
}

/** A recording of one person. */
export class OneVoice extends EmbeddedWindows implements WindowVoices {
  constructor(
    threads: Threads,
    private readonly summaries: Summaries,
  ) {
    super(threads);
  }

  async conclude(stream: AnalyzedStream, signal: AbortSignal): Promise<Conclusion> {
    const { threads, summaries } = this;
    const values = [stream.state, stream.format] as const;
    const { state, measures, tail } = await threads.call("peekVoice", [...values], stateBuffers(stream), signal);
    const windows = [...(await this.all()), ...(tail ? [tail] : [])];
    return { state, analysis: await voiceAnalysis(summaries, measures, windows, signal) };
  }
}

export async function voiceAnalysis(
  summaries: Summaries,
  measures: Measures,
  windows: readonly VoiceWindow[],
  signal: AbortSignal,
): Promise<VoiceAnalysis> {
  const summary = await summaries.summarize(windows, signal);
  return {
    measures,
    // Copies, so that the caller cannot change what the stream continues with.
    windows: windows.map((window) => ({ ...window, embedding: window.embedding.slice() })),
    ...summary,
    revision: summaries.revision,
  };
}
