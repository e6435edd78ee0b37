import type { AudioView, CheckPartView, CheckView, SessionDetail } from "../../server/operator/view.js";
import { element } from "../dom.js";
import type { DetailContext, Opens } from "./detail-context.js";
import { decibels, decimal, reliability, risk, seconds } from "./figures.js";
import { nameOf, strings } from "./strings.js";
import { badge, type Cell, clockAndDay, facts, figure, id, link, moment, nameCell, Table, time } from "./table.js";

const words = strings.session;
/** The details have the names of the table's columns. */
const [beganLabel, typeLabel, , decisionLabel, reasonLabel, riskLabel, checksLabel, sessionLabel] =
  strings.sessions.columns;

/** The details of a session: its decision, checks and audio. */
export async function sessionDetail({ client, scope, opens }: DetailContext, sessionId: string): Promise<Cell[]> {
  const shown = await client.session(scope, sessionId);
  const checks = new Table<CheckView>(
    { heading: checksLabel, none: words.noChecks, columns: words.checkColumns },
    (check) => checkCells(check, opens),
  );
  const audio = new Table<AudioView>(
    { heading: words.audio, none: words.noAudio, columns: words.audioColumns },
    audioCells,
  );
  checks.show(shown.checks);
  audio.show(shown.audio);
  return [
    facts(factsOf(shown)),
    element("h3", {}, checksLabel),
    checks.element,
    element("h3", {}, words.audio),
    audio.element,
  ];
}

const factsOf = (shown: SessionDetail): (readonly [string, Cell])[] => [
  [decisionLabel, badge("decision", shown.decision, nameOf(shown.decision))],
  [reasonLabel, nameOf(shown.reason)],
  [riskLabel, figure(shown.risk, risk)],
  [strings.decisions.columns[5], figure(shown.reliability, reliability)],
  [words.person, nameCell(shown.person)],
  [words.matched, nameCell(shown.matchedPerson)],
  [typeLabel, nameOf(shown.type)],
  [beganLabel, time(shown.startedAt, moment)],
  [words.ended, shown.stoppedAt === null ? words.running : time(shown.stoppedAt, moment)],
  [words.external, nameCell(shown.externalId)],
  [sessionLabel, id(shown.id)],
  [words.engagement, id(shown.engagementId)],
];

const checkCells = (check: CheckView, opens: Opens): readonly Cell[] => [
  time(check.at, clockAndDay),
  check.operation,
  badge("decision", check.decision, nameOf(check.decision)),
  nameOf(check.reason),
  figure(check.risk, risk),
  check.parts.length === 0
    ? strings.none
    : element("ul", { class: "found" }, ...check.parts.map((part) => element("li", {}, partText(part)))),
  link(check.profileId, opens.profiles),
];

function partText({ name, ratio, threshold, failure, strongest }: CheckPartView): string {
  if (ratio === null || threshold === null) return words.partFailed(nameOf(name), nameOf(failure ?? ""));
  const found = words.part(nameOf(name), decimal(ratio), decimal(threshold));
  return strongest
    ? `${found}, ${words.strongest(decimal(strongest.startSeconds), decimal(strongest.endSeconds))}`
    : found;
}

const audioCells = (one: AudioView): readonly Cell[] => [
  time(one.at, clockAndDay),
  one.processedFor === null ? words.notProcessed : words.processedFor[one.processedFor],
  figure(one.grossSeconds, seconds),
  figure(one.netSpeechSeconds, seconds),
  figure(one.snrDb, decibels),
  one.validity === null ? strings.none : nameOf(one.validity),
  one.isKept ? strings.yes : strings.no,
];
