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
