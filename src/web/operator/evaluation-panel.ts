import { detPlot } from "../../evaluate/det-plot.js";
import type { LastEvaluation } from "../../evaluate/last-evaluation.js";
import { element } from "../dom.js";
import { percent, roughPercent, thousandths } from "./figures.js";
import { drawPlot } from "./plot.js";
import { shortRevision, strings } from "./strings.js";
import { facts, moment, time } from "./table.js";
import { card } from "./table-panel.js";

const words = strings.evaluation;
type Estimate = LastEvaluation["cllr"];

const estimate = ({ value, interval }: Estimate, write: (value: number) => string) =>
  interval ? `${write(value)} (${strings.between(write(interval.low), write(interval.high))})` : write(value);

/** Accuracy of this box: the last evaluation that was made on this machine. */
export class EvaluationPanel {
  readonly #content = element("div", {}, element("p", { class: "note" }, strings.loading));
  readonly element = card(words.heading, undefined, this.#content);
  #shown = "";

  show(evaluation: LastEvaluation | null, modelRevision: string): void {
    const now = JSON.stringify(evaluation);
    if (now === this.#shown) return;
    this.#shown = now;
    this.#content.replaceChildren(...(evaluation ? filled(evaluation, modelRevision) : empty()));
  }
}

const empty = () => [
  element("p", { class: "note" }, words.none, " ", element("code", {}, "npx vivavoce evaluate recordings/")),
];

function filled(evaluation: LastEvaluation, modelRevision: string): HTMLElement[] {
  const same = evaluation.modelRevision === modelRevision;
  const rows: [string, string][] = [
    [words.eer, estimate(evaluation.equalErrorRate, percent)],
    ...evaluation.operatingPoints.map(({ falseMatchRate, fnmr, resolved }): [string, string] => [
      words.fnmr(roughPercent(falseMatchRate)),
      resolved ? estimate(fnmr, percent) : `${percent(fnmr.value)}, ${words.unresolved}`,
    ]),
    ["Cllr", estimate(evaluation.cllr, thousandths)],
    [words.speakers, String(evaluation.speakers)],
    [words.trials, `${evaluation.sameTrials} / ${evaluation.differentTrials}`],
    [words.unscored, String(evaluation.unscoredTrials)],
    [words.condition, evaluation.condition],
    [strings.models.columns[0], (same ? words.sameModel : words.otherModel)(shortRevision(evaluation.modelRevision))],
  ];
  const plot = drawPlot({
    ...detPlot(evaluation.curve, { line: "var(--accent)", diagonal: "var(--line)", width: 400, height: 400 }),
    ariaLabel: `${words.plot}; ${words.eer} ${percent(evaluation.equalErrorRate.value)}`,
  });
  return [
    element("p", { class: "note" }, `${evaluation.name}, `, time(evaluation.at, moment)),
    element(
      "div",
      { class: "evaluation" },
      element("figure", {}, element("figcaption", {}, element("strong", {}, words.plot)), element("div", {}, plot)),
      facts(rows),
    ),
  ];
}
