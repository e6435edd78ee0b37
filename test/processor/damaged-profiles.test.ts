/** Profiles whose stored bytes were altered, or whose keys are lost: the others can be listed and used, and they can be erased by their names. */
import "fake-indexeddb/auto";
import { openDB } from "idb";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  RetrainingOutcome,
  VoiceprintProfilesStatusJobState as State,
  VoiceprintProfileStatus as Status,
} from "../../src/contract/index.js";
import { openDatabase } from "../../src/store/indexeddb/database.js";
import { openIndexedDbStore } from "../../src/store/indexeddb/store.js";
import type { Store } from "../../src/store/port.js";
import { Voiceprints } from "../../src/voiceprints.js";
import { take } from "./fixture-engine.js";
import { list, openWorld, scopeA, type World } from "./world.js";

let store: Store;
let world: World;
let healthy: { value: string };
let damaged: { value: string };
let keyless: { value: string };
let session: World["context"];
let group: { value: string };
beforeAll(async () => {
  store = await openIndexedDbStore("damaged");
  world = await openWorld({ store });
  healthy = await world.trained(7);
  damaged = await world.trained(9);
  keyless = await world.trained(11);
  const { processor, context } = world;
  group = (await processor.createGroup({ context, gkVoiceprintProfileIds: list(damaged) })).gkGroupId!;
  session = await world.open();
  await world.verify(damaged, take(9, 4), { context: session });
  const database = await openDatabase("damaged");
  const row = (await database.get("profiles", [scopeA, damaged.value]))!;
  await database.put("profiles", { ...row, sealed: row.sealed!.map((byte, i) => (i === 60 ? byte ^ 1 : byte)) });
  const { keyId } = (await database.get("profiles", [scopeA, keyless.value]))!;
  database.close();
  const keys = await openDB("damaged-keys");
  await keys.delete("keys", [scopeA, keyId]);
  keys.close();
  await store.close();
  store = await openIndexedDbStore("damaged");
  // The caches of the first processor still have the print.
  world = await openWorld({ store });
});
afterAll(() => store.close());

const isDamaged = { name: "SealError", code: "damaged" };

test("is listed as such, among the others", async () => {
  const { processor, context } = world;
  const statuses = async (ownerId: string) =>
    (await processor.listVoiceprintProfiles({ context, ownerId })).profiles.map((one) => [one.ownerId, one.status]);
  const all = [
    ["person-7", Status.OPTIMAL_TRAINED],
    ["person-9", Status.UNSPECIFIED],
    ["person-11", Status.UNSPECIFIED],
  ];
  expect(await statuses("")).toEqual(all);
  expect(await statuses("person-9")).toEqual(all.slice(1, 2));
  const voices = new Voiceprints(processor, { scope: scopeA, configset: context.configsetId });
  expect(await voices.people()).toEqual(["person-11", "person-7", "person-9"]);
  await expect(store.profiles.get(scopeA, damaged.value)).rejects.toMatchObject(isDamaged);
});

test("is not compared: the answer is about the others, and its status names what was left out", async () => {
  const { processor, context } = world;
  const message = `prints that cannot be opened were not compared (2); restore or delete them: ${damaged.value}, ${keyless.value}`;
  const audio = await world.heard(take(7, 4));
  const all = list(healthy, damaged, keyless);
  const { result, status } = await processor.identify({
    context,
    audio,
    target: { case: "gkVoiceprintProfileIds", value: all },
  });
  expect(result).toMatchObject({ voiceprintResults: [{ gkVoiceprintProfileId: healthy }] });
  expect(status).toMatchObject({ message });
  const analyzed = await processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: all });
  expect(analyzed.status).toMatchObject({ message });
  expect(analyzed.result!.authenticationResult).toMatchObject({ numberOfPersonsPrints: 1 });
  const task = { case: "identify", value: { target: { case: "gkVoiceprintProfileIds", value: all } } } as const;
  const start = { context, encoding: "pcm16", rate: 16_000, parties: [{ name: "caller", task }] };
  async function* requests() {
    yield { content: { case: "start", value: start } } as const;
  }
  for await (const response of processor.listen(requests())) {
    expect(response).toMatchObject({ event: { case: "started" }, status: { message } });
    break;
  }
});

test("is an error where there is nobody else to compare with", async () => {
  const { processor, context } = world;
  const target = { case: "group", value: { uniqueId: group } } as const;
  const audio = await world.heard(take(9, 4));
  await expect(processor.identify({ context, audio, target })).rejects.toThrow(
    `the sealed template ${damaged.value} was altered or moved; restore it from a backup`,
  );
});

test("is left out of a large group too, until it is restored", async () => {
  const { processor, context } = world;
  const many = await Promise.all(Array.from({ length: 257 }, (_, i) => world.person(`untrained-${i}`)));
  const { gkGroupId } = await processor.createGroup({
    context,
    gkVoiceprintProfileIds: list(healthy, damaged, keyless, ...many),
  });
  const audio = await world.heard(take(9, 4));
  const identified = async () => {
    const target = { case: "group", value: { uniqueId: gkGroupId! } } as const;
    const { result, status } = await processor.identify({ context, audio, target });
    return [result!.voiceprintResults.length, status!.message.match(/compared .(\d+)/)?.[1]];
  };
  expect(await identified()).toEqual([1, "2"]);
  const database = await openDatabase("damaged");
  const row = (await database.get("profiles", [scopeA, damaged.value]))!;
  const flipped = { ...row, sealed: row.sealed!.map((byte, i) => (i === 60 ? byte ^ 1 : byte)) };
  await database.put("profiles", flipped);
  expect(await identified()).toEqual([2, "1"]);
  await database.put("profiles", row);
  database.close();
  await processor.deleteGroup({ context, gkGroupId: gkGroupId! });
  for (const gkVoiceprintProfileId of many) await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId });
});

test("does not keep sessions from being decided, or jobs from processing the others", async () => {
  const { processor, context } = world;
  const { result } = await processor.getSessionDecision({ context: session });
  expect(result).toMatchObject({ personId: "person-9", matchedPersonId: "person-9" });
  await processor.workOnJobs();
  const ended = async <T extends { state: State }>(ask: () => Promise<T>): Promise<T> => {
    for (;;) {
      const job = await ask();
      expect(job.state).not.toBe(State.FAILED);
      if (job.state === State.COMPLETED) return job;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context });
  const job = await ended(() => processor.getVoiceprintProfilesStatusJob({ context, gkJobId: gkJobId! }));
  expect(job.profiles.map(({ status }) => status)).toEqual([
    Status.OPTIMAL_TRAINED,
    Status.UNSPECIFIED,
    Status.UNSPECIFIED,
  ]);
  const retraining = await processor.startVoiceprintProfilesRetrainingJob({ context });
  const done = await ended(() =>
    processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: retraining.gkJobId! }),
  );
  expect(done.profiles.map(({ outcome }) => outcome)).toEqual([
    RetrainingOutcome.NOT_NEEDED,
    RetrainingOutcome.FAILED,
    RetrainingOutcome.FAILED,
  ]);
});

test("can be erased by its name", async () => {
  const { processor, context } = world;
  const voices = new Voiceprints(processor, { scope: scopeA, configset: context.configsetId });
  expect(await voices.erase("person-9")).toBe(true);
  expect(await voices.erase("person-11")).toBe(true);
  expect(await voices.people()).toEqual(["person-7"]);
});
