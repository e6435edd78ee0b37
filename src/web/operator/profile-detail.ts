import { readable } from "../../languages.js";
import type { ProcessedSession, ProfileDetail } from "../../server/operator/view.js";
import { button, element } from "../dom.js";
import type { DetailContext, DetailDialog } from "./detail-context.js";
import { ask } from "./dialog.js";
import { decibels, hertz, seconds } from "./figures.js";
import { nameOf, shortRevision, strings } from "./strings.js";
import { badge, type Cell, day, facts, figure, id, link, moment, nameCell, Table, time } from "./table.js";

const words = strings.profile;
/** The details have the names of the table's columns. */
const [, , tagLabel, stateLabel, , , createdLabel, profileLabel] = strings.profiles.columns;

/** The details of a profile, and the actions on it. */
export async function profileDetail(
  context: DetailContext,
  profileId: string,
  { close, again }: DetailDialog,
): Promise<Cell[]> {
  const { client, scope, opens, changed, showSessionsOf } = context;
  const shown = await client.profile(scope, profileId);
  const sessions = (heading: string, none: string, rows: readonly ProcessedSession[]) => {
    const table = new Table<ProcessedSession>({ heading, none, columns: words.processedColumns }, (one) => [
      time(one.at, moment),
      seconds(one.netSpeechSeconds),
      figure(one.snrDb, decibels),
      link(one.sessionId, opens.sessions),
    ]);
    table.show(rows);
    return [element("h3", {}, heading), table.element];
  };
  return [
    facts(factsOf(shown, context.calibration)),
    element("h3", {}, words.lists),
    shown.lists.length === 0
      ? element("p", { class: "note" }, words.noLists)
      : facts(shown.lists.map((list) => [`${words.listKinds[list.kind]} ${readable(list.tag)}`.trim(), id(list.id)])),
    ...sessions(words.enrolled, words.noneEnrolled, shown.enrolled),
    ...sessions(words.learned, words.noneLearned, shown.learned),
    element(
      "div",
      { class: "actions" },
      button(words.sessions, "quiet", () => {
        close();
        showSessionsOf(shown.ownerId);
      }),
      ...(shown.kind === "person" ? [consentAction(context, shown, again)] : []),
      button(words.erase, "danger", () =>
        ask({
          heading: words.eraseHeading(readable(shown.ownerId)),
          note: words.eraseNote,
          action: words.eraseYes,
          isDangerous: true,
          submit: async () => {
            await client.eraseProfile(scope, profileId);
            close();
            changed();
          },
        }),
      ),
    ),
  ];
}

function consentAction(
  { client, scope, changed }: DetailContext,
  shown: ProfileDetail,
  again: () => void,
): HTMLElement {
  const isGiven = shown.consent?.state === "given";
  const label = isGiven ? words.withdrawConsent : words.giveConsent;
  const others = shown.consent === null ? [true, false] : [!isGiven];
  const buttons = others.map((give) =>
    button(give ? words.giveConsent : words.withdrawConsent, "quiet", () =>
      ask({
        heading: give ? words.giveConsent : words.withdrawConsent,
        note: give ? words.giveNote : words.withdrawNote,
        fields: [{ name: "reference", label: words.reference }],
        action: give ? words.giveConsent : words.withdrawConsent,
        submit: async (given) => {
          const reference = String(given.get("reference"));
          await client.noteConsent(scope, shown.id, give ? "given" : "withdrawn", reference);
          changed();
          again();
        },
      }),
    ),
  );
  return element("span", { class: "actions", role: "group", "aria-label": label }, ...buttons);
}

function factsOf(shown: ProfileDetail, calibration: string): (readonly [string, Cell])[] {
  const { consent, model } = shown;
  const consentText = consent
    ? words.consentAt(
        words.consents[consent.state],
        new Date(consent.at).toLocaleString(strings.locale, moment),
        readable(consent.reference),
      )
    : words.noConsent;
  return [
    [nameOf(shown.kind), nameCell(shown.ownerId)],
    [tagLabel, nameCell(shown.tag)],
    [profileLabel, id(shown.id)],
    [stateLabel, badge("state", shown.state, nameOf(shown.state))],
    [words.version, figure(shown.printVersion || null)],
    [words.printType, shown.printType ?? strings.none],
    [strings.models.columns[0], model?.calibrationModelId ?? strings.none],
    [words.revision, id(model && shortRevision(model.revision))],
    [words.calibration, id(shortRevision(calibration))],
    [words.speech, figure(shown.netSpeechSeconds, seconds)],
    [words.processedColumns[2], figure(shown.snrDb, decibels)],
    [words.bandwidth, figure(shown.bandwidthHz, hertz)],
    [createdLabel, time(shown.createdAt, day)],
    ...(shown.kind === "person" ? [[words.consent, consentText] as const] : []),
  ];
}
