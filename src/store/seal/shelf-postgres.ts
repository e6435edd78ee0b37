/**
 * Keys in a separate PostgreSQL, for replicas that share a store. Scope keys are stored wrapped by the master key, which only the
 * replicas have. Use another server than the store's, with a short write-ahead log and no long-kept backups: copies of a destroyed key in
 * its log and backups can be opened with the master key. See docs/storing.md.
 */
import { SealError } from "../errors.js";
import type { Database, Queries } from "../sql/database.js";
import { FOREIGN_KEY_VIOLATION, sqlState } from "../sql/database.js";
import { keyOf } from "../sql/text.js";
import { type Aead, KEY_BYTES, randomBytes } from "./aead.js";
import { type KeyId, type KeyShelf, toHex, type WrappedKey } from "./key-ring.js";
import { createMasterSeal, type MasterKeys } from "./master-key.js";

type KeyRow = WrappedKey & Record<string, unknown>;

const BATCH = 2_000;
/** An arbitrary number that no other program uses. */
const SETUP_LOCK = 7_161_931_216;

const TABLES = `
  CREATE SCHEMA IF NOT EXISTS vivavoce_keys;
  CREATE TABLE IF NOT EXISTS vivavoce_keys.ring (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    identity text NOT NULL,
    master_check text NOT NULL
  );
  CREATE TABLE IF NOT EXISTS vivavoce_keys.scope_keys (
    scope text COLLATE "C", generation integer,
    scope_id text NOT NULL,
    wrapped text NOT NULL,
    PRIMARY KEY (scope, generation)
  );
  CREATE TABLE IF NOT EXISTS vivavoce_keys.data_keys (
    scope text COLLATE "C", id text COLLATE "C",
    purpose text NOT NULL,
    generation integer,
    wrapped bytea,
    PRIMARY KEY (scope, id),
    FOREIGN KEY (scope, generation) REFERENCES vivavoce_keys.scope_keys
  );
  CREATE INDEX IF NOT EXISTS data_keys_generation ON vivavoce_keys.data_keys (scope, generation);
`;

const LIVE_KEYS = `SELECT id, purpose, generation, wrapped FROM vivavoce_keys.data_keys
  WHERE scope = $1 AND wrapped IS NOT NULL`;

/** Takes ownership of the database: closing the shelf closes it, and so does a failure to open it. */
export async function openPostgresShelf(database: Database, aead: Aead, keys: MasterKeys): Promise<KeyShelf> {
  try {
    if (!keys.masterKey) throw new SealError("wrong-key", "keys in a database need a master key; pass masterKey");
    return await open(database, aead, keys);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function open(database: Database, aead: Aead, keys: MasterKeys): Promise<KeyShelf> {
  const master = await createMasterSeal(aead, keys);
  const { identity, check } = await database.transaction(
    async (tx) => {
      await tx.query("SELECT pg_advisory_xact_lock($1)", [SETUP_LOCK]);
      await tx.foreign(TABLES);
      const [ring] = await tx.query<{ identity: string; master_check: string }>(
        "SELECT identity, master_check FROM vivavoce_keys.ring FOR UPDATE",
      );
      if (!ring) {
        const made = toHex(randomBytes(16));
        const madeCheck = await master.check(made);
        await tx.query("INSERT INTO vivavoce_keys.ring (identity, master_check) VALUES ($1, $2)", [made, madeCheck]);
        return { identity: made, check: madeCheck };
      }
      const outdated = await master.isOutdated(ring.identity, ring.master_check);
      return {
        identity: ring.identity,
        check: outdated ? await wrapScopeKeysAnew(tx, ring.identity) : ring.master_check,
      };
    },
    { slow: true },
  );

  /** Used from now on to verify the master key. */
  async function wrapScopeKeysAnew(tx: Queries, ringIdentity: string): Promise<string | null> {
    const rows = await tx.query<{ scope: string; scope_id: string; generation: number; wrapped: string }>(
      "SELECT scope, scope_id, generation, wrapped FROM vivavoce_keys.scope_keys FOR UPDATE",
    );
    for (const { scope, scope_id, generation, wrapped } of rows) {
      const scopeId: string = JSON.parse(scope_id);
      const raw = await master.unwrapPrevious(scopeId, generation, wrapped);
      await tx.query("UPDATE vivavoce_keys.scope_keys SET wrapped = $3 WHERE scope = $1 AND generation = $2", [
        scope,
        generation,
        await master.wrap(scopeId, generation, raw),
      ]);
    }
    const nextCheck = await master.check(ringIdentity);
    await tx.query("UPDATE vivavoce_keys.ring SET master_check = $1", [nextCheck]);
    return nextCheck;
  }

  return {
    identity,
    async scopes() {
      const rows = await database.query<{ scope_id: string }>("SELECT DISTINCT scope_id FROM vivavoce_keys.scope_keys");
      return rows.map(({ scope_id }) => JSON.parse(scope_id));
    },
    async scopeKeys(scopeId) {
      const rows = await database.query<{ generation: number; wrapped: string }>(
        "SELECT generation, wrapped FROM vivavoce_keys.scope_keys WHERE scope = $1 ORDER BY generation",
        [keyOf(scopeId)],
      );
      return Promise.all(rows.map(({ generation, wrapped }) => master.scopeKey(scopeId, generation, wrapped)));
    },
    async addScopeKey(scopeId, generation) {
      const made = await master.wrap(scopeId, generation, randomBytes(KEY_BYTES));
      // Not if another replica has replaced the master key: nobody could open it afterwards.
      await database.query(
        `INSERT INTO vivavoce_keys.scope_keys (scope, scope_id, generation, wrapped)
         SELECT $1, $2, $3::integer, $4 FROM vivavoce_keys.ring WHERE master_check = $5 FOR SHARE
         ON CONFLICT DO NOTHING`,
        [keyOf(scopeId), JSON.stringify(scopeId), generation, made, check],
      );
      const [row] = await database.query<{ wrapped: string }>(
        "SELECT wrapped FROM vivavoce_keys.scope_keys WHERE scope = $1 AND generation = $2",
        [keyOf(scopeId), generation],
      );
      if (!row) throw new SealError("wrong-key", "the master key was replaced; open the store with the new one");
      return master.scopeKey(scopeId, generation, row.wrapped);
    },
    removeScopeKey: (scopeId, generation) =>
      unlessReferenced(
        database.query("DELETE FROM vivavoce_keys.scope_keys WHERE scope = $1 AND generation = $2", [
          keyOf(scopeId),
          generation,
        ]),
      ),
    add: (scopeId, { id, purpose, generation, wrapped }) =>
      unlessReferenced(
        database.query(
          "INSERT INTO vivavoce_keys.data_keys (scope, id, purpose, generation, wrapped) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
          [keyOf(scopeId), id, purpose, generation, wrapped],
        ),
      ),
    async rewrap(scopeId, rewrapped) {
      const update = database.transaction(async (tx) => {
        for (const { id, generation, wrapped } of rewrapped) {
          await tx.query(
            `UPDATE vivavoce_keys.data_keys SET generation = $3, wrapped = $4
             WHERE scope = $1 AND id = $2 AND wrapped IS NOT NULL`,
            [keyOf(scopeId), id, generation, wrapped],
          );
        }
      });
      await unlessReferenced(update);
    },
    async find(scopeId, ids) {
      const rows = await database.query<KeyRow>(`${LIVE_KEYS} AND id = ANY($2::text[])`, [keyOf(scopeId), ids]);
      return new Map(rows.map((row) => [row.id, row]));
    },
    async *all(scopeId) {
      for (let after = ""; ; ) {
        const rows: KeyRow[] = await database.query<KeyRow>(`${LIVE_KEYS} AND id > $2 ORDER BY id LIMIT ${BATCH}`, [
          keyOf(scopeId),
          after,
        ]);
        if (rows.length === 0) return;
        yield rows;
        after = rows.at(-1)!.id;
      }
    },
    async destroy(scopeId, ids) {
      const which = [keyOf(scopeId), ids];
      await database.transaction(async (tx) => {
        // In the same order as rewrapping, to avoid a deadlock.
        await tx.query(
          "SELECT 1 FROM vivavoce_keys.data_keys WHERE scope = $1 AND id = ANY($2::text[]) ORDER BY id FOR UPDATE",
          which,
        );
        await tx.query(
          `UPDATE vivavoce_keys.data_keys SET wrapped = NULL, generation = NULL
           WHERE scope = $1 AND id = ANY($2::text[]) AND purpose = 'profile'`,
          which,
        );
        await tx.query(
          "DELETE FROM vivavoce_keys.data_keys WHERE scope = $1 AND id = ANY($2::text[]) AND purpose <> 'profile'",
          which,
        );
      });
    },
    async destroyedOf(scopeId, ids) {
      const rows = await database.query<{ id: KeyId }>(
        "SELECT id FROM vivavoce_keys.data_keys WHERE scope = $1 AND id = ANY($2::text[]) AND wrapped IS NULL",
        [keyOf(scopeId), ids],
      );
      return new Set(rows.map(({ id }) => id));
    },
    close: () => database.close(),
  };
}

/** Data keys reference the scope key that wraps them, so the two cannot diverge. */
async function unlessReferenced(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (sqlState(error) === FOREIGN_KEY_VIOLATION) return false;
    throw error;
  }
}
