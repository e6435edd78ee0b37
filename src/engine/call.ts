/** One call to the engine: its place in the queue, its signal, its time limit. */
import { typeName } from "../type-name.js";
import { badArgument, EngineError } from "./engine-error.js";
import { onAbort } from "./on-abort.js";
import type { CallOptions } from "./port.js";
import type { Threads } from "./threads.js";

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
  const ending = signal && timeoutMs === undefined ? { signal, done() {} } : endingAfter(timeoutMs, signal);
  try {
    return await work(ending.signal, async () => {
      if (!interruptible) return;
      await turn();
      ending.signal.throwIfAborted();
    });
  } finally {
    ending.done();
    release();
  }
}

/** A signal that aborts with `signal` or at the timeout. Created only if needed, because a thousand live calls call the engine two thousand times a second. */
function endingAfter(timeoutMs: number | undefined, signal: AbortSignal | undefined) {
  const controller = new AbortController();
  const forget = signal && onAbort(signal, () => controller.abort(signal.reason));
  const late = () => controller.abort(new EngineError("TIMEOUT", `the call took longer than ${timeoutMs} ms`));
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, Math.min(timeoutMs, 2 ** 31 - 1));
  const done = () => {
    clearTimeout(timer);
    forget?.();
  };
  return { signal: controller.signal, done };
}
