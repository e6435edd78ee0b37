/** A scope that has changed to another model: prints of the old model are scored by it until they have moved. */
import { expect, test, vi } from "vitest";
import {
  ConsentState,
  Decision,
  DecisionReason,
  RetrainingOutcome,
  VoiceprintProfilesStatusJobState as State,
  VoiceprintProfileStatus,
} from "../../src/contract/index.js";
import { EngineError } from "../../src/engine/engine-error.js";
import { joined, rateHz, silence, take } from "./fixture-engine.js";
import { list, openTwoModels } from "./world.js";

type World = Awaited<ReturnType<typeof openTwoModels>>;

const stored = async ({ store }: World, profile: { value: string }) =>
  (await store.profiles.get("bank", profile.value))!;

const identify = async (world: World, samples: Float32Array, ...profiles: { value: string }[]) => {
  const target = { case: "gkVoiceprintProfileIds", value: list(...profiles) } as const;
  const { processor, context } = world;
  return (await processor.identify({ context, audio: await world.heard(samples), target })).result!;
};

test("a print of the old model is found, with the audio up to the checkpoint, and the answer names its model", async () => {
  const world = await openTwoModels();
  const profile = await world.trained(7);
  world.change();
  const spoken: number[] = [];
  const { score } = world.old.behavior;
  world.old.behavior.score = (raw, template, probe) => {
    spoken.push(probe.netSpeechSeconds);
    return score(raw, template, probe);
  };
  const found = await world.verify(profile, joined(silence(0.3), take(7, 20)));
  expect(found.decision).toBe(Decision.AUTHENTIC);
  expect(found.gkCalibrationModelRevisionId!.value).toBe(world.old.model.revision);
  expect(found.calibrationModelDetails).toBeUndefined();
  expect(world.engine.behavior.heardSeconds.at(-1)).toBe(2.3);
  expect(new Set(spoken)).toEqual(new Set([2]));
  expect((await world.verify(profile, take(9, 20))).decision).toBe(Decision.NO_MATCH);
  // Both models have read all of it.
  expect([world.old, world.engine].map(({ behavior }) => behavior.heardSeconds.at(-1))).toEqual([20, 20]);
  const whole = await world.verify(profile, take(7, 4), { ignoreCheckpoints: true });
  expect(whole.decision).toBe(Decision.AUTHENTIC);
});

test("prints of both models are compared in one call; only calls about prints of the new one are counted", async () => {
  const world = await openTwoModels();
  const before = [await world.trained(7), await world.trained(9)];
  world.change();
  const after = [await world.trained(11), await world.trained(13)];
  const counted = async () => (await world.processor.fieldRates())[3]!.comparisons;
  for (const [speaker, profile] of [
    [7, before[0]!],
    [11, after[0]!],
  ] as const) {
    const result = await identify(world, take(speaker, 4), ...before, ...after);
    expect(result).toMatchObject({
      decision: Decision.AUTHENTIC,
      voiceprintDetails: { gkVoiceprintProfileId: profile },
    });
    expect(result.voiceprintResults).toHaveLength(4);
  }
  expect(await counted()).toBe(0);
  world.opened.length = 0;
  await identify(world, take(21, 4), ...after);
  expect(await counted()).toBe(2);
  expect(world.opened).not.toContain(world.old.model.revision);
});

test("audio that only the new model has processed is processed again for a print of the old one", async () => {
  const world = await openTwoModels();
  const profile = await world.trained(7);
  world.change();
  const { gkProcessedAudioId } = await world.process(take(7, 4), false);
  const { result } = await world.processor.verify({
    context: world.context,
    audio: { case: "gkProcessedAudioId", value: gkProcessedAudioId! },
    gkVoiceprintProfileId: profile,
  });
  expect(result!.decision).toBe(Decision.AUTHENTIC);
  expect(result!.gkProcessedAudioId!.value).not.toBe(gkProcessedAudioId!.value);
});

test("separated voices are compared with prints of the scope's model only", async () => {
  const world = await openTwoModels();
  const profile = await world.trained(7);
  world.change();
  const { result } = await world.processor.verify({
    context: world.context,
    audio: await world.heard(joined(take(9, 2), take(7, 3))),
    gkVoiceprintProfileId: profile,
    channelSelector: { voiceSeparation: {} },
  });
  expect(result).toMatchObject({ decision: Decision.FAILED, reason: DecisionReason.NO_SCORES });
});

test("an agent whose print is of the old model must be enrolled again before voices can be separated", async () => {
  const world = await openTwoModels();
  const [agent, profile] = [await world.trained(9), await world.trained(7)];
  world.change();
  const call = world.processor.verify({
    context: world.context,
    audio: await world.heard(joined(take(9, 2), take(7, 3))),
    gkVoiceprintProfileId: profile,
    channelSelector: { voiceSeparation: { gkAgentVoiceprintProfileId: agent } },
  });
  await expect(call).rejects.toThrow("was not made by the current model; train it first");
});

test("if one model cannot listen, the check fails and the others stop listening", async () => {
  const world = await openTwoModels();
  const profile = await world.trained(7);
  world.change();
  let open = 0;
  const { stream } = world.old;
  world.old.stream = async (...given) => {
    open++;
    const opened = await stream(...given);
    return {
      ...opened,
      close: async () => {
        open--;
      },
    };
  };
  world.engine.stream = () => Promise.reject(new Error("out of order"));
  expect(await world.verify(profile, take(7, 4))).toMatchObject({
    decision: Decision.FAILED,
    reason: DecisionReason.INTERNAL_ERROR,
  });
  expect(open).toBe(0);
});

test("three clearly matching calls, each in its own session, move a print; later calls use the new model alone", async () => {
  const world = await openTwoModels();
  const profile = await world.trained(7);
  world.change();
  const call = async (speaker: number, seconds: number, context: World["context"]) =>
    (await world.verify(profile, take(speaker, seconds), { context, ignoreCheckpoints: true })).decision;
  const moved = async () => (await stored(world, profile)).template!.revision === world.engine.model.revision;
  expect(await call(9, 4, await world.open())).toBe(Decision.NO_MATCH);
  const first = await world.open();
  for (const seconds of [4, 4.1, 4.2]) expect(await call(7, seconds, first)).toBe(Decision.AUTHENTIC);
  await call(7, 4.3, await world.open());
  expect(await moved()).toBe(false);
  expect(await world.store.profiles.segments("bank", profile.value)).toHaveLength(5);
  await call(7, 4.4, await world.open());
  expect(await moved()).toBe(true);
  const { printVersion, status, template } = await stored(world, profile);
  expect([printVersion, status]).toEqual([2, VoiceprintProfileStatus.OPTIMAL_TRAINED]);
  expect(template!.netSpeechSeconds).toBeCloseTo(4 + 4.3 + 4.4, 3);
  // Nothing of the old model is left.
  expect(await world.store.profiles.segments("bank", profile.value)).toHaveLength(3);
  world.opened.length = 0;
  expect(await call(7, 4.5, await world.open())).toBe(Decision.AUTHENTIC);
  expect(world.opened).not.toContain(world.old.model.revision);
  expect((await stored(world, profile)).printVersion).toBe(2);
});

test("a call that disagrees with the others is not part of the moved print", async () => {
  const world = await openTwoModels();
  const profile = await world.trained(7);
  world.change();
  const { score } = world.old.behavior;
  const call = async (speaker: number, seconds: number) => {
    const context = await world.open();
    return world.verify(profile, take(speaker, seconds), { context, ignoreCheckpoints: true });
  };
  world.old.behavior.score = (raw) => ({ raw, llr: 20, reliability: 1 });
  expect((await call(9, 4)).decision).toBe(Decision.AUTHENTIC);
  world.old.behavior.score = score;
  for (const seconds of [4.1, 4.2, 4.3]) await call(7, seconds);
  const { template } = await stored(world, profile);
  expect(template!.revision).toBe(world.engine.model.revision);
  expect(template!.netSpeechSeconds).toBeCloseTo(4.1 + 4.2 + 4.3, 3);
  expect((await call(9, 4.4)).decision).toBe(Decision.NO_MATCH);
});

test("a live call moves a print too", async () => {
  const world = await openTwoModels();
  const profile = await world.trained(7);
  world.change();
  for (const seconds of [4, 4.1, 4.2]) {
    const context = await world.open();
    const check = await world.processor.openLiveAnalysis({
      context,
      gkVoiceprintProfileIds: list(profile),
      ignoreCheckpoints: true,
      rateHz,
    });
    await check.push(take(7, seconds));
    expect((await check.finish()).decision).toBe(Decision.AUTHENTIC);
  }
  expect((await stored(world, profile)).template!.revision).toBe(world.engine.model.revision);
});

test("a retraining previews and does the same: each profile moves, waits for calls, must enroll again, or stays", async () => {
  const world = await openTwoModels();
  const { processor, context, store } = world;
  const kept = await world.open();
  const gone = await world.open();
  const [again, waiting] = [await world.trained(7, "person", "", kept), await world.trained(9, "person", "", gone)];
  const fraudster = await world.trained(11, "fraudster", "", gone);
  const withdrawn = await world.trained(13, "person", "", kept);
  const untrained = await world.person("nobody");
  await processor.stopSession({ context: gone });
  world.change();
  const fresh = await world.trained(15);
  await processor.workOnJobs();
  const migrate = async (dryRun: boolean) => {
    const { gkJobId } = await processor.startVoiceprintProfilesRetrainingJob({ context, dryRun });
    const read = () => processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
    await expect.poll(async () => (await read()).state, { timeout: 60_000 }).toBe(State.COMPLETED);
    const found = new Map((await read()).profiles.map((one) => [one.gkVoiceprintProfileId!.value, one]));
    return [again, waiting, fraudster, fresh, untrained, withdrawn].map(({ value }) => {
      const { outcome, printVersion } = found.get(value)!;
      return [RetrainingOutcome[outcome], printVersion];
    });
  };
  const others = [
    ["WAITING_FOR_CALLS", 1],
    ["ENROLLMENT_NEEDED", 1],
    ["NOT_NEEDED", 1],
    ["NOT_NEEDED", undefined],
  ];
  expect(await migrate(true)).toEqual([["RETRAINED", 1], ...others, ["RETRAINED", 1]]);
  expect((await stored(world, again)).template!.revision).toBe(world.old.model.revision);
  const consent = { context, gkVoiceprintProfileId: withdrawn, state: ConsentState.WITHDRAWN };
  await processor.setVoiceprintProfileConsent(consent);
  expect(await migrate(false)).toEqual([["RETRAINED", 2], ...others, ["NOT_NEEDED", 1]]);
  const { template, status } = await stored(world, again);
  expect(template!.revision).toBe(world.engine.model.revision);
  expect(status).toBe(VoiceprintProfileStatus.OPTIMAL_TRAINED);
  const segments = await store.profiles.segments("bank", again.value);
  expect(segments.map(({ processed }) => processed.revision)).toEqual(Array(3).fill(world.engine.model.revision));
  expect((await world.verify(again, take(7, 4))).gkCalibrationModelRevisionId!.value).toBe(world.engine.model.revision);
  expect((await stored(world, withdrawn)).template!.revision).toBe(world.old.model.revision);
  await store.close();
});

test("a retraining without enough kept audio leaves the print as it is", async () => {
  const world = await openTwoModels();
  const { processor, context, store } = world;
  const profile = await world.trained(7);
  world.change();
  const [, ...lost] = await store.profiles.segments("bank", profile.value);
  const { get } = store.media;
  store.media.get = async (scope, id) =>
    lost.some(({ processed }) => processed.mediaSegmentId === id) ? null : get(scope, id);
  await processor.workOnJobs();
  for (const dryRun of [true, false]) {
    const { gkJobId } = await processor.startVoiceprintProfilesRetrainingJob({ context, dryRun });
    const read = () => processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
    await expect.poll(async () => (await read()).state, { timeout: 60_000 }).toBe(State.COMPLETED);
    expect((await read()).profiles).toMatchObject([{ outcome: RetrainingOutcome.WAITING_FOR_CALLS, printVersion: 1 }]);
  }
  expect(await store.profiles.segments("bank", profile.value)).toHaveLength(3);
  await store.close();
});

test("a retraining fails if its configuration set is gone, and if the engine cannot train", async () => {
  const world = await openTwoModels({ configurationSets: { mine: {} } });
  const { processor, context, store } = world;
  await world.trained(7);
  world.change();
  const start = async (configsetId: string) => {
    const { gkJobId } = await processor.startVoiceprintProfilesRetrainingJob({ context: { ...context, configsetId } });
    return () => processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
  };
  const doomed = await start("mine");
  const { get } = processor.configurationSets;
  vi.spyOn(processor.configurationSets, "get").mockImplementation(function (
    this: typeof processor.configurationSets,
    id,
  ) {
    return id === "mine" ? undefined : get.call(processor.configurationSets, id);
  });
  world.engine.behavior.before = (operation) => {
    if (operation === "train") throw new Error("out of order");
  };
  const failing = await start(context.configsetId);
  await processor.workOnJobs();
  await expect.poll(async () => (await doomed()).state, { timeout: 60_000 }).toBe(State.FAILED);
  await expect.poll(async () => (await failing()).state, { timeout: 60_000 }).toBe(State.COMPLETED);
  expect((await failing()).profiles).toMatchObject([{ outcome: RetrainingOutcome.FAILED, printVersion: 1 }]);
  await store.close();
});

test("a retraining during which the engine is closed, because the box stops, goes on later", async () => {
  const world = await openTwoModels();
  const { processor, context, store } = world;
  await world.trained(7);
  world.change();
  const stopped: string[] = [];
  world.engine.behavior.before = (operation) => {
    if (stopped.includes(operation)) return;
    stopped.push(operation);
    throw new EngineError("CLOSED", "the engine is closed");
  };
  await processor.workOnJobs();
  const { gkJobId } = await processor.startVoiceprintProfilesRetrainingJob({ context });
  const read = () => processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
  await expect.poll(async () => (await read()).state, { timeout: 60_000 }).toBe(State.COMPLETED);
  expect((await read()).profiles).toMatchObject([{ outcome: RetrainingOutcome.RETRAINED, printVersion: 2 }]);
  expect(stopped).toEqual(["analyze", "train"]);
  await store.close();
});

test("prints are counted by model, also those whose model is not installed", async () => {
  const world = await openTwoModels();
  await world.trained(7);
  await world.trained(9, "fraudster");
  world.old.behavior.revision = "d".repeat(64);
  world.change();
  const fresh = await world.trained(11);
  const { calibrationModelId } = world.engine.model;
  expect(await world.processor.printsByModel("bank")).toEqual([
    { revision: "c".repeat(64), calibrationModelId, persons: 1, fraudsters: 0, isOfNewPrints: true, isScored: true },
    { revision: "a".repeat(64), calibrationModelId, persons: 1, fraudsters: 1, isOfNewPrints: false, isScored: false },
  ]);
  await world.processor.deleteVoiceprintProfile({ context: world.context, gkVoiceprintProfileId: fresh });
  expect((await world.processor.printsByModel("bank")).map(({ persons }) => persons)).toEqual([0, 1]);
});
