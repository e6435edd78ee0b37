/** The operator view: signs in, then polls the box for its data. */
import type { BoxView } from "../../server/operator/view.js";
import { button, element } from "../dom.js";
import { language } from "../language.js";
import { logo } from "../logo.js";
import { Tabs } from "../tabs.js";
import { account } from "./account.js";
import { ApplicationsPanel } from "./applications-panel.js";
import { BoxClient, Refused } from "./box-client.js";
import { details } from "./details.js";
import { EvaluationPanel } from "./evaluation-panel.js";
import { Live } from "./live.js";
import { LoadPanel } from "./load-panel.js";
import { forgetPlace, keepPlace, keptPlace, type Place, placeInAddress } from "./place.js";
import { beginSignIn, signIn } from "./sign-in.js";
import { shortRevision, strings } from "./strings.js";
import {
  callsPanel,
  decisionsPanel,
  exceeded,
  metRates,
  modelsPanel,
  moved,
  profilesTable,
  promisesPanel,
  sessionsTable,
  watchlistsTable,
} from "./tables.js";

const loadEveryMs = 5000;
const callsEveryMs = 1000;
const decisionsEveryMs = 2000;
const tablesEveryMs = 10_000;

type Part = keyof typeof strings.parts;

const heading = () =>
  element(
    "div",
    { class: "brand" },
    logo(),
    element("h1", {}, "vivavoce ", element("span", { class: "part" }, strings.part)),
  );

/** Shows one sentence and a next step in place of the view. */
function say(text: string, action?: { readonly label: string; readonly click: () => void }): void {
  const next = action && element("p", {}, button(action.label, "main", action.click));
  document.body.replaceChildren(
    element("header", {}, heading()),
    element("main", {}, element("p", { class: "notice", role: "status" }, text), ...(next ? [next] : [])),
  );
}

async function open(): Promise<void> {
  say(strings.signIn.going);
  try {
    // Signing in leaves this page, and with it the place that the address names.
    const asked = placeInAddress(strings.parts);
    if (asked) keepPlace(asked);
    const client = new BoxClient(await signIn());
    const box = await client.box();
    document.body.replaceChildren();
    show(client, box);
  } catch (error) {
    sayFailure(error);
  }
}

/** `asSomebodyElse` asks for the password even if the browser is signed in. */
function signInAgain(asSomebodyElse = false): void {
  say(strings.signIn.going);
  beginSignIn(asSomebodyElse).catch(sayFailure);
}

function sayFailure(error: unknown): void {
  const { name, message, error_description } = error as Error & { error_description?: string };
  // The browser's error if the page may not store anything.
  const why = name === "SecurityError" ? strings.signIn.blocked : (error_description ?? message);
  if (error instanceof Refused) say(why, { label: strings.signIn.asSomebodyElse, click: () => signInAgain(true) });
  else say(strings.signIn.failed(why), { label: strings.signIn.again, click: () => signInAgain() });
}

function show(client: BoxClient, first: BoxView): void {
  let box = first;
  const state = element("span", { class: "state", role: "status" }, strings.live);
  const pause = button(strings.pause, "quiet", () => live.toggle());
  const live = new Live(({ paused, lost }) => {
    const text = lost !== null ? strings.lost(lost) : paused ? strings.paused : strings.live;
    if (state.textContent !== text) state.textContent = text;
    state.dataset.state = lost !== null ? "lost" : paused ? "paused" : "live";
    pause.textContent = paused ? strings.resume : strings.pause;
  });
  const scope = element("select", { id: "scope" });
  const noScope = element("span", { class: "note" }, strings.noScope);

  const opens = details(() => ({
    client,
    scope: scope.value,
    calibration: box.calibrationRevision,
    changed: () => void refreshLists().catch(() => {}),
    showSessionsOf: (owner) => {
      tabs.choose("sessions");
      sessions.search("search", owner);
    },
  }));
  const load = new LoadPanel();
  const calls = callsPanel();
  const decisions = decisionsPanel(opens);
  const sessions = sessionsTable(client, opens);
  const profiles = profilesTable(client, opens);
  const watchlists = watchlistsTable(client);
  const models = modelsPanel();
  const promises = promisesPanel();
  const evaluation = new EvaluationPanel();
  const applications = new ApplicationsPanel(client, () => void refreshBox().catch(() => {}));

  const parts: Record<Part, readonly HTMLElement[]> = {
    overview: [calls.element, decisions.element, load.element, promises.element, evaluation.element],
    sessions: [sessions.element],
    profiles: [profiles.element, element("div", { class: "pair" }, models.element, watchlists.element)],
    applications: [applications.element],
  };
  const kept = keptPlace();
  let part: Part = "overview";
  const panel = element("div", { class: "part-panel", role: "tabpanel", id: "part", tabindex: -1 });
  const tabs = new Tabs(strings.parts, strings.partsLabel, panel, (chosen) => {
    part = chosen;
    // An address that was entered leads to another part behind them.
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
    keepPlace({ part, scope: scope.value });
    panel.replaceChildren(...parts[chosen]);
    void Promise.allSettled([refreshLoad(), refreshCalls(), refreshDecisions(), refreshLists()]);
  });

  /** Runs `work` only while its part is visible. */
  const inSight = (of: Part, work: () => Promise<void>) => async () => {
    if (part === of) await work();
  };
  const refreshLoad = inSight("overview", async () => load.show(await client.load(load.since)));
  const refreshCalls = inSight("overview", async () => calls.show((await client.calls()).calls));
  const refreshDecisions = inSight("overview", async () => {
    const asked = scope.value;
    if (asked === "") return decisions.show([]);
    const newest = await client.decisions(asked);
    if (asked === scope.value) decisions.show(newest);
  });
  const refreshOverview = inSight("overview", async () => {
    const { rates } = await client.promises();
    promises.show(metRates(rates), exceeded(rates));
    evaluation.show((await client.evaluation()).evaluation, box.modelRevision);
  });
  const refreshProfiles = inSight("profiles", async () => {
    await Promise.all([profiles.refresh(), watchlists.refresh()]);
    const asked = scope.value;
    if (asked === "") return models.show([]);
    const found = await client.models(asked);
    if (asked === scope.value) models.show(found.models, moved(found.models));
  });
  const refreshSessions = inSight("sessions", () => sessions.refresh());
  const refreshApplications = inSight("applications", () => applications.refresh());
  const refreshLists = async () => {
    await Promise.all([refreshOverview(), refreshProfiles(), refreshSessions(), refreshApplications()]);
  };

  const about = element("p", { class: "tagline" });
  const showBox = () => {
    const { version, modelRevision, calibrationRevision } = box;
    about.textContent = strings.about(version, shortRevision(modelRevision), shortRevision(calibrationRevision));
  };
  let scopes: string | null = null;
  const showScopes = (names: readonly string[]) => {
    // An open list of choices would close.
    if (names.join(" ") === scopes) return;
    scopes = names.join(" ");
    const before = scope.value;
    scope.replaceChildren(...names.map((name) => element("option", {}, name)));
    scope.disabled = names.length === 0;
    noScope.hidden = names.length > 0;
    if (names.includes(before)) scope.value = before;
    if (scope.value !== before) chosen();
  };
  /** Somebody may bind scopes or upgrade the box meanwhile. */
  const refreshBox = async () => {
    box = await client.box().catch((error: unknown) => {
      // This user is no longer an owner: names must not stay on the screen.
      if (error instanceof Refused && error.isForbidden) {
        leave();
        sayFailure(error);
      }
      throw error;
    });
    showBox();
    showScopes(box.scopes);
  };
  const chosen = () => {
    keepPlace({ part, scope: scope.value });
    for (const table of [sessions, profiles, watchlists]) table.scope = scope.value;
    // Never the rows of one scope under the name of another.
    for (const panel of [decisions, models]) panel.load();
    void Promise.allSettled([refreshDecisions(), refreshLists()]);
  };
  scope.addEventListener("change", chosen);

  const leave = () => {
    live.stop();
    otherTabs.close();
    forgetPlace();
  };
  const signedOut = () => {
    leave();
    say(strings.account.signedOut, { label: strings.signIn.again, click: () => signInAgain() });
  };
  // Each tab has a token of its own. Whoever signs out in one of them leaves the browser, so none must go on showing names.
  const otherTabs = new BroadcastChannel("vivavoce-signed-out");
  otherTabs.addEventListener("message", () => {
    // If the box does not answer, the token ends within the hour.
    void client.signOut().catch(() => {});
    signedOut();
  });
  const signedOutHere = () => {
    otherTabs.postMessage(null);
    signedOut();
  };
  showBox();
  document.body.append(
    element("header", {}, heading(), account(client, box.user, signedOutHere), about),
    element(
      "main",
      {},
      element(
        "div",
        { class: "row bar" },
        element("label", { for: "scope" }, strings.scope),
        scope,
        noScope,
        state,
        pause,
      ),
      tabs.element,
      panel,
    ),
  );
  showScopes(box.scopes);
  const goTo = (place: Place) => {
    if (place.scope !== scope.value && box.scopes.includes(place.scope)) {
      scope.value = place.scope;
      chosen();
    }
    tabs.open(place.part as Part);
    if (place.opened && (place.part === "profiles" || place.part === "sessions")) opens[place.part].open(place.opened);
  };
  goTo(kept && Object.hasOwn(parts, kept.part) ? kept : { part: "overview", scope: scope.value });
  // A link to a profile or session was entered into the address bar of this tab.
  addEventListener("hashchange", () => {
    const place = placeInAddress(parts);
    if (place?.opened && panel.isConnected) goTo(place);
  });
  void live.every(loadEveryMs, refreshLoad);
  void live.every(callsEveryMs, refreshCalls);
  void live.every(decisionsEveryMs, refreshDecisions);
  void live.every(tablesEveryMs, async () => {
    await refreshBox();
    await refreshLists();
  });
}

// Back from another page must not show names again to somebody who has signed out there, so the browser keeps nothing of the view.
window.addEventListener("pagehide", () => document.body.replaceChildren());
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload();
});

document.documentElement.lang = language;
document.title = strings.title;
void open();
