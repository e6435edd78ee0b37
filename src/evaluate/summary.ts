import type { Engine, Expectation } from "../engine/port.js";
import {
  createResampling,
  type Interval,
  percentileInterval,
  ruleOfThree,
  seededRandom,
  type TrialSpeakers,
} from "./bootstrap.js";
import {
  actualDetectionCost,
  cllr,
  equalErrorRate,
  fnmrAt,
  hasBothKinds,
  minimumCllr,
  minimumDetectionCost,
  ratesAt,
  type SortedTrials,
  sortedByRatio,
} from "./metrics.js";
import type { Trial } from "./trials.js";

/** One scored comparison. */
export interface ScoredTrial extends Expectation, Trial {
  readonly llr: number;
  readonly raw: number;
  readonly enrolledSpeaker: number;
  readonly testedSpeaker: number;
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
  /** The first recording that could be enrolled, and the tested one. */
  readonly names?: { readonly enrolled: string; readonly tested: string };
}

export interface Estimate {
  readonly value: number;
  /** 95 %, over speakers; absent if there are too few speakers, and for a cost of 0. The upper limit of a rate without errors follows from the number of speakers. */
  readonly interval: Interval | null;
}

/** A number computed from trials with these weights. */
interface Figure {
  readonly of: (trials: SortedTrials, weights: Float64Array | null) => number;
  /** Of an error rate: how many independent units could have erred. */
  readonly units?: number;
}

export interface OperatingPoint {
  readonly falseMatchRate: number;
  readonly fnmr: Estimate;
  /** False if the trials are too few for even one expected false match: the figure is then a guess. */
  readonly resolved: boolean;
}

/** The result at thresholds that promise `promisedRate`. */
export interface PromisedPoint {
  readonly promisedRate: number;
  /** 95 % of the rate met, with speakers taken as independent; absent if there are too few. */
  readonly interval: Interval | null;
  /** Whether the rate met is within a factor of two of the promise. */
  readonly verdict: "kept" | "exceeded" | "undercut" | "too few trials";
  /** The median threshold of the comparisons. */
  readonly threshold: number;
  readonly falseMatchRate: number;
  readonly falseNonMatchRate: number;
}

export interface Summary {
  readonly speakers: number;
  readonly sameTrials: number;
  readonly differentTrials: number;
  readonly equalErrorRate: Estimate;
  readonly minimumDetectionCost: Estimate;
  readonly actualDetectionCost: Estimate;
  readonly cllr: Estimate;
  readonly minimumCllr: Estimate;
  readonly operatingPoints: readonly OperatingPoint[];
  readonly promisedPoints: readonly PromisedPoint[];
}

export interface SummaryOptions {
  /** Resamples of the bootstrap; 0 gives no intervals. */
  readonly resamples?: number;
  readonly seed?: number;
  /** The engine's threshold for a false-accept rate and the quality of a comparison, to check whether it keeps its promise. */
  readonly threshold?: Engine["threshold"];
}

const FALSE_MATCH_RATES = [0.01, 0.001, 0.0001] as const;

/** The figures of these trials; `null` if one of the two kinds of trial is missing. */
export function summarize(trials: readonly ScoredTrial[], options: SummaryOptions = {}): Summary | null {
  const { resamples = 1000, seed = 1 } = options;
  const sorted = sortedByRatio(trials);
  if (!hasBothKinds(sorted)) return null;
  const speakers = numberSpeakers(trials);
  const differentTrials = trials.filter((trial) => !trial.same).length;

  const { persons, pairs } = unitsOf(trials);
  const figures: Figure[] = [
    { of: equalErrorRate, units: persons },
    { of: minimumDetectionCost },
    { of: actualDetectionCost },
    { of: cllr },
    { of: minimumCllr },
    ...FALSE_MATCH_RATES.map(
      (rate): Figure => ({ of: (trials, weights) => fnmrAt(trials, rate, weights), units: persons }),
    ),
  ];
  const estimates = bootstrap(sorted, speakers, figures, resamples, seed);
  const [eer, minDcf, actDcf, cost_llr, minCost_llr, ...fnmrs] = estimates;

  return {
    speakers: speakers.count,
    sameTrials: trials.length - differentTrials,
    differentTrials,
    equalErrorRate: eer!,
    minimumDetectionCost: minDcf!,
    actualDetectionCost: actDcf!,
    cllr: cost_llr!,
    minimumCllr: minCost_llr!,
    operatingPoints: FALSE_MATCH_RATES.map((falseMatchRate, i) => ({
      falseMatchRate,
      fnmr: fnmrs[i]!,
      resolved: differentTrials * falseMatchRate >= 1,
    })),
    promisedPoints: options.threshold
      ? FALSE_MATCH_RATES.map((rate) =>
          promisedPoint(trials, rate, options.threshold!, { speakers, pairs, resamples, seed }),
        )
      : [],
  };
}

function promisedPoint(
  trials: readonly ScoredTrial[],
  promisedRate: number,
  thresholdOf: Engine["threshold"],
  { speakers, pairs, resamples, seed }: { speakers: TrialSpeakers; pairs: number; resamples: number; seed: number },
): PromisedPoint {
  const thresholds = trials.map((trial) => thresholdOf(promisedRate, trial));
  // Relative to its own threshold, a trial's ratio becomes an excess over 0.
  const excesses = sortedByRatio(trials.map(({ llr, same }, i) => ({ llr: llr - thresholds[i]!, same })));
  const { falseMatchRate, falseNonMatchRate } = ratesAt(excesses, 0);
  const figure: Figure = { of: (sorted, weights) => ratesAt(sorted, 0, weights).falseMatchRate, units: pairs };
  const { interval } = bootstrap(excesses, speakers, [figure], resamples, seed)[0]!;
  const threshold = thresholds.sort((a, b) => a - b)[Math.floor(thresholds.length / 2)]!;
  const different = trials.filter(({ same }) => !same).length;
  // Without resamples, the rate alone decides.
  const known = resamples === 0 ? { low: falseMatchRate, high: falseMatchRate } : interval;
  const verdict = verdictOn(promisedRate, falseMatchRate, known, different);
  return { promisedRate, interval, verdict, threshold, falseMatchRate, falseNonMatchRate };
}

/** Kept if within a factor of two, or if the speakers are too few to show otherwise. */
function verdictOn(
  promised: number,
  met: number,
  interval: Interval | null,
  differentTrials: number,
): PromisedPoint["verdict"] {
  // False matches that nobody expected are as telling as expected ones that are missing.
  if (differentTrials * Math.max(promised, met / 2) < 5 || interval === null) return "too few trials";
  if (met > 2 * promised) return interval.low > promised ? "exceeded" : "too few trials";
  if (met < promised / 2) return interval.high < promised ? "undercut" : "too few trials";
  return "kept";
}

/** The people who were compared with themselves, and the pairs of people who were compared: trials of one person, or of one pair, are alike. */
function unitsOf(trials: readonly ScoredTrial[]): { persons: number; pairs: number } {
  const persons = new Set<number>();
  // Numbers, because strings of a million pairs take ten times the memory.
  const pairs = new Set<number>();
  for (const { same, enrolledSpeaker: one, testedSpeaker: other } of trials)
    if (same) persons.add(one);
    else pairs.add(Math.min(one, other) * 2 ** 26 + Math.max(one, other));
  return { persons: persons.size, pairs: pairs.size };
}

function numberSpeakers(trials: readonly ScoredTrial[]): TrialSpeakers {
  const numbers = new Map<number, number>();
  const number = (speaker: number) => {
    if (!numbers.has(speaker)) numbers.set(speaker, numbers.size);
    return numbers.get(speaker)!;
  };
  const enrolled = trials.map((trial) => number(trial.enrolledSpeaker));
  const tested = trials.map((trial) => number(trial.testedSpeaker));
  return { enrolled, tested, count: numbers.size };
}

function bootstrap(
  sorted: SortedTrials,
  speakers: TrialSpeakers,
  figures: readonly Figure[],
  resamples: number,
  seed: number,
): Estimate[] {
  const resample = createResampling(sorted, speakers, seededRandom(seed));
  const values: number[][] = figures.map(() => []);
  // A resample of one or two speakers says nothing about other people.
  for (let i = 0; i < resamples && speakers.count > 2; i++) {
    const weights = resample();
    if (!hasBothKinds(sorted, weights)) continue;
    figures.forEach((figure, f) => {
      values[f]!.push(figure.of(sorted, weights));
    });
  }
  return figures.map(({ of, units }, f) => {
    const value = of(sorted, null);
    const interval = percentileInterval(values[f]!);
    if (interval === null || value !== 0) return { value, interval };
    // A cost has no such limit: 0 to 0 would claim a certainty that is not there.
    return {
      value,
      interval: units === undefined ? null : { low: 0, high: Math.max(interval.high, ruleOfThree(units)) },
    };
  });
}

export interface Band {
  readonly label: string;
  readonly low: number;
  readonly high: number;
}

export const NET_SPEECH_BANDS: readonly Band[] = [
  { label: "under 1.5 s", low: 0, high: 1.5 },
  { label: "1.5 to 2.5 s", low: 1.5, high: 2.5 },
  { label: "2.5 to 4 s", low: 2.5, high: 4 },
  { label: "4 to 7.5 s", low: 4, high: 7.5 },
  { label: "7.5 s and more", low: 7.5, high: Number.POSITIVE_INFINITY },
];

export const SNR_BANDS: readonly Band[] = [
  { label: "under 5 dB", low: Number.NEGATIVE_INFINITY, high: 5 },
  { label: "5 to 10 dB", low: 5, high: 10 },
  { label: "10 to 15 dB", low: 10, high: 15 },
  { label: "15 to 20 dB", low: 15, high: 20 },
  { label: "20 dB and more", low: 20, high: Number.POSITIVE_INFINITY },
];

export interface BandSummary {
  readonly label: string;
  readonly trials: number;
  /** `null` if the band has trials of only one kind. */
  readonly summary: Summary | null;
}

/** The figures by a measure of the tested recording; bands without trials are left out. */
export function summarizeBy(
  trials: readonly ScoredTrial[],
  bands: readonly Band[],
  measure: (trial: ScoredTrial) => number | null,
  options: SummaryOptions = {},
): BandSummary[] {
  return bands.flatMap((band) => {
    const inside = trials.filter((trial) => {
      const value = measure(trial);
      return value !== null && value >= band.low && value < band.high;
    });
    if (inside.length === 0) return [];
    return [{ label: band.label, trials: inside.length, summary: summarize(inside, options) }];
  });
}
