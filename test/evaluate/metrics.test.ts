import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createResampling, percentileInterval, seededRandom } from "../../src/evaluate/bootstrap.js";
import {
  actualDetectionCost,
  cllr,
  equalErrorRate,
  fnmrAt,
  minimumCllr,
  minimumDetectionCost,
  monotoneCalibration,
  ratePoints,
  ratesAt,
  sortTrials,
} from "../../src/evaluate/metrics.js";
import { summarize } from "../../src/evaluate/summary.js";
import { probit } from "../../src/voiceprint/probit.js";

/** Evenly spaced quantiles of a normal distribution: its empirical rates are the exact ones to 1/n. */
const normal = (mean: number, deviation: number, n: number) =>
  Array.from({ length: n }, (_, i) => mean + deviation * probit((i + 0.5) / n));

const trialsOf = (same: number[], different: number[]) =>
  sortTrials([...same, ...different], [...same.map(() => 1), ...different.map(() => 0)]);

const someTrials = fc
  .tuple(
    fc.array(fc.double({ min: -20, max: 20, noNaN: true }), { minLength: 1, maxLength: 40 }),
    fc.array(fc.double({ min: -20, max: 20, noNaN: true }), { minLength: 1, maxLength: 40 }),
  )
  .map(([same, different]) => ({ same, different }));

it("gives the tabulated normal deviates", () => {
  expect(probit(0.5)).toBeCloseTo(0, 8);
  expect(probit(0.975)).toBeCloseTo(1.959963985, 7);
  expect(probit(0.0001)).toBeCloseTo(-3.719016485, 7);
});

describe("computed by hand", () => {
  // 0 different, 1 same, 2 different, 3 same
  const trials = trialsOf([1, 3], [0, 2]);

  it("walks every operating point", () => {
    expect(ratePoints(trials)).toEqual([
      { threshold: 0, falseMatchRate: 1, falseNonMatchRate: 0 },
      { threshold: 1, falseMatchRate: 0.5, falseNonMatchRate: 0 },
      { threshold: 2, falseMatchRate: 0.5, falseNonMatchRate: 0.5 },
      { threshold: 3, falseMatchRate: 0, falseNonMatchRate: 0.5 },
      { threshold: Number.POSITIVE_INFINITY, falseMatchRate: 0, falseNonMatchRate: 1 },
    ]);
  });

  it("finds equal error, miss rates and costs", () => {
    expect(equalErrorRate(trials)).toBe(0.5);
    expect(fnmrAt(trials, 0.5)).toBe(0);
    expect(fnmrAt(trials, 0.01)).toBe(0.5);
    // Prior 0.01: one false match in two costs 99 times a miss in two, so the best is to accept only the 3.
    expect(minimumDetectionCost(trials)).toBeCloseTo(0.5, 12);
    // Bayes threshold ln 99 = 4.6: no trial is accepted.
    expect(actualDetectionCost(trials)).toBeCloseTo(1, 12);
  });

  it("pools only the violating pair", () => {
    expect(monotoneCalibration(trials).map((block) => block.llr)).toEqual([
      Number.NEGATIVE_INFINITY,
      0,
      Number.POSITIVE_INFINITY,
    ]);
    expect(minimumCllr(trials)).toBeCloseTo(0.5, 12);
  });

  it("gives the known Cllr of one score per class", () => {
    // log2(1 + e^-ln3) = log2(4/3) on both sides
    expect(cllr(trialsOf([Math.log(3)], [-Math.log(3)]))).toBeCloseTo(Math.log2(4 / 3), 12);
    expect(cllr(trialsOf([0], [0]))).toBe(1);
    expect(cllr(trialsOf([1000], [-1000]))).toBe(0);
    expect(cllr(trialsOf([-1000], [-1000]))).toBeCloseTo(500 / Math.LN2, 6);
  });

  it("puts equal scores on one side of every threshold", () => {
    expect(equalErrorRate(trialsOf([1, 1, 1], [1, 1, 1]))).toBe(0.5);
    expect(minimumCllr(trialsOf([1, 1], [1]))).toBeCloseTo(1, 12);
  });

  it("interpolates where the rates cross between two points", () => {
    // Points around the crossing: (FMR 1/3, FNMR 0) and (FMR 0, FNMR 1/2 of a tie): same 5,5 different 1,2,5
    expect(equalErrorRate(trialsOf([5, 6], [1, 2, 5]))).toBeCloseTo(0.2, 12);
  });

  it("refuses trials of one kind and scores that are not numbers", () => {
    expect(() => equalErrorRate(trialsOf([1], []))).toThrow(/of the same speaker and of different speakers/);
    expect(() => trialsOf([Number.NaN], [1])).toThrow(/not a number/);
  });
});

describe("closed forms", () => {
  // Calibrated scores: N(±μ, 2μ) has EER Φ(-√(μ/2)); μ = 2 gives Φ(-1).
  const trials = trialsOf(normal(2, 2, 20_000), normal(-2, 2, 20_000));

  it("gives Φ(-1) as equal error rate", () => {
    expect(Math.abs(equalErrorRate(trials) - 0.15865525)).toBeLessThan(1e-4);
  });

  it("gains nothing by calibrating a calibrated set", () => {
    const loss = cllr(trials) - minimumCllr(trials);
    expect(loss).toBeGreaterThanOrEqual(0);
    expect(loss).toBeLessThan(2e-3);
    expect(actualDetectionCost(trials)).toBeCloseTo(minimumDetectionCost(trials), 2);
  });

  it("gives FNMR Φ(Φ⁻¹(0.99) - d') at FMR 1 %", () => {
    // Unit deviation, means 3 apart: Φ(2.3263 - 3) = 0.25026
    const apart = trialsOf(normal(3, 1, 20_000), normal(0, 1, 20_000));
    expect(Math.abs(fnmrAt(apart, 0.01) - 0.25026)).toBeLessThan(5e-4);
  });
});

describe("properties", () => {
  it("keeps rates in 0..1 and monotone in the threshold", () => {
    fc.assert(
      fc.property(someTrials, ({ same, different }) => {
        const points = ratePoints(trialsOf(same, different));
        points.forEach((point, i) => {
          expect(point.falseMatchRate).toBeGreaterThanOrEqual(0);
          expect(point.falseNonMatchRate).toBeLessThanOrEqual(1);
          if (i > 0) {
            expect(point.falseMatchRate).toBeLessThanOrEqual(points[i - 1]!.falseMatchRate);
            expect(point.falseNonMatchRate).toBeGreaterThanOrEqual(points[i - 1]!.falseNonMatchRate);
          }
        });
      }),
    );
  });

  it("depends only on the order of scores, except Cllr", () => {
    fc.assert(
      fc.property(someTrials, ({ same, different }) => {
        // Rounded so that the map cannot merge or split ties.
        const round = (x: number) => Math.round(x * 8);
        const trials = trialsOf(same.map(round), different.map(round));
        const mapped = trialsOf(
          same.map((x) => round(x) ** 3 + 5),
          different.map((x) => round(x) ** 3 + 5),
        );
        expect(equalErrorRate(mapped)).toBe(equalErrorRate(trials));
        expect(minimumDetectionCost(mapped)).toBe(minimumDetectionCost(trials));
        expect(minimumCllr(mapped)).toBe(minimumCllr(trials));
      }),
    );
  });

  it("is never better than the optimal calibration", () => {
    fc.assert(
      fc.property(
        someTrials,
        fc.double({ min: 0.01, max: 5, noNaN: true }),
        fc.double({ min: -5, max: 5, noNaN: true }),
        ({ same, different }, scale, shift) => {
          const recalibrated = trialsOf(
            same.map((x) => scale * x + shift),
            different.map((x) => scale * x + shift),
          );
          expect(cllr(recalibrated)).toBeGreaterThanOrEqual(minimumCllr(trialsOf(same, different)) - 1e-9);
        },
      ),
    );
  });

  it("treats a weight of two as the trial given twice", () => {
    fc.assert(
      fc.property(someTrials, ({ same, different }) => {
        const trials = trialsOf(same, different);
        const doubled = trialsOf([...same, ...same], different);
        const weights = Float64Array.from(trials.same, (one) => (one ? 2 : 1));
        expect(equalErrorRate(trials, weights)).toBeCloseTo(equalErrorRate(doubled), 9);
        expect(minimumCllr(trials, weights)).toBeCloseTo(minimumCllr(doubled), 9);
        expect(ratesAt(trials, 0, weights).falseNonMatchRate).toBeCloseTo(ratesAt(doubled, 0).falseNonMatchRate, 9);
      }),
    );
  });
});

const expectation = { ratios: { unlike: -6, identical: 14 }, impostors: { center: 0, spread: 1 } };

describe("bootstrap over speakers", () => {
  it("counts a trial as often as its two speakers are drawn together", () => {
    const trials = sortTrials([1, 2], [1, 0]);
    const draws = [0.1, 0.2, 0.9, 0.9, 0.9, 0.2]; // speakers 0, 0, 2; then 2, 2, 0
    const resample = createResampling(trials, { enrolled: [0, 0], tested: [0, 2], count: 3 }, () => draws.shift()!);
    expect([...resample()]).toEqual([2, 2]);
    expect([...resample()]).toEqual([1, 2]);
  });

  it("is reproducible from its seed", () => {
    const [a, b] = [seededRandom(7), seededRandom(7)];
    expect(Array.from({ length: 5 }, a)).toEqual(Array.from({ length: 5 }, b));
  });

  it("takes the central share", () => {
    const values = Array.from({ length: 1001 }, (_, i) => i);
    const interval = percentileInterval(values)!;
    expect(interval.low).toBeCloseTo(25, 9);
    expect(interval.high).toBeCloseTo(975, 9);
    expect(percentileInterval([1, 2, 3])).toBeNull();
  });

  it("covers the true rate nearly as often as it promises", () => {
    // Offsets per speaker make a speaker's trials correlated. The truth comes from a large population, the coverage from small samples.
    const random = seededRandom(11);
    const gauss = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const population = (speakers: number) => {
      const offsets = Array.from({ length: speakers }, () => gauss());
      return offsets.flatMap((offset, speaker) => {
        const base = {
          raw: 0,
          model: 0,
          test: 0,
          ...expectation,
          netSpeechSeconds: 4,
          snrDb: 20,
          enrolledSpeaker: speaker,
        };
        const same = Array.from({ length: 6 }, () => ({
          ...base,
          same: true,
          llr: 3 + offset + gauss(),
          testedSpeaker: speaker,
        }));
        const other = Array.from({ length: 6 }, () => {
          const testedSpeaker = (speaker + 1 + Math.floor(random() * (speakers - 1))) % speakers;
          return { ...base, same: false, llr: -1 + gauss(), testedSpeaker };
        });
        return [...same, ...other];
      });
    };
    const truth = summarize(population(4000), { resamples: 0 })!.equalErrorRate.value;
    let covered = 0;
    for (let i = 0; i < 60; i++) {
      const { interval } = summarize(population(30), { resamples: 100, seed: i })!.equalErrorRate;
      if (interval!.low <= truth && truth <= interval!.high) covered++;
    }
    expect(covered).toBeGreaterThanOrEqual(51);
  });

  it("compares each trial with the threshold for its own quality", () => {
    const trial = (same: boolean, llr: number, center: number) => ({
      raw: 0,
      model: 0,
      test: 0,
      same,
      llr,
      ratios: { unlike: -6, identical: 14 },
      impostors: { center, spread: 1 },
      netSpeechSeconds: 4,
      snrDb: 20,
      enrolledSpeaker: 0,
      testedSpeaker: same ? 0 : 1,
    });
    const trials = [trial(true, 3, 2), trial(true, 3, 4), trial(false, 3, 2), trial(false, 1, 2), trial(false, 1, 0)];
    const [point] = summarize(trials, {
      resamples: 0,
      threshold: (_, { impostors }) => impostors.center,
    })!.promisedPoints;
    expect(point).toMatchObject({ promisedRate: 0.01, threshold: 2, falseMatchRate: 2 / 3, falseNonMatchRate: 0.5 });
  });

  it("reports a false-match rate that the trials cannot resolve", () => {
    const trial = { raw: 0, model: 0, test: 0, ...expectation, netSpeechSeconds: 4, snrDb: 20 };
    const trials = [
      { ...trial, same: true, llr: 3, enrolledSpeaker: 0, testedSpeaker: 0 },
      ...Array.from({ length: 150 }, (_, i) => ({
        ...trial,
        same: false,
        llr: -3,
        enrolledSpeaker: 0,
        testedSpeaker: 1 + i,
      })),
    ];
    expect(summarize(trials)!.operatingPoints.map((point) => point.resolved)).toEqual([true, false, false]);
  });

  /** All recordings of `speakers` against each other. Impostors whose number is below `matching` exceed every threshold. */
  const everybody = (speakers: number, matching = 0) => {
    const trial = { raw: 0, model: 0, test: 0, ...expectation, netSpeechSeconds: 4, snrDb: 20 };
    return Array.from({ length: speakers ** 2 * Math.ceil(1000 / speakers ** 2) }, (_, i) => {
      const [enrolledSpeaker, testedSpeaker] = [i % speakers, Math.floor(i / speakers) % speakers];
      const same = enrolledSpeaker === testedSpeaker;
      return { ...trial, same, llr: same || enrolledSpeaker < matching ? 3 : -3, enrolledSpeaker, testedSpeaker };
    });
  };

  it("without errors, gives an upper limit by the number of speakers, or of pairs of speakers", () => {
    const summary = summarize(everybody(6), { threshold: () => 0 })!;
    const { equalErrorRate: eer, cllr, operatingPoints, promisedPoints } = summary;
    const ofSpeakers = 1 - 0.05 ** (1 / 6);
    expect(eer).toEqual({ value: 0, interval: { low: 0, high: ofSpeakers } });
    expect(operatingPoints[0]!.fnmr).toEqual(eer);
    expect(promisedPoints[0]!.interval).toEqual({ low: 0, high: 1 - 0.05 ** (1 / 15) });
    expect(cllr.interval!.high).toBeLessThan(0.1 /* no rate, so it has the interval of the resamples */);
    // The same for costs, of which no resample could have another one.
    expect(summary.minimumDetectionCost).toEqual({ value: 0, interval: null });
    expect(summary.minimumCllr).toEqual({ value: 0, interval: null });
  });

  it("judges a target rate only if there are enough speakers", () => {
    const verdicts = (speakers: number, matching: number, resamples = 200) =>
      summarize(everybody(speakers, matching), { resamples, threshold: () => 0 })!.promisedPoints.map(
        ({ verdict }) => verdict,
      );
    // 15 pairs without a false match do not show that fewer than 1 % match, 1,225 do.
    expect(verdicts(6, 0)).toEqual(["too few trials", "too few trials", "too few trials"]);
    expect(verdicts(50, 0)).toEqual(["undercut", "too few trials", "too few trials"]);
    // Of two speakers there is no interval.
    expect(verdicts(2, 1)[0]).toBe("too few trials");
    // If all impostors match, no rate is kept, even one at which none was expected. Those of one speaker alone may be bad luck.
    expect(verdicts(20, 20)).toEqual(["exceeded", "exceeded", "exceeded"]);
    expect(verdicts(20, 1)).toEqual(["too few trials", "too few trials", "too few trials"]);
    // Without resamples the rate alone decides.
    expect(verdicts(20, 20, 0)[0]).toBe("exceeded");
  });

  it("gives no figures without trials of both kinds", () => {
    expect(summarize([])).toBeNull();
  });
});
