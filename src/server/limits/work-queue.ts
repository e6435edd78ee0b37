/** The queue is full: come back in `retryAfterSeconds`. */
export class QueueFull extends Error {
  override readonly name = "QueueFull";
  constructor(readonly retryAfterSeconds: number) {
    super("all workers are busy and the queue is full; try again later");
  }
}

const LONGEST_WAIT_SECONDS = 30;
/** How much later than told somebody may come back and still find a place kept. */
const GRACE_SECONDS = 5;

interface Waiting {
  start(): void;
}

/** Who asks: a scope, and in it a caller by whatever stays the same when the same call is tried again. */
export interface Asker {
  readonly scope: string;
  readonly caller: string;
}

const ANYBODY: Asker = { scope: "", caller: "" };

/**
 * Work in bounded numbers: so many at a time, so many waiting, and everybody else is told when to come back.
 * Scopes are served in turn, and in a scope who came first. A scope that waits for less than its share comes in though others have filled the queue;
 * who was told to come back finds a place kept, so that newcomers do not overtake. Work whose caller went away leaves the queue at once.
 */
export class WorkQueue {
  /** By scope; the one whose turn it is first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  /** Who was told to come back, and until when a place is kept. Oldest first. */
  readonly #promised = new Map<string, number>();
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
    let waiting = 0;
    for (const { size } of this.#waiting.values()) waiting += size;
    return waiting;
  }

  /**
   * When a caller who finds the queue full may expect a place: about when what waits now has been half worked off, and after those who
   * were told so before. Told the same time, all would come back at once and be refused again.
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

  /** Half of the places at most are kept for who was told to come back: not all of them do. */
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

  /** Hands the place to who waits longest in the scope whose turn it is, so that `running` never dips in between. */
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
