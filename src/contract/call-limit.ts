import { onAbort } from "./on-abort.js";

/** A timer with a longer delay fires at once. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The signal of one call. */
export interface CallLimit {
  readonly signal: AbortSignal;
  /** To be called when what the call opened goes on: from now on, only the caller's signal ends it. */
  endTime(): void;
  /** To be called when the call has ended: the caller's signal may live as long as the program. */
  end(): void;
}

/** One signal for cancellation and time limit; its reason says which one it was. */
export function callLimit(
  { signal, timeoutMs }: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number | undefined },
  cancelled: (reason: unknown) => unknown = (reason) => reason,
  late: () => Error = () => new DOMException("the call took too long", "TimeoutError"),
): CallLimit {
  const controller = new AbortController();
  const cancel = () => controller.abort(cancelled(signal!.reason));
  const forget = signal && onAbort(signal, cancel);
  if (signal?.aborted) cancel();
  const expire = () => controller.abort(late());
  if (timeoutMs !== undefined && timeoutMs <= 0) expire();
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, Math.min(timeoutMs, LONGEST_TIMEOUT_MS));
  return {
    signal: controller.signal,
    endTime: () => clearTimeout(timer),
    end() {
      clearTimeout(timer);
      forget?.();
    },
  };
}
