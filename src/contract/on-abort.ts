/** Waits for signals to abort. Each signal has one listener, however much work waits for it: Node takes more than ten for a memory leak. */

interface Waiting {
  readonly ends: Set<() => void>;
  readonly listener: () => void;
}

const waitingFor = new WeakMap<AbortSignal, Waiting>();

/** Calls `end` when the signal aborts. Call the returned function once, to stop waiting. */
export function onAbort(signal: AbortSignal, end: () => void): () => void {
  const waiting = waitingFor.get(signal) ?? listening(signal);
  waiting.ends.add(end);
  return () => {
    waiting.ends.delete(end);
    if (waiting.ends.size > 0) return;
    signal.removeEventListener("abort", waiting.listener);
    waitingFor.delete(signal);
  };
}

/** As the work ends, or when the signal aborts: then with its reason, and what the work still gives is discarded. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    const forget = onAbort(signal, abort);
    work.then(resolve, (error) => reject(signal.aborted ? signal.reason : error)).finally(forget);
  });
}

function listening(signal: AbortSignal): Waiting {
  const ends = new Set<() => void>();
  const listener = () => {
    for (const end of [...ends]) end();
  };
  signal.addEventListener("abort", listener, { once: true });
  const waiting = { ends, listener };
  waitingFor.set(signal, waiting);
  return waiting;
}
