/**
 * How often impostors exceed the thresholds in the field. Nearly all comparisons with watchlists and groups are with
 * impostors, so counting how many exceed the thresholds of 10, 1 and 0.1 % shows whether these rates hold for the real
 * callers of a box. Only counts are stored: no scores, no voices.
 */

export const promisedRates = [0.1, 0.01, 0.001] as const;

/** Watchlists: all comparisons. Groups: all but the one with the person who was found. */
export const countedLists = ["watchlist", "group"] as const;
export type CountedList = (typeof countedLists)[number];

/** Sums over calls. They give the rate, and how much it varies between calls. */
export interface RateCount {
  readonly calls: number;
  readonly comparisons: number;
  readonly exceeded: number;
  /** Sums of squares and products over calls. */
  readonly comparisonsSquared: number;
  readonly exceededSquared: number;
  readonly product: number;
}

export const countOfCall = (comparisons: number, exceeded: number): RateCount => ({
  calls: 1,
  comparisons,
  exceeded,
  comparisonsSquared: comparisons ** 2,
  exceededSquared: exceeded ** 2,
  product: comparisons * exceeded,
});

export const noCount: RateCount = { ...countOfCall(0, 0), calls: 0 };

export const addCounts = (one: RateCount, other: RateCount): RateCount => ({
  calls: one.calls + other.calls,
  comparisons: one.comparisons + other.comparisons,
  exceeded: one.exceeded + other.exceeded,
  comparisonsSquared: one.comparisonsSquared + other.comparisonsSquared,
  exceededSquared: one.exceededSquared + other.exceededSquared,
  product: one.product + other.product,
});

/** One count for each promised rate, in order. */
export type ListCounts = readonly RateCount[];

/** Whether a promised rate is kept, as far as the counted calls show. */
export type Verdict = "holds" | "exceeded" | "undecided";

/** How often impostors exceeded the thresholds of a list, compared with the promised rate. */
export interface FieldRate extends Pick<RateCount, "calls" | "comparisons" | "exceeded"> {
  readonly list: CountedList;
  readonly promised: number;
  /** `null` before the first comparison. */
  readonly met: { readonly rate: number; readonly low: number; readonly high: number } | null;
  readonly verdict: Verdict;
}

/** A rate within a factor of two of the promised one is good enough, as for the model's own figures. */
const tolerance = 2;

/** With fewer calls, the one fraudster who was found would make a promise look broken. */
const fewestCalls = 100;

export function fieldRates(list: CountedList, counts: ListCounts): FieldRate[] {
  const effect = designEffect(counts);
  return promisedRates.map((promised, i) => {
    const { calls, comparisons, exceeded } = counts[i] ?? noCount;
    const met = comparisons === 0 ? null : interval(exceeded, comparisons, effect);
    const verdict =
      met === null
        ? "undecided"
        : met.high <= tolerance * promised
          ? "holds"
          : met.low > tolerance * promised && calls >= fewestCalls
            ? "exceeded"
            : "undecided";
    return { list, promised, calls, comparisons, exceeded, met, verdict };
  });
}

/**
 * Comparisons of one call share a voice, so they are worth fewer independent ones. The design effect says how many fewer:
 * the variance of the ratio of sums over calls, divided by that of as many independent comparisons. It is best measured
 * where most comparisons exceed; the largest value is used for all rates.
 */
function designEffect(counts: ListCounts): number {
  const fewest = 20;
  const effects = counts
    .filter(({ exceeded, calls }) => exceeded >= fewest && calls >= fewest)
    .map(({ comparisons: n, exceeded, comparisonsSquared, exceededSquared, product }) => {
      const rate = exceeded / n;
      const spread = exceededSquared - 2 * rate * product + rate ** 2 * comparisonsSquared;
      return spread / (n * rate * (1 - rate) || 1);
    });
  return Math.max(1, ...effects);
}

/** Wilson's 95 % interval. */
function interval(exceeded: number, comparisons: number, effect: number) {
  const z2 = 1.96 ** 2;
  const n = comparisons / effect;
  const rate = exceeded / comparisons;
  const center = (rate + z2 / (2 * n)) / (1 + z2 / n);
  const half = (Math.sqrt(z2) / (1 + z2 / n)) * Math.sqrt((rate * (1 - rate)) / n + z2 / (4 * n * n));
  return { rate, low: Math.max(0, center - half), high: Math.min(1, center + half) };
}
