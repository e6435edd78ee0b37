/** States of jobs in all stores, which jobs a store without SQL trims, and the queue of the store in memory. */
import type { Job } from "./port.js";

interface QueuedJob {
  /** The current state of the job when its turn comes. */
  job(): Job;
  /** Every attempt threw. */
  failed(): void;
}

export const TRIES = 3;
/** The contract's VoiceprintProfilesStatusJobState numbers. */
export const FAILED_STATE = 4;
export const UNFINISHED_STATES: readonly number[] = [1, 2];
export const ENDED_STATES: readonly number[] = [3, FAILED_STATE];

/** The jobs that `trim` of a store without SQL removes. */
export function jobsBeyond(jobs: readonly Job[], maxBytes: number): Job[] {
  const newestFirst = jobs
    .filter(({ state }) => ENDED_STATES.includes(state))
    .sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1));
  let bytes = 0;
  return newestFirst.filter(({ request, result }, i) => {
    bytes += JSON.stringify([request, result]).length;
    return i > 0 && bytes > maxBytes;
  });
}

export class JobQueue {
  readonly #waiting: QueuedJob[] = [];
  #handler: ((job: Job) => Promise<void>) | null = null;
  #running: Promise<void> | null = null;
  #open = true;

  push(job: QueuedJob): void {
    this.#waiting.push(job);
    this.#start();
  }

  work(handler: (job: Job) => Promise<void>): void {
    this.#handler = handler;
    this.#start();
  }

  /** Waits for the current job; waiting jobs are not started. */
  async close(): Promise<void> {
    this.#open = false;
    await this.#running;
  }

  #start(): void {
    if (this.#handler && !this.#running) this.#running = this.#drain();
  }

  async #drain(): Promise<void> {
    // Only after the caller has recorded that it runs.
    await null;
    try {
      for (let next = this.#next(); next; next = this.#next()) await this.#try(next);
    } finally {
      // In the same step that found nothing: a job added after this starts it again.
      this.#running = null;
    }
  }

  #next(): QueuedJob | undefined {
    return this.#open ? this.#waiting.shift() : undefined;
  }

  async #try(queued: QueuedJob): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      if (!this.#open) return;
      try {
        return await this.#handler!(queued.job());
      } catch {
        // Another attempt may succeed; the last one marks the job as failed.
      }
    }
    queued.failed();
  }
}
