/** The errors that an operation throws, and how other failures map to the contract's status codes. */

import { StatusCode, StatusError, statusError } from "../contract/index.js";
import { refusal } from "../contract/refusal.js";
import { duration } from "./messages.js";

export { invalid, refusal } from "../contract/refusal.js";

export const notFound = (field: string, message: string): StatusError =>
  refusal(StatusCode.NOT_FOUND, field, "unknown", message);

/** For an id that the scope does not have. */
export const notInScope = (field: string, kind: string, id: string): StatusError =>
  notFound(field, `there is no ${kind} "${id}" in this scope`);

/**
 * The error for a failure of the call and not of the audio: cancelled by the caller, timed out, or refused because the
 * engine or database is busy or closed. `null` for everything else.
 */
export function callFailure(error: unknown): StatusError | null {
  if (error instanceof StatusError) return error;
  if (!(error instanceof Error)) return null;
  const code = "code" in error ? error.code : undefined;
  const failed = (statusCode: StatusCode, message: string) => statusError(statusCode, message, error);
  const busy = (message: string, seconds: number) =>
    new StatusError({ statusCode: StatusCode.BUSY, message, retryAfter: duration(seconds) }, { cause: error });
  if (error.name === "AbortError") return failed(StatusCode.CANCELLED, "the caller cancelled the call");
  if (error.name === "TimeoutError" || code === "TIMEOUT")
    return failed(StatusCode.DEADLINE_EXCEEDED, "the call took too long");
  // The process is stopping: the next one could do it. In a browser, the message says why, and to reload the page.
  if (code === "closed" || code === "CLOSED") return failed(StatusCode.INTERNAL_ERROR, error.message);
  if (code === "unavailable") return busy("the database does not answer; try again", 5);
  if (code === "contended") return busy(error.message, 1);
  if (code === "EMFILE" || code === "ENFILE" || code === "EAGAIN")
    return busy("too many files or processes are open; try again", 5);
  if (code === "NO_WORKERS") return busy("the engine cannot start its workers; try again", 5);
  if (code === "QUEUE_FULL")
    return busy("all workers are busy and the queue is full; try again later", retrySeconds(error));
  return null;
}

/** The database cannot be reached now, or does not answer. */
export const isStoreAway = (error: unknown): boolean =>
  error instanceof Error && [error, error.cause].some((one) => (one as { code?: unknown })?.code === "unavailable");

const retrySeconds = (error: Error): number =>
  "retryAfterMs" in error && typeof error.retryAfterMs === "number" ? error.retryAfterMs / 1000 : 1;

/** Turns any failure into a StatusError. Internal messages are not passed on: they may reveal what the caller must not know. */
export function failureOf(error: unknown): StatusError {
  return callFailure(error) ?? statusError(StatusCode.INTERNAL_ERROR, internalReason(error), error);
}

function internalReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  // These messages are safe to pass on: they name a profile or scope of the request, or the browser's storage, and say what to do.
  if (code === "key-lost" || code === "wrong-key" || code === "damaged" || code === "disk-full")
    return (error as Error).message;
  if (code === "ENOSPC" || code === "53100") return "the disk is full; free some space";
  return "internal error; search the log for the request id";
}

/** What the caller's own `onProgress` threw. It ends the operation, and `attempt` throws it to the caller as it is. */
export class ProgressFailure extends StatusError {
  constructor(cause: unknown) {
    super({ statusCode: StatusCode.CANCELLED, message: "onProgress threw an error" }, { cause });
  }
}

/** Throws the error if it is a failure of the call and not of the audio or the engine. */
export function throwCallFailure(error: unknown, signal: AbortSignal | undefined): void {
  signal?.throwIfAborted();
  const failure = callFailure(error);
  if (failure) throw failure;
}

/** Runs engine work. A failure of the engine is a business outcome (`null`); a failure of the call is thrown. */
export async function unlessEngineFails<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    throwCallFailure(error, signal);
    return null;
  }
}
