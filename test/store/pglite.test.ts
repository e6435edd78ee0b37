import { expect, test } from "vitest";
import { openEmbeddedMemoryStore } from "../../src/postgres.js";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import type { KeyShelf } from "../../src/store/seal/key-ring.js";
import { createMemoryShelf } from "../../src/store/seal/shelf-memory.js";
import { openEmbeddedDatabase } from "../../src/store/sql/database-pglite.js";
import { createSqlStore } from "../../src/store/sql/store.js";
import { describeStoreContract } from "./contract.js";
import { enrollPerson } from "./fixtures.js";

describeStoreContract("embedded PostgreSQL", { open: openEmbeddedMemoryStore });

test("keys that could not be destroyed at once are destroyed later", { timeout: 180_000 }, async () => {
  const shelf = createMemoryShelf(nodeAead);
  let away = false;
  const flaky: KeyShelf = {
    ...shelf,
    async destroy(scopeId, ids) {
      if (away) throw new Error("the key server is away");
      await shelf.destroy(scopeId, ids);
    },
  };
  const keysLeft = async () => {
    let count = 0;
    for await (const keys of shelf.all("scope")) count += keys.length;
    return count;
  };
  const store = await createSqlStore(await openEmbeddedDatabase(null), flaky);
  const { profile } = await enrollPerson(store, "scope", "alice", 1);
  // The profile's, and two of the session.
  expect(await keysLeft()).toBe(3);
  away = true;
  await expect(store.profiles.erase("scope", profile.id)).rejects.toThrow("away");
  // For everybody who asks the store, the person is erased; it is only that the keys wait.
  expect(await store.profiles.get("scope", profile.id)).toBeNull();
  expect(await keysLeft()).toBe(3);
  away = false;
  await store.media.expire(null, 0);
  expect(await keysLeft()).toBe(0);
  await store.close();
});
