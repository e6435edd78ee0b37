/** Where work is done: in this thread, or spread over workers. */
import type { ThreadWork } from "./thread-work.js";

export type Operation =
  | "hear"
  | "peek"
  | "peekVoice"
  | "embed"
  | "attackScore"
  | "summarize"
  | "partVoices"
  | "areTwoVoices"
  | "train"
  | "scores"
  | "memoryBytes";

export interface Threads {
  /** How many pieces of work can go on at once. */
  readonly parallel: number;
  /** Why no work can be done at present; absent or `null` while it can. */
  readonly fault?: string | null;
  /** Takes a place among the calls under way, or throws QUEUE_FULL. Give it back by calling what it returns. */
  admit(): () => void;
  /** `transfer` lists the buffers among `values` that are moved: they are empty afterwards. */
  call<Name extends Operation>(
    name: Name,
    values: Parameters<ThreadWork[Name]>,
    transfer: readonly Transferable[],
    signal: AbortSignal,
  ): Promise<ReturnType<ThreadWork[Name]>>;
  close(): Promise<void>;
}
