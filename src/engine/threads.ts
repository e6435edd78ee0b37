/** Where work is done: in this thread, or spread over workers. */
import type { ThreadWork } from "./thread-work.js";

type Operation = {
  [Name in keyof ThreadWork]: ThreadWork[Name] extends (...values: never[]) => unknown ? Name : never;
}[keyof ThreadWork];

export interface Threads {
  /** How many pieces of work can go on at once. */
  readonly parallel: number;
  /** Takes a place in the queue, or throws QUEUE_FULL. Give it back by calling what it returns. */
  admit(): () => void;
  call<Name extends Operation>(
    name: Name,
    values: Parameters<ThreadWork[Name]>,
    transfer: readonly Transferable[],
    signal: AbortSignal,
  ): Promise<ReturnType<ThreadWork[Name]>>;
  close(): Promise<void>;
}

export type { Operation };
