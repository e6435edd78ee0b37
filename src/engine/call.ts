/** One call to the engine: its place in the queue, its signal, its time limit. */
import { callLimit } from "../contract/call-limit.js";
import { type NamesOf, optionsFault } from "../contract/options-fault.js";
import { typeName } from "../type-name.js";
import { badArgument, EngineError } from "./engine-error.js";
import type { AnalyzeOptions, CallOptions, StreamOptions } from "./port.js";
import type { Threads } from "./threads.js";

export const callOptions: NamesOf<CallOptions> = { signal: true, timeoutMs: true };
export const analyzeOptions: NamesOf<AnalyzeOptions> = { ...callOptions, maxNetSpeechSeconds: true };
export const streamOptions: NamesOf<StreamOptions> = { ...analyzeOptions, checkpoints: true, separateVoices: true };

export function checkOptions(options: object, known: object): void {
  const fault = optionsFault(options, known);
  if (fault !== null) throw badArgument(fault);
}

/** Lets timers and events run when work is done in the calling thread. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

export async function inCall<T>(
  threads: Threads,
  options: CallOptions,
  work: (signal: AbortSignal, pause: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const { signal, timeoutMs } = options;
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw badArgument(`timeoutMs must be above 0, got ${timeoutMs}`);
  if (signal !== undefined && typeof signal?.addEventListener !== "function")
    throw badArgument(`signal must be an AbortSignal, got ${typeName(signal)}`);
  signal?.throwIfAborted();
  const release = threads.admit();
  const interruptible = signal !== undefined || timeoutMs !== undefined;
  const late = () => new EngineError("TIMEOUT", `the call took longer than ${timeoutMs} ms`);
  // Created only if needed, because a thousand live calls call the engine two thousand times a second.
  const ending = signal && timeoutMs === undefined ? { signal, end() {} } : callLimit(options, undefined, late);
  try {
    return await work(ending.signal, async () => {
      if (!interruptible) return;
      await turn();
      ending.signal.throwIfAborted();
    });
  } finally {
    ending.end();
    release();
  }
}
