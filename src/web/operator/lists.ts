/** The tables with search: profiles, sessions and watchlists. */
import { DECISIONS, OWNER_KINDS, PROFILE_STATES } from "../../server/operator/search.js";
import type { ProfileView, SessionView, WatchlistView } from "../../server/operator/view.js";
import type { BoxClient } from "./box-client.js";
import type { Opens } from "./detail-context.js";
import { risk, seconds, whole } from "./figures.js";
import { PagedTable } from "./paged-table.js";
import { nameOf, strings } from "./strings.js";
import { badge, day, figure, id, link, moment, nameCell, Table, time } from "./table.js";

const choices = (names: readonly string[]) => names.map((name) => [name, nameOf(name)] as const);

export function profilesTable(client: BoxClient, opens: Opens): PagedTable<ProfileView> {
  const { state, kind, any } = strings.profiles;
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
  const { decision, any, from, until } = strings.sessions;
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
      { name: "decision", label: decision, kind: "choice", any, choices: choices(DECISIONS) },
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
