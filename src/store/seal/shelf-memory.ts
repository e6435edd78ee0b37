/** A key shelf in memory, for stores in memory. */
import { type Aead, KEY_BYTES, randomBytes } from "./aead.js";
import { type KeyId, type KeyShelf, type ScopeKey, toHex, type WrappedKey } from "./key-ring.js";

export function createMemoryShelf(aead: Aead): KeyShelf {
  const scopeKeys = new Map<string, ScopeKey[]>();
  const keys = new Map<string, Map<KeyId, WrappedKey>>();
  const destroyed = new Map<string, Set<KeyId>>();
  const keysOf = (scopeId: string) => keys.get(scopeId) ?? keys.set(scopeId, new Map()).get(scopeId)!;

  return {
    identity: toHex(randomBytes(16)),
    async scopes() {
      return [...scopeKeys.keys()];
    },
    async scopeKeys(scopeId) {
      return [...(scopeKeys.get(scopeId) ?? [])];
    },
    async addScopeKey(scopeId, generation) {
      const key = await aead.importKey(randomBytes(KEY_BYTES));
      const known = scopeKeys.get(scopeId) ?? [];
      const there = known.find((each) => each.generation === generation);
      if (there) return there;
      const added = { generation, key };
      scopeKeys.set(scopeId, [...known, added]);
      return added;
    },
    async removeScopeKey(scopeId, generation) {
      if ([...keysOf(scopeId).values()].some((key) => key.generation === generation)) return false;
      const left = (scopeKeys.get(scopeId) ?? []).filter((each) => each.generation !== generation);
      scopeKeys.set(scopeId, left);
      return true;
    },
    async add(scopeId, key) {
      if (!scopeKeys.get(scopeId)?.some(({ generation }) => generation === key.generation)) return false;
      const known = keysOf(scopeId);
      if (!known.has(key.id)) known.set(key.id, key);
      return true;
    },
    async rewrap(scopeId, rewrapped) {
      const known = keysOf(scopeId);
      const generations = new Set(scopeKeys.get(scopeId)?.map(({ generation }) => generation));
      for (const key of rewrapped) if (known.has(key.id) && generations.has(key.generation)) known.set(key.id, key);
    },
    async find(scopeId, ids) {
      const known = keysOf(scopeId);
      return new Map(ids.filter((id) => known.has(id)).map((id) => [id, known.get(id)!]));
    },
    async *all(scopeId) {
      yield [...keysOf(scopeId).values()];
    },
    async destroy(scopeId, ids) {
      const known = keysOf(scopeId);
      for (const id of ids) {
        if (known.get(id)?.purpose === "profile") {
          destroyed.set(scopeId, (destroyed.get(scopeId) ?? new Set()).add(id));
        }
        known.delete(id);
      }
    },
    async destroyedOf(scopeId, ids) {
      return new Set(ids.filter((id) => destroyed.get(scopeId)?.has(id)));
    },
    async close() {},
  };
}
