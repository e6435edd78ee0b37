import { expect, test } from "vitest";
import { GroupCache } from "../../src/processor/group-cache.js";
import { createMemoryStore } from "../../src/store/memory.js";

const members = (...profileIds: string[]) => ({ profileIds, ownerIds: [] });

test("a group is read once, and again after anybody added or removed members", async () => {
  const store = createMemoryStore();
  await store.groups.create({ id: "list", scopeId: "bank", kind: "watchlist", tag: "", ...members("a", "b") });
  let reads = 0;
  const { get } = store.groups;
  store.groups.get = (...which) => {
    reads++;
    return get(...which);
  };
  const cache = new GroupCache(store);
  const ids = async () => (await cache.get("bank", "watchlist", "list"))?.profileIds;
  expect(await ids()).toEqual(["a", "b"]);
  expect(await ids()).toEqual(["a", "b"]);
  expect(reads).toBe(1);
  await store.groups.addMembers("bank", "watchlist", "list", members("c"));
  expect(await ids()).toEqual(["a", "b", "c"]);
  await store.groups.removeMembers("bank", "watchlist", "list", members("a"));
  expect(await ids()).toEqual(["b", "c"]);
  expect(reads).toBe(3);
  expect(await cache.get("bank", "group", "list")).toBeNull();
  expect(await cache.get("other", "watchlist", "list")).toBeNull();
  await store.groups.delete("bank", "watchlist", "list");
  expect(await ids()).toBeUndefined();
  // What has no version is not there: nobody reads it.
  expect(reads).toBe(3);
});

test("a change made while the group is read is seen the next time", async () => {
  const store = createMemoryStore();
  await store.groups.create({ id: "list", scopeId: "bank", kind: "watchlist", tag: "", ...members("a") });
  const { get } = store.groups;
  const cache = new GroupCache(store);
  store.groups.get = async (...which) => {
    store.groups.get = get;
    const before = await get(...which);
    await store.groups.addMembers("bank", "watchlist", "list", members("b"));
    return before;
  };
  expect((await cache.get("bank", "watchlist", "list"))!.profileIds).toEqual(["a"]);
  expect((await cache.get("bank", "watchlist", "list"))!.profileIds).toEqual(["a", "b"]);
});

test("the number of cached groups is limited; the one that was not used for longest is read again", async () => {
  const store = createMemoryStore();
  const read: string[] = [];
  for (const id of ["a", "b", "c"])
    await store.groups.create({ id, scopeId: "bank", kind: "group", tag: "", ...members() });
  const { get } = store.groups;
  store.groups.get = (...which) => {
    read.push(which[2]);
    return get(...which);
  };
  const cache = new GroupCache(store, 2);
  for (const id of ["a", "b", "a", "c", "a", "b"]) await cache.get("bank", "group", id);
  expect(read).toEqual(["a", "b", "c", "b"]);
  cache.clear();
  await cache.get("bank", "group", "b");
  expect(read).toHaveLength(5);
});
