/** What crosses between the pool and its workers. */
import type { Outcome } from "./outcome.js";
import type { ThreadModel } from "./thread-work.js";
import type { Operation } from "./threads.js";

/** The first message to a worker. `port` is the worker's end of a private channel. */
export interface WorkerSetup {
  readonly port: MessagePort;
  readonly module: WebAssembly.Module;
  readonly model: ThreadModel;
}

export interface WorkerApi {
  /** Resolves once the worker has loaded its model. */
  ready(): Outcome<true>;
  call(name: Operation, values: readonly unknown[]): Outcome<unknown>;
}

/** Origin of messages on our own port; by default Comlink accepts any origin. */
export const portOrigin = "";

/** All buffers in a result, so that they are moved instead of copied. */
export function buffersIn(value: unknown, found: Set<ArrayBuffer> = new Set()): Set<ArrayBuffer> {
  if (value instanceof ArrayBuffer) found.add(value);
  else if (ArrayBuffer.isView(value)) {
    if (value.buffer instanceof ArrayBuffer) found.add(value.buffer);
  } else if (Array.isArray(value)) for (const item of value) buffersIn(item, found);
  else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) buffersIn(item, found);
  return found;
}
