/** The queue is full; try again in `retryAfterSeconds`. */
export class QueueFull extends Error {
  override readonly name = "QueueFull";
  constructor(readonly retryAfterSeconds: number) {
    super("all workers are busy and the queue is full; try again later");
  }
}

const LONGEST_WAIT_SECONDS = 30;
/** How much later than announced a caller may return and still find its place reserved. */
const GRACE_SECONDS = 5;

interface Waiting {
  start(): void;
}

/** Identifies a caller: its scope, and a key that stays the same when the same call is retried. */
export interface Asker {
  readonly scope: string;
  readonly caller: string;
}

const ANYBODY: Asker = { scope: "", caller: "" };

/**
 * Runs a limited number of tasks at a time and queues a limited number; all others get a time to retry. Scopes take
 * turns, and within a scope the first comes first. A scope that has less than its share in the queue is let in even if
 * others have filled the queue. A caller that was told to retry finds a place reserved, so that newcomers do not
 * overtake it. A task whose caller disconnects leaves the queue at once.
 */
export class WorkQueue {
  /** By scope; the next scope in turn comes first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  /** Callers that were told to retry, and until when their place is reserved. Oldest first. */
  readonly #promised = new Map<string, number>();
  #running = 0;
  /** Moving average of the duration of a task; the retry times are estimated from it. */
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
    let waiting = 0;
    for (const { size } of this.#waiting.values()) waiting += size;
    return waiting;
  }

  /**
   * When a caller that finds the queue full should retry: about when half of the queue has been worked off, and later
   * than callers that were told so before. If all were given the same time, they would return together and be refused
   * again.
   */
  #promise({ caller }: Asker): number {
    const now = this.now();
    const each = this.#workSeconds / this.concurrent;
    const backlog = each * (this.waiting + this.#running);
    this.#promisedUntil = Math.max(now + Math.max(0.1, backlog / 2), this.#promisedUntil + each);
    this.#promisedUntil = Math.min(this.#promisedUntil, now + LONGEST_WAIT_SECONDS);
    this.#promised.set(caller, this.#promisedUntil + GRACE_SECONDS);
    return this.#promisedUntil - now;
  }

  /** At most half of the places are reserved for returning callers, because not all of them return. */
  #isFullFor({ scope }: Asker, wasPromised: boolean): boolean {
    const now = this.now();
    for (const [caller, until] of this.#promised) {
      if (until >= now && this.#promised.size <= this.capacity) break;
      this.#promised.delete(caller);
    }
    const kept = wasPromised ? 0 : Math.min(this.#promised.size, Math.floor(this.capacity / 2));
    const { waiting } = this;
    if (waiting + kept < this.capacity) return false;
    const own = this.#waiting.get(scope)?.size ?? 0;
    const scopes = this.#waiting.size + (own === 0 ? 1 : 0);
    return scopes === 1 || own >= Math.floor(this.capacity / scopes) || waiting >= 2 * this.capacity;
  }

  async run<T>(signal: AbortSignal, work: (queuedSeconds: number) => Promise<T>, asker: Asker = ANYBODY): Promise<T> {
    signal.throwIfAborted();
    const askedAt = this.now();
    const wasPromised = this.#promised.delete(asker.caller);
    if (this.#running >= this.concurrent) {
      if (this.#isFullFor(asker, wasPromised)) throw new QueueFull(this.#promise(asker));
      await this.#turn(signal, asker);
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

  #turn(signal: AbortSignal, { scope }: Asker): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        const others = this.#waiting.get(scope);
        others?.delete(waiting);
        if (others?.size === 0) this.#waiting.delete(scope);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.set(scope, (this.#waiting.get(scope) ?? new Set()).add(waiting));
    });
  }

  /**
   * Passes the place to the longest-waiting task of the next scope in turn, so that `running` never drops in between.
   */
  #next(): void {
    const [turn] = this.#waiting;
    if (turn === undefined) {
      this.#running--;
      return;
    }
    const [scope, waiting] = turn;
    const [first] = waiting;
    waiting.delete(first!);
    this.#waiting.delete(scope);
    if (waiting.size > 0) this.#waiting.set(scope, waiting);
    first!.start();
  }
}
