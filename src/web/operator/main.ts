/** The operator view: signs in, then asks the box again and again for what it shows. */
import type { BoxView, ProfileView, WatchlistView } from "../../server/operator/view.js";
import { element } from "../dom.js";
import { logo } from "../logo.js";
import { BoxClient, Refused } from "./box-client.js";
import { CallsPanel } from "./calls-panel.js";
import { DecisionsPanel } from "./decisions-panel.js";
import { EvaluationPanel } from "./evaluation-panel.js";
import { Live } from "./live.js";
import { LoadPanel } from "./load-panel.js";
import { ModelsPanel } from "./models-panel.js";
import { PagedTable } from "./paged-table.js";
import { PromisesPanel } from "./promises-panel.js";
import { beginSignIn, signIn } from "./sign-in.js";
import { strings } from "./strings.js";
import { id, time } from "./table.js";

const loadEveryMs = 5000;
const callsEveryMs = 1000;
const decisionsEveryMs = 2000;
const tablesEveryMs = 10_000;

const heading = element(
  "div",
  { class: "brand" },
  logo(),
  element("h1", {}, strings.brand, " ", element("span", { class: "part" }, strings.part)),
);

async function open(): Promise<void> {
  const notice = element("p", { class: "notice", role: "status" }, strings.signIn.going);
  const place = element("main", {}, notice);
  document.body.append(element("header", {}, heading), place);
  const say = (text: string, action: string, click: () => void) => {
    notice.textContent = text;
    place.append(element("p", {}, element("button", { type: "button", class: "quiet", click }, action)));
  };
  try {
    const client = new BoxClient(await signIn());
    const box = await client.box();
    document.body.replaceChildren();
    show(client, box);
  } catch (error) {
    const { message, error_description } = error as Error & { error_description?: string };
    if (error instanceof Refused)
      say(strings.signIn.refused(message), strings.signIn.asSomebodyElse, () => void beginSignIn(true));
    else say(strings.signIn.failed(error_description ?? message), strings.signIn.again, () => void beginSignIn());
  }
}

function show(client: BoxClient, box: BoxView): void {
  const state = element("span", { class: "state", role: "status" }, strings.live);
  const pause = element("button", { type: "button", class: "quiet", click: () => live.toggle() }, strings.pause);
  const live = new Live(({ paused, lost }) => {
    const text = lost ? strings.lost : paused ? strings.paused : strings.live;
    if (state.textContent !== text) state.textContent = text;
    state.dataset.state = lost ? "lost" : paused ? "paused" : "live";
    pause.textContent = paused ? strings.resume : strings.pause;
  });
  const scope = element("select", { id: "scope" }, ...box.scopes.map((name) => element("option", {}, name)));
  scope.disabled = box.scopes.length === 0;

  const load = new LoadPanel();
  const calls = new CallsPanel();
  const decisions = new DecisionsPanel();
  const profiles = new PagedTable(strings.profiles, (name, after) => client.profiles(name, after), profileCells);
  const watchlists = new PagedTable(
    strings.watchlists,
    (name, after) => client.watchlists(name, after),
    watchlistCells,
  );
  const models = new ModelsPanel();
  const promises = new PromisesPanel();
  const evaluation = new EvaluationPanel();

  const refreshLoad = async () => load.show(await client.load(load.since));
  const refreshCalls = async () => calls.show(await client.calls());
  const refreshDecisions = async () => {
    const asked = scope.value;
    if (asked === "") return;
    const newest = await client.decisions(asked);
    if (asked === scope.value) decisions.show(newest);
  };
  const refreshTables = async () => {
    await Promise.all([profiles.refresh(), watchlists.refresh()]);
    const asked = scope.value;
    if (asked !== "") {
      const found = await client.models(asked);
      if (asked === scope.value) models.show(found.models);
    }
    promises.show((await client.promises()).rates);
    evaluation.show((await client.evaluation()).evaluation, box.modelRevision);
  };
  const chosen = () => {
    profiles.scope = scope.value;
    watchlists.scope = scope.value;
  };
  scope.addEventListener("change", () => {
    chosen();
    void Promise.allSettled([refreshDecisions(), refreshTables()]);
  });

  document.body.append(
    element(
      "header",
      {},
      heading,
      element("a", { class: "pill", href: "/profile" }, strings.signedInAs(box.user)),
      element("p", { class: "tagline" }, strings.about(box.version, box.modelRevision, box.calibrationRevision)),
    ),
    element(
      "div",
      { class: "bar" },
      element("label", { for: "scope" }, strings.scope),
      scope,
      ...(box.scopes.length === 0 ? [element("span", { class: "note" }, strings.noScope)] : []),
      state,
      pause,
    ),
    element(
      "main",
      {},
      calls.element,
      decisions.element,
      load.element,
      element("div", { class: "pair" }, profiles.element, watchlists.element),
      models.element,
      promises.element,
      evaluation.element,
    ),
  );
  chosen();
  void live.every(loadEveryMs, refreshLoad);
  void live.every(callsEveryMs, refreshCalls);
  void live.every(decisionsEveryMs, refreshDecisions);
  void live.every(tablesEveryMs, refreshTables);
}

function profileCells(row: ProfileView) {
  const { words } = strings.decisions;
  return [
    row.ownerId,
    words(row.kind),
    row.tag || "–",
    row.obsolete
      ? element("span", { class: "badge", "data-decision": "obsolete" }, strings.profiles.obsolete)
      : words(row.status),
    row.printVersion === 0 ? "–" : String(row.printVersion),
    row.netSpeechSeconds === null ? "–" : strings.profiles.speech(row.netSpeechSeconds),
    time(row.createdAt, { dateStyle: "medium" }),
    id(row.id),
  ];
}

const watchlistCells = (row: WatchlistView) => [row.tag || "–", String(row.profiles), String(row.owners), id(row.id)];

void open();
