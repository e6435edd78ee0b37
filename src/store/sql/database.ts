/** The little that the store asks of a PostgreSQL, so that a server and an embedded one run the same code. */
export type Row = Record<string, unknown>;

export interface Queries {
  /** One statement of ours; its rows. Values are text, numbers, booleans, bytes, arrays of text. A statement that changes rows says RETURNING when the caller needs to know whether it did. */
  query<T extends Row = Row>(text: string, values?: readonly unknown[]): Promise<T[]>;
  /** Another library's statement, or several at once when there are no values; the rows of the last, as the driver converts them. */
  foreign(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

export interface Database extends Queries {
  /** True when no other process can have it open: whatever is under way in it and not ours was left by a dead one. */
  readonly exclusive: boolean;
  /** Commits when the work resolves, rolls back when it rejects. May run the work again after a deadlock. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export const UNIQUE_VIOLATION = "23505";
export const FOREIGN_KEY_VIOLATION = "23503";

/** PostgreSQL's five-character code, where the error is one of its own (EPIPE is the system's: none of PostgreSQL's begins with E). */
export function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : null;
}

/** Trouble with the connection, or a server that stops: the last statement may have been executed without an answer. */
const CONNECTION_LOST = /^(08|57P)/;

/** Whether PostgreSQL said no, so that nothing of the transaction stays. */
export function wasRefused(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && !CONNECTION_LOST.test(state);
}
