/**
 * Fits a calibration to an operator's own trials; the fewer speakers, the closer it stays to the calibration it starts from. Four numbers are fitted:
 * level and slope of the ratio, and center (at the 90th percentile) and spread of impostors.
 */
import { leastSpread, type Term } from "../engine/calibration.js";
import { fisher } from "../voiceprint/list-impostors.js";
import { probit } from "../voiceprint/probit.js";
import type { Copy } from "./evaluate.js";
import { cllr, equalErrorRate, sortedByRatio } from "./metrics.js";
import type { ScoredTrial } from "./summary.js";
import type { TrialSet } from "./trials.js";

/** No calibration can be fitted to these trials; the message says why. */
export class CalibrationRefusal extends Error {
  override readonly name = "CalibrationRefusal";
}

export interface FittedCalibration {
  readonly speakers: number;
  readonly sameTrials: number;
  readonly differentTrials: number;
  /** New ratio = level + slope × old ratio. */
  readonly level: number;
  readonly slope: number;
  /** Added to the impostors' center; their spread is multiplied. In atanh of the cosine. */
  readonly centerShift: number;
  readonly spreadFactor: number;
  /** 0..1: how far the fit moved from the calibration it starts from towards that of these trials alone. */
  readonly weight: number;
}

const LEAST_SPEAKERS = 5;
const LEAST_SAME = 10;
const LEAST_DIFFERENT = 100;
/** Speakers at which own trials weigh as much as the starting calibration, for the percentile and for the spread: pairs of speakers count. */
const LEVEL_SPEAKERS = 8;
const SPREAD_SPEAKERS = 20;
/**
 * A percentile of few speakers lies too low on average, because the pairs that sound most alike are probably not among them: by this much over the square
 * of the speakers, in atanh of the cosine (training/LOG.md 33).
 */
const MISSING_PAIRS = 0.5;
/** How much sets differ in the ratio at the decision point and in the logarithm of the slope (training/LOG.md 32). */
const RATIO_DEVIATIONS = [0.9, 0.75] as const;
/** Independent trials that a speaker with genuine trials counts for: there are always enough of impostors. */
const RATIO_TRIALS = 16;
/** Quantiles used for the impostors' percentile and spread: beyond them, few speakers give too few trials. */
const SHARES = [0.9, 0.97] as const;
/** Above this equal error rate, the labels are probably wrong. */
const MOST_EER = 0.35;
/** The same recording twice. */
const IDENTICAL = 0.9995;

export function fitCalibration(trials: readonly ScoredTrial[], copies: readonly Copy[] = []): FittedCalibration {
  if (copies[0])
    throw new CalibrationRefusal(
      `${copies[0].file} and ${copies[0].of} are the same recording${copies.length > 1 ? `, and ${copies.length - 1} more are copies ("vivavoce evaluate" lists them)` : ""}: remove the copies`,
    );
  const same = trials.filter((trial) => trial.same);
  const different = trials.filter((trial) => !trial.same);
  const speakers = new Set(trials.flatMap((trial) => [trial.enrolledSpeaker, trial.testedSpeaker])).size;
  refuseFew(speakers, same.length, different.length);
  refuseUnfit(trials, different);

  const [low, high] = SHARES.map((share) => probit(share)) as [number, number];
  const usual = median(different.map((trial) => trial.impostors.spread));
  const residuals = different.map((trial) => fisher(trial.raw) - trial.impostors.center).sort((a, b) => a - b);
  const [atLow, atHigh] = SHARES.map((share) => residuals[Math.floor(share * (residuals.length - 1))]!) as [
    number,
    number,
  ];
  const spread = Math.max((atHigh - atLow) / (high - low), leastSpread);
  const weight = weightOf(speakers, LEVEL_SPEAKERS);
  const spreadFactor = (spread / usual) ** weightOf(speakers, SPREAD_SPEAKERS);
  const own = atLow + MISSING_PAIRS / speakers ** 2;
  const centerShift = (1 - weight) * low * usual + weight * own - low * usual * spreadFactor;
  return {
    speakers,
    sameTrials: same.length,
    differentTrials: different.length,
    ...ratioOf(trials, same, different.length),
    centerShift,
    spreadFactor,
    weight,
  };
}

const weightOf = (speakers: number, even: number) => speakers ** 2 / (speakers ** 2 + even ** 2);

/** Refuses recordings that are too few even if all of them can be used, before they are processed. */
export function refuseFewIn({ models, speakers, trials }: TrialSet): void {
  const compared = new Set(trials.flatMap(({ model, test }) => [speakers[models[model]![0]!]!, speakers[test]!]));
  const same = trials.filter((trial) => trial.same).length;
  refuseFew(compared.size, same, trials.length - same);
}

function refuseFew(speakers: number, same: number, different: number): void {
  if (speakers < LEAST_SPEAKERS)
    throw new CalibrationRefusal(`a calibration needs at least ${LEAST_SPEAKERS} speakers, got ${speakers}`);
  if (same < LEAST_SAME)
    throw new CalibrationRefusal(
      `a calibration needs at least ${LEAST_SAME} trials of the same person from different sessions, got ${same}`,
    );
  if (different < LEAST_DIFFERENT)
    throw new CalibrationRefusal(
      `a calibration needs at least ${LEAST_DIFFERENT} trials of different people, got ${different}`,
    );
}

function refuseUnfit(trials: readonly ScoredTrial[], different: readonly ScoredTrial[]): void {
  const twice = different.find((trial) => trial.raw >= IDENTICAL);
  if (twice)
    throw new CalibrationRefusal(
      `a recording appears under two speakers${twice.names ? `: ${twice.names.enrolled} and ${twice.names.tested}` : ""}`,
    );
  const rate = equalErrorRate(sortedByRatio(trials));
  if (rate > MOST_EER)
    throw new CalibrationRefusal(
      `same and different people score alike here (equal error rate ${(100 * rate).toFixed(0)} %): check the labels`,
    );
}

/**
 * Level and slope by logistic regression, with equal weight for both kinds of trial. A normal prior, as wide as sets differ, keeps the ratio at the
 * decision point and the logarithm of the slope near 0. Gauss-Newton over two numbers; steps are halved until they improve.
 */
function ratioOf(trials: readonly ScoredTrial[], same: readonly ScoredTrial[], different: number) {
  const independent = RATIO_TRIALS * new Set(same.map((trial) => trial.testedSpeaker)).size;
  const prior = RATIO_DEVIATIONS.map((deviation) => 1 / (deviation ** 2 * independent));
  const weightOf = (trial: ScoredTrial) => 0.5 / (trial.same ? same.length : different);
  const costOf = ([turn, growth]: readonly [number, number]) => {
    const slope = Math.exp(growth);
    let cost = (prior[0]! * turn ** 2 + prior[1]! * growth ** 2) / 2;
    for (const trial of trials) {
      const margin = (trial.same ? 1 : -1) * slope * (trial.llr - turn);
      cost += weightOf(trial) * (margin > 0 ? Math.log1p(Math.exp(-margin)) : Math.log1p(Math.exp(margin)) - margin);
    }
    return cost;
  };
  let at: readonly [number, number] = [0, 0];
  let cost = costOf(at);
  for (let round = 0; round < 50; round++) {
    const [turn, growth] = at;
    const slope = Math.exp(growth);
    const gradient = [prior[0]! * turn, prior[1]! * growth] as [number, number];
    const curvature = [prior[0]!, 0, prior[1]!] as [number, number, number];
    for (const trial of trials) {
      const ratio = slope * (trial.llr - turn);
      const probability = 1 / (1 + Math.exp(-ratio));
      const error = weightOf(trial) * (probability - (trial.same ? 1 : 0));
      const bend = weightOf(trial) * probability * (1 - probability);
      gradient[0] -= error * slope;
      gradient[1] += error * ratio;
      curvature[0] += bend * slope ** 2;
      curvature[1] -= bend * slope * ratio;
      curvature[2] += bend * ratio ** 2;
    }
    const determinant = curvature[0] * curvature[2] - curvature[1] ** 2;
    const step = [
      (curvature[2] * gradient[0] - curvature[1] * gradient[1]) / determinant,
      (curvature[0] * gradient[1] - curvature[1] * gradient[0]) / determinant,
    ] as const;
    const before = cost;
    for (let share = 1; share > 1e-6; share /= 2) {
      const next = [turn - share * step[0], growth - share * step[1]] as const;
      const found = costOf(next);
      if (!(found < cost)) continue;
      [at, cost] = [next, found];
      break;
    }
    if (before - cost < 1e-12) break;
  }
  const slope = Math.exp(at[1]);
  return { level: -slope * at[0], slope };
}

/** The section `calibration` with the fit applied. */
export function calibrated(
  section: Readonly<Record<string, unknown>>,
  { level, slope, centerShift, spreadFactor }: FittedCalibration,
): Record<string, unknown> {
  const { tensors: _, ...base } = section;
  const { terms, impostors } = base as unknown as {
    terms: readonly Term[];
    impostors: { center: readonly Term[]; spread: readonly Term[] };
  };
  const times = (list: readonly Term[], factor: number) => list.map(([a, b, weight]): Term => [a, b, weight * factor]);
  return {
    ...base,
    terms: [...times(terms, slope), ["one", "one", level]],
    impostors: {
      center: [...impostors.center, ["one", "one", centerShift]],
      spread: times(impostors.spread, spreadFactor),
    },
  };
}

/** The trials, scored with the fit. */
export const underFit = (
  trials: readonly ScoredTrial[],
  { level, slope, centerShift, spreadFactor }: FittedCalibration,
): ScoredTrial[] =>
  trials.map((trial) => ({
    ...trial,
    llr: level + slope * trial.llr,
    ratios: { unlike: level + slope * trial.ratios.unlike, identical: level + slope * trial.ratios.identical },
    impostors: {
      center: trial.impostors.center + centerShift,
      spread: Math.max(leastSpread, trial.impostors.spread * spreadFactor),
    },
  }));

export const cllrOf = (trials: readonly ScoredTrial[]): number => cllr(sortedByRatio(trials));

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
