/** The queue is full; try again in `retryAfterSeconds`. */
export class QueueFull extends Error {
  override readonly name = "QueueFull";
  constructor(readonly retryAfterSeconds: number) {
    super("all workers are busy and the queue is full; try again later");
  }
}

const LONGEST_WAIT_SECONDS = 30;
/** How much later than announced a caller may return and still find its place reserved: clients vary their waits. */
const GRACE = { share: 0.5, seconds: 5 };
/** Callers of one scope whose place in line is remembered. */
const MOST_PROMISED = 1000;

interface Waiting {
  start(): void;
}

/** Identifies a caller: its scope, and a key that stays the same when the same call is retried, `null` if it has none. */
export interface Asker {
  readonly scope: string;
  readonly caller: string | null;
}

const ANYBODY: Asker = { scope: "", caller: null };

/** A place in the line of the callers of a scope that were told to retry. */
interface Promised {
  readonly scope: string;
  readonly until: number;
}

/**
 * Runs a limited number of tasks at a time and queues a limited number; all others get a time to retry. Scopes take
 * turns, and within a scope the first comes first. A scope that has less than its share in the queue is let in even if
 * others have filled the queue. Callers that were told to retry keep their order, and newcomers line up behind them. A
 * task whose caller disconnects leaves the queue at once.
 */
export class WorkQueue {
  /** By scope; the next scope in turn comes first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  /** Callers that were told to retry. Oldest first. */
  readonly #promised = new Map<string, Promised>();
  #running = 0;
  /** Moving average of the duration of a task; the retry times are estimated from it. */
  #workSeconds = 0.25;

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

  /** How many callers of the same scope were told to retry before this one, and are still expected. */
  #ahead({ scope, caller }: Asker): number {
    const now = this.now();
    let ahead = 0;
    for (const [other, promised] of this.#promised) {
      if (promised.until < now) this.#promised.delete(other);
      else if (other === caller) break;
      else if (promised.scope === scope) ahead++;
    }
    return ahead;
  }

  /** Waiting tasks of a scope, and how many it may have while others wait too. */
  #shareOf(scope: string) {
    const own = this.#waiting.get(scope)?.size ?? 0;
    const scopes = this.#waiting.size + (own === 0 ? 1 : 0);
    return { own, scopes, share: Math.floor(this.capacity / scopes) };
  }

  /**
   * When a caller that finds the queue full should retry: when about half of the places of its scope are free, and all
   * callers ahead of it have theirs. If all were given the same time, they would return together and be refused again.
   */
  #promise({ scope, caller }: Asker, ahead: number): number {
    const { own, scopes, share } = this.#shareOf(scope);
    const each = (scopes * this.#workSeconds) / this.concurrent;
    const seconds = Math.min(Math.max(0.1, each * (own + ahead + 1 - share / 2)), LONGEST_WAIT_SECONDS);
    const until = this.now() + seconds * (1 + GRACE.share) + GRACE.seconds;
    if (caller !== null && ahead < MOST_PROMISED) this.#promised.set(caller, { scope, until });
    return seconds;
  }

  #isFullFor({ scope }: Asker, ahead: number): boolean {
    const { waiting, capacity } = this;
    // Not all callers return: what keeps the workers busy is never reserved.
    if (waiting < Math.min(this.concurrent, Math.floor(capacity / 2)) || waiting + ahead < capacity) return false;
    const { own, scopes, share } = this.#shareOf(scope);
    return scopes === 1 || own + ahead >= share || waiting >= 2 * capacity;
  }

  async run<T>(signal: AbortSignal, work: (queuedSeconds: number) => Promise<T>, asker: Asker = ANYBODY): Promise<T> {
    signal.throwIfAborted();
    const askedAt = this.now();
    const mustWait = this.#running >= this.concurrent;
    if (mustWait) {
      const ahead = this.#ahead(asker);
      if (this.#isFullFor(asker, ahead)) throw new QueueFull(this.#promise(asker, ahead));
    }
    if (asker.caller !== null) this.#promised.delete(asker.caller);
    if (mustWait) await this.#turn(signal, asker);
    else this.#running++;
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
