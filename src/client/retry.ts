import { secondsOf } from "../contract/duration.js";
import { StatusCode, StatusError } from "../contract/index.js";
import { onAbort } from "../contract/on-abort.js";
import { endedCall } from "./ended-call.js";

/** A box that asks for more is not waited for: its answer says when to come back. */
export const LONGEST_WAIT_SECONDS = 30;

/**
 * Retries a call that was rejected before any work was done, if the box allows it. Waits as long as the box asks: it keeps
 * a place for that time. Short waits grow with each retry. Up to a quarter is added at random, so that many clients do
 * not come back at once.
 */
export function retrying(retries: number, random: () => number = Math.random) {
  return async <T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        if (attempt >= retries || !(error instanceof StatusError)) throw error;
        if (error.code !== StatusCode.BUSY && error.code !== StatusCode.RATE_EXCEEDED) throw error;
        const { retryAfter } = error.status;
        const asked = retryAfter ? secondsOf(retryAfter) : 0.5;
        if (asked > LONGEST_WAIT_SECONDS) throw error;
        await pause(Math.max(asked, 2 ** Math.min(attempt, 4) - 1) * (1 + 0.25 * random()), signal);
      }
    }
  };
}

function pause(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(endedCall(signal.reason));
    const timer = setTimeout(() => {
      forget?.();
      resolve();
    }, seconds * 1000);
    const forget =
      signal &&
      onAbort(signal, () => {
        clearTimeout(timer);
        reject(endedCall(signal.reason));
      });
  });
}
