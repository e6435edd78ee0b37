import { typeName } from "../type-name.js";
import { StatusCode } from "./gen/vendor/rpc/status_pb.js";
import type { OperationOptions } from "./operations.js";
import { type NamesOf, optionsFault } from "./options-fault.js";
import { StatusError } from "./status-error.js";

const known: NamesOf<OperationOptions> = { signal: true, requestId: true, timeoutMs: true, onProgress: true };

/** Refuses options of an operation that would have no effect, or fail late with an error that does not name them. */
export function assertOperationOptions(options: OperationOptions, requestId = ""): void {
  const fault = optionsFault(options, known) ?? limitsFault(options);
  if (fault !== null) throw new StatusError({ statusCode: StatusCode.INVALID_REQUEST, message: fault, requestId });
}

/** What is wrong with the values; `null` if nothing is. */
export function limitsFault({ signal, timeoutMs, onProgress }: OperationOptions): string | null {
  if (signal !== undefined && typeof signal?.addEventListener !== "function")
    return `signal must be an AbortSignal, got ${typeName(signal)}`;
  if (timeoutMs !== undefined && (typeof timeoutMs !== "number" || Number.isNaN(timeoutMs)))
    return `timeoutMs must be a number of milliseconds, got ${typeof timeoutMs === "number" ? timeoutMs : typeName(timeoutMs)}`;
  if (onProgress !== undefined && typeof onProgress !== "function")
    return `onProgress must be a function, got ${typeName(onProgress)}`;
  return null;
}
