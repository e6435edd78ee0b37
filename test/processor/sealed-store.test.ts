/** The operations on the SQL store, where everything biometric is sealed: both workflows, erasure, jobs. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  Decision,
  DecisionReason,
  VoiceprintProfilesStatusJobState as State,
  TrainStatus,
} from "../../src/contract/index.js";
import type { SealedStore } from "../../src/postgres.js";
import { openTemporaryStore } from "../store/empty-database.js";
import { take } from "./fixture-engine.js";
import { list, openWorld, refusal } from "./world.js";

let store: SealedStore;
beforeAll(async () => {
  store = await openTemporaryStore();
}, 120_000);
afterAll(() => store.close());

test("enroll, train, verify, identify, watch, decide, stop, erase", async () => {
  const world = await openWorld({ store });
  const { processor, context } = world;
  const [person, other] = [await world.trained(7), await world.trained(9)];
  const fraudster = await world.trained(11, "fraudster");
  // What sealing rounds is no change.
  const unchanged = await processor.train({ context, gkVoiceprintProfileId: person, onlyIfChanged: true });
  expect(unchanged.result).toMatchObject({ trainStatus: TrainStatus.TRAINED, voiceprintDetails: { printVersion: 1 } });
  expect((await world.verify(person, take(7, 4))).decision).toBe(Decision.AUTHENTIC);
  expect((await world.verify(person, take(9, 4))).decision).toBe(Decision.NO_MATCH);
  const audio = await world.heard(take(9, 4));
  const target = { case: "gkVoiceprintProfileIds", value: list(person, other) } as const;
  const found = (await processor.identify({ context, audio, target })).result!;
  expect(found.voiceprintDetails!.gkVoiceprintProfileId!.value).toBe(other.value);
  const { gkGroupId } = await processor.createWatchlist({ context, gkVoiceprintProfileIds: list(fraudster) });
  const watchlist = { case: "watchlist", value: { uniqueId: gkGroupId! } } as const;
  const heard = await world.heard(take(11, 4));
  const caught = (await processor.detectKnownFraudsters({ context, audio: heard, target: watchlist })).result!;
  expect(caught).toMatchObject({ decision: Decision.FRAUD, numberOfPrints: 1 });
  expect((await processor.getSessionDecision({ context })).result).toMatchObject({
    decision: Decision.FRAUD,
    reason: DecisionReason.FRAUDSTER_INDICATION,
  });

  await processor.workOnJobs();
  const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context });
  for (;;) {
    const job = await processor.getVoiceprintProfilesStatusJob({ context, gkJobId: gkJobId! });
    expect(job.state).not.toBe(State.FAILED);
    if (job.state !== State.COMPLETED) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      continue;
    }
    expect(job.profiles).toHaveLength(3);
    break;
  }

  await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: fraudster });
  // The recording that the print matched was deleted with it.
  const gone = processor.detectKnownFraudsters({ context, audio: heard, target: watchlist });
  expect(await refusal(gone)).toMatchObject({ code: "NOT_FOUND", fields: ["gk_media_segment_id unknown"] });
  const again = await world.heard(take(11, 4));
  const after = (await processor.detectKnownFraudsters({ context, audio: again, target: watchlist })).result!;
  expect(after).toMatchObject({ decision: Decision.FAILED, reason: DecisionReason.NO_SCORES, numberOfPrints: 0 });
  await processor.stopSession({ context });
  const next = await world.open();
  const call = processor.verify({ context: next, audio, gkVoiceprintProfileId: person });
  expect(await refusal(call)).toMatchObject({ code: "NOT_FOUND", fields: ["gk_media_segment_id unknown"] });
}, 120_000);

test("a second replica scores no print that the first has erased or retrained, though it holds it opened", async () => {
  const [one, two] = [await openWorld({ store }), await openWorld({ store })];
  const context = await one.open("ivr-text-dependent", "two replicas");
  const person = await one.trained(7, "person", "", context);
  const other = await one.trained(9, "person", "", context);
  let audio = await two.heard(take(7, 4), context);
  const verify = (gkVoiceprintProfileId: { value: string }) =>
    two.processor.verify({ context, audio, gkVoiceprintProfileId });
  const target = { case: "gkVoiceprintProfileIds", value: list(person, other) } as const;
  const version = async () => (await verify(person)).result!.voiceprintDetails!.printVersion;
  expect(await version()).toBe(1);
  await one.train(person, context);
  expect(await version()).toBe(2);
  // The other replica erases the print while the audio is processed.
  two.engine.behavior.before = (operation) => {
    if (operation === "score") throw new Error("a print was scored");
  };
  const analyze = two.engine.stream.bind(two.engine);
  two.engine.stream = async (...given) => {
    await one.processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: person });
    return analyze(...given);
  };
  const during = (await verify(person)).result!;
  expect(during).toMatchObject({ decision: Decision.FAILED, reason: DecisionReason.NO_SCORES });
  two.engine.stream = analyze;
  two.engine.behavior.before = () => {};
  // The recording that the print matched went with it.
  audio = await two.heard(take(7, 4), context);
  expect(await refusal(verify(person))).toMatchObject({
    code: "NOT_FOUND",
    fields: ["gk_voiceprint_profile_id unknown"],
  });
  const unknown = two.processor.identify({ context, audio, target });
  expect(await refusal(unknown)).toMatchObject({ fields: ["gk_voiceprint_profile_ids.unique_ids[0] unknown"] });
  // A new scope key changes nothing, neither for cached prints nor for prints that are read again.
  await store.keys.rotate("two replicas");
  expect((await verify(other)).result!.decision).toBe(Decision.NO_MATCH);
  expect(
    (await (await openWorld({ store })).processor.verify({ context, audio, gkVoiceprintProfileId: other })).result!
      .decision,
  ).toBe(Decision.NO_MATCH);
}, 120_000);

test("segments enrolled at the same time are all kept, and training at the same time loses none", async () => {
  const world = await openWorld({ store });
  const context = await world.open("ivr-text-dependent", "another bank");
  const profile = await world.person("alice", "", context);
  const takes = Array.from({ length: 8 }, (_, i) => take(7, 2 + i / 10));
  await Promise.all(takes.map((samples) => world.enroll(profile, samples, context)));
  expect(await store.profiles.segments("another bank", profile.value)).toHaveLength(8);
  const trained = await Promise.all([1, 2, 3].map(() => world.train(profile, context)));
  expect(trained.map((one) => one.voiceprintDetails!.printVersion).sort()).toEqual([1, 2, 3]);
}, 120_000);
