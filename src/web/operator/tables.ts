/** What each table of the view shows. */
import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import type { LiveCallView } from "../../server/limits/live-calls.js";
import { DECISIONS, OWNER_KINDS, PROFILE_STATES } from "../../server/operator/search.js";
import type { DecisionView, ProfileView, SessionView, WatchlistView } from "../../server/operator/view.js";
import type { FieldRate } from "../../voiceprint/field-rates.js";
import type { BoxClient } from "./box-client.js";
import type { Opens } from "./detail-context.js";
import { reliability, risk, roughPercent, seconds, thousandths, whole } from "./figures.js";
import { PagedTable } from "./paged-table.js";
import { nameOf, strings } from "./strings.js";
import { badge, clock, clockAndDay, day, figure, id, link, moment, nameCell, Table, time } from "./table.js";
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

const { models, promises } = strings;
const prints = (of: readonly PrintsOfModel[]) => of.reduce((sum, one) => sum + one.persons + one.fraudsters, 0);

/** Which models made the scope's prints. */
export const modelsPanel = () =>
  new TablePanel<PrintsOfModel>(models, (one) => [
    one.calibrationModelId || strings.none,
    one.isOfNewPrints ? models.ofNewPrints : one.isScored ? models.scored : models.obsolete,
    whole(one.persons),
    whole(one.fraudsters),
    id(one.revision),
  ]);

/** How many prints have moved to the model of new prints; `null` if all have. */
export function moved(found: readonly PrintsOfModel[]) {
  const [done, all] = [prints(found.filter(({ isOfNewPrints }) => isOfNewPrints)), prints(found)];
  return done < all ? { text: models.moved(whole(done), whole(all)), command: "npx vivavoce model migrate" } : null;
}

type MetRate = FieldRate & { readonly met: NonNullable<FieldRate["met"]> };

/** Whether the promised rates hold for the real callers of this box. */
export const promisesPanel = () =>
  new TablePanel<MetRate>(promises, ({ list, promised, met, comparisons, calls, verdict }) => [
    promises.lists[list],
    roughPercent(promised),
    roughPercent(met.rate),
    strings.between(roughPercent(met.low), roughPercent(met.high)),
    whole(comparisons),
    whole(calls),
    badge("verdict", verdict, promises.verdicts[verdict]),
  ]);

export const metRates = (rates: readonly FieldRate[]) => rates.filter((rate): rate is MetRate => rate.met !== null);

export const exceeded = (rates: readonly FieldRate[]) =>
  rates.some(({ verdict }) => verdict === "exceeded")
    ? { text: promises.calibrate, command: "npx vivavoce calibrate recordings/" }
    : null;

const choices = (names: readonly string[]) => names.map((name) => [name, nameOf(name)] as const);

export function profilesTable(client: BoxClient, opens: Opens): PagedTable<ProfileView> {
  const { columns, any } = strings.profiles;
  const [, kind, , state] = columns;
  const words = { ...strings.profiles, heading: strings.parts.profiles };
  return new PagedTable(
    words,
    client.profiles,
    new Table(words, (row) => [
      nameCell(row.ownerId),
      nameOf(row.kind),
      nameCell(row.tag),
      badge("state", row.state, nameOf(row.state)),
      figure(row.printVersion || null),
      figure(row.netSpeechSeconds, seconds),
      time(row.createdAt, day),
      link(row.id, opens.profiles),
    ]),
    [
      { name: "search", label: strings.idOrPerson, kind: "search" },
      { name: "state", label: state, kind: "choice", any, choices: choices(PROFILE_STATES) },
      { name: "kind", label: kind, kind: "choice", any, choices: choices(OWNER_KINDS) },
    ],
  );
}

export function sessionsTable(client: BoxClient, opens: Opens): PagedTable<SessionView> {
  const { columns, any, from, until } = strings.sessions;
  const words = { ...strings.sessions, heading: strings.parts.sessions };
  return new PagedTable(
    words,
    client.sessions,
    new Table(words, (row) => [
      time(row.startedAt, moment),
      nameOf(row.type),
      nameCell(row.person || row.matchedPerson),
      badge("decision", row.decision, nameOf(row.decision)),
      nameOf(row.reason),
      figure(row.risk, risk),
      whole(row.checkCount),
      link(row.id, opens.sessions),
    ]),
    [
      { name: "search", label: strings.idOrPerson, kind: "search" },
      { name: "decision", label: columns[3], kind: "choice", any, choices: choices(DECISIONS) },
      { name: "from", label: from, kind: "time" },
      { name: "until", label: until, kind: "untilTime" },
    ],
  );
}

export const watchlistsTable = (client: BoxClient): PagedTable<WatchlistView> =>
  new PagedTable(
    strings.watchlists,
    client.watchlists,
    new Table(strings.watchlists, (row) => [nameCell(row.tag), whole(row.profiles), whole(row.owners), id(row.id)]),
  );
