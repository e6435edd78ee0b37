import type { SortedTrials } from "./metrics.js";
import { quantileOf } from "./quantile.js";

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** The speakers of each trial (in input order, not sorted). */
export interface TrialSpeakers {
  readonly enrolled: ArrayLike<number>;
  readonly tested: ArrayLike<number>;
  readonly count: number;
}

/** Seeded, so that intervals are reproducible. */
export { mulberry32 as seededRandom } from "../demo/voice.js";

/**
 * Each call draws the weights of one resample, into the same array: speakers are drawn with replacement, and a trial counts as often as its
 * speakers were drawn together. Trials of one speaker are correlated, so resampling trials instead would give intervals that are far too narrow.
 */
export function createResampling(
  trials: SortedTrials,
  speakers: TrialSpeakers,
  random: () => number,
): () => Float64Array {
  // An evaluation spends much of its time here, so nothing is looked up out of order, and the arrays are used again.
  const inOrder = (speakerOf: ArrayLike<number>) => Int32Array.from(trials.order, (trial) => speakerOf[trial]!);
  const [enrolled, tested] = [inOrder(speakers.enrolled), inOrder(speakers.tested)];
  const [drawn, weights] = [new Float64Array(speakers.count), new Float64Array(enrolled.length)];
  return () => {
    drawn.fill(0);
    for (let i = 0; i < speakers.count; i++) drawn[Math.floor(random() * speakers.count)]! += 1;
    for (let i = 0; i < weights.length; i++) {
      const one = enrolled[i]!;
      const other = tested[i]!;
      weights[i] = one === other ? drawn[one]! : drawn[one]! * drawn[other]!;
    }
    return weights;
  };
}

/**
 * Without errors, no resample has one either: the interval would be 0 to 0, however few the speakers are. The upper limit is then the rate at which
 * this many independent units have no error in only 5 % of cases (the rule of three of ISO/IEC 19795-1).
 */
export const ruleOfThree = (units: number): number => 1 - 0.05 ** (1 / units);

/** The central `confidence` share of the values; `null` when fewer than 20 resamples gave one. */
export function percentileInterval(values: readonly number[], confidence = 0.95): Interval | null {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length < 20) return null;
  return { low: quantileOf(sorted, (1 - confidence) / 2), high: quantileOf(sorted, (1 + confidence) / 2) };
}
