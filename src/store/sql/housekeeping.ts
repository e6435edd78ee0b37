/**
 * Gives space back in the embedded database, which has no process of its own for it: without this neither removed rows nor the
 * write-ahead log would ever leave the disk. Done after so much was written, and after a while in which nothing was.
 */
export interface HousekeepingLimits {
  /** What was removed and what was logged take at most about so much, twice. */
  readonly writtenBytes: number;
  readonly idleMs: number;
}

export const HOUSEKEEPING: HousekeepingLimits = { writtenBytes: 64 * 1024 * 1024, idleMs: 30_000 };

/** A statement writes at least about this much: a row, its index entries, the log's record of them. */
const STATEMENT_BYTES = 1024;

export class Housekeeping {
  readonly #limits: HousekeepingLimits;
  readonly #clean: () => Promise<void>;
  #written = 0;
  #idle: NodeJS.Timeout | null = null;
  #cleaning = false;

  /** `clean` takes its turn among the queries. */
  constructor(limits: HousekeepingLimits, clean: () => Promise<void>) {
    this.#limits = limits;
    this.#clean = clean;
  }

  noteStatement(text: string, values: readonly unknown[] = []): void {
    if (/^\s*SELECT\b/i.test(text) && !/\b(INSERT|UPDATE|DELETE)\b/.test(text)) return;
    this.#written += STATEMENT_BYTES;
    for (const value of values) if (value instanceof Uint8Array) this.#written += value.length;
    if (this.#written >= this.#limits.writtenBytes) this.#start();
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
    }, this.#limits.idleMs);
    this.#idle.unref();
  }

  #start(): void {
    if (this.#cleaning) return;
    this.#cleaning = true;
    this.stop();
    this.#written = 0;
    // A disk that is full, or a store that closes: there will be another turn.
    this.#clean()
      .catch(() => {})
      .finally(() => {
        this.#cleaning = false;
      });
  }
}
