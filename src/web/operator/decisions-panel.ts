import type { DecisionView } from "../../server/operator/view.js";
import { element } from "../dom.js";
import { strings } from "./strings.js";
import { id, Table, time } from "./table.js";

const words = strings.decisions;
const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const figure = (value: number | null) => (value === null ? "–" : String(Math.round(value)));

/** Decisions as they are made. */
export class DecisionsPanel {
  readonly #table = new Table(words.heading, words.columns);
  readonly element = element(
    "section",
    { class: "card" },
    element("h2", {}, words.heading),
    element("p", { class: "note" }, words.note),
    this.#table.element,
  );

  show(decisions: readonly DecisionView[]): void {
    this.#table.show(
      decisions,
      (one) => [
        time(one.at, clock),
        one.operation,
        element("span", { class: "badge", "data-decision": one.decision }, words.words(one.decision)),
        words.words(one.reason),
        figure(one.risk),
        figure(one.reliability),
        id(one.sessionId),
        id(one.profileId),
      ],
      words.none,
    );
  }
}
