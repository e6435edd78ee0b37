import { StatusCode, type StatusError, statusError } from "../contract/index.js";

/** The error of a call that its signal ended, by the reason of the signal. */
export function endedCall(reason: unknown): StatusError {
  const isLate = reason instanceof Error && reason.name === "TimeoutError";
  return isLate
    ? statusError(StatusCode.DEADLINE_EXCEEDED, "the call took too long", reason)
    : statusError(StatusCode.CANCELLED, "the call was cancelled", reason);
}
