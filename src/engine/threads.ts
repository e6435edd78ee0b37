/** Where work runs: in this thread, or on several workers. */
import type { ThreadWork } from "./thread-work.js";

/** The box, the command line and the engine have the same limit; machines may have more cores. */
export const mostWorkers = 256;

export type Operation = keyof ThreadWork;

export interface Threads {
  /** How many pieces of work can run at once. */
  readonly parallel: number;
  /** Why no work can run at present; absent or `null` if there is no fault. */
  readonly fault?: string | null;
  /** Reserves a place among the running calls, or throws QUEUE_FULL. The returned function releases it. */
  admit(): () => void;
  /** `transfer` lists the buffers among `values` to be moved: they are empty afterwards. */
  call<Name extends Operation>(
    name: Name,
    values: Parameters<ThreadWork[Name]>,
    transfer: readonly Transferable[],
    signal: AbortSignal,
  ): Promise<ReturnType<ThreadWork[Name]>>;
  close(): Promise<void>;
}
