import { z } from "zod";
import { decimal, percent } from "./format.js";
import type { Estimate } from "./summary.js";

export interface ComparedFigure {
  readonly figure: string;
  readonly before: string;
  readonly after: string;
  /** "better", "worse", or "within the interval" of the earlier figure; "nearer to the target" or "farther from the target" for a rate that has one. */
  readonly change: string;
}

export interface Comparison {
  readonly rows: readonly ComparedFigure[];
  /** Reasons to compare the two with care. */
  readonly note: string | null;
}

const interval = z.object({ low: z.number(), high: z.number() }).readonly().nullable();
const estimate = z.object({ value: z.number(), interval });

/** What is compared of the answer of `evaluate --json`. Another version may have made it, with other figures beside these. */
const schema = z.object({
  summary: z.object({
    sameTrials: z.number(),
    differentTrials: z.number(),
    equalErrorRate: estimate,
    cllr: estimate,
    minimumCllr: estimate,
    operatingPoints: z.array(z.object({ falseMatchRate: z.number(), fnmr: estimate })).readonly(),
    promisedPoints: z
      .array(z.object({ promisedRate: z.number(), falseMatchRate: z.number(), interval }))
      .readonly()
      .default([]),
  }),
  openSet: z
    .array(
      z.object({
        size: z.number(),
        targetRate: z.number(),
        fpir: z.number(),
        fpirInterval: interval.default(null),
        fnir: z.number(),
        fnirInterval: interval.default(null),
      }),
    )
    .readonly()
    .default([]),
  note: z.string().nullable().default(null),
});

export type ComparedEvaluation = z.infer<typeof schema>;

/** `null` if the text is not the output of `evaluate --json`, or has no figures. */
export function comparedEvaluation(text: string): ComparedEvaluation | null {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Compares two evaluations figure by figure, as far as both have them. Lower is better, except for rates that have a target. */
export function compareEvaluations(before: ComparedEvaluation, after: ComparedEvaluation): Comparison {
  const [first, second] = [before.summary, after.summary];
  const of = (value: number, interval: Estimate["interval"]): Estimate => ({ value, interval });
  const row = (figure: string, one: Estimate, other: Estimate, words: (estimate: Estimate) => string) => ({
    figure,
    before: words(one),
    after: words(other),
    change: changeOf(one, other, ["better", "worse"], ({ value }) => value),
  });
  const targeted = (figure: string, one: Estimate, other: Estimate, target: number) => ({
    figure,
    before: percent(one),
    after: percent(other),
    // By the factor between them: half of the target is as far from it as double.
    change: changeOf(one, other, ["nearer to the target", "farther from the target"], ({ value }) =>
      Math.abs(Math.log(value / target)),
    ),
  });
  const rows: ComparedFigure[] = [
    row("EER", first.equalErrorRate, second.equalErrorRate, percent),
    ...first.operatingPoints.flatMap(({ falseMatchRate, fnmr }) => {
      const same = second.operatingPoints.find((point) => point.falseMatchRate === falseMatchRate);
      return same ? [row(`FNMR at FMR ${100 * falseMatchRate} %`, fnmr, same.fnmr, percent)] : [];
    }),
    ...first.promisedPoints.flatMap(({ promisedRate, falseMatchRate, interval }) => {
      const same = second.promisedPoints.find((point) => point.promisedRate === promisedRate);
      if (!same) return [];
      const [one, other] = [of(falseMatchRate, interval), of(same.falseMatchRate, same.interval)];
      return [targeted(`FMR, target FAR ${100 * promisedRate} %`, one, other, promisedRate)];
    }),
    row("Cllr", first.cllr, second.cllr, decimal),
    row("minCllr", first.minimumCllr, second.minimumCllr, decimal),
  ];
  const lists = before.openSet.flatMap((list) => {
    const { size, targetRate } = list;
    const same = after.openSet.find((other) => other.size === size && other.targetRate === targetRate);
    if (!same) return [];
    const on = `list of ${size}, target FPIR ${100 * targetRate} %`;
    return [
      targeted(`FPIR, ${on}`, of(list.fpir, list.fpirInterval), of(same.fpir, same.fpirInterval), targetRate),
      row(`FNIR, ${on}`, of(list.fnir, list.fnirInterval), of(same.fnir, same.fnirInterval), percent),
    ];
  });
  const trials = ({ summary }: ComparedEvaluation) =>
    `${summary.sameTrials} same, ${summary.differentTrials} different`;
  const reasons = new Set([before.note, after.note].flatMap((note) => (note ? [`${note}.`] : [])));
  if (trials(before) !== trials(after))
    reasons.add(
      `The trials differ (${trials(before)}; ${trials(after)}): the figures do not come from the same recordings.`,
    );
  return { rows: [...rows, ...lists], note: [...reasons].join("\n") || null };
}

function changeOf(
  before: Estimate,
  after: Estimate,
  [less, more]: readonly [string, string],
  errorOf: (estimate: Estimate) => number,
): string {
  if (before.value === after.value) return "same";
  const { interval } = before;
  if (interval && after.value >= interval.low && after.value <= interval.high) return "within the interval";
  return errorOf(after) < errorOf(before) ? less : more;
}
