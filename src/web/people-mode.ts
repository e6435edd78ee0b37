import { button, element } from "./dom.js";
import { failureText } from "./failure.js";
import { language } from "./language.js";
import type { Mode, WhenReady } from "./mode.js";
import type { Stage } from "./stage.js";
import { decimal, strings } from "./strings.js";
import type { KnownPerson } from "./voices.js";

const remark = (text: string) => element("li", { class: "row nobody" }, text);

export class PeopleMode implements Mode {
  readonly controls: HTMLElement;
  readonly outcome: HTMLElement;
  readonly #list = element("ul", { class: "people" }, remark(strings.people.loading));
  readonly #note = element("p", { class: "note", role: "status" });
  #shown = "";

  constructor(private readonly voices: WhenReady) {
    // Another tab may have enrolled or erased somebody. A question that is open stays if nothing changed.
    addEventListener("focus", () => {
      if (this.controls.isConnected) this.#refresh("if changed").catch(() => {});
    });
    this.controls = element("div", {}, element("h2", { tabindex: -1 }, strings.people.heading), this.#list, this.#note);
    this.outcome = element(
      "div",
      {},
      element("p", { class: "hint" }, strings.privacy.where),
      element("p", { class: "hint" }, strings.people.aboutExport),
    );
  }

  async open(stage: Stage): Promise<void> {
    stage.task = null;
    this.#note.textContent = "";
    await this.#refresh();
  }

  async #refresh(redraw: "always" | "if changed" = "always"): Promise<void> {
    const people = await (await this.voices()).people();
    const now = JSON.stringify(people.map(({ name, createdAt, recordings }) => [name, createdAt, recordings]));
    if (redraw === "if changed" && now === this.#shown) return;
    this.#shown = now;
    this.#list.replaceChildren(...people.map((person) => this.#row(person)));
    if (people.length === 0) this.#list.replaceChildren(remark(strings.people.none));
  }

  #row({ name, template, fault, createdAt }: KnownPerson): HTMLElement {
    const { enrolledOn, speech, untrained, exportOf, eraseOf } = strings.people;
    const day = new Date(createdAt).toLocaleDateString(language, { dateStyle: "medium" });
    const about = template
      ? `${enrolledOn(day)}, ${speech(decimal(template.netSpeechSeconds))}`
      : fault
        ? strings[fault]
        : untrained;
    const actions = element("div", { class: "actions" });
    const row = element(
      "li",
      { class: "row" },
      element("div", {}, element("strong", { translate: "no" }, name), element("span", { class: "about" }, about)),
      actions,
    );
    const usual = () => {
      const erase = button(strings.people.erase, "quiet", ask, eraseOf(name));
      actions.replaceChildren(
        button(strings.people.export, "quiet", () => void this.#do(() => this.#export(name)), exportOf(name)),
        erase,
      );
      return erase;
    };
    const ask = () => {
      const keep = button(strings.people.no, "quiet", () => usual().focus());
      actions.replaceChildren(
        element("span", { class: "sure", role: "alert" }, strings.people.sure(name)),
        button(strings.people.yes, "danger", () => void this.#do(() => this.#erase(name))),
        keep,
      );
      keep.focus();
    };
    usual();
    return row;
  }

  /** What cannot be done (the browser has closed or cleared the storage) is said; details go to the console. */
  async #do(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      console.error(error);
      this.#note.textContent = failureText(error);
      // Another tab may have erased the person.
      await this.#refresh().catch(() => {});
    }
  }

  async #export(name: string): Promise<void> {
    const exported = await (await this.voices()).voiceprints.export(name);
    const file = new Blob([JSON.stringify(exported, null, 2)], { type: "application/json" });
    const href = URL.createObjectURL(file);
    element("a", { href, download: `${name.replace(/[^\p{L}\p{N}_-]+/gu, "-")}.voiceprint.json` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
    this.#note.textContent = strings.people.exported(name);
  }

  async #erase(name: string): Promise<void> {
    await (await this.voices()).voiceprints.erase(name);
    await this.#refresh();
    this.#note.textContent = strings.people.erased(name);
    // The pressed button is gone, so the focus moves to the heading, where reading continues.
    this.controls.querySelector("h2")?.focus();
  }
}
