/** Names of owners that an earlier version wrote unsealed. */
import type { Id } from "../port.js";
import type { KeyId } from "../seal/key-ring.js";
import type { SqlContext } from "./context.js";
import type { Queries } from "./database.js";
import { keyOf } from "./text.js";

const PROFILES_AT_ONCE = 500;
/** The keys have a secret of this name, which cannot be a scope id, once all names are sealed: a later unsealed one is not from us. */
const ALL_SEALED = "\0sealed names";

/**
 * Seals them, a few profiles at a time; replicas take turns. A profile whose key is missing keeps its name unsealed, and cannot be read, until a
 * start after the key is back. `true` if there were any.
 */
export async function sealOldNames(context: SqlContext): Promise<boolean> {
  const { database, vault, names } = context;
  if (await vault.ring.hasSecret(ALL_SEALED)) return false;
  const scopes = await database.query<{ scope_id: string }>(
    `SELECT scope_id FROM vivavoce.scopes s
     WHERE EXISTS (SELECT 1 FROM vivavoce.profiles p WHERE p.scope = s.scope AND p.name IS NULL)`,
  );
  let sealed = false;
  for (const { scope_id } of scopes) {
    const scopeId: Id = JSON.parse(scope_id);
    await names.make(scopeId, "");
    for (let after: string | null = ""; after !== null; ) {
      const from: string = after;
      after = await database.transaction((tx) => sealSome(tx, context, scopeId, from));
      sealed ||= after !== null;
    }
  }
  const left = await database.query("SELECT 1 FROM vivavoce.profiles WHERE name IS NULL LIMIT 1");
  // If the keys are damaged, the next start tries again: the store opens, so that it can say what is lost.
  if (left.length === 0) await vault.ring.secret(ALL_SEALED).catch(() => {});
  return sealed;
}

/** Where to continue; `null` at the end. */
async function sealSome(tx: Queries, { vault, names }: SqlContext, scopeId: Id, after: string): Promise<string | null> {
  const scope = keyOf(scopeId);
  const rows = await tx.query<{ owner: string; id: string; key_id: KeyId; data: string }>(
    `SELECT p.owner, p.id, p.key_id, p.data FROM vivavoce.profiles p
     WHERE p.scope = $1 AND p.id > $2 AND p.name IS NULL ORDER BY p.id LIMIT ${PROFILES_AT_ONCE} FOR UPDATE`,
    [scope, after],
  );
  const keyIds = rows.map(({ key_id }) => key_id);
  const keys = await vault.ring.open(scopeId, keyIds);
  for (const { owner, id, key_id, data } of rows) {
    const plain = JSON.parse(data);
    const { externalId, ...nameless } = plain.owner;
    await tx.query("UPDATE vivavoce.owners SET external = $3, data = $4 WHERE scope = $1 AND id = $2", [
      scope,
      owner,
      await names.make(scopeId, externalId),
      JSON.stringify(nameless),
    ]);
    const key = keys.get(key_id);
    if (!key) continue;
    const name = await names.seal({ id: key_id, key }, scopeId, plain.id, externalId);
    await tx.query("UPDATE vivavoce.profiles SET name = $3, data = $4 WHERE scope = $1 AND id = $2", [
      scope,
      id,
      name,
      JSON.stringify({ ...plain, owner: nameless }),
    ]);
  }
  return rows.at(-1)?.id ?? null;
}
