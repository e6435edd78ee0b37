/** The ways in which an operation is refused, and what other failures are called in the contract. */

import { StatusCode } from "../contract/gen/vendor/rpc/status_pb.js";
import { fieldViolation } from "../contract/mandatory.js";
import { StatusError } from "../contract/status-error.js";
import { duration } from "./messages.js";

/** The request cannot be right: `field` says where, `violation` is a word a program can compare. */
export const invalid = (field: string, violation: string, message: string): StatusError =>
  new StatusError({
    statusCode: StatusCode.INVALID_REQUEST,
    message,
    fieldViolations: [fieldViolation(field, violation, message)],
  });

export const notFound = (field: string, message: string): StatusError =>
  new StatusError({
    statusCode: StatusCode.NOT_FOUND,
    message,
    fieldViolations: [fieldViolation(field, "unknown", message)],
  });

/**
 * A failure that is the call's, not the audio's: given up by the caller, out of time, or not begun because the engine
 * is busy. `null` for everything else.
 */
export function callFailure(error: unknown): StatusError | null {
  if (error instanceof StatusError) return error;
  if (!(error instanceof Error)) return null;
  const code = "code" in error ? error.code : undefined;
  if (error.name === "AbortError")
    return new StatusError(
      { statusCode: StatusCode.CANCELLED, message: "the caller cancelled the call" },
      { cause: error },
    );
  if (error.name === "TimeoutError" || code === "TIMEOUT")
    return new StatusError({ statusCode: StatusCode.DEADLINE_EXCEEDED, message: "out of time" }, { cause: error });
  if (isDatabaseAway(error, code))
    return new StatusError(
      { statusCode: StatusCode.BUSY, message: "the database does not answer; try again", retryAfter: duration(5) },
      { cause: error },
    );
  if (code === "contended")
    return new StatusError(
      { statusCode: StatusCode.BUSY, message: error.message, retryAfter: duration(1) },
      { cause: error },
    );
  if (code === "QUEUE_FULL")
    return new StatusError(
      { statusCode: StatusCode.BUSY, message: "too much work is waiting", retryAfter: duration(retrySeconds(error)) },
      { cause: error },
    );
  return null;
}

/** Codes of a connection that failed, and of a PostgreSQL that stops, starts or takes no more connections. */
const DATABASE_AWAY = /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|57P0[123]|08\w{3}|53300)$/;

const isDatabaseAway = (error: Error, code: unknown): boolean =>
  (typeof code === "string" && DATABASE_AWAY.test(code)) ||
  /^(Connection terminated|timeout exceeded when trying to connect|Client (has encountered|was closed))/.test(
    error.message,
  );

const retrySeconds = (error: Error): number =>
  "retryAfterMs" in error && typeof error.retryAfterMs === "number" ? error.retryAfterMs / 1000 : 1;

/** What an operation throws, whatever went wrong inside. Inner messages stay inside: they may name more than the caller may know. */
export function asStatusError(error: unknown): StatusError {
  return (
    callFailure(error) ??
    new StatusError(
      {
        statusCode: StatusCode.INTERNAL_ERROR,
        message: internalReason(error),
      },
      { cause: error },
    )
  );
}

function internalReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "closed" || code === "CLOSED") return "the store or the engine is closed";
  // Names the profile that was asked for, and what a person must do about it.
  if (code === "key-lost") return (error as Error).message;
  if (code === "ENOSPC" || code === "53100") return "the server's disk is full";
  return "the operation failed for an internal reason";
}

/** Runs work of the engine. Its own failure is a business outcome (`null`); the call's failure goes on. */
export async function unlessEngineFails<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    const failure = callFailure(error);
    if (failure) throw failure;
    return null;
  }
}
