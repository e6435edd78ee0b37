/** After consent is withdrawn, no operation compares or changes the print until it is given again. */
import { beforeEach, expect, test, vi } from "vitest";
import { ConsentState, Decision, DecisionReason, VoiceprintProfileStatus } from "../../src/contract/index.js";
import { joined, rateHz, silence, take } from "./fixture-engine.js";
import { list, openWorld, pcm16, refusal, type World } from "./world.js";

let world: World;
let alice: { value: string };
let bob: { value: string };
beforeEach(async () => {
  world = await openWorld();
  alice = await world.trained(1);
  bob = await world.trained(2);
});

const set = (profile: { value: string }, state: ConsentState, reference = "letter 17") =>
  world.processor.setVoiceprintProfileConsent({
    context: world.context,
    gkVoiceprintProfileId: profile,
    state,
    reference,
  });
const withdrawn = { code: "PERMISSION_DENIED", fields: ["gk_voiceprint_profile_id consent_withdrawn"] };

test("is recorded with its time and reference, and listed", async () => {
  const at = Math.floor(world.clock.at / 1000);
  const { consent } = await set(alice, ConsentState.GIVEN, "form 4");
  expect(consent).toMatchObject({ state: ConsentState.GIVEN, reference: "form 4" });
  expect(Number(consent!.time!.seconds)).toBeGreaterThanOrEqual(at);
  expect(Number(consent!.time!.seconds)).toBeLessThanOrEqual(at + 1);
  const { profiles } = await world.processor.listVoiceprintProfiles({ context: world.context });
  expect(profiles.map((profile) => [profile.ownerId, profile.consent?.state])).toEqual([
    ["person-1", ConsentState.GIVEN],
    ["person-2", undefined],
  ]);
  expect((await world.verify(alice, take(1, 4))).decision).toBe(Decision.AUTHENTIC);
});

test("once withdrawn, no check compares the print, and it is back when consent is given again", async () => {
  const { processor, context } = world;
  const { gkGroupId } = await processor.createGroup({ context, gkVoiceprintProfileIds: list(alice, bob) });
  // Galleries and caches have loaded it before.
  expect((await world.verify(alice, take(1, 4))).decision).toBe(Decision.AUTHENTIC);
  await set(alice, ConsentState.WITHDRAWN);

  // The second set needs more speech for training than alice has: more segments would not help her either.
  for (const inContext of [context, await world.open("text-independent")])
    expect(await world.verify(alice, take(1, 4), { context: inContext })).toMatchObject({
      decision: Decision.FAILED,
      reason: DecisionReason.NO_SCORES,
    });
  const targets = [
    { case: "gkVoiceprintProfileIds", value: list(alice, bob) },
    { case: "group", value: { uniqueId: gkGroupId!, tag: "" } },
  ] as const;
  for (const target of targets) {
    const audio = await world.heard(take(1, 4));
    const { result } = await processor.identify({ context, audio, target });
    expect(result!.voiceprintResults.map(({ gkVoiceprintProfileId }) => gkVoiceprintProfileId!.value)).toEqual([
      bob.value,
    ]);
  }
  const audio = await world.heard(take(1, 4));
  const { result } = await processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: list(alice) });
  expect(result!.decision).not.toBe(Decision.AUTHENTIC);
  expect(
    await processor.getEnrollStatus({ context, gkVoiceprintProfileId: alice }).then(({ isTrained }) => isTrained),
  ).toBe(false);

  await set(alice, ConsentState.GIVEN);
  expect((await world.verify(alice, take(1, 4))).decision).toBe(Decision.AUTHENTIC);
});

test("once withdrawn, nothing is enrolled or trained, and a print does not grow", async () => {
  const { processor, context } = world;
  await set(alice, ConsentState.WITHDRAWN);
  expect(await refusal(world.enroll(alice, take(1, 4)))).toMatchObject(withdrawn);
  expect(await refusal(world.train(alice))).toMatchObject(withdrawn);
  const { gkJobId } = await processor.startVoiceprintProfilesRetrainingJob({ context });
  expect(gkJobId).toBeDefined();
  const { profiles } = await processor.listVoiceprintProfiles({ context });
  expect(profiles[0]).toMatchObject({ printVersion: 1, status: VoiceprintProfileStatus.OPTIMAL_TRAINED });
  // Erased by another call at the same moment.
  const { setConsent } = world.store.profiles;
  world.store.profiles.setConsent = async () => false;
  expect(await refusal(set(bob, ConsentState.GIVEN))).toMatchObject({
    code: "NOT_FOUND",
    fields: ["gk_voiceprint_profile_id unknown"],
  });
  world.store.profiles.setConsent = setConsent;
  // Erasing is still allowed.
  await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: alice });
  expect(await refusal(set(alice, ConsentState.GIVEN))).toMatchObject({ code: "NOT_FOUND" });
});

test("once withdrawn, an import does not replace the profile, even one without recordings", async () => {
  const other = await openWorld({ allowExport: true });
  const exporting = { context: other.context, gkVoiceprintProfileId: await other.trained(3) };
  const { profile } = await other.processor.exportVoiceprintProfile(exporting);
  const carol = await world.person("person-3");
  await set(carol, ConsentState.WITHDRAWN);
  expect(await refusal(world.processor.importVoiceprintProfile({ context: world.context, profile }))).toMatchObject({
    code: "PERMISSION_DENIED",
    fields: ["owner_id consent_withdrawn"],
  });
  await set(carol, ConsentState.GIVEN);
  await world.processor.importVoiceprintProfile({ context: world.context, profile });
});

test("nothing is stored of a live call that enrolls: consent was withdrawn before, or the person is erased meanwhile", async () => {
  const { processor, context, store } = world;
  const kept = [vi.spyOn(store.media, "add"), vi.spyOn(store.processed, "add")];
  const enrollment = (profile: { value: string }) => ({
    content: {
      case: "start" as const,
      value: {
        context,
        encoding: "pcm16",
        rate: rateHz,
        channels: 1,
        parties: [{ name: "caller", task: { case: "enroll" as const, value: { gkVoiceprintProfileId: profile } } }],
      },
    },
  });
  const called = async (profile: { value: string }, meanwhile: () => Promise<unknown>) => {
    const requests = async function* () {
      yield enrollment(profile);
      yield { content: { case: "audio" as const, value: pcm16([take(1, 1)]) } };
      await meanwhile();
      yield { content: { case: "audio" as const, value: pcm16([take(1, 4)]) } };
    };
    for await (const { event } of processor.listen(requests())) expect(event.case).not.toBe("segment");
  };
  await set(alice, ConsentState.WITHDRAWN);
  expect(await refusal(called(alice, async () => {}))).toMatchObject(withdrawn);
  const erased = called(bob, () => processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: bob }));
  expect(await refusal(erased)).toMatchObject({ code: "NOT_FOUND" });
  for (const add of kept) expect(add).not.toHaveBeenCalled();
});

test.each([
  ["media", "add"],
  ["processed", "add"],
  ["profiles", "addSegment"],
] as const)("nothing is stored of a live call that enrolls a person who is erased at %s.%s", async (part, method) => {
  const { processor, store } = world;
  const context = await world.open();
  const gkVoiceprintProfileId = await world.person("dora");
  const original = (store[part] as Record<string, (...given: never[]) => Promise<unknown>>)[method]!;
  vi.spyOn(store[part] as Record<string, typeof original>, method).mockImplementationOnce(async (...given) => {
    await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId });
    return original(...given);
  });
  const enrollment = await processor.openLiveEnrollment({ context, gkVoiceprintProfileId, rateHz });
  const called = async () => {
    await enrollment.push(take(1, 20));
    return enrollment.finish();
  };
  expect(await refusal(called())).toMatchObject({ code: "NOT_FOUND" });
  expect(await store.media.ofSession("bank", context.gkSessionId.value)).toEqual([]);
  expect(await store.processed.ofSession("bank", context.gkSessionId.value)).toEqual([]);
});

test("of a live call that enrolls, only what was enrolled is stored", async () => {
  const { processor, store } = world;
  const context = await world.open();
  const profile = await world.person("emil");
  const enrollment = await processor.openLiveEnrollment({ context, gkVoiceprintProfileId: profile, rateHz });
  await enrollment.push(joined(take(1, 0.5), silence(1)));
  expect(await enrollment.finish()).toMatchObject({ value: { enrolledSegments: 0 } });
  expect(await store.media.ofSession("bank", context.gkSessionId.value)).toEqual([]);
  expect(await store.processed.ofSession("bank", context.gkSessionId.value)).toEqual([]);
});

test.each([
  ["is withdrawn", (profile: { value: string }) => set(profile, ConsentState.WITHDRAWN)],
  [
    "is erased with the person",
    (gkVoiceprintProfileId: { value: string }) =>
      world.processor.deleteVoiceprintProfile({ context: world.context, gkVoiceprintProfileId }),
  ],
] as const)("when it %s after a checkpoint has matched, the call's answer is not that match", async (_, change) => {
  const { processor, context } = world;
  const mallory = await world.trained(7, "fraudster");
  const { gkGroupId } = await processor.createWatchlist({ context, gkVoiceprintProfileIds: list(mallory) });
  const check = await processor.openLiveAnalysis({
    context,
    gkVoiceprintProfileIds: list(alice, bob),
    watchlist: { uniqueId: gkGroupId! },
    rateHz,
  });
  // The first checkpoint for persons is at 2 s, the first for fraudsters at 5 s.
  expect(await check.push(take(1, 4))).toMatchObject({ result: null });
  await change(alice);
  const { decision, voiceprintResults } = await check.finish();
  expect(decision).not.toBe(Decision.AUTHENTIC);
  expect(voiceprintResults.map(({ gkVoiceprintProfileId }) => gkVoiceprintProfileId!.value)).toEqual([
    bob.value,
    mallory.value,
  ]);
  const [recorded] = await world.store.sessions.checks("bank", context.gkSessionId.value);
  expect(recorded!.matchedProfileIds).toEqual([]);
});

test("applies only to persons, and must be GIVEN or WITHDRAWN", async () => {
  const mallory = await world.fraudster("mallory");
  expect(await refusal(set(mallory, ConsentState.GIVEN))).toMatchObject({
    code: "INVALID_REQUEST",
    fields: ["gk_voiceprint_profile_id wrong_kind"],
  });
  expect(await refusal(set(alice, ConsentState.UNSPECIFIED))).toMatchObject({ code: "INVALID_REQUEST" });
  expect(await refusal(set(alice, 7 as ConsentState))).toMatchObject({
    code: "INVALID_REQUEST",
    fields: ["state out_of_range"],
  });
});

test("is part of an export, and an imported print keeps it: withdrawn stays withdrawn", async () => {
  const { processor, context } = world;
  await set(alice, ConsentState.WITHDRAWN, "letter 3");
  const { profile } = await processor.exportVoiceprintProfile({ context, gkVoiceprintProfileId: alice });
  const consent = { state: ConsentState.WITHDRAWN, reference: "letter 3" };
  const imported = await processor.importVoiceprintProfile({ context, profile, ownerId: "alice elsewhere" });
  const listed = async (ownerId: string) =>
    (await processor.listVoiceprintProfiles({ context, ownerId })).profiles[0]!.consent;
  expect(await listed("alice elsewhere")).toMatchObject(consent);
  const verified = () => world.verify(imported.gkVoiceprintProfileId!, take(1, 4));
  expect(await verified()).toMatchObject({ decision: Decision.FAILED, reason: DecisionReason.NO_SCORES });
  await set(imported.gkVoiceprintProfileId!, ConsentState.GIVEN);
  expect((await verified()).decision).toBe(Decision.AUTHENTIC);
});

test("recorded here before an import is kept, whatever the export says", async () => {
  const { processor, context } = world;
  await set(alice, ConsentState.GIVEN);
  const { profile } = await processor.exportVoiceprintProfile({ context, gkVoiceprintProfileId: alice });
  const empty = await world.person("alice elsewhere");
  await set(empty, ConsentState.GIVEN, "letter 4");
  const { gkVoiceprintProfileId } = await processor.importVoiceprintProfile({
    context,
    profile,
    ownerId: "alice elsewhere",
  });
  const imported = await world.store.profiles.get("bank", gkVoiceprintProfileId!.value);
  expect(imported!.consent).toMatchObject({ state: "given", reference: "letter 4" });
});

test("of an erased person leaves the result of a status job within a week", async () => {
  const { processor, context, store, clock } = world;
  await set(alice, ConsentState.GIVEN, "form 4");
  await processor.workOnJobs();
  const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context });
  const job = () => store.jobs.get(context.gkScopeId!.value, gkJobId!.value);
  await expect.poll(async () => JSON.stringify((await job())?.result)).toContain("form 4");
  await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: alice });
  expect(await processor.expire()).toMatchObject({ jobs: 0 });
  clock.at += 7 * 86_400_000 + 1;
  expect(await processor.expire()).toMatchObject({ jobs: 1 });
  expect(await refusal(processor.getVoiceprintProfilesStatusJob({ context, gkJobId: gkJobId! }))).toMatchObject({
    code: "NOT_FOUND",
  });
});
