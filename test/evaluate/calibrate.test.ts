import { describe, expect, test } from "vitest";
import { CalibrationRefusal, calibrated, cllrOf, fitCalibration, underFit } from "../../src/evaluate/calibrate.js";
import type { ScoredTrial } from "../../src/evaluate/summary.js";
import { gaussian, random } from "../voice.js";

interface Population {
  readonly speakers: number;
  /** Tested recordings of each speaker. */
  readonly takes?: number;
  /** Of impostors' atanh cosine; the calibration in use expects 0.2 and 0.17. */
  readonly center?: number;
  readonly spread?: number;
  /** Whether trials of a person, and of a pair, are alike as they are in wuw-dev (training/LOG.md 32), with the same spread in all. */
  readonly likePeople?: boolean;
  /** Mean of genuine speakers. */
  readonly genuine?: number;
  readonly seed?: number;
}

function population({
  speakers,
  takes = 4,
  center = 0.2,
  spread = 0.17,
  likePeople = false,
  genuine = 0.95,
  seed = 1,
}: Population): ScoredTrial[] {
  const normal = gaussian(random(seed));
  const trials: ScoredTrial[] = [];
  const [ofPerson, ofPair, ofTrial] = likePeople ? [0.05, 0.13, 0.08] : [0, 0, 1];
  const scale = spread / Math.hypot(ofPerson, ofPerson, ofPair, ofTrial);
  const people = Array.from({ length: likePeople ? speakers : 0 }, normal);
  const pairs = people.map(() => people.map(normal));
  const shared = (one: number, other: number) =>
    likePeople
      ? ofPerson * (people[one]! + people[other]!) + ofPair * pairs[Math.min(one, other)]![Math.max(one, other)]!
      : 0;
  for (let enrolled = 0; enrolled < speakers; enrolled++)
    for (let tested = 0; tested < speakers; tested++)
      for (let k = 0; k < takes; k++) {
        const same = enrolled === tested;
        const impostor = () => center + scale * (shared(enrolled, tested) + ofTrial * normal());
        const raw = Math.tanh(same ? genuine + 0.15 * normal() : impostor());
        trials.push({
          same,
          raw,
          llr: -6 + 20 * raw,
          ratios: { unlike: -6, identical: 14 },
          impostors: { center: 0.2, spread: 0.17 },
          model: enrolled,
          test: takes * tested + k,
          enrolledSpeaker: enrolled,
          testedSpeaker: tested,
          netSpeechSeconds: 4,
          snrDb: 20,
        });
      }
  return trials;
}

/** Share of impostors above the 1 % threshold. */
const rateMet = (trials: readonly ScoredTrial[]) => {
  const different = trials.filter(({ same }) => !same);
  const passed = different.filter(
    ({ raw, impostors }) => Math.atanh(raw) >= impostors.center + 2.3263 * impostors.spread,
  );
  return passed.length / different.length;
};

describe("an operator's own calibration", () => {
  test("twenty speakers of a population with higher impostors restore the rate", () => {
    const elsewhere = { center: 0.35, spread: 0.15 };
    const fit = fitCalibration(population({ speakers: 20, ...elsewhere }));
    const others = population({ speakers: 60, ...elsewhere, seed: 2 });
    expect(rateMet(others)).toBeGreaterThan(0.04);
    expect(rateMet(underFit(others, fit))).toBeGreaterThan(0.01 / 1.5);
    expect(rateMet(underFit(others, fit))).toBeLessThan(0.01 * 1.5);
    expect(cllrOf(underFit(others, fit))).toBeLessThan(cllrOf(others));
  });

  test("five speakers of the population that it was fitted to change little", () => {
    const fit = fitCalibration(population({ speakers: 5, takes: 6 }));
    const others = population({ speakers: 60, seed: 2 });
    expect(Math.abs(Math.log(rateMet(underFit(others, fit)) / rateMet(others)))).toBeLessThan(Math.log(2));
    expect(fit.weight).toBeLessThan(0.3);
  });

  test("five speakers of the population that it was fitted to raise the thresholds as often as they lower them", () => {
    const at90 = 1.2816;
    const moved = Array.from({ length: 600 }, (_, seed) => {
      const fit = fitCalibration(population({ speakers: 5, takes: 6, likePeople: true, seed: seed + 1 }));
      return fit.centerShift + at90 * 0.17 * (fit.spreadFactor - 1);
    });
    const mean = moved.reduce((sum, value) => sum + value, 0) / moved.length;
    // -0.007 without the correction for the pairs that five speakers lack; the mean of 600 populations errs by 0.001.
    expect(Math.abs(mean)).toBeLessThan(0.0025);
  });

  test("the ratio moves less if only a few of the speakers were recorded in two sessions", () => {
    const trials = population({ speakers: 20, genuine: 1.3 });
    const ofThree = trials.filter(({ same, testedSpeaker }) => !same || testedSpeaker < 3);
    const growth = (some: readonly ScoredTrial[]) => Math.log(fitCalibration(some).slope);
    expect(growth(trials)).toBeGreaterThan(0.1);
    expect(growth(ofThree)).toBeLessThan(0.8 * growth(trials));
  });

  test("impostors that spread less than the engine's lower limit still pass at the rate that was fitted", () => {
    const trials = population({ speakers: 60, center: 0.2, spread: 0.02 });
    const fit = fitCalibration(trials);
    // The engine's own lower limit; the fit is made at the 90th percentile.
    const passed = trials.filter(
      ({ same, raw }) =>
        !same && Math.atanh(raw) >= 0.2 + fit.centerShift + 1.2816 * Math.max(0.05, 0.17 * fit.spreadFactor),
    );
    const share = passed.length / trials.filter(({ same }) => !same).length;
    expect(share).toBeGreaterThan(0.05);
    expect(share).toBeLessThan(0.2);
    expect(underFit(trials, { ...fit, spreadFactor: 0.1 })[0]!.impostors.spread).toBe(0.05);
  });

  test("the written section gives the fitted ratios", () => {
    const trials = population({ speakers: 12, center: 0.3 });
    const fit = fitCalibration(trials);
    const section = calibrated(
      {
        terms: [
          ["one", "one", -6],
          ["cosine", "one", 20],
        ],
        impostors: { center: [["one", "one", 0.2]], spread: [["one", "one", 0.17]] },
        consistency: 0.4,
        tensors: [],
      },
      fit,
    ) as {
      terms: [string, string, number][];
      impostors: { center: number[][]; spread: number[][] };
      consistency: number;
    };
    const [first] = underFit(trials, fit);
    const ratio = section.terms.reduce((sum, [a, , weight]) => sum + weight * (a === "cosine" ? first!.raw : 1), 0);
    expect(ratio).toBeCloseTo(first!.llr, 9 /* rounding */);
    const sum = (terms: number[][]) => terms.reduce((total, term) => total + term[2]!, 0);
    expect(sum(section.impostors.center)).toBeCloseTo(first!.impostors.center, 12 /* rounding */);
    expect(sum(section.impostors.spread)).toBeCloseTo(first!.impostors.spread, 12 /* rounding */);
    expect(section.consistency).toBe(0.4);
    expect(section).not.toHaveProperty("tensors");
  });

  test.each([
    ["too few speakers", population({ speakers: 4 }), /at least 5 speakers, got 4$/],
    [
      "too few trials of different people",
      population({ speakers: 5 }),
      /at least \d+ trials of different people, got 80$/,
    ],
    [
      "nobody twice",
      population({ speakers: 8 }).filter(({ same }) => !same),
      /trials of the same person from different sessions, got 0$/,
    ],
    ["labels that mean nothing", population({ speakers: 10, genuine: 0.2 }), /score alike.*check the labels/],
    [
      "one recording under two names",
      population({ speakers: 8 }).map((trial, i) =>
        i === 5 ? { ...trial, raw: 0.99999, names: { enrolled: "a.wav", tested: "b.wav" } } : trial,
      ),
      /under two speakers: a.wav and b.wav/,
    ],
  ])("%s are refused with a reason", (_, trials, reason) => {
    expect(() => fitCalibration(trials)).toThrow(CalibrationRefusal);
    expect(() => fitCalibration(trials)).toThrow(reason);
  });
});
