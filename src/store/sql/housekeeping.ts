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

export class Housekeeping {
  #written = 0;
  #idle: NodeJS.Timeout | null = null;
  #cleaning = false;

  constructor(
    private readonly limits: HousekeepingLimits,
    /** Runs in turn with the queries. */
    private readonly clean: () => Promise<void>,
  ) {}

  noteStatement(text: string, values: readonly unknown[] = []): void {
    if (/^\s*SELECT\b/i.test(text) && !/\b(INSERT|UPDATE|DELETE)\b/.test(text)) return;
    this.#written += STATEMENT_BYTES;
    for (const value of values) if (value instanceof Uint8Array) this.#written += value.length;
    if (this.#written >= this.limits.writtenBytes) this.#start();
    else if (!this.#idle) this.#waitForIdle();
  }

  stop(): void {
    if (this.#idle) clearTimeout(this.#idle);
    this.#idle = null;
  }

  #waitForIdle(): void {
    const before = this.#written;
    this.#idle = setTimeout(() => {
      this.#idle = null;
      if (this.#written === before) this.#start();
      else this.#waitForIdle();
    }, this.limits.idleMs);
    this.#idle.unref();
  }

  #start(): void {
    if (this.#cleaning) return;
    this.#cleaning = true;
    this.stop();
    this.#written = 0;
    // The disk is full or the store is closing: it runs again later.
    this.clean()
      .catch(() => {})
      .finally(() => {
        this.#cleaning = false;
      });
  }
}
