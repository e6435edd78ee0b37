/** A model update on the real engine: prints of the shipped model under one whose network differs by a single weight. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openEngine } from "../../dist/engine/index.js";
import { readRecording } from "../../src/audio/index.js";
import {
  Decision,
  DecisionReason,
  EnrollStatus,
  RetrainingOutcome,
  VoiceprintProfilesStatusJobState as State,
} from "../../src/contract/index.js";
import type { Engine } from "../../src/engine/port.js";
import { shippedModel } from "../../src/engine/shipped-model.js";
import type { SealedStore } from "../../src/postgres.js";
import { VoiceprintsProcessor } from "../../src/processor/voiceprints-processor.js";
import { openTemporaryStore } from "../store/empty-database.js";
import { speak, wav } from "../voice.js";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const shipped = new URL(`../../models/${shippedModel}`, import.meta.url);
const rateHz = 8_000;
const [alice, bob] = [3, 8];
const scope = { gkScopeId: { value: "bank" } };
const day = 86_400;

/** The model file with one bit of one weight changed, and its digests updated. */
function updatedModel(): Uint8Array {
  const bytes = readFileSync(shipped);
  const headerBytes = bytes.readUInt32LE(12);
  const header = bytes.subarray(16, 16 + headerBytes);
  const { sections } = JSON.parse(header.toString("utf8"));
  const network = sections.find(({ name }: { name: string }) => name === "network");
  const section = bytes.subarray(network.offset, network.offset + network.bytes);
  const { tensors } = JSON.parse(section.subarray(16, 16 + section.readUInt32LE(0)).toString("utf8"));
  const weights = tensors.find(({ dtype }: { dtype: string }) => dtype === "i8");
  section[weights.offset]! ^= 1;
  const digest = createHash("sha256").update(section).digest("hex");
  header.write(header.toString("latin1").replace(network.sha256, digest), "latin1");
  const end = bytes.length - 32;
  createHash("sha256").update(bytes.subarray(0, end)).digest().copy(bytes, end);
  return bytes;
}

let store: SealedStore;
let before: Engine;
let after: Engine;

const processorOf = (engine: Engine, audioSeconds: number) =>
  new VoiceprintsProcessor({ engine, store, readRecording, retention: { audioSeconds } });

async function session(processor: VoiceprintsProcessor) {
  const { gkSessionId, gkEngagementId } = await processor.startSession({ context: scope });
  const ids = { gkSessionId: gkSessionId!, gkEngagementId: gkEngagementId! };
  return { ...scope, ...ids, configsetId: "ivr-text-dependent" };
}
type Context = Awaited<ReturnType<typeof session>>;

async function heard(processor: VoiceprintsProcessor, context: Context, speaker: number, seed: number) {
  const chunk = wav(speak({ speaker, seconds: 4, rateHz, seed }), rateHz);
  const { gkMediaSegmentId } = await processor.addMediaSegment({ context, chunk });
  return { case: "gkMediaSegmentId", value: gkMediaSegmentId! } as const;
}

async function enrolled(
  processor: VoiceprintsProcessor,
  context: Context,
  profile: { value: string },
  speaker: number,
) {
  for (const seed of [1, 2, 3]) {
    const input = await heard(processor, context, speaker, seed);
    const { result } = await processor.processAudio({ context, input, isForEnrollment: true });
    const gkProcessedAudioId = result!.gkProcessedAudioId!;
    await processor.enroll({ context, gkVoiceprintProfileId: profile, gkProcessedAudioId });
  }
  return (await processor.train({ context, gkVoiceprintProfileId: profile })).result!;
}

beforeAll(async () => {
  [store, before, after] = await Promise.all([
    openTemporaryStore(),
    openEngine({ workers: 0 }),
    openEngine({ workers: 0, model: updatedModel() }),
  ]);
});
afterAll(async () => {
  for (const opened of [store, before, after]) await opened?.close();
});

test("prints become OBSOLETE; a job retrains those whose audio was kept, the others must enroll again", async () => {
  expect(after.model.revision).not.toBe(before.model.revision);
  const old = processorOf(before, 0);
  const profiles: { value: string }[] = [];
  for (const name of ["bob", "alice"]) {
    const owner = { case: "personId", value: name } as const;
    profiles.push((await old.createVoiceprintProfile({ context: scope, owner })).gkVoiceprintProfileId!);
  }
  const [ofBob, ofAlice] = profiles as [{ value: string }, { value: string }];
  // Bob's session stops, so his audio is deleted; Alice's is kept.
  const gone = await session(old);
  expect((await enrolled(old, gone, ofBob, bob)).voiceprintDetails!.printVersion).toBe(1);
  await old.stopSession({ context: gone });
  const kept = await session(old);
  expect((await enrolled(old, kept, ofAlice, alice)).voiceprintDetails!.printVersion).toBe(1);
  const said = await heard(old, kept, alice, 4);
  const verify = (processor: VoiceprintsProcessor, context: Context, gkVoiceprintProfileId: { value: string }) =>
    processor.verify({ context, audio: said, gkVoiceprintProfileId, ignoreCheckpoints: true });
  const first = (await verify(old, kept, ofAlice)).result!;
  expect(first.authenticationScore!.biometricScore).toBeGreaterThan(0.5);

  const updated = processorOf(after, day);
  const context = await session(updated);
  for (const gkVoiceprintProfileId of profiles) {
    const unscored = (await verify(updated, context, gkVoiceprintProfileId)).result!;
    expect(unscored).toMatchObject({ decision: Decision.FAILED, reason: DecisionReason.NO_SCORES });
    expect(unscored.authenticationScore).toBeUndefined();
    const status = await updated.getEnrollStatus({ context, gkVoiceprintProfileId });
    expect(status).toMatchObject({ isTrained: false, result: EnrollStatus.TRAIN_NOT_POSSIBLE });
  }

  await updated.workOnJobs();
  const progress: number[] = [];
  const update = store.jobs.update;
  store.jobs.update = (scopeId, id, change) => {
    if (change.progress !== undefined) progress.push(change.progress);
    return update(scopeId, id, change);
  };
  const { gkJobId: status } = await updated.startVoiceprintProfilesStatusJob({ context });
  const readStatus = () => updated.getVoiceprintProfilesStatusJob({ context, gkJobId: status! });
  await expect.poll(async () => (await readStatus()).state, { timeout: 60_000 }).toBe(State.COMPLETED);
  expect((await readStatus()).profiles.map(({ isObsolete }) => isObsolete)).toEqual([true, true]);

  progress.length = 0;
  const { gkJobId } = await updated.startVoiceprintProfilesRetrainingJob({ context });
  const read = () => updated.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
  await expect.poll(async () => (await read()).state, { timeout: 120_000 }).toBe(State.COMPLETED);
  expect(progress).toEqual([0, 0.5, 1, 1]);
  const outcomes = new Map((await read()).profiles.map((one) => [one.gkVoiceprintProfileId!.value, one]));
  expect(outcomes.get(ofAlice.value)).toMatchObject({ outcome: RetrainingOutcome.RETRAINED, printVersion: 2 });
  expect(outcomes.get(ofBob.value)).toMatchObject({ outcome: RetrainingOutcome.ENROLLMENT_NEEDED, printVersion: 1 });

  const again = (await verify(updated, context, ofAlice)).result!;
  expect(again.voiceprintDetails!.printVersion).toBe(2);
  expect(again.gkCalibrationModelRevisionId!.value).toBe(after.model.revision);
  // One weight of seven million changed, so the voice is nearly the same.
  expect(
    Math.abs(again.authenticationScore!.biometricScore! - first.authenticationScore!.biometricScore!),
  ).toBeLessThan(0.05);
  expect((await verify(updated, context, ofBob)).result!.reason).toBe(DecisionReason.NO_SCORES);
  // Bob enrolls again, into the same profile.
  expect((await enrolled(updated, context, ofBob, bob)).voiceprintDetails!.printVersion).toBe(2);
  expect((await verify(updated, context, ofBob)).result!.authenticationScore).toBeDefined();
  // A box that still runs the old model does not score prints of the new one.
  expect((await verify(old, kept, ofAlice)).result!.reason).toBe(DecisionReason.NO_SCORES);
});
