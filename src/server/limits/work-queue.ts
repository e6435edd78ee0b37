/** The queue is full: come back in `retryAfterSeconds`. */
export class QueueFull extends Error {
  override readonly name = "QueueFull";
  constructor(readonly retryAfterSeconds: number) {
    super("all workers are busy and the queue is full");
  }
}

const LONGEST_WAIT_SECONDS = 30;

interface Waiting {
  start(): void;
}

/**
 * Bounded work: a fixed number at a time, a fixed number waiting; everybody else gets BUSY with a time to retry.
 * First come, first served. Work whose caller went away leaves the queue at once.
 */
export class WorkQueue {
  readonly #waiting = new Set<Waiting>();
  #running = 0;
  /** Moving average of how long a piece of work takes; what a retry time is guessed from. */
  #workSeconds = 0.25;
  /** The retry time given to the last refused caller. */
  #promisedUntil = 0;

  constructor(
    readonly concurrent: number,
    readonly capacity: number,
    readonly now: () => number = () => performance.now() / 1000,
  ) {}

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * When a caller who finds the queue full may expect a place: about when what waits now has been half worked off, and after those who
   * were told so before. Told the same time, all would come back at once and be refused again.
   */
  #promise(): number {
    const now = this.now();
    const each = this.#workSeconds / this.concurrent;
    const backlog = each * (this.#waiting.size + this.#running);
    this.#promisedUntil = Math.max(now + Math.max(0.1, backlog / 2), this.#promisedUntil + each);
    this.#promisedUntil = Math.min(this.#promisedUntil, now + LONGEST_WAIT_SECONDS);
    return this.#promisedUntil - now;
  }

  async run<T>(signal: AbortSignal, work: (queuedSeconds: number) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const askedAt = this.now();
    if (this.#running >= this.concurrent) {
      if (this.#waiting.size >= this.capacity) throw new QueueFull(this.#promise());
      await this.#turn(signal);
    } else {
      this.#running++;
    }
    const startedAt = this.now();
    try {
      return await work(startedAt - askedAt);
    } finally {
      this.#workSeconds += 0.1 * (this.now() - startedAt - this.#workSeconds);
      this.#next();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(waiting);
    });
  }

  /** Hands the place to the one who waits longest, so that `running` never dips in between. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#running--;
      return;
    }
    this.#waiting.delete(first);
    first.start();
  }
}
