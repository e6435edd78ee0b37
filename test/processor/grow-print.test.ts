import { expect, test } from "vitest";
import { ConsentState, Decision } from "../../src/contract/index.js";
import { Voiceprints } from "../../src/voiceprints.js";
import { joined, rateHz, take } from "./fixture-engine.js";
import { list, openWorld, type World } from "./world.js";

const configurationSets = { growing: { adaptation: { maxSessions: 3 } } };

/** A call in its own session. */
const call = async (world: World, profile: { value: string }, samples: Float32Array, configset = "growing") => {
  const context = await world.open(configset);
  const { decision } = await world.verify(profile, samples, { context, ignoreCheckpoints: true });
  return decision;
};
const stored = async (world: World, profile: { value: string }) =>
  (await world.store.profiles.get("bank", profile.value))!;
const sessionsOf = async (world: World, profile: { value: string }) =>
  (await stored(world, profile)).template!.grown?.sessions ?? [];

test("is off by default: a match changes nothing", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  const before = await stored(world, profile);
  expect(await call(world, profile, take(7, 4), "ivr-text-dependent")).toBe(Decision.AUTHENTIC);
  expect(await stored(world, profile)).toEqual(before);
});

test("adds a limited number of clearly matching calls, and Train undoes it", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  const trained = await stored(world, profile);
  for (const length of [4, 4.1, 4.2, 4.3, 4.4]) expect(await call(world, profile, take(7, length))).toBe(1);
  const grown = await stored(world, profile);
  expect(grown.template!.grown!.sessions).toHaveLength(3);
  expect(grown.template!.grown!.enrolled.embedding).toEqual(trained.template!.embedding);
  expect(grown.template!.embedding).not.toEqual(trained.template!.embedding);
  expect(grown).toMatchObject({ printVersion: 6, status: trained.status });
  // The enrolled template is unchanged.
  expect(await world.store.profiles.segments("bank", profile.value)).toHaveLength(3);
  await world.train(profile);
  expect((await stored(world, profile)).template).toEqual(trained.template);
  const exported = await world.processor.exportProfile("bank", profile.value);
  expect(exported!.template!.grown).toBeUndefined();
});

test("enrolling the same recordings again changes nothing: the print keeps its version and the calls that it added", async () => {
  const world = await openWorld({ configurationSets });
  const voice = new Voiceprints(world.processor, { scope: "bank", configset: "growing" });
  const takes = [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz }));
  const first = await voice.enroll("ada", takes);
  const profile = { value: first.profileId };
  await call(world, profile, take(7, 4));
  const before = await stored(world, profile);
  expect([before.printVersion, before.template!.grown!.sessions.length]).toEqual([2, 1]);
  const again = await voice.enroll("ada", [...takes, { samples: take(7, 0.3), rateHz }]);
  expect(again.segments.map(({ reason }) => reason)).toEqual([...Array(3).fill("ALREADY_ADDED"), "TOO_SHORT"]);
  expect(again).toMatchObject({ trained: true, reason: "TRAIN_OK", status: first.status, printVersion: 2 });
  expect(again.netSpeechSeconds).toBe(first.netSpeechSeconds);
  expect(await stored(world, profile)).toEqual(before);
  // A recording that was added without training is trained when it comes again.
  const more = { samples: take(7, 3.3), rateHz };
  expect((await voice.enroll("ada", [more], { train: false })).segments[0]).toMatchObject({ enrolled: true });
  expect(await voice.enroll("ada", [more])).toMatchObject({ trained: true, printVersion: 3 });
  expect((await stored(world, profile)).template!.grown).toBeUndefined();
  // So is a print that another model made.
  world.engine.behavior.revision = "d".repeat(64);
  for (const seconds of [3.4, 3.5, 3.6]) await world.enroll(profile, take(7, seconds));
  const { result } = await world.processor.train({
    context: world.context,
    gkVoiceprintProfileId: profile,
    onlyIfChanged: true,
  });
  expect(result!.voiceprintDetails!.printVersion).toBe(4);
});

test("a recording that is played again does not grow the print", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  for (const _ of [1, 2, 3]) expect(await call(world, profile, take(7, 4))).toBe(Decision.AUTHENTIC);
  expect(await sessionsOf(world, profile)).toHaveLength(1);
});

test("an export shows which calls a print has taken in", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  await call(world, profile, take(7, 4));
  const exported = (await world.processor.exportProfile("bank", profile.value))!;
  expect(JSON.parse(JSON.stringify(exported))).toEqual(exported);
  expect(exported.template!.grown!.sessions).toHaveLength(1);
});

test.each([
  ["by somebody else", async () => take(9, 4)],
  ["too short to enroll", async () => take(7, 0.9)],
  ["too noisy to enroll", async () => take(7, 4, { noisy: 3 })],
])("does not grow from a call that is %s", async (_, samples) => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  await call(world, profile, await samples());
  expect(await sessionsOf(world, profile)).toEqual([]);
});

test("does not grow from a match that only the grown print would find", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  await call(world, profile, take(7, 4));
  const [first] = await sessionsOf(world, profile);
  const { enrolled } = (await stored(world, profile)).template!.grown!;
  world.engine.behavior.score = (raw, template) => ({
    raw,
    llr: template.netSpeechSeconds === enrolled.netSpeechSeconds ? 0 : 20,
    reliability: 1,
  });
  expect(await call(world, profile, take(7, 4.1))).toBe(Decision.AUTHENTIC);
  expect(await sessionsOf(world, profile)).toEqual([first]);
});

test("does not grow if an attack check found a sign of an attack or was uncertain", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  const analyze = async (llr: number, length: number) => {
    world.engine.behavior.attacks.synthetic = llr;
    const context = await world.open("growing");
    await world.processor.analyzeAudio({
      context,
      audio: await world.heard(take(7, length), context),
      gkVoiceprintProfileIds: list(profile),
      syntheticSpeechDetectionParameters: {},
      ignoreCheckpoints: true,
    });
    return (await sessionsOf(world, profile)).length;
  };
  expect([await analyze(12, 4), await analyze(1, 4.1), await analyze(-12, 4.2)]).toEqual([0, 0, 1]);
});

test("an impostor who gets in once cannot take over: the next call is compared with the enrolled template", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  const { behavior } = world.engine;
  const honest = behavior.score;
  behavior.score = (raw) => ({ raw, llr: 20, reliability: 1 });
  expect(await call(world, profile, take(9, 4))).toBe(Decision.AUTHENTIC);
  expect(await sessionsOf(world, profile)).toHaveLength(1);
  behavior.score = honest;
  for (const length of [4.1, 4.2, 4.3]) expect(await call(world, profile, take(9, length))).toBe(Decision.NO_MATCH);
  expect(await sessionsOf(world, profile)).toHaveLength(1);
  // The person is still found, and their calls replace the impostor's.
  for (const length of [4, 4.1, 4.2, 4.3, 4.4])
    expect(await call(world, profile, take(7, length))).toBe(Decision.AUTHENTIC);
});

test("a print trained or erased in the meantime is not changed; an engine failure does not fail the check", async () => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  const { train } = world.store.profiles;
  world.store.profiles.train = async () => false;
  expect(await call(world, profile, take(7, 4))).toBe(Decision.AUTHENTIC);
  world.store.profiles.train = train;
  const { get } = world.store.profiles;
  world.store.profiles.get = async () => {
    throw new Error("the disk is gone");
  };
  expect(await call(world, profile, take(7, 4.1))).toBe(Decision.AUTHENTIC);
  world.store.profiles.get = get;
  expect(await sessionsOf(world, profile)).toEqual([]);
});

test.each<[string, (world: World, profile: { value: string }) => Promise<unknown>]>([
  ["is trained again", (world, profile) => world.train(profile)],
  [
    "may no longer be used",
    ({ processor, context }, gkVoiceprintProfileId) =>
      processor.setVoiceprintProfileConsent({ context, gkVoiceprintProfileId, state: ConsentState.WITHDRAWN }),
  ],
])("a print that %s while the check is stored does not grow", async (_, change) => {
  const world = await openWorld({ configurationSets });
  const profile = await world.trained(7);
  const { addCheck } = world.store.sessions;
  world.store.sessions.addCheck = async (...check) => {
    await addCheck(...check);
    await change(world, profile);
  };
  expect(await call(world, profile, take(7, 4))).toBe(Decision.AUTHENTIC);
  expect(await sessionsOf(world, profile)).toEqual([]);
});

test("does not grow from a separated voice, which may contain some of the other person's speech", async () => {
  const world = await openWorld({ configurationSets });
  const [profile, agent] = [await world.trained(7), await world.trained(9)];
  const context = await world.open("growing");
  const { result } = await world.processor.verify({
    context,
    audio: await world.heard(joined(take(9, 3), take(7, 4)), context),
    gkVoiceprintProfileId: profile,
    channelSelector: { voiceSeparation: { gkAgentVoiceprintProfileId: agent } },
  });
  expect(result!.decision).toBe(Decision.AUTHENTIC);
  expect(await sessionsOf(world, profile)).toEqual([]);
});
