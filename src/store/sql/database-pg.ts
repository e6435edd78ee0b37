/** A PostgreSQL server, through a pool of connections. */
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { StoreError } from "../errors.js";
import { type Database, type Queries, type Row, sqlState } from "./database.js";

/** A server that is stopped, overloaded or cut off must not hold callers forever. All times are in milliseconds. */
export interface PostgresLimits {
  /** To open a connection, also to a server that is restarting, and to wait for a free one. */
  readonly connectMs: number;
  /** After this, the server cancels a statement. */
  readonly statementMs: number;
  /** After this, the connection is given up. Longer than `statementMs`: a server that is only slow answers itself. */
  readonly answerMs: number;
  /** After this, the server ends a transaction whose client has fallen silent, and frees its locks. */
  readonly silenceMs: number;
}

const LIMITS: PostgresLimits = { connectMs: 10_000, statementMs: 20_000, answerMs: 25_000, silenceMs: 60_000 };
/** In place of the other limits for statements of a slow transaction, as long as the server answers others. */
const SLOW_MS = 3_600_000;
/** Detects a server whose machine is gone. */
const KEEPALIVE_AFTER_MS = 10_000;
const RECONNECT_EVERY_MS = 100;
const CLOSE_LOOK_MS = 10;
const POOL_SIZE = 10;
const TRANSACTION_TRIES = 5;
const DEADLOCK = "40P01";
const SERIALIZATION_FAILURE = "40001";

export async function openPostgresDatabase(url: string, limits = LIMITS): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_SIZE,
    connectionTimeoutMillis: limits.connectMs,
    query_timeout: limits.answerMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS,
    application_name: "vivavoce",
    // Not as parameters of the connection: connection poolers refuse those.
    onConnect: async (client) => {
      await client.query(settings(limits.statementMs, limits.silenceMs, "SET"));
    },
  });
  // A broken idle connection is replaced on the next use; without a listener the error would end the process.
  pool.on("error", () => {});
  try {
    (await pool.connect()).release();
  } catch (error) {
    await pool.end();
    throw error;
  }
  let closing: Promise<void> | null = null;
  const queries = queriesOf(pool);
  const throughRestart = bridgingRestarts(limits.connectMs);
  return {
    exclusive: false,
    query: <T extends Row>(text: string, values?: readonly unknown[]) =>
      throughRestart(() => queries.query<T>(text, values), isRead(text)),
    foreign: (text, values) => throughRestart(() => queries.foreign(text, values)),
    async transaction(work, { slow = false } = {}) {
      for (let tries = 1; ; tries++) {
        try {
          const client = await throughRestart(() => inTime(pool.connect()));
          return await runTransaction(client, work, slow ? { url, limits } : null);
        } catch (error) {
          const state = sqlState(error);
          if (tries === TRANSACTION_TRIES || (state !== DEADLOCK && state !== SERIALIZATION_FAILURE)) throw error;
        }
      }
    },
    close() {
      closing ??= (async () => {
        // A pool that ends leaves those that wait for a connection without one, until their time limit.
        while (pool.waitingCount > 0) await wait(CLOSE_LOOK_MS);
        await pool.end();
      })();
      return closing;
    },
  };
}

interface Server {
  readonly url: string;
  readonly limits: PostgresLimits;
}

/** With a server, the transaction is a slow one: it may take long, but only while the server answers others. */
async function runTransaction<T>(
  client: pg.PoolClient,
  work: (queries: Queries) => Promise<T>,
  slowOn: Server | null,
): Promise<T> {
  let broken: Error | undefined;
  // A connection may break between two statements, when no query can report it; without a listener the error would end the process.
  const onError = (error: Error) => {
    broken = error;
  };
  client.on("error", onError);
  const queries = queriesOf(client);
  try {
    await queries.query("BEGIN");
    if (slowOn) await queries.foreign(settings(SLOW_MS, SLOW_MS, "SET LOCAL"));
    const result = slowOn ? await whileAnswering(slowOn, work(queriesOf(client, SLOW_MS))) : await work(queries);
    await queries.query("COMMIT");
    return result;
  } catch (error) {
    // A connection that does not answer, or cannot roll back, is discarded: then the server rolls back.
    if (isUnavailable(error)) broken = error as Error;
    else
      await queries.query("ROLLBACK").catch((reason: Error) => {
        broken = reason;
      });
    throw error;
  } finally {
    client.off("error", onError);
    client.release(broken);
  }
}

/** Rejects when the server stops answering, because a statement without an answer does not show it. */
async function whileAnswering<T>(server: Server, work: Promise<T>): Promise<T> {
  const { answerMs } = server.limits;
  const over = new AbortController();
  const silence = (async () => {
    for (;;) {
      await wait(answerMs, null, { signal: over.signal });
      if (!(await isAnswering(server))) throw new StoreError("unavailable", "the database does not answer");
    }
  })();
  try {
    return await Promise.race([work, silence]);
  } finally {
    over.abort();
  }
}

/** Uses a connection of its own, because all of the pool may be in use. */
async function isAnswering({ url, limits: { connectMs, answerMs } }: Server): Promise<boolean> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    query_timeout: answerMs,
    application_name: "vivavoce",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch (error) {
    // A refusal of the server, such as too many connections, is an answer.
    return sqlState(error) !== null;
  } finally {
    client.end().catch(() => {});
  }
}

const settings = (statementMs: number, silenceMs: number, set: "SET" | "SET LOCAL") =>
  `${set} statement_timeout = ${statementMs}; ${set} idle_in_transaction_session_timeout = ${silenceMs}`;

function queriesOf(connection: pg.Pool | pg.PoolClient, answerMs?: number): Queries {
  const limit = answerMs === undefined ? {} : { query_timeout: answerMs };
  return {
    async query<T extends Row>(text: string, values: readonly unknown[] = []) {
      return (await inTime(connection.query({ text, values: [...values], ...limit }))).rows as T[];
    },
    async foreign(text, values) {
      // Without values, the server accepts several statements in one text.
      const query = connection.query({ text, ...(values?.length ? { values: [...values] } : {}), ...limit });
      const results = (await inTime(query)) as pg.QueryResult | pg.QueryResult[];
      return (Array.isArray(results) ? results.at(-1)! : results).rows;
    },
  };
}

/** A server that has become a standby: the next connection may lead to its successor. */
const READ_ONLY = "25006";
/** Codes of a failed connection, of a server that is stopping, starting, a standby or out of connections, and of its time limits. */
const UNAVAILABLE =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|E(HOST|NET)UNREACH|57P0[123]|57014|25P03|25006|08\w{3}|53300)$/;
/** Errors of the driver, which have no code. */
const NO_ANSWER =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client (has encountered|was closed))/;

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof StoreError) return error.code === "unavailable";
  const code = "code" in error ? error.code : undefined;
  return (typeof code === "string" && UNAVAILABLE.test(code)) || NO_ANSWER.test(error.message);
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const isReadOnly = sqlState(error) === READ_ONLY;
    const message = isReadOnly ? "the database accepts no writes; is it a standby?" : "the database does not answer";
    throw new StoreError("unavailable", message, { cause: error });
  }
}

/** Nobody listens at its address, or it says that it cannot be connected to now. */
const REFUSED = /^(ECONNREFUSED|57P03)$/;

/** The server went away with the statement: whether it was executed is unknown. */
const LOST = /^(ECONNRESET|EPIPE|57P0[12]|08\w{3})$/;
const LOST_MESSAGE = /^Connection terminated unexpectedly/;

const wasLost = ({ code = "", message = "" }: { code?: string; message?: string }): boolean =>
  LOST.test(code) || LOST_MESSAGE.test(message);

/** Of our own statements; those that lock or change something begin with another word, or are part of a transaction. */
const isRead = (text: string): boolean => /^\s*SELECT\b/.test(text);

/**
 * A server that restarts refuses connections for a moment. Nothing was sent to it then, so the same is tried again until `forMs` after the
 * first refusal: a caller on the telephone cannot repeat what they said. While it stays away for longer, everything fails at once. A read
 * that was lost with its connection is sent once more: only once, because it may be what ended the server.
 */
function bridgingRestarts(forMs: number): <T>(send: () => Promise<T>, isRead?: boolean) => Promise<T> {
  /** When the server began to refuse, and when it last did. */
  let [since, last] = [0, Number.NEGATIVE_INFINITY];
  return async (send, isRead = false) => {
    for (let mayRepeat = isRead; ; ) {
      try {
        const answer = await send();
        last = Number.NEGATIVE_INFINITY;
        return answer;
      } catch (error) {
        const cause = ((error as Error).cause ?? {}) as { code?: string; message?: string };
        if (mayRepeat && wasLost(cause)) mayRepeat = false;
        else if (!REFUSED.test(cause.code ?? "")) throw error;
        else {
          const now = performance.now();
          // Nobody asked in the meantime: this is another outage.
          if (now - last > forMs) since = now;
          last = now;
          if (now - since >= forMs) throw error;
          await wait(RECONNECT_EVERY_MS);
        }
      }
    }
  };
}
