import { describe, expect, test } from "vitest";
import { createMemoryStore } from "../../src/store/memory.js";
import { take } from "./fixture-engine.js";
import { list, openWorld, type World } from "./world.js";

/** Number of comparisons, and how many exceeded the thresholds of 10, 1 and 0.1 %. */
const counts = async ({ processor }: World, of: "watchlist" | "group") => {
  const rates = (await processor.fieldRates()).filter((rate) => rate.list === of);
  return { comparisons: rates.map((rate) => rate.comparisons), exceeded: rates.map((rate) => rate.exceeded) };
};

const identify = async (world: World, speaker: number, seconds: number, profiles: readonly { value: string }[]) =>
  world.processor.identify({
    context: world.context,
    audio: await world.heard(take(speaker, seconds)),
    target: { case: "gkVoiceprintProfileIds", value: list(...profiles) },
    ignoreCheckpoints: true,
  });

const watch = async (world: World, speaker: number, seconds: number, profiles: readonly { value: string }[]) =>
  world.processor.detectKnownFraudsters({
    context: world.context,
    audio: await world.heard(take(speaker, seconds)),
    target: { case: "gkVoiceprintProfileIds", value: list(...profiles) },
    ignoreCheckpoints: true,
  });

describe("comparisons in the field", () => {
  test("are all counted for watchlists, without the person who was found for groups, and not at all for verification", async () => {
    const world = await openWorld();
    const persons = [await world.trained(7), await world.trained(9), await world.trained(11)];
    const fraudsters = [await world.trained(13, "fraudster"), await world.trained(15, "fraudster")];
    await world.verify(persons[0]!, take(7, 4));
    expect(await counts(world, "group")).toEqual({ comparisons: [0, 0, 0], exceeded: [0, 0, 0] });
    await identify(world, 7, 4.1, persons);
    expect((await counts(world, "group")).comparisons).toEqual([2, 2, 2]);
    await identify(world, 21, 4.2, persons);
    expect((await counts(world, "group")).comparisons).toEqual([5, 5, 5]);
    await watch(world, 13, 4.3, fraudsters);
    expect(await counts(world, "watchlist")).toEqual({ comparisons: [2, 2, 2], exceeded: [1, 1, 1] });
  });

  test("are counted against the engine's threshold for the quality of both sides", async () => {
    const world = await openWorld();
    const fraudsters = [await world.trained(13, "fraudster"), await world.trained(15, "fraudster")];
    // Thresholds are 2.3, 4.6 and 6.9; the ratio is between the second and the third.
    world.engine.behavior.score = (raw) => ({ raw, llr: 5, reliability: 1 });
    await watch(world, 21, 4, fraudsters);
    expect(await counts(world, "watchlist")).toEqual({ comparisons: [2, 2, 2], exceeded: [2, 2, 0] });
  });

  test("survive restarts, add up over replicas, and start again with another calibration or model", async () => {
    const store = createMemoryStore();
    const first = await openWorld({ store });
    const fraudsters = [await first.trained(13, "fraudster"), await first.trained(15, "fraudster")];
    await watch(first, 21, 4, fraudsters);
    await first.processor.close();
    const [second, third] = [await openWorld({ store }), await openWorld({ store })];
    await Promise.all([watch(second, 22, 4, fraudsters), watch(third, 23, 4, fraudsters)]);
    await second.processor.fieldRates();
    expect((await counts(third, "watchlist")).comparisons).toEqual([6, 6, 6]);
    third.engine.behavior.calibrationRevision = "d".repeat(64);
    expect((await counts(third, "watchlist")).comparisons).toEqual([0, 0, 0]);
    third.engine.behavior.calibrationRevision = "c".repeat(64);
    expect((await counts(third, "watchlist")).comparisons).toEqual([6, 6, 6]);
    third.engine.behavior.revision = "c".repeat(64);
    expect((await counts(third, "watchlist")).comparisons).toEqual([0, 0, 0]);
  });

  test("are not lost while the store fails", async () => {
    const world = await openWorld();
    const fraudsters = [await world.trained(13, "fraudster"), await world.trained(15, "fraudster")];
    await watch(world, 21, 4, fraudsters);
    const { update } = world.store.documents;
    world.store.documents.update = async () => {
      throw new Error("the disk is gone");
    };
    await expect(world.processor.fieldRates()).rejects.toThrow("the disk is gone");
    world.clock.at += 60_000;
    await watch(world, 22, 4, fraudsters);
    world.store.documents.update = update;
    expect((await counts(world, "watchlist")).comparisons).toEqual([4, 4, 4]);
  });

  test("that this version cannot read count as none", async () => {
    const world = await openWorld();
    const fraudsters = [await world.trained(13, "fraudster"), await world.trained(15, "fraudster")];
    const { revision, calibrationRevision } = world.engine.model;
    await world.store.documents.update("field-rates", `${revision}+${calibrationRevision}`, () => ({
      watchlist: [{ comparisons: "many" }, {}, null],
      group: "none",
    }));
    await watch(world, 21, 4, fraudsters);
    expect((await counts(world, "watchlist")).comparisons).toEqual([2, 2, 2]);
    expect((await counts(world, "group")).comparisons).toEqual([0, 0, 0]);
  });

  test.each([
    ["", 60_000],
    [", also after the clock was set back", -60_000],
  ])("are written to the store during calls, not only when they are read%s", async (_, ms) => {
    const world = await openWorld();
    const fraudsters = [await world.trained(13, "fraudster"), await world.trained(15, "fraudster")];
    world.clock.at += ms;
    await watch(world, 21, 4, fraudsters);
    const { revision, calibrationRevision } = world.engine.model;
    const kept = () => world.store.documents.get("field-rates", `${revision}+${calibrationRevision}`);
    await expect.poll(kept).not.toBeNull();
  });
});
