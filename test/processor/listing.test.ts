import { beforeAll, expect, test, vi } from "vitest";
import { OwnerType, VoiceprintProfileStatus } from "../../src/contract/index.js";
import { openWorld, refusal, type World } from "./world.js";

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const { processor, context } = world;
  for (const [i, name] of ["ada", "bob", "carol", "dan", "eve"].entries())
    await processor.createVoiceprintProfile({
      context,
      owner: { case: i === 4 ? "fraudsterId" : "personId", value: name },
      profileTag: "",
    });
  for (const tag of ["one", "two", "three"]) await processor.createGroup({ context, tag });
  await processor.createWatchlist({ context, tag: "known" });
});

test("profiles are listed page by page, with their owners", async () => {
  const { processor, context } = world;
  const names: string[] = [];
  for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages++) {
    expect(pages).toBeLessThan(4);
    const answer = await processor.listVoiceprintProfiles({ context, pageSize: 2, pageToken });
    names.push(...answer.profiles.map(({ ownerId }) => ownerId));
    pageToken = answer.nextPageToken;
  }
  expect(names.sort()).toEqual(["ada", "bob", "carol", "dan", "eve"]);
  // Every page is full but the last, and none is empty.
  const first = await processor.listVoiceprintProfiles({ context, ownerType: OwnerType.PERSON, pageSize: 2 });
  const { nextPageToken: pageToken } = first;
  const last = await processor.listVoiceprintProfiles({ context, ownerType: OwnerType.PERSON, pageSize: 2, pageToken });
  expect([first.profiles.length, last.profiles.length, last.nextPageToken]).toEqual([2, 2, ""]);
  const one = await processor.listVoiceprintProfiles({ context, ownerType: OwnerType.FRAUDSTER, pageSize: 1 });
  expect([one.profiles[0]!.ownerId, one.nextPageToken]).toEqual(["eve", ""]);
  const fraudsters = await processor.listVoiceprintProfiles({ context, ownerType: OwnerType.FRAUDSTER });
  expect(fraudsters.profiles.map(({ ownerId, ownerType }) => [ownerId, ownerType])).toEqual([
    ["eve", OwnerType.FRAUDSTER],
  ]);
  const elsewhere = await processor.listVoiceprintProfiles({ context: { gkScopeId: { value: "elsewhere" } } });
  expect(elsewhere.profiles).toEqual([]);
});

test("a profile whose template is of another model is listed as not trained", async () => {
  const { processor, context, engine, trained } = await openWorld();
  await trained(7);
  const status = async () => (await processor.listVoiceprintProfiles({ context })).profiles[0]!.status;
  expect(await status()).toBe(VoiceprintProfileStatus.OPTIMAL_TRAINED);
  engine.behavior.revision = "c".repeat(64);
  expect(await status()).toBe(VoiceprintProfileStatus.NOT_TRAINED);
});

test("a page token that is none is refused", async () => {
  const { processor, context } = world;
  const refused = { code: "INVALID_REQUEST", fields: ["page_token malformed"] };
  expect(await refusal(processor.listVoiceprintProfiles({ context, pageToken: "2" }))).toMatchObject(refused);
  expect(await refusal(processor.listGroups({ context, pageToken: "two" }))).toMatchObject(refused);
});

test("an unknown kind of owner is refused", async () => {
  const { processor, context } = world;
  expect(await refusal(processor.listVoiceprintProfiles({ context, ownerType: 9 as OwnerType }))).toMatchObject({
    code: "INVALID_REQUEST",
    fields: ["owner_type unknown"],
  });
});

test("groups and watchlists are listed separately", async () => {
  const { processor, context } = world;
  const first = await processor.listGroups({ context, pageSize: 2 });
  const second = await processor.listGroups({ context, pageSize: 2, pageToken: first.nextPageToken });
  expect([...first.groups, ...second.groups].map(({ tag }) => tag)).toEqual(["one", "two", "three"]);
  expect(second.nextPageToken).toBe("");
  const { groups } = await processor.listWatchlists({ context });
  expect(groups).toMatchObject([{ tag: "known", numberOfProfiles: 0, numberOfOwners: 0 }]);
});

test("groups are counted without reading their members", async () => {
  const { processor, context, store } = world;
  const read = vi.spyOn(store.groups, "get");
  expect((await processor.listGroups({ context })).groups).toHaveLength(3);
  expect(read).not.toHaveBeenCalled();
  read.mockRestore();
});

test("the page size is limited", async () => {
  const { processor, context } = world;
  for (const pageSize of [-1, 501])
    expect(await refusal(processor.listGroups({ context, pageSize }))).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["page_size out_of_range"],
    });
  expect((await processor.listGroups({ context, pageSize: 1 })).groups).toHaveLength(1);
  expect((await processor.listGroups({ context, pageSize: 500 })).groups).toHaveLength(3);
});

test("a page has 100 entries unless the request says otherwise; a full page that is the last has no next one", async () => {
  const { processor, context } = await openWorld();
  for (let i = 0; i < 101; i++) await processor.createGroup({ context, tag: `${i}` });
  const first = await processor.listGroups({ context });
  expect(first.groups).toHaveLength(100);
  const second = await processor.listGroups({ context, pageToken: first.nextPageToken });
  expect([second.groups.length, second.nextPageToken]).toEqual([1, ""]);
  const full = await processor.listGroups({ context, pageSize: 101 });
  expect([full.groups.length, full.nextPageToken]).toEqual([101, ""]);
});

test("the profiles of one name are listed page by page too, of the person and of the fraudster", async () => {
  const { processor, context, person, fraudster } = await openWorld();
  const made = [
    await fraudster("sam", "x"),
    await person("sam", "x"),
    await person("sam", "y"),
    await person("somebody else"),
  ];
  const found: string[] = [];
  for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages++) {
    const page = await processor.listVoiceprintProfiles({ context, ownerId: "sam", pageSize: 2, pageToken });
    expect(page.profiles.length).toBe(pages === 0 ? 2 : 1);
    found.push(...page.profiles.map(({ gkVoiceprintProfileId }) => gkVoiceprintProfileId!.value));
    pageToken = page.nextPageToken;
  }
  expect(found).toEqual(made.slice(0, 3).map(({ value }) => value));
  const persons = await processor.listVoiceprintProfiles({ context, ownerId: "sam", ownerType: OwnerType.PERSON });
  expect(persons.profiles.map(({ profileTag }) => profileTag)).toEqual(["x", "y"]);
  expect((await processor.listVoiceprintProfiles({ context, ownerId: "nobody" })).profiles).toEqual([]);
});
