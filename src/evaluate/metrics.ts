/**
 * Figures of merit of a set of trials, in the terms of ISO/IEC 19795-1 and NIST.
 * Scores are natural-log likelihood ratios (higher: same person); only Cllr and the actual DCF depend on their scale.
 * A trial may carry a weight, so that a bootstrap resamples without copying.
 */

/** Trials in ascending order of score, as columns. */
export interface SortedTrials {
  readonly scores: Float64Array;
  /** 1: the same person on both sides. */
  readonly same: Uint8Array;
  /** Index of each sorted trial in the input. */
  readonly order: Uint32Array;
}

export interface RatePoint {
  /** Accept at this score and above. */
  readonly threshold: number;
  /** Share of different-person trials that are accepted. */
  readonly falseMatchRate: number;
  /** Share of same-person trials that are rejected. */
  readonly falseNonMatchRate: number;
}

/** Share of same-person trials at the operating point of NIST evaluations for rare targets, where both errors cost the same. */
const TARGET_PRIOR = 0.01;

export function sortTrials(scores: ArrayLike<number>, same: ArrayLike<number | boolean>): SortedTrials {
  if (scores.length !== same.length)
    throw new RangeError(`expected ${scores.length} labels, one per score, got ${same.length}`);
  for (let i = 0; i < scores.length; i++)
    if (Number.isNaN(scores[i])) throw new RangeError(`score ${i} is not a number`);
  const order = Uint32Array.from(scores, (_, i) => i).sort((a, b) => scores[a]! - scores[b]! || a - b);
  return {
    scores: Float64Array.from(order, (i) => scores[i]!),
    same: Uint8Array.from(order, (i) => (same[i] ? 1 : 0)),
    order,
  };
}

export const sortedByRatio = (trials: readonly { readonly llr: number; readonly same: boolean }[]): SortedTrials =>
  sortTrials(
    trials.map(({ llr }) => llr),
    trials.map(({ same }) => same),
  );

function weightOf(weights: Float64Array | null, i: number): number {
  return weights === null ? 1 : weights[i]!;
}

function totals(trials: SortedTrials, weights: Float64Array | null) {
  let same = 0;
  let different = 0;
  for (let i = 0; i < trials.scores.length; i++) {
    const weight = weightOf(weights, i);
    if (trials.same[i]) same += weight;
    else different += weight;
  }
  return { same, different };
}

/** True if both kinds of trial are present; without both, no rate is defined. */
export function hasBothKinds(trials: SortedTrials, weights: Float64Array | null = null): boolean {
  const { same, different } = totals(trials, weights);
  return same > 0 && different > 0;
}

/**
 * Visits every distinct operating point from "accept all" to "reject all". Equal scores fall on the same side of a threshold.
 * `weights` are in sorted order.
 */
function eachPoint(
  trials: SortedTrials,
  weights: Float64Array | null,
  visit: (threshold: number, falseMatchRate: number, falseNonMatchRate: number) => void,
): void {
  const { scores, same } = trials;
  const total = totals(trials, weights);
  if (total.same <= 0 || total.different <= 0)
    throw new RangeError("trials of the same speaker and of different speakers are needed");
  let rejectedSame = 0;
  let rejectedDifferent = 0;
  for (let i = 0; i < scores.length; ) {
    const threshold = scores[i]!;
    visit(threshold, Math.max(0, 1 - rejectedDifferent / total.different), Math.min(1, rejectedSame / total.same));
    for (; i < scores.length && scores[i] === threshold; i++) {
      if (same[i]) rejectedSame += weightOf(weights, i);
      else rejectedDifferent += weightOf(weights, i);
    }
  }
  visit(Number.POSITIVE_INFINITY, 0, 1);
}

/** The whole trade-off, from accepting all to rejecting all. */
export function ratePoints(trials: SortedTrials): RatePoint[] {
  const points: RatePoint[] = [];
  eachPoint(trials, null, (threshold, falseMatchRate, falseNonMatchRate) => {
    points.push({ threshold, falseMatchRate, falseNonMatchRate });
  });
  return points;
}

/** Where both error rates are equal, interpolated linearly between the two operating points around it. */
export function equalErrorRate(trials: SortedTrials, weights: Float64Array | null = null): number {
  let rate = Number.NaN;
  let fmrBefore = 1;
  let fnmrBefore = 0;
  eachPoint(trials, weights, (_, fmr, fnmr) => {
    if (Number.isNaN(rate) && fnmr >= fmr) {
      const before = fmrBefore - fnmrBefore;
      const after = fnmr - fmr;
      const share = before + after > 0 ? before / (before + after) : 0;
      rate = fmrBefore + share * (fmr - fmrBefore);
    }
    fmrBefore = fmr;
    fnmrBefore = fnmr;
  });
  return rate;
}

/** FNMR at the lowest threshold whose FMR is at most `falseMatchRate`. */
export function fnmrAt(trials: SortedTrials, falseMatchRate: number, weights: Float64Array | null = null): number {
  let rate = Number.NaN;
  // Rates are sums of weights: the tolerance keeps 1 of 100 from counting as more than 1 %.
  eachPoint(trials, weights, (_, fmr, fnmr) => {
    if (Number.isNaN(rate) && fmr <= falseMatchRate + 1e-12) rate = fnmr;
  });
  return rate;
}

/** Both error rates when a score at or above `threshold` is accepted. */
export function ratesAt(trials: SortedTrials, threshold: number, weights: Float64Array | null = null): RatePoint {
  const total = totals(trials, weights);
  let accepted = 0;
  let rejected = 0;
  for (let i = 0; i < trials.scores.length; i++) {
    const weight = weightOf(weights, i);
    if (trials.same[i]) rejected += trials.scores[i]! < threshold ? weight : 0;
    else accepted += trials.scores[i]! >= threshold ? weight : 0;
  }
  return { threshold, falseMatchRate: accepted / total.different, falseNonMatchRate: rejected / total.same };
}

function normalisedCost(fmr: number, fnmr: number): number {
  return (TARGET_PRIOR * fnmr + (1 - TARGET_PRIOR) * fmr) / TARGET_PRIOR;
}

/** The lowest cost at any threshold, relative to deciding without evidence. */
export function minimumDetectionCost(trials: SortedTrials, weights: Float64Array | null = null): number {
  let lowest = Number.POSITIVE_INFINITY;
  eachPoint(trials, weights, (_, fmr, fnmr) => {
    lowest = Math.min(lowest, normalisedCost(fmr, fnmr));
  });
  return lowest;
}

/** The score at which a calibrated log-likelihood ratio should be accepted for this cost. */
const BAYES_THRESHOLD = Math.log((1 - TARGET_PRIOR) / TARGET_PRIOR);

/** The cost when the scores are taken as log-likelihood ratios. */
export function actualDetectionCost(trials: SortedTrials, weights: Float64Array | null = null): number {
  const { falseMatchRate, falseNonMatchRate } = ratesAt(trials, BAYES_THRESHOLD, weights);
  return normalisedCost(falseMatchRate, falseNonMatchRate);
}

/** log2(1 + e^x) without overflow. */
function softplusBits(x: number): number {
  return (Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))) / Math.LN2;
}

/** Cost of log-likelihood ratio in bits: 0 is perfect, 1 is the cost without information (llr 0 everywhere). */
export function cllr(trials: SortedTrials, weights: Float64Array | null = null): number {
  const total = totals(trials, weights);
  let same = 0;
  let different = 0;
  for (let i = 0; i < trials.scores.length; i++) {
    const weight = weightOf(weights, i);
    if (weight === 0) continue;
    if (trials.same[i]) same += weight * softplusBits(-trials.scores[i]!);
    else different += weight * softplusBits(trials.scores[i]!);
  }
  return (same / total.same + different / total.different) / 2;
}

/** A run of scores that the best monotone calibration maps to one log-likelihood ratio. */
export interface CalibrationBlock {
  readonly lowest: number;
  readonly highest: number;
  readonly same: number;
  readonly different: number;
  readonly llr: number;
}

/** The best calibration that keeps the order of scores (pool adjacent violators). */
export function monotoneCalibration(trials: SortedTrials, weights: Float64Array | null = null): CalibrationBlock[] {
  const { scores, same } = trials;
  const total = totals(trials, weights);
  const blocks: { lowest: number; highest: number; same: number; different: number }[] = [];
  for (let i = 0; i < scores.length; ) {
    const block = { lowest: scores[i]!, highest: scores[i]!, same: 0, different: 0 };
    for (; i < scores.length && scores[i] === block.lowest; i++) {
      if (same[i]) block.same += weightOf(weights, i);
      else block.different += weightOf(weights, i);
    }
    if (block.same + block.different === 0) continue;
    blocks.push(block);
    // The share of "same" must not fall from one block to the next. Cross-multiplied, because either count may be 0.
    while (blocks.length > 1) {
      const last = blocks[blocks.length - 1]!;
      const before = blocks[blocks.length - 2]!;
      if (before.same * last.different < last.same * before.different) break;
      before.highest = last.highest;
      before.same += last.same;
      before.different += last.different;
      blocks.pop();
    }
  }
  return blocks.map((block) => ({
    ...block,
    llr: Math.log(block.same / total.same) - Math.log(block.different / total.different),
  }));
}

/** Cllr after the best monotone calibration: the loss due to discrimination alone. */
export function minimumCllr(trials: SortedTrials, weights: Float64Array | null = null): number {
  const total = totals(trials, weights);
  let same = 0;
  let different = 0;
  for (const block of monotoneCalibration(trials, weights)) {
    if (block.same > 0) same += block.same * softplusBits(-block.llr);
    if (block.different > 0) different += block.different * softplusBits(block.llr);
  }
  return (same / total.same + different / total.different) / 2;
}
