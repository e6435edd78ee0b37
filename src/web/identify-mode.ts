import { CheckMode, type EnrolledPerson } from "./check-mode.js";
import { element } from "./dom.js";
import { Gauge } from "./gauge.js";
import { strings } from "./strings.js";
import type { Samples, Voices } from "./voices.js";

export class IdentifyMode extends CheckMode {
  readonly #list = element("div", { class: "candidates", translate: "no" });
  readonly controls = element(
    "div",
    {},
    element("h2", {}, strings.whoSpeaks),
    element("p", { class: "hint" }, strings.identify.hint),
  );
  readonly outcome = element("div", { class: "outcome" }, ...this.findings, this.#list);
  #candidates: readonly (EnrolledPerson & { readonly gauge: Gauge })[] = [];

  protected offer(people: readonly EnrolledPerson[]): void {
    this.#candidates = people.map((person) => ({ ...person, gauge: new Gauge(person.name) }));
    this.#list.replaceChildren(...this.#candidates.map(({ gauge }) => gauge.element));
  }

  protected compared() {
    return this.#candidates;
  }

  protected async check(voices: Voices, audio: Samples) {
    const names = this.#candidates.map(({ name }) => name);
    const { candidates, ...verdict } = await voices.identify(audio, names);
    for (const { name, ratio, threshold } of candidates)
      if (ratio !== null && threshold !== null)
        this.#candidates.find((one) => one.name === name)?.gauge.show(ratio, threshold);
    return { ...verdict, no: strings.identify.no };
  }
}
