/** Shared by the parts of the SQL store. */
import { StoreError } from "../errors.js";
import type { Id } from "../port.js";
import { type DoomedKey, destroyByScope, type KeyId } from "../seal/key-ring.js";
import type { Vault } from "../seal/vault.js";
import { type Database, FOREIGN_KEY_VIOLATION, type Queries, sqlState, UNIQUE_VIOLATION } from "./database.js";
import type { OwnerNames } from "./names.js";
import { rowKey } from "./text.js";

export interface SqlContext {
  readonly database: Database;
  readonly vault: Vault;
  readonly names: OwnerNames;
  readonly now: () => number;
  /** The last known keys of sessions: a cache that saves a query. Every write checks that the key is still current. */
  readonly sessionKeyIds: Map<string, KeyId>;
}

/** Translates PostgreSQL errors into store errors. */
export async function inStoreWords<T>(id: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const state = sqlState(error);
    if (state === UNIQUE_VIOLATION)
      throw new StoreError("exists", `a record with id ${id} already exists`, { cause: error });
    if (state === FOREIGN_KEY_VIOLATION)
      throw new StoreError("unknown-parent", `record ${id} names a session or engagement that does not exist`, {
        cause: error,
      });
    throw error;
  }
}

/** The `data` of each row that a statement returns. */
export async function records<T>(queries: Queries, text: string, values: readonly unknown[]): Promise<T[]> {
  const rows = await queries.query<{ data: string }>(text, values);
  return rows.map(({ data }) => JSON.parse(data));
}

/** In the transaction that removes the rows, so that the next start can finish after a crash before the keys are destroyed. */
export async function doom(tx: Queries, keys: readonly DoomedKey[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.query(
    `INSERT INTO vivavoce.doomed_keys (key_id, scope_id)
     SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING`,
    [keys.map(({ keyId }) => keyId), keys.map(({ scopeId }) => JSON.stringify(scopeId))],
  );
}

/** After that transaction. Readers no longer see the rows; destroying the keys makes them unreadable in backups and logs too. */
export const destroyDoomed = ({ database, vault }: SqlContext, keys: readonly DoomedKey[]): Promise<void> =>
  destroyByScope(vault.ring, keys, async (keyIds) => {
    await database.query("DELETE FROM vivavoce.doomed_keys WHERE key_id = ANY($1::text[])", [keyIds]);
  });

export async function readDoomed({ database }: SqlContext): Promise<DoomedKey[]> {
  const rows = await database.query<{ key_id: string; scope_id: string }>(
    "SELECT key_id, scope_id FROM vivavoce.doomed_keys",
  );
  return rows.map(({ key_id, scope_id }) => ({ keyId: key_id, scopeId: JSON.parse(scope_id) }));
}

/** Tells loaded galleries what has changed. Locks the scope's row until the transaction ends, so that versions become visible in order and no reader misses one. */
export async function markPrintChanged(tx: Queries, scopeId: Id, id: Id): Promise<void> {
  const rows = await tx.query(
    `WITH changed AS (
       UPDATE vivavoce.scopes SET prints_version = prints_version + 1 WHERE scope = $1 RETURNING prints_version
     )
     INSERT INTO vivavoce.print_changes (scope, profile, version) SELECT $1, $2, prints_version FROM changed
     ON CONFLICT (scope, profile) DO UPDATE SET version = excluded.version RETURNING 1`,
    rowKey(scopeId, id),
  );
  if (rows.length === 0) throw new StoreError("unknown-parent", `scope ${scopeId} does not exist`);
}
