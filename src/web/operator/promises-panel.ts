import type { FieldRate } from "../../voiceprint/field-rates.js";
import { element } from "../dom.js";
import { strings } from "./strings.js";
import { Table } from "./table.js";

const words = strings.promises;

/** Whether the rates that thresholds promise hold for the callers that the box really has. */
export class PromisesPanel {
  readonly #table = new Table(words.heading, words.columns);
  readonly #advice = element("p", { class: "note", role: "status" });
  readonly element = element(
    "section",
    { class: "card" },
    element("h2", {}, words.heading),
    element("p", { class: "note" }, words.note),
    this.#table.element,
    this.#advice,
  );

  show(rates: readonly FieldRate[]): void {
    const { percent, count } = words;
    this.#table.show(
      rates.filter(({ met }) => met !== null),
      ({ list, promised, met, comparisons, calls, verdict }) => [
        words.lists[list],
        percent(promised),
        percent(met!.rate),
        `${percent(met!.low)} to ${percent(met!.high)}`,
        count(comparisons),
        count(calls),
        element("span", { class: "badge", "data-verdict": verdict }, words.verdicts[verdict]),
      ],
      words.none,
    );
    const exceeded = rates.some(({ verdict }) => verdict === "exceeded");
    this.#advice.replaceChildren(...(exceeded ? [words.calibrate, " ", element("code", {}, words.how)] : []));
  }
}
