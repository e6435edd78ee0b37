/** Names of owners: sealed and found by a digest, in older stores too. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { openEmbeddedStore } from "../../src/postgres.js";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import { KeyRing } from "../../src/store/seal/key-ring.js";
import { openFolderShelf } from "../../src/store/seal/shelf-folder.js";
import { openEmbeddedDatabase } from "../../src/store/sql/database-pglite.js";
import { migrate } from "../../src/store/sql/migrations.js";
import { withEmptyDatabase } from "./empty-database.js";
import { filesWith } from "./files.js";
import { profileOf } from "./fixtures.js";

vi.setConfig({ testTimeout: 180_000 });
const root = mkdtempSync(join(tmpdir(), "vivavoce-names-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The version before names were sealed. */
const PLAIN_NAMES = 7;
const PEOPLE = 510;
const nameOf = (i: number) => `somebody-known-as-${i}`;

/** As that version left it: one key per profile, names in owners and in profiles. */
async function makeOldStore(folder: string): Promise<void> {
  await withEmptyDatabase(folder);
  const shelf = await openFolderShelf(join(folder, "keys"), nodeAead);
  const ring = new KeyRing(shelf, nodeAead);
  const database = await openEmbeddedDatabase(join(folder, "database"));
  await migrate(database, PLAIN_NAMES);
  await database.query("INSERT INTO vivavoce.settings (name, value) VALUES ('key-ring', $1)", [shelf.identity]);
  await database.query("INSERT INTO vivavoce.scopes (scope, scope_id) VALUES ('scope', '\"scope\"')");
  for (let i = 0; i < PEOPLE; i++) {
    const owner = { id: `owner-${i}`, scopeId: "scope", kind: "person", externalId: nameOf(i) };
    const { id: keyId } = await ring.create("scope", "profile");
    await database.query(
      "INSERT INTO vivavoce.owners (scope, id, kind, external, data) VALUES ('scope', $1, 'person', $2, $3)",
      [owner.id, owner.externalId, JSON.stringify(owner)],
    );
    const data = { id: `profile-${i}`, scopeId: "scope", owner, tag: "default", createdAt: 1 };
    await database.query(
      `INSERT INTO vivavoce.profiles (scope, id, owner, kind, tag, print_version, generation, status, key_id, data)
       VALUES ('scope', $1, $2, 'person', 'default', 0, 0, 1, $3, $4)`,
      [data.id, owner.id, keyId, JSON.stringify(data)],
    );
  }
  await database.close();
  await ring.close();
}

test("of an older store are sealed when it is opened, and leave its files", async () => {
  const folder = join(root, "old");
  await makeOldStore(folder);
  const bytes = (i: number) => new TextEncoder().encode(nameOf(i));
  expect(filesWith(folder, bytes(3))).not.toEqual([]);
  // The key of one profile cannot be read: its name stays unsealed until the key is back.
  const keys = join(folder, "keys");
  const file = join(keys, readdirSync(keys).find((name) => name.endsWith(".keys"))!);
  const whole = readFileSync(file);
  const damaged = Uint8Array.from(whole);
  damaged[40]! ^= 1;
  writeFileSync(file, damaged);

  let store = await openEmbeddedStore(folder);
  expect(store.keys.lost.profiles).toBe(1);
  const lost = store.keys.lost.examples[0]!.profileId;
  const lostNumber = Number(lost.split("-")[1]);
  await expect(store.profiles.get("scope", lost)).rejects.toMatchObject({ name: "SealError", code: "damaged" });
  for (const i of [1, 3, 499, 500, PEOPLE - 1]) {
    const profile = await store.profiles.find("scope", "person", nameOf(i), "default");
    expect(profile).toMatchObject({ id: `profile-${i}`, owner: { id: `owner-${i}`, externalId: nameOf(i) } });
  }
  const again = profileOf("scope", nameOf(lostNumber), { tag: "default" });
  expect(await store.profiles.create(again), "no owner is created twice").toBeNull();
  await store.close();
  for (let i = 0; i < PEOPLE; i += 23) if (i !== lostNumber) expect(filesWith(folder, bytes(i)), nameOf(i)).toEqual([]);

  writeFileSync(file, whole);
  store = await openEmbeddedStore(folder);
  expect(await store.profiles.get("scope", lost)).toMatchObject({ owner: { externalId: nameOf(lostNumber) } });
  await store.close();
  expect(filesWith(folder, bytes(lostNumber))).toEqual([]);
});

test("that are not sealed are refused once all were, also at later starts", async () => {
  const folder = await withEmptyDatabase(join(root, "unsealed"));
  let store = await openEmbeddedStore(folder);
  for (const name of ["alice", "mallory"])
    await store.profiles.create(profileOf("scope", name, { id: name, tag: "default" }));
  await store.close();
  // As somebody does who can write to the database, without the keys.
  const database = await openEmbeddedDatabase(join(folder, "database"));
  await database.query(
    `UPDATE vivavoce.profiles SET name = NULL, data = replace(data, '"kind":', '"externalId":"carol","kind":') WHERE id = 'mallory'`,
  );
  await database.close();
  for (let start = 0; start < 2; start++) {
    store = await openEmbeddedStore(folder);
    await expect(store.profiles.get("scope", "mallory")).rejects.toMatchObject({ name: "SealError", code: "damaged" });
    const listed = (await store.profiles.list("scope", null, 10)).map((one) => [one.owner.externalId, "damage" in one]);
    expect(listed).toEqual([
      ["alice", false],
      ["", true],
    ]);
    await store.close();
  }
});

test("of a profile whose row is not JSON any more are empty in lists, which mark it and have the others", async () => {
  const folder = await withEmptyDatabase(join(root, "altered"));
  let store = await openEmbeddedStore(folder);
  for (const name of ["alice", "bob", "carol"])
    await store.profiles.create(profileOf("scope", name, { id: name, tag: name }));
  await store.close();
  const database = await openEmbeddedDatabase(join(folder, "database"));
  await database.query("UPDATE vivavoce.profiles SET data = '{' WHERE id = 'bob'");
  await database.query("UPDATE vivavoce.profiles SET consent = '{' WHERE id = 'carol'");
  await database.close();
  store = await openEmbeddedStore(folder);
  const listed = await store.profiles.list("scope", null, 10);
  expect(listed.map((one) => [one.id, one.tag, one.owner.externalId, "damage" in one])).toEqual([
    ["alice", "alice", "alice", false],
    ["bob", "bob", "", true],
    ["carol", "carol", "", true],
  ]);
  for (const id of ["bob", "carol"]) {
    await expect(store.profiles.get("scope", id)).rejects.toThrow(
      `the row of profile ${id} was altered; restore it from a backup`,
    );
    expect(await store.profiles.erase("scope", id)).toBe(true);
  }
  await store.close();
});

test("are not found without the scope's secret, and no owner is created a second time", async () => {
  const folder = await withEmptyDatabase(join(root, "secret"));
  const store = await openEmbeddedStore(folder);
  expect(await store.owners.find("scope", "person", "alice")).toBeNull();
  await store.profiles.create(profileOf("scope", "alice"));
  await store.close();
  // Wrong only in the file of secrets, which contains no profile's key.
  const keys = join(folder, "keys");
  for (const name of readdirSync(keys).filter((each) => each.endsWith(".keys"))) {
    const bytes = readFileSync(join(keys, name));
    if (bytes[1] !== 1) rmSync(join(keys, name));
  }
  const again = await openEmbeddedStore(folder);
  for (const call of [
    again.owners.find("scope", "person", "alice"),
    again.profiles.create(profileOf("scope", "alice")),
  ])
    await expect(call).rejects.toMatchObject({ name: "SealError", code: "key-lost" });
  await again.close();
});
