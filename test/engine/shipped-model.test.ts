import { basename } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OpenedEngine, openEngine } from "../../dist/engine/index.js";
import type { Voice, VoiceAnalysis } from "../../src/engine/port.js";
import { shippedModel } from "../../src/engine/shipped-model.js";
import { rateOfOneComparison } from "../../src/voiceprint/decision.js";
import { impostorsOnList, mostRanks } from "../../src/voiceprint/list-impostors.js";
import { gaussian, noise, random, utter } from "../voice.js";

/** The model that the package finds by itself. Its card has its accuracy on real voices; these tests only check that it works. */
let engine: OpenedEngine;
const voices = new Map<string, VoiceAnalysis>();
beforeAll(async () => {
  engine = await openEngine({ workers: 0 });
  for (const speaker of [1, 2, 3]) {
    for (const seed of [1, 2]) {
      const { samples, rateHz } = utter({ speaker, seed, seconds: 8 });
      voices.set(`${speaker}/${seed}`, await engine.analyze(samples, rateHz));
    }
  }
});
afterAll(() => engine?.close());

function voiceOf(name: string): Voice {
  const { embedding, measures } = voices.get(name)!;
  return { embedding: embedding!, ...measures };
}

describe("the shipped model", () => {
  test("describes itself", () => {
    expect(engine.model).toMatchObject({ calibrationModelId: basename(shippedModel, ".vvm"), dimensions: 256 });
  });

  test("separates one synthesized speaker from the others", async () => {
    for (const speaker of [1, 2, 3]) {
      const { template } = await engine.train([voiceOf(`${speaker}/1`)]);
      const scores = new Map<number, number>();
      for (const other of [1, 2, 3]) {
        const [score] = await engine.score([template!], voiceOf(`${other}/2`));
        scores.set(other, score!.llr);
      }
      const best = [...scores].reduce((a, b) => (b[1] > a[1] ? b : a));
      expect(best[0]).toBe(speaker);
    }
  });

  test("has a class for each voice, stable between two recordings of it", () => {
    for (const speaker of [1, 2, 3]) {
      const [one, two] = [1, 2].map((seed) => voices.get(`${speaker}/${seed}`)!.voiceClass ?? Number.NaN) as [
        number,
        number,
      ];
      for (const value of [one, two]) expect(value >= 0 && value <= 100).toBe(true);
      expect(Math.abs(one - two)).toBeLessThan(30);
    }
  });

  test("checks a recording for both attacks: a finite ratio, more reliable with more speech, at either rate", async () => {
    expect(engine.model.attacks).toEqual(["synthetic", "playback"]);
    for (const kind of engine.model.attacks) {
      for (const rateHz of [8000, 16_000]) {
        const { samples } = utter({ speaker: 1, seed: 1, seconds: 8, rateHz });
        const long = await engine.attack(kind, samples.slice(), rateHz);
        const short = await engine.attack(kind, samples.slice(0, 4 * rateHz), rateHz);
        for (const { llr, reliability, revision } of [long, short]) {
          expect(Number.isFinite(llr)).toBe(true);
          // No ratio of these networks can promise more than a few in a thousand.
          expect(Math.abs(llr)).toBeLessThan(20);
          expect(reliability > 0 && reliability < 1).toBe(true);
          expect(revision).toMatch(/^[0-9a-f]{64}$/);
        }
        expect(long.reliability).toBeGreaterThan(short.reliability);
      }
    }
  });

  test("silence and noise have no voice: the attack ratio and its reliability are 0", async () => {
    const nothing = { llr: 0, reliability: 0 };
    expect(await engine.attack("synthetic", new Float32Array(48_000), 16_000)).toMatchObject(nothing);
    const hiss = noise(3, 16_000, 1, -30);
    expect(await engine.attack("playback", hiss, 16_000)).toMatchObject(nothing);
  });

  test("its thresholds rise as the rate falls, for any quality that a call can have", async () => {
    const { embedding } = voiceOf("1/1");
    const qualities = [0.5, 2, 8, 60].flatMap((netSpeechSeconds) =>
      [3400, 5000, 8000].map((bandwidthHz) => ({ netSpeechSeconds, bandwidthHz, snrDb: 20, embedding })),
    );
    for (const probe of qualities) {
      for (const quality of qualities) {
        const [score] = await engine.score([{ ...quality, revision: engine.model.revision }], probe);
        const thresholds = [0.1, 0.01, 0.001, 0.0001, 0.00001].map((rate) => engine.threshold(rate, score!));
        expect(thresholds).toEqual([...thresholds].sort((a, b) => a - b));
        expect(new Set(thresholds).size).toBe(5);
        // Between chance and what no recording could exceed.
        expect(thresholds[1]! > -5 && thresholds[1]! < 12).toBe(true);
      }
    }
  });

  test("finds the same recording on lists of up to 100,000 voices, at either rate", async () => {
    const gallery = engine.gallery();
    const normal = gaussian(random(3));
    const towards = voiceOf("1/1").embedding;
    const lists = [10, 1000, 100_000];
    for (const size of lists) {
      // Synthetic voices that are all somewhat similar to the first.
      while (gallery.size < size - 1) {
        const drawn = towards.map((x) => 0.5 * x + normal() / 16);
        const length = Math.hypot(...drawn);
        gallery.set(
          String(gallery.size),
          drawn.map((x) => x / length),
        );
      }
      for (const rateHz of [8000, 16_000]) {
        const { samples } = utter({ speaker: 1, seed: 1, seconds: 4, rateHz });
        const { embedding, measures } = await engine.analyze(samples, rateHz);
        const voice = { ...measures, embedding: embedding! };
        const { template } = await engine.train([voice]);
        const [score] = await engine.score([template!], voice);
        const others = gallery.top(voice.embedding, mostRanks).map(({ raw }) => ({ ...score!, raw }));
        const impostors = impostorsOnList(score!, others, size);
        const threshold = engine.threshold(rateOfOneComparison(0.01, size, 3), { ...score!, impostors });
        expect(others[0]!.raw).toBeLessThan(score!.raw);
        expect(score!.llr).toBeGreaterThan(threshold);
      }
    }
    gallery.close();
  });

  test("works within 36 MB", async () => {
    expect(await engine.memoryBytes()).toBeLessThan(36e6);
  });
});
