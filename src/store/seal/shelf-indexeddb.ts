/**
 * Keys in a browser, in a separate IndexedDB database. Scope keys are WebCrypto keys that cannot be exported, not even by the page.
 */
import { type DBSchema, type IDBPDatabase, openDB } from "idb";
import { within } from "../records/tables.js";
import { randomBytes } from "./aead.js";
import { type KeyId, type KeyShelf, toHex, type WrappedKey } from "./key-ring.js";

interface StoredKey extends WrappedKey {
  readonly scopeId: string;
}

interface KeySchema extends DBSchema {
  ring: { key: "identity"; value: string };
  scopeKeys: { key: [string, number]; value: { scopeId: string; generation: number; key: CryptoKey } };
  keys: { key: [string, KeyId]; value: StoredKey; indexes: { generation: [string, number] } };
  destroyed: { key: [string, KeyId]; value: { scopeId: string; id: KeyId } };
}

export async function openIndexedDbShelf(name: string): Promise<KeyShelf> {
  const db: IDBPDatabase<KeySchema> = await openDB<KeySchema>(name, 1, {
    upgrade(created) {
      created.createObjectStore("ring");
      created.createObjectStore("scopeKeys", { keyPath: ["scopeId", "generation"] });
      const keys = created.createObjectStore("keys", { keyPath: ["scopeId", "id"] });
      keys.createIndex("generation", ["scopeId", "generation"]);
      created.createObjectStore("destroyed", { keyPath: ["scopeId", "id"] });
    },
    blocking: () => db.close(),
  });
  const identity = await readIdentity(db);

  return {
    identity,
    async scopes() {
      return [...new Set((await db.getAllKeys("scopeKeys")).map(([scopeId]) => scopeId))];
    },
    async scopeKeys(scopeId) {
      return db.getAll("scopeKeys", within(scopeId));
    },
    async addScopeKey(scopeId, generation) {
      const made = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
      const tx = db.transaction("scopeKeys", "readwrite");
      const there = await tx.store.get([scopeId, generation]);
      if (!there) await tx.store.add({ scopeId, generation, key: made });
      await tx.done;
      return { generation, key: there?.key ?? made };
    },
    async removeScopeKey(scopeId, generation) {
      const tx = db.transaction(["scopeKeys", "keys"], "readwrite");
      const left = await tx.objectStore("keys").index("generation").count([scopeId, generation]);
      if (left === 0) await tx.objectStore("scopeKeys").delete([scopeId, generation]);
      await tx.done;
      return left === 0;
    },
    async add(scopeId, key) {
      const tx = db.transaction(["scopeKeys", "keys"], "readwrite", { durability: "strict" });
      const scopeKey = await tx.objectStore("scopeKeys").get([scopeId, key.generation]);
      const there = await tx.objectStore("keys").getKey([scopeId, key.id]);
      if (scopeKey && !there) await tx.objectStore("keys").add({ ...key, scopeId });
      await tx.done;
      return scopeKey !== undefined;
    },
    async rewrap(scopeId, keys) {
      const tx = db.transaction(["scopeKeys", "keys"], "readwrite", { durability: "strict" });
      const store = tx.objectStore("keys");
      for (const key of keys) {
        const there = await store.getKey([scopeId, key.id]);
        const scopeKey = await tx.objectStore("scopeKeys").getKey([scopeId, key.generation]);
        if (there && scopeKey) await store.put({ ...key, scopeId });
      }
      await tx.done;
    },
    async find(scopeId, ids) {
      const tx = db.transaction("keys");
      const found = await Promise.all(ids.map((id) => tx.store.get([scopeId, id])));
      await tx.done;
      return new Map(found.flatMap((key) => (key ? [[key.id, key] as const] : [])));
    },
    async *all(scopeId) {
      yield await db.getAll("keys", within(scopeId));
    },
    async destroy(scopeId, ids) {
      const tx = db.transaction(["keys", "destroyed"], "readwrite", { durability: "strict" });
      for (const id of ids) {
        const key = await tx.objectStore("keys").get([scopeId, id]);
        if (!key) continue;
        await tx.objectStore("keys").delete([scopeId, id]);
        if (key.purpose === "profile") await tx.objectStore("destroyed").put({ scopeId, id });
      }
      await tx.done;
    },
    async destroyedOf(scopeId, ids) {
      const destroyed = new Set((await db.getAllKeys("destroyed", within(scopeId))).map(([, id]) => id));
      return new Set(ids.filter((id) => destroyed.has(id)));
    },
    async close() {
      db.close();
    },
  };
}

async function readIdentity(db: IDBPDatabase<KeySchema>): Promise<string> {
  const tx = db.transaction("ring", "readwrite");
  let identity = await tx.store.get("identity");
  if (identity === undefined) {
    identity = toHex(randomBytes(16));
    await tx.store.add(identity, "identity");
  }
  await tx.done;
  return identity;
}
