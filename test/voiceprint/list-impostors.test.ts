import fc from "fast-check";
import { expect, test } from "vitest";
import { type ComparedCandidate, impostorsOnList, mostRanks } from "../../src/voiceprint/list-impostors.js";
import { probit } from "../../src/voiceprint/probit.js";
import { gaussian, random } from "../voice.js";

const calibrated = { center: 0.2, spread: 0.17 };

/** The best ranks of a list whose scores have this `center` and `spread`. */
function list(size: number, center: number, spread: number, seed: number): ComparedCandidate[] {
  const normal = gaussian(random(seed));
  return Array.from({ length: size }, () => Math.tanh(center + spread * normal()))
    .sort((a, b) => b - a)
    .slice(0, 1 + mostRanks)
    .map((raw) => ({ raw, impostors: calibrated }));
}

const ofBest = (scored: readonly ComparedCandidate[], size: number) => impostorsOnList(scored[0]!, scored, size);
const lists = (size: number, center: number, spread: number) =>
  Array.from({ length: 50 }, (_, seed) => ofBest(list(size, center, spread, seed + 1), size));
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
/** The score that one impostor in 100,000 exceeds. */
const far = ({ center, spread }: { center: number; spread: number }) => center - spread * probit(1e-5);

test("one candidate says nothing about the impostors", () => {
  expect(ofBest(list(1, 0.9, 0.1, 1), 1)).toEqual(calibrated);
});

test("a list whose scores are exactly as the calibration expects (Blom) changes nothing", () => {
  for (const size of [2, 3, 8, 100]) {
    const scored = Array.from({ length: size }, (_, i) => ({
      raw: Math.tanh(calibrated.center - calibrated.spread * probit((i + 1 - 0.375) / (size + 0.25))),
      impostors: calibrated,
    }));
    const { center, spread } = ofBest(scored, size);
    expect(center).toBeCloseTo(calibrated.center, 9 /* doubles through tanh and atanh */);
    expect(spread).toBeCloseTo(calibrated.spread, 9);
  }
});

test("a list that agrees with the calibration changes the expectation by less than half a spread", () => {
  for (const size of [10, 100, 1000])
    expect(Math.abs(mean(lists(size, 0.2, 0.17).map(far)) - far(calibrated))).toBeLessThan(
      0.085 /* a narrower spread is believed, a wider one is not */,
    );
});

test("a list of voices less similar to the caller lowers the threshold; the longer the list, the more", () => {
  const lowered = [10, 100, 1000].map((size) => far(calibrated) - mean(lists(size, 0, 0.17).map(far)));
  expect(lowered[0]).toBeGreaterThan(0.05);
  expect(lowered[1]).toBeGreaterThan(lowered[0]!);
  expect(Math.abs(lowered[2]! - 0.2)).toBeLessThan(0.08);
});

test("a narrower spread is applied half-way", () => {
  const { spread } = ofBest(list(1000, 0.2, 0.1, 3), 1000);
  expect(spread).toBeGreaterThan(0.1);
  expect(spread).toBeLessThan(0.16);
});

test("whatever the list, the center of the best candidate's impostors rises by at most 0.05 and their spread never grows", () => {
  const cosines = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(cosines, fc.integer({ min: 0, max: 100_000 }), (raws, more) => {
      const scored = raws.sort((a, b) => b - a).map((raw) => ({ raw, impostors: calibrated }));
      const { center, spread } = ofBest(scored, scored.length + more);
      expect(center).toBeLessThanOrEqual(calibrated.center + 0.05);
      expect(spread).toBeLessThanOrEqual(calibrated.spread);
      expect(spread).toBeGreaterThanOrEqual(calibrated.spread * Math.SQRT1_2 - 1e-12);
    }),
  );
});

test("a fraudster who is listed a hundred times is still found by the same recording", () => {
  const scored = Array.from({ length: 100 }, () => ({ raw: 1, impostors: calibrated }));
  expect(Math.tanh(far(ofBest(scored, 100)))).toBeLessThan(0.85);
});
