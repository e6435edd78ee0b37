import { z } from "zod";
import { decimal, percent } from "./format.js";
import type { Estimate } from "./summary.js";

export interface ComparedFigure {
  readonly figure: string;
  readonly before: string;
  readonly after: string;
  /** "better", "worse", or "within the interval" of the earlier figure. */
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
  }),
  openSet: z
    .array(
      z.object({
        size: z.number(),
        targetRate: z.number(),
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

/** Compares two evaluations figure by figure, as far as both have them: lower is better for all. */
export function compareEvaluations(before: ComparedEvaluation, after: ComparedEvaluation): Comparison {
  const [first, second] = [before.summary, after.summary];
  const row = (figure: string, one: Estimate, other: Estimate, words: (estimate: Estimate) => string) => ({
    figure,
    before: words(one),
    after: words(other),
    change: changeOf(one, other),
  });
  const rows: ComparedFigure[] = [
    row("EER", first.equalErrorRate, second.equalErrorRate, percent),
    ...first.operatingPoints.flatMap(({ falseMatchRate, fnmr }) => {
      const same = second.operatingPoints.find((point) => point.falseMatchRate === falseMatchRate);
      return same ? [row(`FNMR at FMR ${100 * falseMatchRate} %`, fnmr, same.fnmr, percent)] : [];
    }),
    row("Cllr", first.cllr, second.cllr, decimal),
    row("minCllr", first.minimumCllr, second.minimumCllr, decimal),
  ];
  const lists = before.openSet.flatMap((list) => {
    const { size, targetRate } = list;
    const same = after.openSet.find((other) => other.size === size && other.targetRate === targetRate);
    const of = ({ fnir, fnirInterval }: typeof list): Estimate => ({ value: fnir, interval: fnirInterval });
    return same ? [row(`FNIR, list of ${size}, target FPIR ${100 * targetRate} %`, of(list), of(same), percent)] : [];
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

function changeOf(before: Estimate, after: Estimate): string {
  if (before.value === after.value) return "same";
  const { interval } = before;
  if (interval && after.value >= interval.low && after.value <= interval.high) return "within the interval";
  return after.value < before.value ? "better" : "worse";
}
