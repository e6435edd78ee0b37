import { CheckMode, type EnrolledPerson } from "./check-mode.js";
import { element } from "./dom.js";
import { Gauge } from "./gauge.js";
import { strings } from "./strings.js";
import type { Samples, Voices } from "./voices.js";

export class VerifyMode extends CheckMode {
  readonly #person = element("select", { id: "person", change: () => this.begun() });
  readonly #gauge = new Gauge(strings.verify.score);
  readonly controls = element(
    "div",
    {},
    element("h2", {}, strings.verify.heading),
    element("p", { class: "hint" }, strings.verify.hint),
    element("label", { for: "person" }, strings.whoSpeaks),
    this.#person,
  );
  readonly outcome = element("div", { class: "outcome" }, this.#gauge.element, ...this.findings);
  #people: readonly EnrolledPerson[] = [];

  protected offer(people: readonly EnrolledPerson[]): void {
    this.#people = people;
    const before = this.#person.value;
    this.#person.replaceChildren(
      ...people.map(({ name }) => element("option", { value: name, translate: "no" }, name)),
    );
    this.#person.disabled = people.length === 0;
    if (people.some(({ name }) => name === before)) this.#person.value = before;
  }

  protected compared() {
    return this.#people
      .filter(({ name }) => name === this.#person.value)
      .map((person) => ({ ...person, gauge: this.#gauge }));
  }

  protected async check(voices: Voices, audio: Samples) {
    const name = this.#person.value;
    const { decision, reason, ratio, threshold } = await voices.verify(name, audio);
    if (ratio !== null && threshold !== null && name === this.#person.value) this.#gauge.show(ratio, threshold);
    return { person: decision === "AUTHENTIC" ? name : null, decision, reason, no: strings.verify.no(name) };
  }
}
