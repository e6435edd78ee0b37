import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { opened } from "../../src/store/damaged-profiles.js";
import type { ListedProfile } from "../../src/store/port.js";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import type { KeyShelf } from "../../src/store/seal/key-ring.js";
import { openFolderShelf } from "../../src/store/seal/shelf-folder.js";
import type { Database } from "../../src/store/sql/database.js";
import { openEmbeddedDatabase } from "../../src/store/sql/database-pglite.js";
import { createSqlStore } from "../../src/store/sql/store.js";
import { describeStoreContract } from "./contract.js";
import { openTemporaryStore, withEmptyDatabase } from "./empty-database.js";
import { enrollPerson, profileOf, templateOf } from "./fixtures.js";

describeStoreContract("embedded PostgreSQL", { open: openTemporaryStore });

const folder = mkdtempSync(join(tmpdir(), "vivavoce-pglite-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let made = 0;
const newDatabase = async () =>
  openEmbeddedDatabase(join(await withEmptyDatabase(join(folder, String(++made))), "database"));
const newShelf = () => openFolderShelf(join(folder, `keys ${++made}`), nodeAead);

test("the database takes little memory for its buffers", { timeout: 180_000 }, async () => {
  const database = await newDatabase();
  expect(await database.query("SHOW shared_buffers")).toEqual([{ shared_buffers: "16MB" }]);
  await database.close();
});

test("statements planned while a table was small do not read all of it when it has grown", {
  timeout: 180_000,
}, async () => {
  const database = await newDatabase();
  const store = await createSqlStore(database, await newShelf());
  await store.documents.put("collection", "one", {});
  // As the housekeeping does after half a minute without writes; from then on the small size is known.
  await database.foreign("VACUUM");
  const plan = await database.foreign(
    "EXPLAIN SELECT document FROM vivavoce.documents WHERE collection = 'collection' AND id = 'one'",
  );
  expect(JSON.stringify(plan)).toMatch(/Index Scan/);
  await store.close();
});

test("after the clock was set back by months, no timer is set again and again", { timeout: 180_000 }, async () => {
  const [realTimeout, realNow] = [setTimeout, Date.now];
  const delays: number[] = [];
  // Timers of the database run sooner than they should, so that it finds them early and sets them again.
  const timers = vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms = 0) => {
    delays.push(ms);
    return realTimeout(run, Math.min(ms, 20));
  }) as typeof setTimeout);
  let ahead = 60 * 86_400_000;
  const clock = vi.spyOn(Date, "now").mockImplementation(() => realNow() + ahead);
  const database = await newDatabase();
  try {
    await database.foreign("CREATE TABLE numbers (n int)");
    await database.query("INSERT INTO numbers VALUES (1)");
    expect(delays.some((ms) => ms > 0)).toBe(true);
    ahead = 0;
    expect(await database.query("SELECT n FROM numbers")).toEqual([{ n: 1 }]);
    delays.length = 0;
    await new Promise((resume) => realTimeout(resume, 500));
    expect(delays.filter((ms) => ms > 2 ** 31)).toEqual([]);
  } finally {
    await database.close();
    timers.mockRestore();
    clock.mockRestore();
  }
});

test("keys that could not be destroyed at once are destroyed later", { timeout: 180_000 }, async () => {
  const shelf = await newShelf();
  let away = false;
  const flaky: KeyShelf = {
    ...shelf,
    async destroy(scopeId, ids) {
      if (away) throw new Error("the key server is down");
      await shelf.destroy(scopeId, ids);
    },
  };
  const keysLeft = async () => {
    let count = 0;
    for await (const keys of shelf.all("scope")) count += keys.length;
    return count;
  };
  const store = await createSqlStore(await newDatabase(), flaky);
  const { profile } = await enrollPerson(store, "scope", "alice", 1);
  // The profile's key, and two of the session.
  expect(await keysLeft()).toBe(3);
  away = true;
  await expect(store.profiles.erase("scope", profile.id)).rejects.toThrow("down");
  // For all callers the person is erased; only the keys still wait.
  expect(await store.profiles.get("scope", profile.id)).toBeNull();
  expect(await keysLeft()).toBe(3);
  away = false;
  await store.media.expire(null, 0);
  expect(await keysLeft()).toBe(0);
  await store.close();
});

test("a scope whose keys cannot be destroyed does not keep the recordings of the others", {
  timeout: 180_000,
}, async () => {
  const shelf = await newShelf();
  const flaky: KeyShelf = {
    ...shelf,
    async destroy(scopeId, ids) {
      if (scopeId === "damaged") throw new Error("the keys of this scope are damaged");
      await shelf.destroy(scopeId, ids);
    },
  };
  const store = await createSqlStore(await newDatabase(), flaky);
  const { profile } = await enrollPerson(store, "damaged", "alice", 1);
  await enrollPerson(store, "sound", "bob", 1);
  await expect(store.profiles.erase("damaged", profile.id)).rejects.toThrow("damaged");
  const keysOf = async (scopeId: string) => {
    const ids: string[] = [];
    for await (const keys of shelf.all(scopeId)) ids.push(...keys.map(({ id }) => id));
    return ids.length;
  };
  const before = await keysOf("sound");
  await expect(store.media.expire(null, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)).rejects.toThrow("damaged");
  expect(await keysOf("sound")).toBe(before - 1);
  await store.close();
});

test("a store whose database cannot be closed closes its keys", { timeout: 180_000 }, async () => {
  const [database, shelf] = [await newDatabase(), await newShelf()];
  let areKeysClosed = false;
  const close = async () => {
    areKeysClosed = true;
  };
  const fails = { ...database, close: () => Promise.reject(new Error("the disk is full")) };
  const store = await createSqlStore(fails, { ...shelf, close });
  await expect(store.close()).rejects.toThrow("the disk is full");
  expect(areKeysClosed).toBe(true);
  await Promise.all([database.close(), shelf.close()]);
});

test("profiles erased while they are listed do not end the list early", { timeout: 180_000 }, async () => {
  const [database, shelf] = [await newDatabase(), await newShelf()];
  const [store, replica] = [await createSqlStore(database, shelf), await createSqlStore(database, shelf)];
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    ids.push((await store.profiles.create(profileOf("scope", `person ${i}`, { template: templateOf(i) })))!.id);
  }
  // As if another replica erased them between reading the rows and looking up their keys.
  for await (const keys of shelf.all("scope")) {
    await shelf.destroy(
      "scope",
      [keys[0]!, keys[1]!, keys[3]!].map(({ id }) => id),
    );
  }
  const listed = async (after: string | null) =>
    (await replica.profiles.list("scope", after, 2)).map((profile) => profile.id);
  expect(await listed(null)).toEqual([ids[2], ids[4]]);
  expect(await listed(ids[2]!)).toEqual([ids[4]]);
  expect(await listed(ids[4]!)).toEqual([]);
  await store.close();
  await replica.close();
});

test("a profile written while the connection broke can be used", { timeout: 180_000 }, async () => {
  const database = await newDatabase();
  let breaks = false;
  const flaky: Database = {
    ...database,
    async transaction(work) {
      const result = await database.transaction(work);
      if (breaks) throw Object.assign(new Error("the connection broke after COMMIT"), { code: "EPIPE" });
      return result;
    },
  };
  const store = await createSqlStore(flaky, await newShelf());
  const given = profileOf("scope", "alice");
  breaks = true;
  await expect(store.profiles.create(given)).rejects.toThrow("broke");
  breaks = false;
  // A retry is told that it exists.
  expect(await store.profiles.create(profileOf("scope", "alice"))).toBeNull();
  const trained = { template: templateOf(1), status: 2, printVersion: 1 };
  expect(await store.profiles.train("scope", given.id, 0, trained)).toBe(true);
  expect((await store.profiles.get("scope", given.id))!.template).toEqual(trained.template);
  await store.close();
});

test("a print in the row or under the name of somebody else is refused, with all that belongs to it", {
  timeout: 180_000,
}, async () => {
  const database = await newDatabase();
  const store = await createSqlStore(database, await newShelf());
  const { profile: alice } = await enrollPerson(store, "bank", "alice", 1);
  const { profile: mallory } = await enrollPerson(store, "bank", "mallory", 2);
  const { profile: stranger } = await enrollPerson(store, "shop", "stranger", 3);
  const damaged = { name: "SealError", code: "damaged" };
  const nameOwner = (id: string, digest: string) =>
    database.query("UPDATE vivavoce.owners SET external = $2 WHERE id = $1", [id, digest]);
  const [row] = await database.query<{ external: string }>("SELECT external FROM vivavoce.owners WHERE id = $1", [
    alice.owner.id,
  ]);
  await nameOwner(alice.owner.id, "taken away");
  await nameOwner(mallory.owner.id, row!.external);
  await expect(store.profiles.find("bank", "person", "alice", alice.tag)).rejects.toMatchObject(damaged);
  for (const other of [mallory, stranger]) {
    await database.query(
      `UPDATE vivavoce.profiles p SET data = q.data, name = q.name, template = q.template, key_id = q.key_id
       FROM vivavoce.profiles q WHERE p.id = $1 AND q.id = $2`,
      [alice.id, other.id],
    );
    await expect(store.profiles.get("bank", alice.id)).rejects.toMatchObject(damaged);
    // The others are listed; of this one, only the id is certain.
    const nameless = { id: alice.id, owner: { externalId: "" }, damage: damaged };
    for (const listed of [
      await store.profiles.list("bank", null, 10),
      await store.profiles.getMany("bank", [alice.id, mallory.id]),
    ])
      expect(listed.sort((a, b) => (a.id < b.id ? -1 : 1))).toMatchObject([nameless, mallory]);
  }
  await database.query(
    "UPDATE vivavoce.profiles SET template = set_byte(template, 60, get_byte(template, 60) # 1) WHERE id = $1",
    [mallory.id],
  );
  const { template: _, ...named } = mallory;
  const listed = await store.profiles.ofOwners("bank", [mallory.owner.id]);
  expect(listed).toMatchObject([{ ...named, damage: damaged }]);
  expect(() => opened(listed[0]!)).toThrow(listed[0]!.id);
  const leftOut: ListedProfile[] = [];
  expect(await store.profiles.printsOf("bank", [mallory.id], (profile) => leftOut.push(profile))).toEqual([]);
  expect(leftOut).toMatchObject([{ id: mallory.id, damage: damaged }]);
  expect(await store.profiles.erase("bank", mallory.id)).toBe(true);
  await store.close();
});
