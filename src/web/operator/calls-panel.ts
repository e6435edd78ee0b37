import type { LiveCallsView } from "../../server/operator/view.js";
import { element } from "../dom.js";
import { strings } from "./strings.js";
import { id, Table, time } from "./table.js";

const words = strings.calls;
const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit" };

/** Live calls while they are spoken: net speech and score as they rise. */
export class CallsPanel {
  readonly #table = new Table(words.heading, words.columns);
  readonly element = element(
    "section",
    { class: "card" },
    element("h2", {}, words.heading),
    element("p", { class: "note" }, words.note),
    this.#table.element,
  );

  show({ calls }: LiveCallsView): void {
    this.#table.show(
      calls,
      (call) => [
        time(call.startedAt, clock),
        call.from,
        words.seconds(call.grossSeconds),
        words.seconds(call.netSpeechSeconds),
        call.score === null ? "–" : call.score.toFixed(3),
        call.decision === null
          ? "–"
          : element("span", { class: "badge", "data-decision": call.decision }, strings.decisions.words(call.decision)),
        id(call.id),
      ],
      words.none,
    );
  }
}
