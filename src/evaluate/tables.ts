/** The figures of an evaluation as tables, for the command line and the report. */
import type { Evaluation } from "./evaluate.js";
import { decimal, percent, rate } from "./format.js";
import type { BandSummary, OperatingPoint, Summary } from "./summary.js";
import { CALLERS, MOST_OTHERS } from "./trials.js";
import { type Pair, promiseInWords, worstPairs } from "./verdicts.js";

export interface FigureTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
  /** How many of the first columns are names of files. */
  readonly files?: number;
  /** Sentences below the table. */
  readonly notes?: readonly string[];
}

export const figuresOf = (
  summary: Summary,
  sampledFrom: Evaluation["sampledFrom"],
): (readonly [string, string | number])[] => [
  ["Speakers", summary.speakers],
  ["Trials, same person / different people", `${summary.sameTrials} / ${summary.differentTrials}`],
  ...(sampledFrom
    ? [["All trials, of which these are a random sample", `${sampledFrom.same} / ${sampledFrom.different}`] as const]
    : []),
  ["Equal error rate, EER", percent(summary.equalErrorRate)],
  ...summary.operatingPoints.map(({ falseMatchRate, fnmr, resolved }) => {
    const name = `FNMR at FMR ${100 * falseMatchRate} %`;
    return [resolved ? name : `${name} (too few trials to resolve)`, percent(fnmr)] as const;
  }),
  ["minDCF (prior 0.01)", decimal(summary.minimumDetectionCost)],
  ["Actual DCF (prior 0.01)", decimal(summary.actualDetectionCost)],
  ["Cllr, bits", decimal(summary.cllr)],
  ["minCllr, bits", decimal(summary.minimumCllr)],
];

/** Tables without rows are left out. */
export function tablesOf(
  { openSet, byNetSpeech, bySnr, trials, sampledFrom }: Evaluation,
  { promisedPoints }: Summary,
): FigureTable[] {
  const { different, same } = worstPairs(trials);
  const tables: FigureTable[] = [
    {
      title: "Does the threshold keep its promise?",
      head: ["target FAR", "threshold (median)", "FMR", "FNMR"],
      rows: promisedPoints.map(({ promisedRate, threshold, falseMatchRate, interval, falseNonMatchRate }) => [
        `${100 * promisedRate} %`,
        threshold.toFixed(2),
        percent({ value: falseMatchRate, interval }),
        rate(falseNonMatchRate),
      ]),
      notes: promisedPoints.map(promiseInWords),
    },
    {
      title: "Lists",
      head: ["list of", "target FPIR", "FPIR", "FNIR", "best FNIR at the target"],
      rows: openSet.map(({ size, targetRate, fpir, fpirInterval, fnir, fnirInterval, oracleFnir }) => [
        size,
        `${100 * targetRate} %`,
        percent({ value: fpir, interval: fpirInterval }),
        percent({ value: fnir, interval: fnirInterval }),
        rate(oracleFnir),
      ]),
      notes: [
        "Each call is compared with lists of other speakers: without the caller (FPIR: how often somebody is named anyway), and with the caller (FNIR: how often the caller is not found).",
        ...(sampledFrom
          ? [
              `For lists, at most ${CALLERS} recordings are tested, each against at most ${MOST_OTHERS} other speakers, drawn at random.`,
            ]
          : []),
      ],
    },
    bands("net speech", byNetSpeech),
    bands("SNR", bySnr),
    pairs("Pairs of different people with the highest scores", different),
    pairs("Pairs of one person with the lowest scores", same),
  ];
  return tables.filter(({ rows }) => rows.length > 0);
}

const bands = (measure: string, list: readonly BandSummary[]): FigureTable => ({
  title: `By ${measure} of the tested recording`,
  head: [measure, "trials", "EER", "FNMR at FMR 1 %", "Cllr"],
  rows: list.map(({ label, trials, summary }) => [
    label,
    trials,
    ...(summary
      ? [percent(summary.equalErrorRate), fnmrOf(summary.operatingPoints[0]!), decimal(summary.cllr)]
      : ["one kind of trial only", "", ""]),
  ]),
});

const fnmrOf = ({ fnmr, resolved }: OperatingPoint) => (resolved ? percent(fnmr) : "too few trials");

const pairs = (title: string, list: readonly Pair[]): FigureTable => ({
  title,
  head: ["enrolled", "tested", "score", "ratio"],
  files: 2,
  rows: list.map(({ enrolled, tested, raw, llr }) => [enrolled, tested, raw.toFixed(3), llr.toFixed(1)]),
});
