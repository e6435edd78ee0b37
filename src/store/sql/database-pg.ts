/** A PostgreSQL server, through a pool of connections. */
import pg from "pg";
import type { Database, Queries, Row } from "./database.js";
import { sqlState } from "./database.js";

const CONNECT_TIMEOUT_MS = 10_000;
const POOL_SIZE = 10;
const TRANSACTION_TRIES = 5;
const DEADLOCK = "40P01";
const SERIALIZATION_FAILURE = "40001";

export async function openPostgresDatabase(url: string): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_SIZE,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "vivavoce",
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
  return {
    exclusive: false,
    ...queriesOf(pool),
    async transaction(work) {
      for (let tries = 1; ; tries++) {
        try {
          return await runTransaction(pool, work);
        } catch (error) {
          const state = sqlState(error);
          if (tries === TRANSACTION_TRIES || (state !== DEADLOCK && state !== SERIALIZATION_FAILURE)) throw error;
        }
      }
    },
    close() {
      closing ??= pool.end();
      return closing;
    },
  };
}

async function runTransaction<T>(pool: pg.Pool, work: (queries: Queries) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // A connection may break between two statements, when no query can report it; without a listener the error would end the process.
  const onError = (error: Error) => {
    broken = error;
  };
  client.on("error", onError);
  try {
    await client.query("BEGIN");
    const result = await work(queriesOf(client));
    await client.query("COMMIT");
    return result;
  } catch (error) {
    // A connection that cannot roll back is discarded.
    await client.query("ROLLBACK").catch((reason: Error) => {
      broken = reason;
    });
    throw error;
  } finally {
    client.off("error", onError);
    client.release(broken);
  }
}

function queriesOf(connection: pg.Pool | pg.PoolClient): Queries {
  return {
    async query<T extends Row>(text: string, values: readonly unknown[] = []) {
      return (await connection.query(text, [...values])).rows as T[];
    },
    async foreign(text, values) {
      // Without values, the server accepts several statements in one text.
      const query = values?.length ? connection.query(text, [...values]) : connection.query(text);
      const results = (await query) as pg.QueryResult | pg.QueryResult[];
      return (Array.isArray(results) ? results.at(-1)! : results).rows;
    },
  };
}
