/** Builds the page, loads engine and model in the background, and connects the modes to the stage. */
import { element } from "./dom.js";
import { EnrollMode } from "./enroll-mode.js";
import { failureText, ModelLoadError, startFailureText } from "./failure.js";
import { IdentifyMode } from "./identify-mode.js";
import { language } from "./language.js";
import { logo } from "./logo.js";
import type { Mode } from "./mode.js";
import { ModelBar } from "./model-bar.js";
import { isModelKept, loadModel, modelOfPage } from "./model-loading.js";
import { PeopleMode } from "./people-mode.js";
import { PrivacyPanel } from "./privacy-panel.js";
import { Stage } from "./stage.js";
import { strings } from "./strings.js";
import { Tabs } from "./tabs.js";
import { VerifyMode } from "./verify-mode.js";
import type { Voices } from "./voices.js";

const privacy = new PrivacyPanel();
const modelBar = new ModelBar(() => {
  begin();
  // The mode waited for what failed.
  show(shown);
});

let loading: Promise<Voices>;
const whenReady = () => loading;

const stage = new Stage(whenReady);
const modes: Record<keyof typeof strings.modes, Mode> = {
  enroll: new EnrollMode(whenReady),
  verify: new VerifyMode(whenReady),
  identify: new IdentifyMode(whenReady),
  people: new PeopleMode(whenReady),
};

const panel = element("div", { class: "panel", role: "tabpanel", id: "panel", tabindex: -1 });
const tabs = new Tabs(strings.modes, strings.modesLabel, panel, show);
let shown: keyof typeof modes = "enroll";

function show(name: keyof typeof modes): void {
  shown = name;
  const mode = modes[name];
  const parts =
    name === "people" ? [mode.controls, mode.outcome] : [mode.controls, stage.element, mode.outcome, stage.details];
  panel.replaceChildren(...parts);
  // A mode shows what needs the engine once it has loaded; if loading fails, the model bar says so.
  mode.open(stage).catch((error: unknown) =>
    loading.then(
      () => panel.prepend(element("p", { class: "note", role: "alert" }, failureText(error))),
      () => {},
    ),
  );
}

function begin(): void {
  loading = open();
  loading.then(
    () => modelBar.ready(),
    (error: unknown) => {
      console.error(error);
      modelBar.failed(startFailureText(error));
    },
  );
}

async function open(): Promise<Voices> {
  // Voiceprints are encrypted and models are checked with functions that browsers have only there.
  if (!isSecureContext) throw new ModelLoadError(strings.model.insecure);
  const download = new AbortController();
  try {
    const [{ Voices }, model] = await Promise.all([
      import("./voices.js").catch(() => {
        throw new ModelLoadError(strings.model.failed(strings.model.why.noAnswer));
      }),
      loadModel(
        modelOfPage(),
        (have, all) => {
          if (!download.signal.aborted) modelBar.loading(have, all);
        },
        download,
      ),
    ]);
    const voices = await Voices.open(model);
    privacy.lock.lock();
    return voices;
  } catch (error) {
    // If only the program is missing, the model must not go on loading beside the next try.
    download.abort();
    throw error;
  }
}

/** Caches the page's files for visits without a network. */
async function keepPage(): Promise<void> {
  try {
    await navigator.serviceWorker.register(new URL("service-worker.js", document.baseURI));
    await Promise.all([navigator.serviceWorker.ready, loading]);
    if (await isModelKept(modelOfPage())) privacy.worksOffline();
  } catch {
    // Private windows and unusual hosts refuse service workers; the page then works, but not offline.
  }
}

document.documentElement.lang = language;
begin();
document.body.replaceChildren(
  element(
    "header",
    {},
    element("div", { class: "brand" }, logo(), element("h1", {}, "vivavoce")),
    element("a", { class: "pill", href: "#privacy" }, strings.privacy.short),
    element("p", { class: "tagline" }, strings.tagline),
  ),
  element("main", {}, modelBar.element, tabs.element, panel),
  element("footer", {}, privacy.element),
);
tabs.open(tabs.named ?? "enroll");
void keepPage();
