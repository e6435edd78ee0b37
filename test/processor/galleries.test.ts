import { expect, test, vi } from "vitest";
import { Galleries } from "../../src/processor/galleries.js";
import { oneModel } from "../../src/processor/models.js";
import { SealError } from "../../src/store/errors.js";
import type { DamagedProfile } from "../../src/store/port.js";
import { take, voiceOf } from "./fixture-engine.js";
import { openTwoModels, openWorld } from "./world.js";

test("an interrupted load leaves no print in the gallery that is erased before the next load", async () => {
  const { trained, engine, store } = await openWorld();
  const [erased, kept] = [await trained(7), await trained(9)];
  const { prints } = store.profiles;
  store.profiles.prints = async function* (...which) {
    store.profiles.prints = prints;
    for await (const print of prints(...which)) {
      yield print;
      throw new Error("the connection is gone");
    }
  };
  const galleries = new Galleries(oneModel(engine), store);
  const members = () =>
    galleries.search("bank", "person", (loaded) => ({
      ids: [...loaded.members.keys()],
      size: loaded.galleries.get(engine.model.revision)!.size,
    }));
  await expect(members()).rejects.toThrow("the connection is gone");
  // Another replica erases it, and this one is not told.
  await store.profiles.erase("bank", erased.value);
  expect(await members()).toEqual({ ids: [kept.value], size: 1 });
  galleries.close();
});

test("no more galleries are held than may be: the oldest is loaded again when it is asked for", async () => {
  const { trained, engine, store } = await openWorld();
  await trained(7);
  const loads = vi.spyOn(store.profiles, "prints");
  const galleries = new Galleries(oneModel(engine), store, 1);
  const search = (kind: "person" | "fraudster") => galleries.search("bank", kind, ({ members }) => members.size);
  expect([await search("person"), await search("person"), await search("fraudster")]).toEqual([1, 1, 0]);
  expect(loads).toHaveBeenCalledTimes(2);
  expect(await search("person")).toBe(1);
  expect(loads).toHaveBeenCalledTimes(3);
  galleries.close();
});

test("the gallery that was not searched for longest makes room", async () => {
  const { engine, store } = await openWorld();
  const loads = vi.spyOn(store.profiles, "prints");
  const galleries = new Galleries(oneModel(engine), store, 2);
  for (const scope of ["a", "b", "a", "c"]) await galleries.search(scope, "person", () => {});
  loads.mockClear();
  await galleries.search("a", "person", () => {});
  expect(loads).not.toHaveBeenCalled();
  await galleries.search("b", "person", () => {});
  expect(loads).toHaveBeenCalledTimes(1);
  galleries.close();
});

test("the members of a group are found again only if the group or the prints have changed", async () => {
  const world = await openWorld();
  await world.trained(7);
  const galleries = new Galleries(oneModel(world.engine), world.store);
  let finds = 0;
  const ask = (key: string, ...of: string[][]) =>
    galleries.search("bank", "person", (loaded) => {
      const before = finds;
      loaded.remembered(key, of, () => {
        finds++;
        return { scored: new Set(), leftOut: [] };
      });
      return finds > before;
    });
  expect([await ask("g", ["a", "b"], []), await ask("g", ["a", "b"], [])]).toEqual([true, false]);
  const members = ["a", "c"];
  expect([await ask("g", members, []), await ask("g", members, [])]).toEqual([true, false]);
  for (const other of [[["a", "c", "d"], []], [["a", "c"]], [["a", "c"], ["e"]]]) {
    expect(await ask("g", ...other)).toBe(true);
    expect(await ask("g", ...other)).toBe(false);
  }
  const profile = await world.trained(9);
  expect([await ask("g", members), await ask("g", members)]).toEqual([true, false]);
  galleries.drop("bank", profile.value);
  expect(await ask("g", members)).toBe(true);
  // Of many groups, those asked for last are kept.
  for (let i = 1; i < 16; i++) await ask(`g${i}`, members);
  expect([await ask("g", members), await ask("g1", members)]).toEqual([false, false]);
  await ask("one more", members);
  expect([await ask("g1", members), await ask("g", members)]).toEqual([false, true]);
  galleries.close();
});

test("a model that is not open gives no engine", async () => {
  const { engine } = await openWorld();
  const models = oneModel(engine);
  expect(await models.open(engine.model.revision)).toBe(engine);
  expect(models.has("another")).toBe(false);
  await expect(models.open("another")).rejects.toThrow("no loaded model has the revision another");
});

test("a print that another model made again is in the gallery of that model only", async () => {
  const world = await openTwoModels();
  const engines = [world.old, world.engine];
  const profile = await world.trained(7);
  const galleries = new Galleries(
    {
      of: () => world.engine,
      has: () => true,
      open: async (revision) => engines.find(({ model }) => model.revision === revision)!,
    },
    world.store,
  );
  const revisions = () => galleries.search("bank", "person", (loaded) => [...loaded.galleries.keys()]);
  expect(await revisions()).toEqual([world.old.model.revision]);
  world.change();
  for (const seconds of [4, 4.1, 4.2]) await world.enroll(profile, take(7, seconds));
  await world.train(profile);
  expect(await revisions()).toEqual([world.engine.model.revision]);
  galleries.close();
});

test("damaged prints are tried again a few at a time; once one can be opened, all of them", async () => {
  const { engine, store, ids } = await openWorld();
  const voice = { embedding: voiceOf(1, 1), netSpeechSeconds: 9, snrDb: 30, bandwidthHz: 4000 };
  const damaged = new Map<string, DamagedProfile>();
  for (let i = 0; i < 40; i++) {
    const owner = { id: ids.next(), scopeId: "bank", kind: "person", externalId: `${i}` } as const;
    const template = { ...voice, revision: engine.model.revision };
    const plain = { scopeId: "bank", owner, tag: "", printType: null, printVersion: 1, status: 3, createdAt: 0 };
    const made = (await store.profiles.create({ ...plain, id: ids.next(), template }))!;
    damaged.set(made.id, { ...made, damage: new SealError("damaged", "altered") });
  }
  const { prints, printsOf } = store.profiles;
  let read: string[] = [];
  store.profiles.prints = async function* (scope, kind, onDamaged) {
    for await (const print of prints(scope, kind))
      if (damaged.has(print.profileId)) onDamaged?.(damaged.get(print.profileId)!);
      else yield print;
  };
  store.profiles.printsOf = async (scope, wanted, onDamaged) => {
    read.push(...wanted);
    for (const id of wanted) if (damaged.has(id)) onDamaged?.(damaged.get(id)!);
    return (await printsOf(scope, wanted)).filter(({ profileId }) => !damaged.has(profileId));
  };
  const galleries = new Galleries(oneModel(engine), store);
  const search = async () => {
    read = [];
    return galleries.search("bank", "person", ({ members, leftOut }) => [members.size, leftOut.size]);
  };
  const tried = new Set<string>();
  expect(await search()).toEqual([0, 40]);
  for (let i = 0; i < 3; i++) {
    expect(await search()).toEqual([0, 40]);
    expect(read).toHaveLength(16);
    for (const id of read) tried.add(id);
  }
  expect(tried).toEqual(new Set(damaged.keys()));
  // All but one are restored.
  const [last] = [...damaged.keys()].slice(-1);
  for (const id of damaged.keys()) if (id !== last) damaged.delete(id);
  expect(await search()).toEqual([39, 1]);
  expect(await search()).toEqual([39, 1]);
  expect(read).toEqual([last]);
  damaged.delete(last!);
  await store.profiles.erase("bank", last!);
  expect(await search()).toEqual([39, 0]);
  galleries.close();
});

test("an erased print leaves its gallery at once; the others stay until the last is erased", async () => {
  const { trained, engine, store } = await openWorld();
  const [one, two] = [await trained(7), await trained(9)];
  const galleries = new Galleries(oneModel(engine), store);
  const sizes = () =>
    galleries.search("bank", "person", (loaded) => [...loaded.galleries.values()].map(({ size }) => size));
  expect(await sizes()).toEqual([2]);
  galleries.drop("bank", one.value);
  expect(await sizes()).toEqual([1]);
  galleries.drop("bank", two.value);
  expect(await sizes()).toEqual([]);
  galleries.close();
});
