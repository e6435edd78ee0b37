/** The target false-accept rate holds for the whole call, also with hundreds of thousands of candidates in a gallery. */
import { describe, expect, test } from "vitest";
import { Decision } from "../../src/contract/index.js";
import { MOST_IDS } from "../../src/contract/mandatory.js";
import type { Gallery } from "../../src/engine/port.js";
import { take, voiceOf } from "./fixture-engine.js";
import { openWorld } from "./world.js";

const target = 0.3;
let call = 0;

/** Uniform in 0..1 for a pair of call and print: the probability that an impostor scores higher by chance. */
function luck(id: string): number {
  let hash = Math.imul(call + 1, 0x9e3779b1);
  for (let i = id.length - 8; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x85ebca6b);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  hash = Math.imul(hash, 0x297a2d39);
  return ((hash ^ (hash >>> 15)) >>> 0) / 4294967296;
}

/** A gallery that ranks at random. */
function luckyGallery(): Gallery {
  const ids = new Set<string>();
  return {
    get size() {
      return ids.size;
    },
    set: (id) => void ids.add(id),
    delete: (id) => ids.delete(id),
    has: (id) => ids.has(id),
    top(_, k, only) {
      const best: { id: string; raw: number }[] = [];
      for (const id of only ?? ids) {
        const raw = 1 - luck(id);
        if (best.length === k && raw <= best[k - 1]!.raw) continue;
        best.push({ id, raw });
        best.sort((a, b) => b.raw - a.raw);
        best.length = Math.min(best.length, k);
      }
      return best;
    },
    close: () => ids.clear(),
  };
}

async function worldOf(prints: number, kind: "person" | "fraudster", tagOf: (i: number) => string = () => "") {
  const world = await openWorld({
    configurationSets: {
      loose: {
        targetFalseAcceptRate: { authentication: target, fraud: target },
        checkpointsForAuthentication: [],
        checkpointsForFraudDetection: [],
      },
    },
  });
  const ids: string[] = [];
  const { revision } = world.engine.model;
  for (let i = 0; i < prints; i++) {
    const id = world.ids.next();
    // The id is stored as the template's speech length, so that `score` can read it.
    const template = {
      embedding: voiceOf(i % 50, i % 7),
      netSpeechSeconds: ids.length,
      snrDb: 30,
      bandwidthHz: 4000,
      revision,
    };
    ids.push(id);
    await world.store.profiles.create({
      id,
      scopeId: "bank",
      owner: { id: world.ids.next(), scopeId: "bank", kind, externalId: `${kind} ${i}` },
      tag: tagOf(i),
      printType: "text-dependent",
      printVersion: 1,
      template,
      status: 3,
      createdAt: 0,
    });
  }
  const { processor, context } = world;
  const create = kind === "person" ? processor.createGroup : processor.createWatchlist;
  const add = kind === "person" ? processor.addGroupMembers : processor.addWatchlistMembers;
  const members = (from: number) => ({
    uniqueIds: ids.slice(from, from + MOST_IDS).map((value) => ({ value })),
  });
  const { gkGroupId } = await create.call(processor, { context, gkVoiceprintProfileIds: members(0) });
  for (let from = MOST_IDS; from < prints; from += MOST_IDS)
    await add.call(processor, { context, gkGroupId: gkGroupId!, gkVoiceprintProfileIds: members(from) });
  const bySimilarity = world.engine.behavior.score;
  world.engine.behavior.score = (_, template) => {
    // An impostor exceeds t with probability exp(-t), as `threshold` of this engine promises.
    const u = luck(ids[template.netSpeechSeconds]!);
    return { raw: 1 - u, llr: -Math.log(u), reliability: 1 };
  };
  return { world, group: gkGroupId!, context: await world.open("loose"), bySimilarity };
}

/** How many of these impostor calls are accepted. */
async function acceptedOf(calls: number, { world, group, context }: Awaited<ReturnType<typeof worldOf>>) {
  const processed = (await world.process(take(7, 4), false)).gkProcessedAudioId!;
  const audio = { case: "gkProcessedAudioId", value: processed } as const;
  const value = { uniqueId: group };
  let accepted = 0;
  for (call = 0; call < calls; call++) {
    const { result } = await world.processor.identify({ context, audio, target: { case: "group", value } });
    if (result!.decision === Decision.AUTHENTIC) accepted++;
  }
  return accepted;
}

/**
 * Within four standard deviations of a binomial count, above and below: independent impostors are accepted at the target
 * rate, so the correction is not too strict either. The draws are the same in every run.
 */
function expectAtTarget(accepted: number, calls: number) {
  const deviation = Math.sqrt(calls * target * (1 - target));
  expect(accepted).toBeLessThan(calls * target + 4 * deviation);
  expect(accepted).toBeGreaterThan(calls * target - 4 * deviation);
}

test.each([
  [1, 1000],
  [100, 500],
])(
  "impostor calls on %i candidates are accepted at the target rate",
  async (prints, calls) => {
    expectAtTarget(await acceptedOf(calls, await worldOf(prints, "person")), calls);
  },
  120_000,
);

describe("100,000 candidates", () => {
  test("impostor calls are accepted at the target rate, through the gallery", async () => {
    const prepared = await worldOf(100_000, "person");
    prepared.world.engine.gallery = luckyGallery;
    const calls = 40;
    expectAtTarget(await acceptedOf(calls, prepared), calls);
  }, 240_000);

  test("a watchlist is searched in the gallery, only the best are scored exactly, and the gallery follows the store", async () => {
    const { world, group, context, bySimilarity } = await worldOf(20_000, "fraudster");
    const { processor, engine } = world;
    engine.behavior.score = bySimilarity;
    const target = { case: "watchlist", value: { uniqueId: group } } as const;
    // A new recording each time, because erasing a print deletes the recordings that it matched.
    const ask = async (speaker = 7) => {
      const audio = await world.heard(take(speaker, 4));
      return (await processor.detectKnownFraudsters({ context, audio, target })).result!;
    };
    const result = await ask();
    expect(result).toMatchObject({ decision: Decision.FRAUD, numberOfPrints: 20_000 });
    expect(Math.max(...engine.behavior.scoredAgainst)).toBeLessThanOrEqual(64);
    expect(result.voiceprintResults).toHaveLength(64);

    // An erased print is never found again; a new one is found at once.
    const best = result.voiceprintDetails!.gkVoiceprintProfileId!;
    await processor.deleteVoiceprintProfile({ context: world.context, gkVoiceprintProfileId: best });
    const after = await ask();
    expect(after.numberOfPrints).toBe(19_999);
    expect(after.voiceprintResults.map((one) => one.gkVoiceprintProfileId!.value)).not.toContain(best.value);
    const fresh = await world.trained(777, "fraudster");
    const gkVoiceprintProfileIds = { uniqueIds: [fresh] };
    await processor.addWatchlistMembers({ context: world.context, gkGroupId: group, gkVoiceprintProfileIds });
    const found = await ask(777);
    expect(found.voiceprintDetails!.gkVoiceprintProfileId!.value).toBe(fresh.value);
    expect(found.numberOfPrints).toBe(20_000);
    await processor.removeWatchlistMembers({ context: world.context, gkGroupId: group, gkVoiceprintProfileIds });
    expect((await ask()).numberOfPrints).toBe(19_999);
  }, 120_000);
});

test("a large watchlist has the prints of its owners besides those that it names, and no others", async () => {
  const { world, group, context, bySimilarity } = await worldOf(300, "fraudster");
  world.engine.behavior.score = bySimilarity;
  await world.trained(778, "fraudster");
  const added = (await world.store.profiles.get("bank", (await world.trained(777, "fraudster")).value))!;
  const gkOwnerIds = { uniqueIds: [{ value: added.owner.id }] };
  await world.processor.addWatchlistMembers({ context: world.context, gkGroupId: group, gkOwnerIds });
  const audio = await world.heard(take(777, 4));
  const target = { case: "watchlist", value: { uniqueId: group } } as const;
  const { result } = await world.processor.detectKnownFraudsters({ context, audio, target });
  expect(result).toMatchObject({ decision: Decision.FRAUD, numberOfPrints: 301 });
  expect(result!.voiceprintDetails!.gkVoiceprintProfileId!.value).toBe(added.id);
});

test("every candidate is listed if at most 256 prints of a large group have the tag", async () => {
  const tagged = 70;
  const { world, group, context } = await worldOf(300, "person", (i) => (i < tagged ? "phone" : ""));
  const audio = await world.heard(take(7, 4));
  const target = { case: "group", value: { uniqueId: group, tag: "phone" } } as const;
  const { result } = await world.processor.identify({ context, audio, target });
  expect(result!.voiceprintResults).toHaveLength(tagged);
});

test("10,000 ids, one by one, work", async () => {
  const { world, context } = await worldOf(10_000, "person");
  world.engine.behavior.score = (raw) => ({ raw, llr: 40 * (raw - 0.5), reliability: 1 });
  const profiles = await world.store.profiles.list("bank", null, 20_000);
  const value = { uniqueIds: profiles.map(({ id }) => ({ value: id })) };
  const audio = await world.heard(take(7, 4));
  const { result } = await world.processor.identify({
    context,
    audio,
    target: { case: "gkVoiceprintProfileIds", value },
  });
  expect(result!.decision).toBe(Decision.AUTHENTIC);
}, 60_000);
