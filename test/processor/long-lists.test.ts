/** A request costs only a few queries, however many ids it lists. A list that is too long is rejected with a short error. */
import { expect, test } from "vitest";
import { Decision, VoiceprintProfilesStatusJobState as State } from "../../src/contract/index.js";
import { createMemoryStore } from "../../src/store/memory.js";
import type { Store } from "../../src/store/port.js";
import { take, voiceOf } from "./fixture-engine.js";
import { openWorld, refusal } from "./world.js";

const unknown = (count: number) => ({
  uniqueIds: Array.from({ length: count }, (_, i) => ({
    value: `01900000-0000-7000-9000-${i.toString(16).padStart(12, "0")}`,
  })),
});

/** A store that counts its queries. */
function counting(store: Store, onAsked = (_: string) => {}): { store: Store; asked: () => number } {
  let asked = 0;
  const watched = Object.fromEntries(
    Object.entries(store).map(([name, part]) => [
      name,
      typeof part !== "object"
        ? part
        : Object.fromEntries(
            Object.entries(part).map(([method, call]) => [
              method,
              (...values: unknown[]) => {
                asked++;
                onAsked(method);
                return (call as (...values: unknown[]) => unknown)(...values);
              },
            ]),
          ),
    ]),
  ) as unknown as Store;
  return { store: watched, asked: () => asked };
}

test("ten thousand ids take a few queries", async () => {
  const { store, asked } = counting(createMemoryStore());
  const world = await openWorld({ store });
  const { processor, context } = world;
  const audio = await world.heard(take(7, 4));
  const list = unknown(10_000);
  const person = await world.person("alice");
  const owner = (await store.profiles.get("bank", person.value))!.owner.id;
  const manyOwners = { uniqueIds: Array.from({ length: 10_000 }, () => ({ value: owner })) };
  const calls = [
    () => processor.identify({ context, audio, target: { case: "gkVoiceprintProfileIds", value: list } }),
    () => processor.createGroup({ context, tag: "g", gkVoiceprintProfileIds: list }),
    () => processor.createGroup({ context, tag: "g", gkOwnerIds: list }),
    () => processor.startVoiceprintProfilesStatusJob({ context, gkVoiceprintProfileIds: list }),
  ];
  for (const call of calls) {
    const before = asked();
    expect(await refusal(call())).toMatchObject({ code: "NOT_FOUND" });
    expect(asked() - before).toBeLessThan(12);
  }
  const before = asked();
  await processor.createGroup({ context, tag: "g", gkOwnerIds: manyOwners });
  expect(asked() - before).toBeLessThan(12);
});

test("prints of a long list are not read from the store for every call", async () => {
  const read: string[] = [];
  const memory = createMemoryStore();
  const printsOf: Store["profiles"]["printsOf"] = (scope, ids, onDamaged) => {
    read.push(...ids);
    return memory.profiles.printsOf(scope, ids, onDamaged);
  };
  const store = { ...memory, profiles: { ...memory.profiles, printsOf } };
  const world = await openWorld({ store });
  const { processor, context } = world;
  const { revision } = world.engine.model;
  const made = async (i: number, kind: "person" | "fraudster" = "person") => {
    const id = world.ids.next();
    const voice = { netSpeechSeconds: 9, snrDb: 30, bandwidthHz: 4000 };
    await store.profiles.create({
      id,
      scopeId: "bank",
      owner: { id: world.ids.next(), scopeId: "bank", kind, externalId: `owner ${i}` },
      tag: "",
      printType: "text-dependent",
      printVersion: 1,
      template: { embedding: voiceOf(i, 1), ...voice, revision },
      status: 3,
      createdAt: 0,
    });
    return { value: id };
  };
  const people: { value: string }[] = [];
  for (let i = 0; i < 300; i++) people.push(await made(i));
  const audio = await world.heard(take(7, 4));
  const identify = (...uniqueIds: { value: string }[]) =>
    processor.identify({ context, audio, target: { case: "gkVoiceprintProfileIds", value: { uniqueIds } } });
  const found = async (...more: { value: string }[]) => {
    read.length = 0;
    const { result } = await identify(...people, ...more);
    expect(result).toMatchObject({
      decision: Decision.AUTHENTIC,
      voiceprintDetails: { gkVoiceprintProfileId: people[7] },
    });
    return read.length;
  };
  await found();
  expect(await found()).toBe(0);
  // A profile without a print is in no gallery.
  expect(await found(await world.person("not trained"))).toBe(1);
  const analyze = async (...uniqueIds: { value: string }[]) =>
    (await processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: { uniqueIds } })).result!;
  const mallory = await made(7, "fraudster");
  await analyze(...people, mallory);
  read.length = 0;
  const analyzed = await analyze(...people, mallory);
  expect(read).toEqual([]);
  expect(analyzed.authenticationResult).toMatchObject({ numberOfPersonsPrints: 300 });
  expect(analyzed.fraudDetectionResult).toMatchObject({ decision: Decision.FRAUD, numberOfFraudstersPrints: 1 });
  expect(await refusal(identify(...people, mallory))).toMatchObject({
    fields: ["gk_voiceprint_profile_ids.unique_ids[300] wrong_kind"],
  });
  await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: people[299]! });
  expect(await refusal(identify(...people))).toMatchObject({
    code: "NOT_FOUND",
    fields: [expect.stringContaining("gk_voiceprint_profile_ids.unique_ids[299] ")],
  });
});

test("a job of many profiles writes its progress at most a hundred times", async () => {
  let updates = 0;
  const { store } = counting(createMemoryStore(), (method) => {
    if (method === "update") updates++;
  });
  const { processor, context, person } = await openWorld({ store });
  for (let i = 0; i < 300; i++) await person(`person-${i}`);
  const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context });
  await processor.workOnJobs();
  const read = () => processor.getVoiceprintProfilesStatusJob({ context, gkJobId: gkJobId! });
  await expect.poll(async () => (await read()).state, { timeout: 60_000 }).toBe(State.COMPLETED);
  expect((await read()).profiles).toHaveLength(300);
  // And at its start and end.
  expect(updates).toBeLessThanOrEqual(102);
  expect(updates).toBeGreaterThan(50);
});

test("reading a list stops when the caller cancels", async () => {
  let gone: AbortController | null = null;
  const leave = (method: string) => {
    if (["printsOf", "getMany"].includes(method)) gone?.abort();
  };
  const { store, asked } = counting(createMemoryStore(), leave);
  const world = await openWorld({ store });
  const { processor, context } = world;
  const audio = await world.heard(take(7, 4));
  const person = await world.person("alice");
  const owner = (await store.profiles.get("bank", person.value))!.owner.id;
  const list = { uniqueIds: Array.from({ length: 5_000 }, () => person) };
  const target = { case: "gkVoiceprintProfileIds", value: list } as const;
  type Options = { readonly signal: AbortSignal };
  const calls: Readonly<Record<string, (options: Options) => Promise<unknown>>> = {
    identify: (options) => processor.identify({ context, audio, target }, options),
    detect: (options) => processor.detectKnownFraudsters({ context, audio, target }, options),
    analyze: (options) => processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: list }, options),
    consistency: (options) => processor.checkWatchlistConsistency({ context, target }, options),
    createGroup: (options) => processor.createGroup({ context, tag: "g", gkVoiceprintProfileIds: list }, options),
    ofOwners: (options) =>
      processor.createGroup({ context, tag: "g", gkOwnerIds: { uniqueIds: [{ value: owner }] } }, options),
    job: (options) => processor.startVoiceprintProfilesStatusJob({ context, gkVoiceprintProfileIds: list }, options),
  };
  for (const [name, call] of Object.entries(calls)) {
    let atLeaving = 0;
    gone = new AbortController();
    gone.signal.addEventListener("abort", () => {
      atLeaving = asked();
    });
    await expect(call({ signal: gone.signal }), name).rejects.toThrow();
    expect(gone.signal.aborted, name).toBe(true);
    expect(asked(), name).toBe(atLeaving);
  }
});

test("longer lists are rejected; for malformed ids the error gives a few examples", async () => {
  const { processor, context, heard } = await openWorld();
  const audio = await heard(take(7, 4));
  const identify = (value: { uniqueIds: { value: string }[] }) =>
    processor.identify({ context, audio, target: { case: "gkVoiceprintProfileIds", value } });
  expect(await refusal(identify(unknown(10_001)))).toMatchObject({
    code: "INVALID_REQUEST",
    fields: ["gk_voiceprint_profile_ids.unique_ids too_many"],
  });
  const malformed = { uniqueIds: Array.from({ length: 9_000 }, () => ({ value: "x".repeat(200) })) };
  const { code, fields } = await refusal(identify(malformed));
  expect(code).toBe("INVALID_REQUEST");
  expect(fields.length).toBeLessThanOrEqual(20);
});
