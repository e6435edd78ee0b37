import "fake-indexeddb/auto";
import { deleteDB } from "idb";
import { expect, test, vi } from "vitest";
import { openDatabase } from "../../src/store/indexeddb/database.js";
import { openIndexedDbStore } from "../../src/store/indexeddb/store.js";
import { openIndexedDbShelf } from "../../src/store/seal/shelf-indexeddb.js";
import { DOCUMENT_SCOPE } from "../../src/store/seal/vault.js";
import { describeStoreContract } from "./contract.js";
import { enrollPerson, jobOf, mediaOf, newId, profileOf, templateOf } from "./fixtures.js";

describeStoreContract("IndexedDB", { open: (options) => openIndexedDbStore(newId("store"), options) });

test("profiles erased while they are listed do not end the list early", async () => {
  const name = newId("store");
  const [store, otherPage] = [await openIndexedDbStore(name), await openIndexedDbStore(name)];
  const shelf = await openIndexedDbShelf(`${name}-keys`);
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) {
    ids.push((await store.profiles.create(profileOf("scope", `person ${i}`, { template: templateOf(i) })))!.id);
    // As if a page erased them between reading the records and looking up their keys.
    if (i === 1)
      for await (const keys of shelf.all("scope"))
        await shelf.destroy(
          "scope",
          keys.map(({ id }) => id),
        );
  }
  expect((await otherPage.profiles.list("scope", null, 2)).map(({ id }) => id)).toEqual([ids[2], ids[3]]);
  expect(await otherPage.profiles.list("scope", ids[3]!, 2)).toEqual([]);
  await Promise.all([store.close(), otherPage.close(), shelf.close()]);
});

test("a document whose key is gone is not listed", async () => {
  const name = newId("store");
  const store = await openIndexedDbStore(name);
  await store.documents.put("agents", "lost", {});
  await store.close();
  const shelf = await openIndexedDbShelf(`${name}-keys`);
  for await (const keys of shelf.all(DOCUMENT_SCOPE))
    await shelf.destroy(
      DOCUMENT_SCOPE,
      keys.map(({ id }) => id),
    );
  await shelf.close();
  const again = await openIndexedDbStore(name);
  await again.documents.put("agents", "new", {});
  expect(await again.documents.list("agents")).toEqual([{ id: "new", document: {} }]);
  await again.close();
});

test("a runtime without IndexedDB is named as the reason", async () => {
  vi.stubGlobal("indexedDB", undefined);
  await expect(openIndexedDbStore("voices")).rejects.toThrow(
    /^there is no IndexedDB here: the browser blocks it, or this is Node, which has openEmbeddedStore/,
  );
  vi.unstubAllGlobals();
});

const refusing = (name: string) => () => {
  throw new DOMException("The operation failed.", name);
};

test("a browser that blocks storage is named as the reason", async () => {
  const open = vi.spyOn(IDBFactory.prototype, "open").mockImplementation(refusing("SecurityError"));
  await expect(openIndexedDbStore("voices")).rejects.toMatchObject({
    name: "StoreError",
    code: "unavailable",
    message: "the browser does not let this page store data; allow site data (cookies) for it",
  });
  open.mockRestore();
});

test.each([
  ["QuotaExceededError", "disk-full", /^the browser's storage for this page is full, so nothing was written; free/],
  ["AbortError", "unavailable", /^the browser stopped the transaction, so nothing was written; try again$/],
  ["UnknownError", "unavailable", /^the browser cannot read or write its storage/],
  ["InvalidStateError", "closed", /^the browser closed the store.*reload the page$/],
])("the browser's %s reaches the caller as an error of the store", async (name, code, message) => {
  const store = await openIndexedDbStore(newId("store"));
  await store.profiles.create(profileOf("scope", "alice", { template: templateOf(1) }));
  const transaction = vi.spyOn(IDBDatabase.prototype, "transaction").mockImplementation(refusing(name));
  const fault = { name: "StoreError", code, message: expect.stringMatching(message) };
  await expect(store.profiles.create(profileOf("scope", "bob"))).rejects.toMatchObject(fault);
  const prints = async () => {
    for await (const print of store.profiles.prints("scope", "person")) expect(print).toBe("no print");
  };
  await expect(prints()).rejects.toMatchObject(fault);
  transaction.mockRestore();
  await store.close();
});

test("a damaged recording of the same call does not prevent an erasure, and is named", async () => {
  const name = newId("store");
  const store = await openIndexedDbStore(name);
  const [alice, bob] = [await enrollPerson(store, "scope", "alice", 1), await enrollPerson(store, "scope", "bob", 2)];
  const { sessionId } = alice.media;
  const [whole, damaged] = [mediaOf("scope", sessionId), mediaOf("scope", sessionId)];
  for (const media of [whole, damaged]) await store.media.add(media);
  const db = await openDatabase(name);
  const record = (await db.get("media", ["scope", damaged.id]))!;
  const sealed = Uint8Array.from(record.sealed);
  sealed[sealed.length - 1]! ^= 1;
  await db.put("media", { ...record, sealed });
  const unopened: string[] = [];
  expect(await store.profiles.erase("scope", alice.profile.id, (id) => unopened.push(id))).toBe(true);
  expect(unopened).toEqual([damaged.id]);
  expect(await store.media.get("scope", alice.media.id)).toBeNull();
  expect(await store.media.get("scope", whole.id)).toEqual(whole);
  // Nothing is left to do that would fail again.
  expect(await store.profiles.erase("scope", bob.profile.id)).toBe(true);
  await store.close();
  db.close();
  const again = await openIndexedDbStore(name);
  expect(await again.media.get("scope", whole.id)).toEqual(whole);
  await again.close();
});

test("a store that the page removes while a job runs can be closed", async () => {
  const name = newId("store");
  const store = await openIndexedDbStore(name);
  const removed = new Promise<void>((resolve) => {
    void store.jobs.work(async () => {
      await deleteDB(name);
      resolve();
    });
  });
  await store.jobs.create(jobOf("scope"));
  await removed;
  // It has looked for the next job.
  await new Promise((resolve) => setImmediate(resolve));
  await store.close();
  expect((await indexedDB.databases()).map((database) => database.name)).not.toContain(name);
});
