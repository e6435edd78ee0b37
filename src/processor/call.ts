/** Steps common to every operation: validate the request, watch for timeout and cancellation, set the status. */

import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { type FieldViolation, StatusCode, StatusSchema } from "../contract/gen/vendor/rpc/status_pb.js";
import { fieldViolations } from "../contract/mandatory.js";
import { StatusError } from "../contract/status-error.js";
import { typeName } from "../type-name.js";
import type { Ids, OperationOptions } from "./dependencies.js";
import { asStatusError, callFailure, ProgressFailure } from "./failures.js";
import { inSinglePrecision } from "./single-precision.js";

/** The generated message, or its plain shape. */
export type Request<T extends DescMessage> = MessageInitShape<T>;

export function parseRequest<T extends DescMessage>(
  schema: T,
  request: Request<T>,
  isFine: (violation: FieldViolation) => boolean = () => false,
): MessageShape<T> {
  if (request === null)
    throw new StatusError({
      statusCode: StatusCode.BAD_REQUEST,
      message: `the request must be a ${schema.name}, got null`,
    });
  const message = create(schema, request);
  const violations = fieldViolations(schema, message).filter((violation) => !isFine(violation));
  if (violations.length === 0) return message;
  throw new StatusError({
    statusCode: StatusCode.INVALID_REQUEST,
    message: violations.map((violation) => violation.message).join("; "),
    fieldViolations: violations,
  });
}

export async function answer<T extends DescMessage>(
  schema: T,
  ids: Ids,
  options: OperationOptions,
  work: (options: OperationOptions) => Promise<MessageInitShape<T>>,
): Promise<MessageShape<T>> {
  const requestId = options.requestId ?? ids.next();
  const body = await attempt(options, requestId, work);
  const { message = "" } = (body as { status?: { message?: string } }).status ?? {};
  const status = create(StatusSchema, { statusCode: StatusCode.OK, message, requestId });
  return inSinglePrecision(schema, create(schema, { ...body, status } as MessageInitShape<T>));
}

/** Every failure is thrown as a `StatusError` that carries the request id, except what the caller's own `onProgress` threw. */
export async function attempt<T>(
  options: OperationOptions,
  requestId: string,
  work: (options: OperationOptions) => Promise<T>,
): Promise<T> {
  assertOptions(options, requestId);
  const watch = watchOver(options);
  try {
    watch.signal.throwIfAborted();
    return await work({ ...options, signal: watch.signal });
  } catch (error) {
    if (error instanceof ProgressFailure) throw error.cause;
    const failure = (watch.signal.aborted && callFailure(watch.signal.reason)) || asStatusError(error);
    failure.status.requestId = requestId;
    throw failure;
  } finally {
    watch.end();
  }
}

/** The engine would refuse them too, but then as a fault of the engine. */
function assertOptions({ signal, timeoutMs }: OperationOptions, requestId: string): void {
  const refuse = (message: string) => {
    throw new StatusError({ statusCode: StatusCode.INVALID_REQUEST, message, requestId });
  };
  if (timeoutMs !== undefined && (typeof timeoutMs !== "number" || Number.isNaN(timeoutMs)))
    refuse(`timeoutMs must be a number of milliseconds, got ${timeoutMs}`);
  if (signal !== undefined && typeof signal?.addEventListener !== "function")
    refuse(`signal must be an AbortSignal, got ${typeName(signal)}`);
}

/** `setTimeout` fires at once when given a longer delay. */
const longestTimeoutMs = 2 ** 31 - 1;

/** One signal for cancellation and timeout; its reason says which one it was. */
function watchOver({ signal, timeoutMs }: OperationOptions): { signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const giveUp = () =>
    controller.abort(callFailure(signal?.reason) ?? new DOMException("the caller cancelled the call", "AbortError"));
  if (signal?.aborted) giveUp();
  signal?.addEventListener("abort", giveUp);
  const late = () => controller.abort(new DOMException("the call took too long", "TimeoutError"));
  // The caller had no time left: the engine would refuse such a limit as a wrong argument.
  if (timeoutMs !== undefined && timeoutMs <= 0) late();
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, Math.min(timeoutMs, longestTimeoutMs));
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
    },
  };
}
