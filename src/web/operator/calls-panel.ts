import type { LiveCallView } from "../../server/limits/live-calls.js";
import { seconds, thousandths } from "./figures.js";
import { nameOf, strings } from "./strings.js";
import { badge, clock, figure, id, time } from "./table.js";
import { TablePanel } from "./table-panel.js";

/** Live calls with their current net speech and score. */
export const callsPanel = () =>
  new TablePanel<LiveCallView>(strings.calls, (call) => [
    time(call.startedAt, clock),
    call.from,
    seconds(call.grossSeconds),
    seconds(call.netSpeechSeconds),
    figure(call.score, thousandths),
    call.decision === null ? strings.none : badge("decision", call.decision, nameOf(call.decision)),
    id(call.id),
  ]);
