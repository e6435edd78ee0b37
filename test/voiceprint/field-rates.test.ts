import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addCounts,
  countOfCall,
  fieldRates,
  noCount,
  promisedRates,
  type RateCount,
} from "../../src/voiceprint/field-rates.js";
import { random } from "../voice.js";

/** Calls with a number of comparisons each; `alike` of them have the same result within a call. */
function counted(calls: number, perCall: number, rates: readonly number[], alike: number, seed: number) {
  const next = random(seed);
  return rates.map((rate) => {
    let sum = noCount;
    for (let call = 0; call < calls; call++) {
      const lucky = next() < rate;
      let exceeded = 0;
      for (let i = 0; i < perCall; i++) if (i < alike ? lucky : next() < rate) exceeded++;
      sum = addCounts(sum, countOfCall(perCall, exceeded));
    }
    return sum;
  });
}

/** Calls with one comparison each. */
const single = (exceeded: number, calls: number) =>
  Array.from({ length: calls }, (_, i) => countOfCall(1, i < exceeded ? 1 : 0)).reduce(addCounts, noCount);

describe("rates met in the field", () => {
  test("are unknown before the first comparison, and undecided after a few", () => {
    for (const { met, verdict } of fieldRates("group", [])) expect([met, verdict]).toEqual([null, "undecided"]);
    const few = fieldRates("watchlist", counted(20, 5, promisedRates, 0, 1));
    expect(few.at(-1)).toMatchObject({ promised: 0.001, comparisons: 100, verdict: "undecided" });
    const oneFraudster = addCounts(counted(98, 5, [0], 0, 1)[0]!, countOfCall(5, 5));
    expect(fieldRates("watchlist", [oneFraudster, oneFraudster, oneFraudster])[2]!.verdict).toBe("undecided");
  });

  test("hold if callers meet them, and are exceeded at three times the rate", () => {
    const kept = fieldRates("watchlist", counted(4000, 20, promisedRates, 0, 2));
    expect(kept.map(({ verdict }) => verdict)).toEqual(["holds", "holds", "holds"]);
    const higher = promisedRates.map((rate) => 3 * rate);
    const broken = fieldRates("group", counted(4000, 20, higher, 0, 3));
    expect(broken.map(({ verdict }) => verdict)).toEqual(["exceeded", "exceeded", "exceeded"]);
    // Fewer than promised is not a broken promise.
    const fewer = promisedRates.map((rate) => rate / 10);
    expect(fieldRates("group", counted(4000, 20, fewer, 0, 4)).every(({ verdict }) => verdict === "holds")).toBe(true);
  });

  test.each([0, 25])(
    "the interval holds the rate in 19 of 20 boxes, with %i of 50 comparisons of a call alike",
    (alike) => {
      let inside = 0;
      const boxes = 200;
      for (let seed = 0; seed < boxes; seed++) {
        const [, one] = fieldRates("watchlist", counted(400, 50, [0.1, 0.01, 0.001], alike, 100 + seed));
        if (one!.met!.low <= 0.01 && 0.01 <= one!.met!.high) inside++;
      }
      // 95 % of 200 is 190; four standard deviations of a binomial count are 12.
      expect(inside).toBeGreaterThanOrEqual(178);
    },
  );

  test.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])("the interval of %i in %i independent comparisons is Wilson's (Newcombe 1998)", (exceeded, calls, low, high) => {
    const [one] = fieldRates("group", [single(exceeded, calls)]);
    expect(one!.met!.rate).toBe(exceeded / calls);
    expect(one!.met!.low).toBeCloseTo(low, 4);
    expect(one!.met!.high).toBeCloseTo(high, 4);
  });

  test("calls whose comparisons all go one way count as one comparison each", () => {
    const calls = Array.from({ length: 40 }, (_, i) => countOfCall(10, i % 2 === 0 ? 10 : 0));
    const [alike] = fieldRates("group", [calls.reduce(addCounts, noCount)]);
    const [alone] = fieldRates("group", [single(20, 40)]);
    expect(alike!.met!.low).toBeCloseTo(alone!.met!.low, 12);
    expect(alike!.met!.high).toBeCloseTo(alone!.met!.high, 12);
  });

  test.each([
    ["calls", [countOfCall(100, 60), ...Array(4).fill(countOfCall(100, 0))]],
    ["that exceed", [countOfCall(10, 10), ...Array(49).fill(countOfCall(10, 0))]],
  ])("too few %s say nothing of how far calls differ", (_, calls: readonly RateCount[]) => {
    const sum = calls.reduce(addCounts, noCount);
    const [clustered] = fieldRates("group", [sum]);
    const [independent] = fieldRates("group", [single(sum.exceeded, sum.comparisons)]);
    expect(clustered!.met!.low).toBeCloseTo(independent!.met!.low, 12);
  });

  test("replicas may add up their counts in any order", () => {
    const count = fc.tuple(fc.nat(100), fc.nat(100)).map(([n, k]) => countOfCall(n + k, k));
    fc.assert(
      fc.property(fc.array(count), (counts) => {
        const sum = counts.reduce(addCounts, noCount);
        expect([...counts].reverse().reduce(addCounts, noCount)).toEqual(sum);
        expect(sum.calls).toBe(counts.length);
      }),
    );
  });
});
