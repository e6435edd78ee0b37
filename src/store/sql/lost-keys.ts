/** Finds profiles with missing keys (a damaged key file, or keys older than the database) at the start, so that the operator is told. */
import type { Id } from "../port.js";
import type { KeyId } from "../seal/key-ring.js";
import { type SqlContext, scopesOf } from "./context.js";
import { unescapeText } from "./text.js";

export interface LostKeys {
  readonly profiles: number;
  /** Only the first few. */
  readonly examples: readonly { readonly scopeId: Id; readonly profileId: Id }[];
}

const AT_ONCE = 10_000;
const EXAMPLES = 5;

export async function findLostKeys(context: SqlContext): Promise<LostKeys> {
  const { database, vault } = context;
  const { shelf } = vault.ring;
  const examples: { scopeId: Id; profileId: Id }[] = [];
  let profiles = 0;
  for (const { scope, scopeId } of await scopesOf(context)) {
    for (let after = "", rows = AT_ONCE; rows === AT_ONCE; ) {
      const page = await database.query<{ id: string; key_id: KeyId }>(
        `SELECT id, key_id FROM vivavoce.profiles WHERE scope = $1 AND id > $2 ORDER BY id LIMIT ${AT_ONCE}`,
        [scope, after],
      );
      rows = page.length;
      after = page.at(-1)?.id ?? after;
      const there = await shelf.find(
        scopeId,
        page.map(({ key_id }) => key_id),
      );
      for (const { id, key_id } of page) {
        if (there.has(key_id)) continue;
        profiles++;
        if (examples.length < EXAMPLES) examples.push({ scopeId, profileId: unescapeText(id) });
      }
    }
  }
  return { profiles, examples };
}
