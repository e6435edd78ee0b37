/**
 * Compares profiles and keys at the start. Profiles with missing keys (a damaged key file, or keys older than the database) are found, so that the
 * log names them. Profiles whose keys are destroyed but whose rows are back, because a power cut undid the database's last writes or a backup
 * was restored, are erased again.
 */
import { SealError } from "../errors.js";
import type { Id } from "../port.js";
import type { KeyId, WrappedKey } from "../seal/key-ring.js";
import type { SqlContext } from "./context.js";
import { eraseProfile } from "./erasure.js";
import { unescapeText } from "./text.js";

/** Keys that the database names and the keys do not have. */
export interface LostKeys {
  /** Profiles that cannot be opened. */
  readonly profiles: number;
  /** All profiles of the store. */
  readonly of: number;
  /** Only the first few. */
  readonly examples: readonly { readonly scopeId: Id; readonly profileId: Id }[];
  /** Scopes whose own key or secret is lost, and so every profile in them; what is missing, in words. */
  readonly scopes: readonly { readonly scopeId: Id; readonly reason: string }[];
}

const AT_ONCE = 10_000;
const EXAMPLES = 5;

export async function compareWithKeys(context: SqlContext): Promise<LostKeys> {
  const { database, vault, names } = context;
  const examples: { scopeId: Id; profileId: Id }[] = [];
  const lostScopes = new Map<Id, string>();
  let [profiles, of] = [0, 0];
  const scopes = await database.query<{ scope: string; scope_id: string; names_check: string | null }>(
    "SELECT scope, scope_id, names_check FROM vivavoce.scopes",
  );
  for (const { scope, scope_id, names_check } of scopes) {
    const scopeId: Id = JSON.parse(scope_id);
    const note = (reason: string | null) => reason !== null && lostScopes.set(scopeId, reason);
    if (names_check !== null) {
      vault.ring.expectSecret(scopeId);
      note(await faultOf(names.digestKey(scopeId, names_check)));
    }
    for await (const page of profileKeys(context, scope)) {
      const ids = page.map(({ key_id }) => key_id);
      const there = await vault.ring.shelf.find(scopeId, ids);
      const missing = ids.filter((id) => !there.has(id));
      const destroyed = await vault.ring.shelf.destroyedOf(scopeId, missing);
      // One key of each generation shows whether the scope's key is the one that wrapped it.
      for (const { id } of oneOfEach(there.values())) note(await faultOf(vault.ring.open(scopeId, [id])));
      for (const { id, key_id } of page) {
        if (destroyed.has(key_id)) {
          await eraseProfile(context, scopeId, unescapeText(id));
          continue;
        }
        of++;
        if (there.has(key_id) && !lostScopes.has(scopeId)) continue;
        profiles++;
        if (examples.length < EXAMPLES) examples.push({ scopeId, profileId: unescapeText(id) });
      }
    }
  }
  return { profiles, of, examples, scopes: [...lostScopes].map(([scopeId, reason]) => ({ scopeId, reason })) };
}

async function* profileKeys({ database }: SqlContext, scope: string) {
  for (let after = "", rows = AT_ONCE; rows === AT_ONCE; ) {
    const page = await database.query<{ id: string; key_id: KeyId }>(
      `SELECT id, key_id FROM vivavoce.profiles WHERE scope = $1 AND id > $2 ORDER BY id LIMIT ${AT_ONCE}`,
      [scope, after],
    );
    rows = page.length;
    after = page.at(-1)?.id ?? after;
    yield page;
  }
}

const oneOfEach = (keys: Iterable<WrappedKey>): Iterable<WrappedKey> =>
  new Map(Array.from(keys, (key) => [key.generation, key])).values();

/** What the keys lack, in words; `null` if nothing. */
async function faultOf(work: Promise<unknown>): Promise<string | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof SealError) return error.message;
    throw error;
  }
}
