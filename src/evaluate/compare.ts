import type { Evaluation } from "./evaluate.js";
import { decimal, percent, rate } from "./format.js";
import type { Estimate, Summary } from "./summary.js";

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

type Answer = Omit<Evaluation, "trials">;

/** Compares two evaluations figure by figure: lower is better for all. */
export function compareEvaluations(before: Answer, after: Answer): Comparison {
  const figures: [string, (summary: Summary) => Estimate, (estimate: Estimate) => string][] = [
    ["EER", (summary) => summary.equalErrorRate, percent],
    ...before.summary!.operatingPoints.map(
      (point, i): [string, (summary: Summary) => Estimate, (estimate: Estimate) => string] => [
        `FNMR at FMR ${100 * point.falseMatchRate} %`,
        (summary) => summary.operatingPoints[i]!.fnmr,
        percent,
      ],
    ),
    ["Cllr", (summary) => summary.cllr, decimal],
    ["minCllr", (summary) => summary.minimumCllr, decimal],
  ];
  const rows = figures.map(([figure, of, words]): ComparedFigure => {
    const [one, other] = [of(before.summary!), of(after.summary!)];
    return { figure, before: words(one), after: words(other), change: changeOf(one, other) };
  });
  const lists = before.openSet.flatMap((row): ComparedFigure[] => {
    const same = after.openSet.find(({ size, targetRate }) => size === row.size && targetRate === row.targetRate);
    if (!same) return [];
    const [one, other] = [row.fnir, same.fnir].map((value): Estimate => ({ value, interval: null })) as [
      Estimate,
      Estimate,
    ];
    const figure = `FNIR, list of ${row.size}, target FPIR ${100 * row.targetRate} %`;
    return [{ figure, before: rate(row.fnir), after: rate(same.fnir), change: changeOf(one, other) }];
  });
  const trials = ({ summary }: Answer) => `${summary!.sameTrials} same, ${summary!.differentTrials} different`;
  const note =
    trials(before) === trials(after)
      ? null
      : `The trials differ (${trials(before)}; ${trials(after)}): the figures are not of the same recordings.`;
  return { rows: [...rows, ...lists], note };
}

function changeOf(before: Estimate, after: Estimate): string {
  if (before.value === after.value) return "same";
  const { interval } = before;
  if (interval && after.value >= interval.low && after.value <= interval.high) return "within the interval";
  return after.value < before.value ? "better" : "worse";
}
