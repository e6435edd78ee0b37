/** Jobs worked one at a time in this process: what the stores without a database server use. */
import type { Job } from "./port.js";

export interface QueuedJob {
  /** The job as it stands when its turn comes. */
  job(): Job | Promise<Job | null> | null;
  /** Every try threw. */
  failed(): void | Promise<void>;
}

const TRIES = 3;

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

  /** Waits for the job at hand; those waiting stay unworked. */
  async close(): Promise<void> {
    this.#open = false;
    await this.#running;
  }

  #start(): void {
    if (this.#handler && !this.#running) this.#running = this.#drain();
  }

  async #drain(): Promise<void> {
    // Not before who starts it has noted that it runs.
    await null;
    try {
      for (let next = this.#next(); next; next = this.#next()) await this.#try(next);
    } finally {
      // In the same step that found nothing: a job that comes now starts it again.
      this.#running = null;
    }
  }

  #next(): QueuedJob | undefined {
    return this.#open ? this.#waiting.shift() : undefined;
  }

  async #try(queued: QueuedJob): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      const job = await queued.job();
      if (!job || !this.#open) return;
      try {
        return await this.#handler!(job);
      } catch {
        // The next try may do better; the last one marks the job as failed.
      }
    }
    await queued.failed();
  }
}
