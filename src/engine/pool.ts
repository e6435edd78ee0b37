/**
 * A pool of workers. Each does one piece of work at a time. Work of about a millisecond goes before work of a hundred milliseconds, so that the
 * next packets of a hundred calls do not wait behind ten embeddings. Otherwise work runs in order of arrival. A worker is replaced if it dies, or
 * if it does not finish abandoned work in time.
 */
import * as Comlink from "comlink";
import { onAbort } from "../contract/on-abort.js";
import { EngineError } from "./engine-error.js";
import { isMoved, movedSamples } from "./moved.js";
import { type Outcome, unwrapped } from "./outcome.js";
import { startThread, type Thread } from "./platform.js";
import type { PoolOptions } from "./pool-options.js";
import type { ThreadModel } from "./thread-work.js";
import type { Operation, Threads } from "./threads.js";
import type { WorkerApi, WorkerSetup } from "./worker-api.js";

interface Task {
  readonly name: Operation;
  readonly values: readonly unknown[];
  readonly transfer: readonly Transferable[];
  readonly signal: AbortSignal;
  readonly askedAt: number;
  readonly resolve: (value: unknown) => void;
  /** Does nothing once the task is settled. */
  readonly reject: (reason: unknown) => void;
}

interface Slot {
  readonly thread: Thread;
  readonly port: MessagePort;
  readonly ready: () => Promise<Outcome<true>>;
  readonly call: (name: Operation, values: readonly unknown[]) => Promise<Outcome<unknown>>;
  /** Rejects the worker's current question when it dies or is terminated: Comlink alone would wait forever. */
  lose: (reason: EngineError) => void;
  phase: "loading" | "idle" | "busy" | "gone";
}

/** Long work waits at most this long, however much brief work arrives. */
const longestBehindBriefMs = 2_000;
/** Samples that take about a millisecond to process. */
const fewSamples = 1 << 14;
const briefOperations: ReadonlySet<Operation> = new Set(["peek", "summarize", "scores", "areTwoVoices", "memoryBytes"]);

function isBrief({ name, values }: Pick<Task, "name" | "values">): boolean {
  if (name === "advance") return (values[2] as Float32Array).length <= fewSamples;
  return briefOperations.has(name);
}

/** After this many workers in a row die while loading, no more are started. */
const mostFailedStarts = 3;
const reviveAfterMs = 5_000;

export class Pool implements Threads {
  readonly parallel: number;
  readonly #waiting = { brief: [] as Task[], long: [] as Task[] };
  #slots: Slot[] = [];
  #calls = 0;
  /** Mean duration of a call to the engine, for `retryAfterMs`. */
  #callMs = 200;
  #closed = false;
  /** Set when no worker is left: an error is better than a queue that is never served. */
  #fault: string | null = null;
  /** A worker could not be replaced. From time to time another start is tried, whether or not other workers are left. */
  #isShort = false;
  #reviveAt = 0;
  /** Workers that have ended and whose successors have not started yet. */
  #replacing = 0;

  private constructor(
    private readonly module: WebAssembly.Module,
    private readonly model: ThreadModel,
    private readonly options: PoolOptions,
  ) {
    this.parallel = options.workers;
  }

  /** Resolves when every worker has loaded the model. */
  static async start(module: WebAssembly.Module, model: ThreadModel, options: PoolOptions): Promise<Pool> {
    const pool = new Pool(module, model, options);
    try {
      await Promise.all(Array.from({ length: options.workers }, () => pool.#addSlot()));
    } catch (error) {
      await pool.close();
      throw error;
    }
    return pool;
  }

  get fault(): string | null {
    return this.#fault;
  }

  admit(): () => void {
    if (this.#closed) throw new EngineError("CLOSED", "the engine is closed");
    const { maxCalls, workers } = this.options;
    if (this.#calls >= maxCalls) {
      const retryAfterMs = Math.max(1, Math.ceil((this.#callMs * this.#calls) / workers / 2));
      throw new EngineError("QUEUE_FULL", `the queue is full: ${this.#calls} calls are running or waiting`, {
        retryAfterMs,
      });
    }
    this.#calls++;
    const startedAt = performance.now();
    return () => {
      this.#calls--;
      this.#callMs += (performance.now() - startedAt - this.#callMs) / 8;
    };
  }

  call(name: Operation, values: readonly unknown[], transfer: readonly Transferable[], signal: AbortSignal) {
    const { promise, resolve, reject } = withResolvers();
    if (this.#closed) reject(new EngineError("CLOSED", "the engine is closed"));
    else if (this.#fault !== null) {
      reject(new EngineError("NO_WORKERS", this.#fault));
    } else if (signal.aborted) reject(signal.reason);
    else {
      const task: Task = { name, values, transfer, signal, askedAt: performance.now(), resolve, reject };
      const queue = isBrief(task) ? this.#waiting.brief : this.#waiting.long;
      const settled = onAbort(signal, () => {
        const at = queue.indexOf(task);
        if (at >= 0) queue.splice(at, 1);
        reject(signal.reason);
      });
      promise.then(settled, settled);
      queue.push(task);
      this.#next();
    }
    if (this.#isShort) this.#revive();
    return promise as Promise<never>;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const closed = new EngineError("CLOSED", "the engine was closed");
    this.#rejectWaiting(closed);
    await Promise.all(this.#slots.splice(0).map((slot) => this.#end(slot, closed)));
  }

  #next(): void {
    for (const slot of this.#slots) {
      if (slot.phase !== "idle") continue;
      const task = this.#nextTask();
      if (!task) return;
      void this.#work(slot, task);
    }
  }

  #nextTask(): Task | undefined {
    const { brief, long } = this.#waiting;
    const isStarved = long.length > 0 && performance.now() - long[0]!.askedAt > longestBehindBriefMs;
    return (isStarved ? long.shift() : brief.shift()) ?? long.shift();
  }

  #rejectWaiting(reason: EngineError): void {
    const { brief, long } = this.#waiting;
    for (const task of [...brief.splice(0), ...long.splice(0)]) task.reject(reason);
  }

  async #work(slot: Slot, task: Task): Promise<void> {
    // Another call with the same samples was first. The worker would not get the message, and nobody an answer.
    if (task.transfer.some((one) => one instanceof ArrayBuffer && isMoved(one))) {
      task.reject(movedSamples());
      return this.#next();
    }
    slot.phase = "busy";
    this.#hold(slot, true);
    const answer = this.#asked(slot, () =>
      slot.call(task.name, Comlink.transfer([...task.values], [...task.transfer])),
    );
    const answered = answer
      .then(unwrapped)
      .then(task.resolve, task.reject)
      .then(() => true);
    if (!(await Promise.race([answered, this.#limit(task, answered)]))) {
      const late = new EngineError("TIMEOUT", `the work took longer than ${this.options.workLimitMs} ms`);
      task.reject(late);
      await this.#replace(slot, late);
      return;
    }
    if (slot.phase !== "busy") return;
    slot.phase = "idle";
    this.#hold(slot, false);
    this.#next();
  }

  /**
   * The worker's answer, or a rejection when it is lost. Each question has its own promise: a race against one that lives as long as
   * the worker would keep every answer alive too.
   */
  #asked<T>(slot: Slot, question: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    return new Promise((resolve, reject) => {
      slot.lose = reject;
      question().then(resolve, reject);
    });
  }

  /** Resolves to false when the worker must be given up; never if it answers first. */
  #limit(task: Task, answered: Promise<boolean>): Promise<boolean> {
    return new Promise((resolve) => {
      let timer = setTimeout(() => resolve(false), this.options.workLimitMs);
      const settled = onAbort(task.signal, () => {
        clearTimeout(timer);
        timer = setTimeout(() => resolve(false), this.options.graceMs);
      });
      void answered.then(() => {
        clearTimeout(timer);
        settled();
      });
    });
  }

  async #addSlot(): Promise<void> {
    const thread = startThread();
    const { port1, port2 } = new MessageChannel();
    // Looked up once: Comlink creates and registers a new proxy on every access.
    const { ready, call } = Comlink.wrap<WorkerApi>(port1);
    const slot: Slot = { thread, port: port1, ready, call, lose: () => {}, phase: "loading" };
    this.#slots.push(slot);
    thread.onLost((reason) => {
      void this.#replace(slot, new EngineError("WORKER_LOST", `the worker thread of this call died: ${reason}`));
    });
    const setup: WorkerSetup = { port: port2, module: this.module, model: this.model };
    thread.postMessage(setup, [port2]);
    try {
      unwrapped(await this.#asked<true>(slot, slot.ready));
    } catch (error) {
      this.#slots = this.#slots.filter((other) => other !== slot);
      await this.#end(slot, new EngineError("WORKER_LOST", "the worker script did not load"));
      throw error;
    }
    slot.phase = "idle";
    this.#hold(slot, false);
    this.#next();
  }

  /** Terminates the worker and starts another in its place. If it is still loading, the code that started it handles this. */
  async #replace(slot: Slot, reason: EngineError): Promise<void> {
    if (slot.phase === "loading") return slot.lose(reason);
    if (slot.phase === "gone") return;
    this.#slots = this.#slots.filter((other) => other !== slot);
    this.#replacing++;
    try {
      await this.#end(slot, reason);
      await this.#succeed();
      this.#replacing--;
    } catch (error) {
      this.#replacing--;
      this.#isShort = true;
      this.#reviveAt = performance.now() + reviveAfterMs;
      this.#giveUp(error);
    }
  }

  /** Starts the successor of a worker that ended. */
  async #succeed(): Promise<void> {
    for (let tries = 1; !this.#closed; tries++) {
      try {
        return await this.#addSlot();
      } catch (error) {
        if (tries === mostFailedStarts) throw error;
      }
    }
  }

  /** Unless a worker is left, or the successor of another one may still start. */
  #giveUp(why: unknown): void {
    if (this.#slots.length > 0 || this.#replacing > 0 || this.#closed) return;
    this.#fault = `no worker can be started: ${why instanceof Error ? why.message : String(why)}`;
    this.#rejectWaiting(new EngineError("NO_WORKERS", this.#fault));
  }

  /** Starts the missing workers: the cause (no memory, no threads left) may have passed. */
  #revive(): void {
    const missing = this.options.workers - this.#slots.length - this.#replacing;
    if (this.#closed || missing <= 0 || performance.now() < this.#reviveAt) return;
    this.#reviveAt = performance.now() + reviveAfterMs;
    const starting = Array.from({ length: missing }, () => this.#addSlot());
    void Promise.allSettled(starting).then((starts) => {
      this.#isShort = this.#slots.length < this.options.workers;
      if (this.#slots.length > 0) this.#fault = null;
      // The others may have ended in the meantime, and left it to these.
      else this.#giveUp(starts.find((start) => start.status === "rejected")?.reason);
    });
  }

  async #end(slot: Slot, reason: EngineError): Promise<void> {
    slot.phase = "gone";
    slot.lose(reason);
    slot.port.close();
    await slot.thread.terminate();
  }

  /** An idle pool does not keep the process alive. */
  #hold(slot: Slot, held: boolean): void {
    slot.thread.hold(held);
    const port = slot.port as MessagePort & { ref?: () => void; unref?: () => void };
    if (held) port.ref?.();
    else port.unref?.();
  }
}

function withResolvers() {
  let resolve!: (value: unknown) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<unknown>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
