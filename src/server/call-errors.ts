/** Errors of calls, as the contract's status for the caller and with their causes for the log. */
import { Code, ConnectError } from "@connectrpc/connect";
import { stackOf } from "../contract/error-causes.js";
import { StatusCode, type StatusError, StatusSchema } from "../contract/index.js";
import { transportCodes } from "../contract/status-codes.js";
import { failureOf } from "../processor/failures.js";
import { QueueFull } from "./limits/work-queue.js";
import type { Log } from "./log.js";
import { busy, headersOf, Refusal } from "./refusal.js";

/** Every error as the contract's status. */
export function asStatusError(error: unknown): StatusError {
  if (error instanceof QueueFull) return busy(error.message, error.retryAfterSeconds);
  if (error instanceof ConnectError) return fromConnectError(error);
  return failureOf(error);
}

/**
 * A stream that cannot be read is the sender's fault. An operation that received the transport's error would report it as
 * ours.
 */
export function fromSender<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      return {
        next: () => iterator.next().catch((error: unknown) => Promise.reject(asStatusError(error))),
        return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
      };
    },
  };
}

/** The answer to an internal error refers to the log by request id, so the log must have it. */
export function logInternal(log: Log, error: unknown, requestId: string): void {
  if (asStatusError(error).code === StatusCode.INTERNAL_ERROR)
    log.error("a request failed", { requestId, stack: stackOf(error) });
}

/**
 * Errors of the RPC framework itself. Nearly all of them, whatever their code, are about what the caller sent. A
 * response that cannot be serialized is our own fault.
 */
function fromConnectError(error: ConnectError): StatusError {
  if (error.code === Code.Internal && /^(serialize|internal error)/.test(error.rawMessage)) return failureOf(error);
  const codes: Partial<Record<Code, StatusCode>> = {
    [Code.InvalidArgument]: StatusCode.BAD_REQUEST,
    [Code.ResourceExhausted]: StatusCode.TOO_LARGE,
    [Code.Canceled]: StatusCode.CANCELLED,
    [Code.Aborted]: StatusCode.CANCELLED,
    [Code.DeadlineExceeded]: StatusCode.DEADLINE_EXCEEDED,
    [Code.Unimplemented]: StatusCode.NOT_IMPLEMENTED,
  };
  return new Refusal(codes[error.code] ?? StatusCode.BAD_REQUEST, error.rawMessage, {
    cause: error,
    headers: Object.fromEntries(error.metadata),
  });
}

/** For the framework: the canonical code, with the contract's status in the details. */
export function connectErrorOf(error: StatusError): ConnectError {
  return new ConnectError(
    error.message,
    transportCodes(error.code).grpc as Code,
    { "x-request-id": error.status.requestId, ...headersOf(error) },
    [{ desc: StatusSchema, value: error.status }],
    error,
  );
}

/** The error of a call whose caller no longer waits. */
export function callerGone(reason: unknown): StatusError {
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded)
    return new Refusal(StatusCode.DEADLINE_EXCEEDED, "the caller's deadline passed");
  return new Refusal(StatusCode.CANCELLED, "the caller disconnected", { cause: reason });
}

/** For transports that report a disconnected caller by a signal. */
export function endedWith(signal: AbortSignal): AbortController {
  const ended = new AbortController();
  const end = () => ended.abort(callerGone(signal.reason));
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return ended;
}
