import { element } from "./dom.js";
import type { Mode, WhenReady } from "./mode.js";
import { ResultCard } from "./result-card.js";
import type { Stage, Task } from "./stage.js";
import { refusal, strings } from "./strings.js";
import type { Samples } from "./voices.js";

const recordings = 3;

export class EnrollMode implements Mode, Task {
  readonly purpose = "enroll";
  readonly targetSeconds = 3;
  readonly severalFiles = true;
  readonly controls: HTMLElement;
  readonly outcome: HTMLElement;
  readonly #name = element("input", {
    id: "name",
    type: "text",
    maxlength: 100,
    autocomplete: "off",
    placeholder: strings.enroll.namePlaceholder,
  });
  readonly #note = element("p", { class: "note", role: "status" });
  readonly #steps = element("div", { class: "steps", role: "img" });
  readonly #result = new ResultCard();
  #taken = 0;
  #stage: Stage | null = null;

  constructor(private readonly voices: WhenReady) {
    this.#name.addEventListener("input", () => this.#restart());
    this.controls = element(
      "div",
      {},
      element("h2", {}, strings.enroll.heading),
      element("p", { class: "hint" }, strings.enroll.hint),
      element("label", { for: "name" }, strings.enroll.name),
      this.#name,
      this.#note,
      this.#steps,
    );
    this.outcome = this.#result.element;
    this.#showSteps();
  }

  async open(stage: Stage): Promise<void> {
    this.#stage = stage;
    stage.task = this;
    await this.#sayWhetherKnown();
  }

  sentence(): string {
    return strings.enroll.sentences[this.#taken % recordings]!;
  }
  obstacle(): string | null {
    if (this.#person !== "") return null;
    this.#name.focus();
    return strings.enroll.nameMissing;
  }
  templates() {
    return [];
  }
  begun(): void {
    if (this.#taken === recordings) {
      this.#taken = 0;
      this.#showSteps();
    }
    this.#result.clear();
  }
  scored(): void {}

  async taken(audio: Samples): Promise<void> {
    const person = this.#person;
    const { trained, reason, segments } = await (await this.voices()).voiceprints.enroll(person, [audio]);
    // The steps are those of a name that was typed meanwhile.
    if (person !== this.#person) return;
    const { enrolled, reason: refused, validity } = segments[0]!;
    if (!enrolled) {
      const why = validity !== "AUDIO_OK" ? validity : refused === "UNSPECIFIED" ? "FULL" : refused;
      return this.#result.show("no", strings.enroll.refused, refusal(why));
    }
    this.#note.textContent = "";
    this.#taken = Math.min(recordings, this.#taken + 1);
    this.#showSteps();
    // Also after the first recording that is added to a finished print.
    if (trained) return this.#result.show("yes", strings.enroll.trained(person), strings.enroll.trainedMore);
    if (reason === "INCONSISTENCY") {
      this.#taken = recordings - 1;
      return this.#result.show("unsure", strings.enroll.refused, strings.enroll.inconsistent);
    }
    if (this.#taken === recordings) this.#taken = recordings - 1;
    this.#result.show("plain", strings.enroll.taken(recordings - this.#taken));
  }

  get #person(): string {
    return this.#name.value.trim();
  }

  #restart(): void {
    this.#taken = 0;
    this.#showSteps();
    this.#result.clear();
    if (this.#stage) this.#stage.task = this;
    // If the engine did not load, the model bar says so.
    this.#sayWhetherKnown().catch(() => {});
  }

  /** An enrollment that was interrupted, by a reload for example, goes on where it stopped. */
  async #sayWhetherKnown(): Promise<void> {
    const person = this.#person;
    const known = (await (await this.voices()).people()).find(({ name }) => name === person);
    if (person !== this.#person) return;
    this.#note.textContent = known?.template ? strings.enroll.known(person) : known?.fault ? strings[known.fault] : "";
    if (!known || known.template || this.#taken > 0) return;
    this.#taken = Math.min(known.recordings, recordings - 1);
    if (this.#taken === 0) return;
    this.#note.textContent = strings.enroll.unfinished(person, known.recordings);
    this.#showSteps();
    this.#stage?.refresh();
  }

  #showSteps(): void {
    const { steps, stepsDone } = strings.enroll;
    const text = this.#taken === recordings ? stepsDone(recordings) : steps(this.#taken, recordings);
    this.#steps.setAttribute("aria-label", text);
    this.#steps.replaceChildren(
      ...Array.from({ length: recordings }, (_, i) =>
        element("span", { class: i < this.#taken ? "done" : i === this.#taken ? "now" : "" }),
      ),
    );
  }
}
