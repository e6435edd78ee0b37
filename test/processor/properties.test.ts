import fc from "fast-check";
import { expect, test } from "vitest";
import { TrainReason, VoiceprintProfileStatus } from "../../src/contract/index.js";
import { take } from "./fixture-engine.js";
import { openWorld } from "./world.js";

type Step =
  | { readonly do: "enroll"; readonly speaker: number; readonly tenths: number }
  | { readonly do: "train" }
  | { readonly do: "fail"; readonly at: "analyze" | "train" | null }
  | { readonly do: "update" }
  | { readonly do: "verify"; readonly speaker: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("enroll" as const),
      speaker: fc.constantFrom(7, 7, 7, 9),
      tenths: fc.integer({ min: 5, max: 40 }),
    }),
  },
  { weight: 3, arbitrary: fc.constant({ do: "train" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("fail" as const), at: fc.constantFrom("analyze", "train", null) }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "update" as const }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("verify" as const), speaker: fc.constantFrom(7, 9) }) },
);

test("no sequence of calls leads to a half-trained profile", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      const world = await openWorld();
      const profile = await world.person("alice");
      let trainings = 0;
      for (const one of steps) {
        if (one.do === "enroll") await world.enroll(profile, take(one.speaker, one.tenths / 10)).catch(() => {});
        if (one.do === "train" && (await world.train(profile)).reason === TrainReason.TRAIN_OK) trainings++;
        if (one.do === "update") world.engine.behavior.revision = (trainings % 10).toString().repeat(64);
        if (one.do === "verify") await world.verify(profile, take(one.speaker, 2));
        if (one.do === "fail")
          world.engine.behavior.before = (operation) => {
            if (operation === one.at) throw new Error("out of order");
          };
        const stored = (await world.store.profiles.get("bank", profile.value))!;
        const isTrained = stored.template !== null;
        expect(stored.printVersion).toBe(trainings);
        expect(isTrained).toBe(trainings > 0);
        expect(stored.status === VoiceprintProfileStatus.NOT_TRAINED).toBe(!isTrained);
      }
    }),
    { numRuns: 60 },
  );
});

test("the order of segments does not change the template", async () => {
  const takes = [1.2, 1.5, 1.9, 2.6, 3.3];
  const templateOf = async (order: readonly number[]) => {
    const world = await openWorld();
    const profile = await world.person("alice");
    const processed = [];
    for (const length of takes) processed.push((await world.process(take(7, length))).gkProcessedAudioId!);
    for (const i of order)
      await world.processor.enroll({
        context: world.context,
        gkVoiceprintProfileId: profile,
        gkProcessedAudioId: processed[i]!,
      });
    await world.train(profile);
    return (await world.store.profiles.get("bank", profile.value))!.template!.embedding;
  };
  const natural = await templateOf([0, 1, 2, 3, 4]);
  const orders = fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 });
  await fc.assert(
    fc.asyncProperty(orders, async (order) => {
      expect(await templateOf(order)).toEqual(natural);
    }),
    { numRuns: 20 },
  );
});
