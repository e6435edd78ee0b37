import type { DecisionView } from "../../server/operator/view.js";
import type { Opens } from "./detail-context.js";
import { nameOf, strings } from "./strings.js";
import { badge, clock, figure, link, time } from "./table.js";
import { TablePanel } from "./table-panel.js";

/** Decisions as they are made. */
export const decisionsPanel = (opens: Opens) =>
  new TablePanel<DecisionView>(strings.decisions, (one) => [
    time(one.at, clock),
    one.operation,
    badge("decision", one.decision, nameOf(one.decision)),
    nameOf(one.reason),
    figure(one.risk),
    figure(one.reliability),
    link(one.sessionId, strings.session.id, opens.session),
    link(one.profileId, strings.profile.id, opens.profile),
  ]);
