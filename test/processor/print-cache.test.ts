import { expect, test } from "vitest";
import { PrintCache } from "../../src/processor/print-cache.js";
import { openWorld } from "./world.js";

test("prints are read once, and again after they are retrained or erased", async () => {
  const world = await openWorld();
  const { store } = world;
  const [one, two] = [await world.trained(7), await world.trained(9)];
  let reads = 0;
  const { printsOf } = store.profiles;
  store.profiles.printsOf = async (scopeId, ids) => {
    reads += ids.length;
    return printsOf(scopeId, ids);
  };
  const cache = new PrintCache(store);
  const versions = async () => {
    const prints = await cache.get("bank", [one.value, two.value, one.value]);
    return Object.fromEntries(prints.map((print) => [print.profileId, print.printVersion]));
  };
  expect(await versions()).toEqual({ [one.value]: 1, [two.value]: 1 });
  expect(await versions()).toEqual({ [one.value]: 1, [two.value]: 1 });
  expect(reads).toBe(2);
  await world.train(one);
  expect(await versions()).toEqual({ [one.value]: 2, [two.value]: 1 });
  expect(reads).toBe(3);
  await store.profiles.erase("bank", two.value);
  expect(await versions()).toEqual({ [one.value]: 2 });
});

test("a print read before a change that another call has seen is not cached", async () => {
  const world = await openWorld();
  const { store } = world;
  const profile = await world.trained(7);
  const cache = new PrintCache(store);
  await cache.get("bank", []);
  const { printsOf } = store.profiles;
  store.profiles.printsOf = async (scopeId, ids) => {
    const before = await printsOf(scopeId, ids);
    store.profiles.printsOf = printsOf;
    await world.train(profile);
    await cache.get("bank", []);
    return before;
  };
  expect((await cache.get("bank", [profile.value]))[0]!.printVersion).toBe(1);
  expect((await cache.get("bank", [profile.value]))[0]!.printVersion).toBe(2);
});

test("the number of cached prints is limited", async () => {
  const world = await openWorld();
  const profiles = [await world.trained(7), await world.trained(9), await world.trained(11)];
  const cache = new PrintCache(world.store, 2);
  let reads = 0;
  const { printsOf } = world.store.profiles;
  world.store.profiles.printsOf = async (scopeId, ids) => {
    reads++;
    return printsOf(scopeId, ids);
  };
  for (const { value } of [...profiles, profiles[2]!, profiles[0]!]) await cache.get("bank", [value]);
  expect(reads).toBe(4);
});

test("the print, and the scope, that was not used for longest makes room; what was dropped is read again", async () => {
  const world = await openWorld();
  const { store } = world;
  const [one, two, three] = [await world.trained(7), await world.trained(9), await world.trained(11)];
  const read: string[][] = [];
  const { printsOf } = store.profiles;
  store.profiles.printsOf = async (scopeId, ids) => {
    read.push([...ids]);
    return printsOf(scopeId, ids);
  };
  const ids = (...profiles: { value: string }[]) => profiles.map(({ value }) => value);
  const cache = new PrintCache(store, 2, 1);
  for (const profile of [one, two, one, three, one, two]) await cache.get("bank", ids(profile));
  expect(read).toEqual([ids(one), ids(two), ids(three), ids(two)]);
  // More than fit are read without disturbing those in the cache.
  read.length = 0;
  expect(await cache.get("bank", ids(one, two, three))).toHaveLength(3);
  await cache.get("bank", ids(one, two));
  expect(read).toEqual([ids(one, two, three)]);
  cache.drop("bank", one.value);
  await cache.get("bank", ids(one, two));
  expect(read.slice(1)).toEqual([ids(one)]);
  await cache.get("another bank", ids(one));
  read.length = 0;
  await cache.get("bank", ids(two));
  expect(read).toEqual([ids(two)]);
});
