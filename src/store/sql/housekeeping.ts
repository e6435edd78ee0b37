/**
 * Frees space in the embedded database, which has no background process for it: without this, neither removed rows nor the
 * write-ahead log would ever leave the disk. Runs after a certain amount of writes, and after an idle period.
 */
export interface HousekeepingLimits {
  /** Removed rows and the log each take at most about this much. */
  readonly writtenBytes: number;
  readonly idleMs: number;
}

export const HOUSEKEEPING: HousekeepingLimits = { writtenBytes: 64 * 1024 * 1024, idleMs: 30_000 };

/** A statement writes at least about this much: a row, its index entries and their log records. */
const STATEMENT_BYTES = 1024;

export interface HousekeepingWork {
  /** Length of the write-ahead log since the last cleaning. A removed row is as long there as an added one. */
  logBytes(): Promise<number>;
  /** Both run in turn with the queries. */
  clean(): Promise<void>;
}

export class Housekeeping {
  #written = 0;
  #statements = 0;
  #timer: NodeJS.Timeout | null = null;
  #cleaning = false;

  constructor(
    private readonly limits: HousekeepingLimits,
    private readonly work: HousekeepingWork,
  ) {}

  noteStatement(text: string, values: readonly unknown[] = []): void {
    if (!this.#count(text, values)) return;
    this.#statements++;
    this.#timer ??= this.#wait();
  }

  /** The job queue asks for work every second, with statements that would write: they must not look like use of the store. */
  notePoll(text: string, values: readonly unknown[] = []): void {
    this.#count(text, values);
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #count(text: string, values: readonly unknown[]): boolean {
    if (/^\s*SELECT\b/i.test(text) && !/\b(INSERT|UPDATE|DELETE)\b/.test(text)) return false;
    this.#written += STATEMENT_BYTES;
    for (const value of values) if (value instanceof Uint8Array) this.#written += value.length;
    if (this.#written >= this.limits.writtenBytes) this.#start();
    return true;
  }

  #wait(): NodeJS.Timeout {
    const before = this.#statements;
    const timer = setTimeout(() => this.#look(timer, before), this.limits.idleMs);
    return timer.unref();
  }

  /** In a store that is never idle, a large removal shows only in the log. */
  async #look(timer: NodeJS.Timeout, before: number): Promise<void> {
    const isDue =
      this.#statements === before || (await this.work.logBytes().catch(() => 0)) >= this.limits.writtenBytes;
    if (this.#timer !== timer) return;
    this.#timer = null;
    if (isDue && !this.#cleaning) this.#start();
    else this.#timer = this.#wait();
  }

  #start(): void {
    if (this.#cleaning) return;
    this.#cleaning = true;
    this.stop();
    this.#written = 0;
    // The disk is full or the store is closing: it runs again later.
    this.work
      .clean()
      .catch(() => {})
      .finally(() => {
        this.#cleaning = false;
      });
  }
}
