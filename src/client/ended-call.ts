import { StatusCode, StatusError } from "../contract/index.js";

/** The error of a call that its signal ended, by the reason of the signal. */
export function endedCall(reason: unknown): StatusError {
  const isLate = reason instanceof Error && reason.name === "TimeoutError";
  return new StatusError(
    isLate
      ? { statusCode: StatusCode.DEADLINE_EXCEEDED, message: "the call took too long" }
      : { statusCode: StatusCode.CANCELLED, message: "the call was cancelled" },
    { cause: reason },
  );
}
