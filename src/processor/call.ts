/** Steps common to every operation: validate the request, watch for timeout and cancellation, set the status. */

import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { callLimit } from "../contract/call-limit.js";
import {
  type FieldViolation,
  type Status,
  StatusCode,
  StatusError,
  StatusSchema,
  statusError,
} from "../contract/index.js";
import { fieldViolations } from "../contract/mandatory.js";
import { assertOperationOptions } from "../contract/operation-options.js";
import type { Ids, OperationOptions } from "./dependencies.js";
import { callFailure, failureOf, ProgressFailure } from "./failures.js";
import { inSinglePrecision } from "./single-precision.js";

export function parseRequest<T extends DescMessage>(
  schema: T,
  request: MessageInitShape<T>,
  isFine: (violation: FieldViolation) => boolean = () => false,
): MessageShape<T> {
  if (request === null) throw statusError(StatusCode.BAD_REQUEST, `the request must be a ${schema.name}, got null`);
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
  const requestId = requestIdOf(options, ids);
  const body = await attempt(options, requestId, work);
  const status = okStatus(body, requestId);
  return inSinglePrecision(schema, create(schema, { ...body, status } as MessageInitShape<T>));
}

/** With the message of the answer, if it has one. */
export function okStatus(body: object, requestId: string): Status {
  const { message = "" } = (body as { status?: { message?: string } }).status ?? {};
  return create(StatusSchema, { statusCode: StatusCode.OK, message, requestId });
}

/** Also for options that are not an object, which `attempt` refuses. */
export const requestIdOf = (options: OperationOptions | null, ids: Ids): string => options?.requestId ?? ids.next();

/** Every failure is thrown as a `StatusError` that carries the request id, except what the caller's own `onProgress` threw. */
export async function attempt<T>(
  options: OperationOptions,
  requestId: string,
  work: (options: OperationOptions) => Promise<T>,
): Promise<T> {
  assertOperationOptions(options, requestId);
  const limit = callLimit(options, (reason) => callFailure(reason) ?? cancelled());
  try {
    limit.signal.throwIfAborted();
    return await work({ ...options, signal: limit.signal });
  } catch (error) {
    if (error instanceof ProgressFailure) throw error.cause;
    const failure = (limit.signal.aborted && callFailure(limit.signal.reason)) || failureOf(error);
    failure.status.requestId = requestId;
    throw failure;
  } finally {
    limit.end();
  }
}

const cancelled = () => new DOMException("the caller cancelled the call", "AbortError");
