/** Tells loaded galleries what has changed. */
import { StoreError } from "../errors.js";
import type { Id } from "../port.js";
import type { Queries } from "./database.js";
import { rowKey } from "./text.js";

/** Locks the scope's row until the transaction ends, so that versions become visible in order and no reader misses one. */
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
