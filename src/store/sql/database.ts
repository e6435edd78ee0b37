/** What the store needs from PostgreSQL, so that a server and an embedded database run the same code. */
export type Row = Record<string, unknown>;

export interface Queries {
  /** Runs one statement and returns its rows. Values are text, numbers, booleans, bytes, arrays of text. Use RETURNING to learn whether rows changed. */
  query<T extends Row = Row>(text: string, values?: readonly unknown[]): Promise<T[]>;
  /** A statement of another library, or several at once if there are no values; returns the rows of the last, as the driver converts them. */
  foreign(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

export interface Database extends Queries {
  /** True if no other process can have it open: work in progress that is not ours was left by a dead process. */
  readonly exclusive: boolean;
  /**
   * Commits when the work resolves, rolls back when it rejects. May run the work again after a deadlock. Statements of a slow transaction have an
   * hour while the server answers others: for migrations, large removals and waiting for other replicas.
   */
  transaction<T>(work: (queries: Queries) => Promise<T>, options?: { readonly slow?: boolean }): Promise<T>;
  close(): Promise<void>;
}

export const UNIQUE_VIOLATION = "23505";
export const FOREIGN_KEY_VIOLATION = "23503";

/** PostgreSQL's five-character code, if the error is from PostgreSQL (EPIPE is the system's: no PostgreSQL code begins with E). */
export function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : null;
}

/** A connection error, or a server that is stopping: the last statement may have been executed without a reply. */
const CONNECTION_LOST = /^(08|57P)/;

/** Whether PostgreSQL rejected the transaction, so that nothing of it remains. */
export function wasRefused(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && !CONNECTION_LOST.test(state);
}
