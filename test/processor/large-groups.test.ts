/** Groups with more prints than are scored one by one: the gallery finds the best. */
import { expect, test } from "vitest";
import { Decision, DecisionReason } from "../../src/contract/index.js";
import { take, voiceOf } from "./fixture-engine.js";
import { list, openTwoModels } from "./world.js";

type World = Awaited<ReturnType<typeof openTwoModels>>;

/** A trained print of a speaker, without recordings. */
async function print({ store, ids }: World, speaker: number, revision: string, tag = "") {
  const id = ids.next();
  const owner = { id: ids.next(), scopeId: "bank", kind: "person", externalId: `somebody ${speaker}` } as const;
  const voice = { netSpeechSeconds: 9, snrDb: 30, bandwidthHz: 4000 };
  await store.profiles.create({
    id,
    scopeId: "bank",
    owner,
    tag,
    printType: "text-dependent",
    printVersion: 1,
    template: { embedding: voiceOf(speaker, 1), ...voice, revision },
    status: 3,
    createdAt: 0,
  });
  return { value: id, owner: { value: owner.id } };
}

/** 300 prints of strangers in a group, most of them with the tag "web". */
async function opened() {
  const world = await openTwoModels();
  world.change();
  const { revision } = world.engine.model;
  const members = [];
  for (let i = 0; i < 300; i++) members.push(await print(world, 100 + i, revision, i < 10 ? "phone" : "web"));
  const { processor, context } = world;
  const gkVoiceprintProfileIds = list(...members.map(({ value }) => ({ value })));
  const { gkGroupId } = await processor.createGroup({ context, tag: "all", gkVoiceprintProfileIds });
  const analyze = async (speaker: number, group: object, ...more: { value: string }[]) => {
    const audio = await world.heard(take(speaker, 4));
    const gkVoiceprintProfileIds = list(...more.map(({ value }) => ({ value })));
    const { result } = await processor.analyzeAudio({ context, audio, group, gkVoiceprintProfileIds });
    return result!;
  };
  return { world, members, revision, group: { uniqueId: gkGroupId! }, analyze };
}

test("the profiles of the request are searched together with the group, each once", async () => {
  const { world, members, revision, group, analyze } = await opened();
  const extra = await print(world, 7, revision);
  const found = await analyze(7, group, extra, members[0]!);
  expect(found.authenticationResult).toMatchObject({
    decision: Decision.AUTHENTIC,
    numberOfPersonsPrints: 301,
    topPersonVoiceprintDetails: { gkVoiceprintProfileId: { value: extra.value } },
  });
  const known = await analyze(100, group, members[0]!);
  expect(known.authenticationResult).toMatchObject({ decision: Decision.AUTHENTIC, numberOfPersonsPrints: 300 });
});

test("a profile of the request that cannot be compared is not counted", async () => {
  const { world, group, analyze } = await opened();
  const foreign = await print(world, 7, "e".repeat(64));
  const found = await analyze(7, group, foreign, await world.person("not trained"));
  expect(found.authenticationResult).toMatchObject({ decision: Decision.NO_MATCH, numberOfPersonsPrints: 300 });
});

test("with a tag, only prints with that tag are searched; without an id, every group with the tag", async () => {
  const { group, analyze } = await opened();
  const phone = await analyze(105, { ...group, tag: "phone" });
  expect(phone.authenticationResult).toMatchObject({ decision: Decision.AUTHENTIC, numberOfPersonsPrints: 10 });
  const web = await analyze(105, { ...group, tag: "web" });
  expect(web.authenticationResult).toMatchObject({ decision: Decision.NO_MATCH, numberOfPersonsPrints: 290 });
  const every = await analyze(105, { tag: "all" });
  expect(every.authenticationResult).toMatchObject({ decision: Decision.AUTHENTIC, numberOfPersonsPrints: 300 });
  const none = await analyze(105, { ...group, tag: "fax" });
  expect(none.authenticationResult).toMatchObject({ decision: Decision.FAILED, reason: DecisionReason.NO_SCORES });
});

test("prints of two models are searched, each with its model; a model without prints in the group does not listen", async () => {
  const { world, group, analyze } = await opened();
  const older = await print(world, 7, world.old.model.revision);
  world.opened.length = 0;
  expect((await analyze(7, group)).authenticationResult!.decision).toBe(Decision.NO_MATCH);
  expect(world.old.behavior.heardSeconds).toEqual([]);
  const { processor, context } = world;
  const gkVoiceprintProfileIds = list({ value: older.value });
  await processor.addGroupMembers({ context, gkGroupId: group.uniqueId, gkVoiceprintProfileIds });
  const found = await analyze(7, group);
  expect(found.authenticationResult).toMatchObject({
    decision: Decision.AUTHENTIC,
    numberOfPersonsPrints: 301,
    topPersonVoiceprintDetails: { gkVoiceprintProfileId: { value: older.value } },
  });
});

test("a list of more ids than are scored one by one is searched the same way", async () => {
  const { world, members } = await opened();
  const { processor, context, engine } = world;
  const audio = await world.heard(take(107, 4));
  const ids = members.map(({ value }) => ({ value }));
  for (const [given, scored] of [
    [ids, 64],
    [ids.slice(0, 257), 64],
    [ids.slice(0, 256), 256],
  ] as const) {
    engine.behavior.scoredAgainst.length = 0;
    const target = { case: "gkVoiceprintProfileIds", value: list(...given) } as const;
    const { result } = await processor.identify({ context, audio, target });
    expect(result).toMatchObject({
      decision: Decision.AUTHENTIC,
      voiceprintDetails: { gkVoiceprintProfileId: { value: members[7]!.value } },
    });
    expect(result!.voiceprintResults).toHaveLength(scored);
  }
});

test("a group of owners has all their prints, and those that it names", async () => {
  const { world, members, revision } = await opened();
  const { processor, context } = world;
  const named = await print(world, 7, revision);
  const gkOwnerIds = list(...members.map(({ owner }) => owner));
  const gkVoiceprintProfileIds = list({ value: named.value });
  const { gkGroupId } = await processor.createGroup({ context, gkOwnerIds, gkVoiceprintProfileIds });
  await print(world, 8, revision);
  for (const [speaker, decision] of [
    [7, Decision.AUTHENTIC],
    [101, Decision.AUTHENTIC],
    [8, Decision.NO_MATCH],
  ] as const) {
    const audio = await world.heard(take(speaker, 4));
    const { result } = await processor.analyzeAudio({ context, audio, group: { uniqueId: gkGroupId! } });
    expect(result!.authenticationResult).toMatchObject({ decision, numberOfPersonsPrints: 301 });
  }
});

test("up to 256 members are all scored, of more the best 64", async () => {
  const { world, members } = await opened();
  const { processor, context } = world;
  const ids = members.map(({ value }) => ({ value }));
  const owners = members.map(({ owner }) => owner);
  for (const [profiles, owned, scored] of [
    [256, 0, 256],
    [0, 256, 256],
    [255, 1, 256],
    [255, 2, 64],
    [257, 0, 64],
  ] as const) {
    const { gkGroupId } = await processor.createGroup({
      context,
      gkVoiceprintProfileIds: list(...ids.slice(0, profiles)),
      gkOwnerIds: list(...owners.slice(profiles, profiles + owned)),
    });
    const target = { case: "group", value: { uniqueId: gkGroupId! } } as const;
    const { result } = await processor.identify({ context, audio: await world.heard(take(107, 4)), target });
    expect(result!.decision).toBe(Decision.AUTHENTIC);
    expect(result!.voiceprintResults).toHaveLength(scored);
  }
});

test("in the field, rates at which prints outside the best 64 may exceed the threshold are not counted", async () => {
  const { world, group, analyze } = await opened();
  const comparisons = async () =>
    (await world.processor.fieldRates()).filter(({ list }) => list === "group").map((rate) => rate.comparisons);
  await analyze(7, group);
  expect(await comparisons()).toEqual([0, 300, 300]);
  // Without the person who was found.
  await analyze(107, group);
  expect(await comparisons()).toEqual([0, 599, 599]);
});
