import type { DecisionView } from "../../server/operator/view.js";
import type { Opens } from "./detail-context.js";
import { reliability, risk } from "./figures.js";
import { nameOf, strings } from "./strings.js";
import { badge, clockAndDay, figure, link, time } from "./table.js";
import { TablePanel } from "./table-panel.js";

/** Decisions as they are made. */
export const decisionsPanel = (opens: Opens) =>
  new TablePanel<DecisionView>(strings.decisions, (one) => [
    time(one.at, clockAndDay),
    one.operation,
    badge("decision", one.decision, nameOf(one.decision)),
    nameOf(one.reason),
    figure(one.risk, risk),
    figure(one.reliability, reliability),
    link(one.sessionId, opens.sessions),
    link(one.profileId, opens.profiles),
  ]);
