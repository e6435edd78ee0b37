/** A profile whose stored bytes were altered: the others can be listed and used, and it can be erased by its name. */
import "fake-indexeddb/auto";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  RetrainingOutcome,
  VoiceprintProfilesStatusJobState as State,
  VoiceprintProfileStatus as Status,
} from "../../src/contract/index.js";
import { openDatabase } from "../../src/store/indexeddb/schema.js";
import { openIndexedDbStore } from "../../src/store/indexeddb/store.js";
import type { Store } from "../../src/store/port.js";
import { Voiceprints } from "../../src/voiceprints.js";
import { take } from "./fixture-engine.js";
import { list, openWorld, scopeA, type World } from "./world.js";

let store: Store;
let world: World;
let damaged: { value: string };
let session: World["context"];
let group: { value: string };
beforeAll(async () => {
  store = await openIndexedDbStore("damaged");
  world = await openWorld({ store });
  await world.trained(7);
  damaged = await world.trained(9);
  const { processor, context } = world;
  group = (await processor.createGroup({ context, gkVoiceprintProfileIds: list(damaged) })).gkGroupId!;
  session = await world.open();
  await world.verify(damaged, take(9, 4), { context: session });
  const database = await openDatabase("damaged");
  const row = (await database.get("profiles", [scopeA, damaged.value]))!;
  await database.put("profiles", { ...row, sealed: row.sealed!.map((byte, i) => (i === 60 ? byte ^ 1 : byte)) });
  database.close();
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
  ];
  expect(await statuses("")).toEqual(all);
  expect(await statuses("person-9")).toEqual(all.slice(1));
  const voices = new Voiceprints(processor, { scope: scopeA, configset: context.configsetId });
  expect(await voices.people()).toEqual(["person-7", "person-9"]);
  await expect(store.profiles.get(scopeA, damaged.value)).rejects.toMatchObject(isDamaged);
});

test("is never left out of a comparison: the error names it and says what to do", async () => {
  const { processor, context } = world;
  const target = { case: "group", value: { uniqueId: group } } as const;
  const audio = await world.heard(take(9, 4));
  await expect(processor.identify({ context, audio, target })).rejects.toThrow(
    `the sealed template ${damaged.value} was altered or moved; restore it from a backup`,
  );
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
  expect(job.profiles.map(({ status }) => status)).toEqual([Status.OPTIMAL_TRAINED, Status.UNSPECIFIED]);
  const retraining = await processor.startVoiceprintProfilesRetrainingJob({ context });
  const done = await ended(() =>
    processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: retraining.gkJobId! }),
  );
  expect(done.profiles.map(({ outcome }) => outcome)).toEqual([RetrainingOutcome.NOT_NEEDED, RetrainingOutcome.FAILED]);
});

test("can be erased by its name", async () => {
  const { processor, context } = world;
  const voices = new Voiceprints(processor, { scope: scopeA, configset: context.configsetId });
  expect(await voices.erase("person-9")).toBe(true);
  expect(await voices.people()).toEqual(["person-7"]);
});
