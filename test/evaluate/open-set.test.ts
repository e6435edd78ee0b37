import { expect, test } from "vitest";
import { type Caller, openSet, type ScoredCandidate } from "../../src/evaluate/open-set.js";
import { random } from "../voice.js";

/** For a calibrated ratio impostors exceed t at the rate exp(-t). */
const threshold = (rate: number) => -Math.log(rate);
const candidate = (llr: number): ScoredCandidate => ({
  raw: (llr + 6) / 36,
  llr,
  ratios: { unlike: -6, identical: 30 },
  impostors: { center: 0.2, spread: 0.17 },
});

function callers(own: number): Caller[] {
  const next = random(5);
  return Array.from({ length: 150 }, () => ({
    own: [candidate(own)],
    others: Array.from({ length: 200 }, () => [candidate(-Math.log(1 - next()))]),
  }));
}

test("independent impostors are returned at the target rate, on lists of any size", () => {
  for (const row of openSet(callers(9), threshold, { sizes: [1, 10, 100], rates: [0.05], calls: 6000 })) {
    expect(row.fpir).toBeGreaterThan(0.025);
    expect(row.fpir).toBeLessThan(0.1);
  }
});

test("a person on a list is found if their score is the best and above the list's threshold", () => {
  const [one, ten, hundred] = openSet(callers(8), threshold, { sizes: [1, 10, 100], rates: [0.01], calls: 600 });
  // ln 100 = 4.6, ln 1,000 = 6.9, ln 10,000 = 9.2.
  expect([one!.fnir, hundred!.fnir]).toEqual([0, 1]);
  expect(ten!.fnir).toBeLessThan(0.02);
  expect(hundred!.oracleFnir).toBeLessThanOrEqual(hundred!.fnir);
});

test("rates have intervals over the speakers who call: few speakers give wide ones, without errors too", () => {
  const of = (speakers: number, own: number) =>
    openSet(
      callers(own).map((caller, i) => ({ ...caller, speaker: i % speakers })),
      threshold,
      { sizes: [10], rates: [0.05], calls: 1500 },
    )[0]!;
  const [few, many] = [of(10, 25), of(150, 25)];
  for (const { fpir, fpirInterval } of [few, many]) {
    expect(fpirInterval!.low).toBeLessThan(fpir);
    expect(fpirInterval!.high).toBeGreaterThan(fpir);
  }
  expect([few, many].map(({ fnir }) => fnir)).toEqual([0, 0]);
  // The rule of three: 1 - 0.05^(1/n).
  expect(few.fnirInterval!.high).toBeCloseTo(0.2589, 4);
  expect(many.fnirInterval!.high).toBeCloseTo(0.0198, 4);
  expect(of(10, -9).fnirInterval).toEqual({ low: 1, high: 1 });
  expect(of(2, 25)).toMatchObject({ fpirInterval: null, fnirInterval: null });
});

test("an interval is as wide as the speakers differ", () => {
  const some = callers(25).map((caller, i) => ({ ...caller, speaker: i % 30 }));
  // Callers of five speakers of 30 are never found.
  const [row] = openSet(
    some.map((caller) => (caller.speaker < 5 ? { ...caller, own: [candidate(-9)] } : caller)),
    threshold,
    { sizes: [10], rates: [0.05], calls: 1500 },
  );
  expect(row!.fnir).toBeCloseTo(5 / 30, 6);
  // A binomial with n = 30 and p = 1/6 has 1 or 2 of 30 as its 2.5th percentile, and 9 as its 97.5th.
  expect([1, 2]).toContain(Math.round(30 * row!.fnirInterval!.low));
  expect([9, 10]).toContain(Math.round(30 * row!.fnirInterval!.high));
});

test("sizes that need more speakers are left out", () => {
  expect(openSet(callers(9), threshold, { calls: 300 }).map(({ size }) => size)).toEqual([1, 1, 10, 10, 100, 100]);
});

test("neighbours are on a list before any other", () => {
  const some: Caller[] = [{ own: [], others: [[candidate(9)], [candidate(9)], [candidate(-5)], [candidate(-5)]] }];
  const own = [candidate(12)];
  const rateOf = (neighbours: number) =>
    openSet(
      some.map((caller) => ({ ...caller, own, neighbours })),
      threshold,
      { sizes: [2], rates: [0.01], calls: 400 },
    )[0]!.fpir;
  expect(rateOf(2)).toBe(1);
  expect(rateOf(0)).toBeLessThan(0.95);
});
