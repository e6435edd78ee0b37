/** Two real models side by side: prints of one are scored by it until they have moved, while new prints of the scope use the other. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openEngine } from "../../dist/engine/index.js";
import { readRecording } from "../../src/audio/index.js";
import {
  Decision,
  RetrainingOutcome,
  VoiceprintProfilesStatusJobState as State,
  TrainStatus,
} from "../../src/contract/index.js";
import type { Engine } from "../../src/engine/port.js";
import { accurateModel, shippedModel } from "../../src/engine/shipped-model.js";
import type { SealedStore } from "../../src/postgres.js";
import type { Models } from "../../src/processor/models.js";
import { VoiceprintsProcessor } from "../../src/processor/voiceprints-processor.js";
import { openTemporaryStore } from "../store/empty-database.js";
import { speak, wav } from "../voice.js";
import { list } from "./world.js";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const rateHz = 8_000;
const [alice, bob, carol, mallory] = [3, 20, 30, 31];
const modelFile = (name: string) => new URL(`../../models/${name}`, import.meta.url);
type Id = { value: string };

let store: SealedStore;
let first: Engine;
let second: Engine;
let old: VoiceprintsProcessor;
/** The same store after the scope `bank` has changed to the second model; `shop` still has the first. */
let switched: VoiceprintsProcessor;
const profiles = new Map<number, Id>();
const people = () => [alice, bob, carol].map((speaker) => profiles.get(speaker)!);
const opened: string[] = [];

const both: Models = {
  of: (scope) => (scope === "shop" ? first : second),
  has: (revision) => [first, second].some(({ model }) => model.revision === revision),
  async open(revision) {
    opened.push(revision);
    return [first, second].find(({ model }) => model.revision === revision)!;
  },
};

async function session(processor: VoiceprintsProcessor, scope = "bank") {
  const context = { gkScopeId: { value: scope } };
  const { gkSessionId, gkEngagementId } = await processor.startSession({ context });
  return {
    ...context,
    gkSessionId: gkSessionId!,
    gkEngagementId: gkEngagementId!,
    configsetId: "ivr-text-dependent",
  };
}
type Context = Awaited<ReturnType<typeof session>>;

const saying = (speaker: number, seed: number, seconds = 4) => speak({ speaker, seconds, rateHz, seed });

async function heard(processor: VoiceprintsProcessor, context: Context, speaker: number, seed: number) {
  const chunk = wav(saying(speaker, seed), rateHz);
  const { gkMediaSegmentId } = await processor.addMediaSegment({ context, chunk });
  return { case: "gkMediaSegmentId", value: gkMediaSegmentId! } as const;
}

async function enrolled(processor: VoiceprintsProcessor, context: Context, speaker: number, owner: string) {
  const kind = owner === "mallory" ? "fraudsterId" : "personId";
  const { gkVoiceprintProfileId: profile } = await processor.createVoiceprintProfile({
    context,
    owner: { case: kind, value: owner },
  });
  for (const seed of [1, 2, 3]) {
    const input = await heard(processor, context, speaker, seed);
    const { result } = await processor.processAudio({ context, input, isForEnrollment: true });
    const gkProcessedAudioId = result!.gkProcessedAudioId!;
    await processor.enroll({ context, gkVoiceprintProfileId: profile!, gkProcessedAudioId });
  }
  const { result } = await processor.train({ context, gkVoiceprintProfileId: profile! });
  expect(result!.trainStatus).toBe(TrainStatus.TRAINED);
  return profile!;
}

/** A call in its own session. */
async function call(processor: VoiceprintsProcessor, profile: Id, speaker: number, seed: number) {
  const context = await session(processor);
  const audio = await heard(processor, context, speaker, seed);
  const { result } = await processor.verify({ context, audio, gkVoiceprintProfileId: profile });
  await processor.stopSession({ context });
  return result!;
}

const stored = async (profile: Id) => (await store.profiles.get("bank", profile.value))!;
const revisionOf = async (profile: Id) => (await stored(profile)).template!.revision;

beforeAll(async () => {
  [store, first, second] = await Promise.all([
    openTemporaryStore(),
    openEngine({ workers: 0, model: modelFile(shippedModel) }),
    openEngine({ workers: 0, model: modelFile(accurateModel) }),
  ]);
  const parts = { store, readRecording, retention: { audioSeconds: 0 } };
  old = new VoiceprintsProcessor({ engine: first, ...parts });
  switched = new VoiceprintsProcessor({ engine: second, models: both, ...parts });
  // The audio of everybody but Carol is deleted with their session.
  const gone = await session(old);
  for (const [speaker, name] of [
    [alice, "alice"],
    [bob, "bob"],
    [mallory, "mallory"],
  ] as const)
    profiles.set(speaker, await enrolled(old, gone, speaker, name));
  await old.stopSession({ context: gone });
  profiles.set(carol, await enrolled(old, await session(old), carol, "carol"));
});
afterAll(async () => {
  for (const one of [old, switched, store, first, second]) await one?.close();
});

test("checks find the same people with the same scores after the scope's model changed", async () => {
  const checks = async (processor: VoiceprintsProcessor) => {
    const context = await session(processor);
    const audio = await heard(processor, context, bob, 5);
    const verified = await processor.verify({ context, audio, gkVoiceprintProfileId: profiles.get(bob)! });
    const refused = await processor.verify({ context, audio, gkVoiceprintProfileId: profiles.get(alice)! });
    const target = { case: "gkVoiceprintProfileIds", value: list(...people()) } as const;
    const identified = await processor.identify({ context, audio, target });
    const watched = { case: "gkVoiceprintProfileIds", value: list(profiles.get(mallory)!) } as const;
    const clean = await processor.detectKnownFraudsters({ context, audio, target: watched });
    const fraudster = await heard(processor, context, mallory, 5);
    const caught = await processor.detectKnownFraudsters({ context, audio: fraudster, target: watched });
    return {
      verified: [verified.result!.decision, verified.result!.authenticationScore!.biometricScore],
      by: verified.result!.gkCalibrationModelRevisionId!.value,
      refused: [refused.result!.decision, refused.result!.authenticationScore!.biometricScore],
      identified: [identified.result!.decision, identified.result!.voiceprintDetails!.gkVoiceprintProfileId!.value],
      scores: identified.result!.voiceprintResults.map(({ score }) => score.value!.biometricScore),
      clean: clean.result!.decision,
      caught: caught.result!.decision,
    };
  };
  const before = await checks(old);
  expect(before.verified[0]).toBe(Decision.AUTHENTIC);
  expect(before.refused[0]).not.toBe(Decision.AUTHENTIC);
  expect(before.identified).toEqual([Decision.AUTHENTIC, profiles.get(bob)!.value]);
  expect([before.clean, before.caught]).toEqual([Decision.NO_RISK_DETECTED, Decision.FRAUD]);
  expect(await checks(switched)).toEqual(before);
  expect(before.by).toBe(first.model.revision);
});

test("a live call in chunks of any size gets the same result as before, also at its checkpoints", async () => {
  // Rounded to 16 bits, as in a recording.
  const [samples] = [...readRecording(wav(saying(carol, 6), rateHz)).read(1)] as [Float32Array];
  const gkVoiceprintProfileIds = list(profiles.get(carol)!);
  const answers = [];
  for (const [processor, pieces] of [
    [old, 1600],
    [switched, 777],
  ] as const) {
    const live = await processor.openLiveAnalysis({
      context: await session(processor),
      gkVoiceprintProfileIds,
      rateHz,
    });
    let answer = null;
    for (let at = 0; at < samples.length && !answer; at += pieces)
      answer = (await live.push(samples.slice(at, at + pieces))).result;
    const { decision, authenticationResult } = answer ?? (await live.finish());
    answers.push([decision, authenticationResult!.authenticationScore!.biometricScore]);
  }
  expect(answers[1]).toEqual(answers[0]);
});

test("clearly matching calls move a print, one segment per call; other calls do not", async () => {
  const profile = profiles.get(alice)!;
  const ofSecond = async () =>
    (await store.profiles.segments("bank", profile.value)).filter(
      ({ processed }) => processed.revision === second.model.revision,
    ).length;
  expect((await call(switched, profile, bob, 10)).decision).not.toBe(Decision.AUTHENTIC);
  expect(await ofSecond()).toBe(0);
  const context = await session(switched);
  for (const seed of [11, 12]) {
    const audio = await heard(switched, context, alice, seed);
    const { result } = await switched.verify({ context, audio, gkVoiceprintProfileId: profile });
    expect(result!.decision).toBe(Decision.AUTHENTIC);
  }
  expect(await ofSecond()).toBe(1);
  await call(switched, profile, alice, 13);
  expect([await ofSecond(), await revisionOf(profile)]).toEqual([2, first.model.revision]);
  expect(await switched.isOfScopesModel("bank", profile.value)).toBe(false);
  await call(switched, profile, alice, 14);
  expect(await revisionOf(profile)).toBe(second.model.revision);
  expect(await switched.isOfScopesModel("bank", profile.value)).toBe(true);
  const { printVersion, template } = await stored(profile);
  expect([printVersion, template!.calibrationModelId]).toEqual([2, second.model.calibrationModelId]);
  // It contains nothing of the first model any more.
  expect(await store.profiles.segments("bank", profile.value)).toHaveLength(3);
  opened.length = 0;
  const moved = await call(switched, profile, alice, 15);
  expect(moved.decision).toBe(Decision.AUTHENTIC);
  expect(moved.gkCalibrationModelRevisionId!.value).toBe(second.model.revision);
  // Only the second network is used.
  expect(opened).not.toContain(first.model.revision);
  expect((await call(switched, profile, bob, 15)).decision).not.toBe(Decision.AUTHENTIC);
});

test("a migration previews its result, moves prints whose audio was kept, and reports correct counts", async () => {
  await switched.workOnJobs();
  const context = { gkScopeId: { value: "bank" }, configsetId: "ivr-text-dependent" };
  const migrate = async (dryRun: boolean) => {
    const { gkJobId } = await switched.startVoiceprintProfilesRetrainingJob({ context, dryRun });
    const read = () => switched.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
    await expect.poll(async () => (await read()).state, { timeout: 120_000 }).toBe(State.COMPLETED);
    const found = new Map(
      (await read()).profiles.map((one) => [one.gkVoiceprintProfileId!.value, RetrainingOutcome[one.outcome]]),
    );
    return [alice, bob, carol, mallory].map((speaker) => found.get(profiles.get(speaker)!.value));
  };
  const outcomes = ["NOT_NEEDED", "WAITING_FOR_CALLS", "RETRAINED", "ENROLLMENT_NEEDED"];
  expect(await migrate(true)).toEqual(outcomes);
  expect(await revisionOf(profiles.get(carol)!)).toBe(first.model.revision);
  expect(await migrate(false)).toEqual(outcomes);
  expect(await revisionOf(profiles.get(carol)!)).toBe(second.model.revision);
  expect((await call(switched, profiles.get(carol)!, carol, 20)).decision).toBe(Decision.AUTHENTIC);
  expect(await switched.printsByModel("bank")).toEqual([
    {
      revision: second.model.revision,
      calibrationModelId: second.model.calibrationModelId,
      persons: 2,
      fraudsters: 0,
      isOfNewPrints: true,
      isScored: true,
    },
    {
      revision: first.model.revision,
      calibrationModelId: first.model.calibrationModelId,
      persons: 1,
      fraudsters: 1,
      isOfNewPrints: false,
      isScored: true,
    },
  ]);
  // Compares prints of both models at once.
  const inCall = await session(switched);
  for (const speaker of [bob, carol]) {
    const audio = await heard(switched, inCall, speaker, 21);
    const target = { case: "gkVoiceprintProfileIds", value: list(...people()) } as const;
    const { result } = await switched.identify({ context: inCall, audio, target });
    expect(result!.decision).toBe(Decision.AUTHENTIC);
    expect(result!.voiceprintDetails!.gkVoiceprintProfileId).toEqual(profiles.get(speaker));
    expect(result!.voiceprintResults).toHaveLength(3);
  }
});

test("a scope with another model uses it for new prints, and sees nothing of this scope", async () => {
  const context = await session(switched, "shop");
  const profile = await enrolled(switched, context, alice, "alice");
  expect((await store.profiles.get("shop", profile.value))!.template!.revision).toBe(first.model.revision);
  expect((await switched.printsByModel("shop")).map(({ persons }) => persons)).toEqual([1]);
});

test("erasing a print that is moving deletes the segments of both models", async () => {
  // Two of his calls have matched by now.
  const profile = profiles.get(bob)!;
  const revisions = (await store.profiles.segments("bank", profile.value)).map(({ processed }) => processed.revision);
  expect(new Set(revisions)).toEqual(new Set([first.model.revision, second.model.revision]));
  const context = { gkScopeId: { value: "bank" } };
  await switched.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: profile });
  expect(await store.profiles.segments("bank", profile.value)).toEqual([]);
  expect((await switched.printsByModel("bank")).map(({ persons }) => persons)).toEqual([2, 0]);
});
