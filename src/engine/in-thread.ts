/** Runs all work in the calling thread: for scripts, and where workers are not available. */
import { EngineError } from "./engine-error.js";
import { openThreadWork, type ThreadModel, type ThreadWork } from "./thread-work.js";
import type { Operation, Threads } from "./threads.js";

export class InThread implements Threads {
  readonly parallel = 1;
  #work: ThreadWork | null;

  constructor(module: WebAssembly.Module, model: ThreadModel) {
    this.#work = openThreadWork(module, model);
  }

  admit(): () => void {
    if (this.#work === null) throw new EngineError("CLOSED", "the engine is closed");
    return () => {};
  }

  async call<Name extends Operation>(
    name: Name,
    values: Parameters<ThreadWork[Name]>,
    _transfer: readonly Transferable[],
    signal: AbortSignal,
  ): Promise<ReturnType<ThreadWork[Name]>> {
    signal.throwIfAborted();
    if (this.#work === null) throw new EngineError("CLOSED", "the engine is closed");
    const work = this.#work[name] as (...values: readonly unknown[]) => ReturnType<ThreadWork[Name]>;
    return work.apply(this.#work, values);
  }

  async close(): Promise<void> {
    this.#work = null;
  }
}
