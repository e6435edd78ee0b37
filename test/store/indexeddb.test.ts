import "fake-indexeddb/auto";
import { expect, test, vi } from "vitest";
import { openIndexedDbStore } from "../../src/store/indexeddb/store.js";
import { openIndexedDbShelf } from "../../src/store/seal/shelf-indexeddb.js";
import { describeStoreContract } from "./contract.js";
import { newId, profileOf, templateOf } from "./fixtures.js";

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

test("a runtime without IndexedDB is named as the reason", async () => {
  vi.stubGlobal("indexedDB", undefined);
  await expect(openIndexedDbStore("voices")).rejects.toThrow(
    /^this runtime has no IndexedDB; in Node use openEmbedded/,
  );
  vi.unstubAllGlobals();
});
