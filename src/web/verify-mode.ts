import type { Score, Template } from "../engine/port.js";
import { AttackList, isAttacked } from "./attack-list.js";
import { element } from "./dom.js";
import { Gauge } from "./gauge.js";
import type { Mode, WhenReady } from "./mode.js";
import { ResultCard } from "./result-card.js";
import type { Stage, Task } from "./stage.js";
import { refusal, strings } from "./strings.js";
import type { Samples } from "./voices.js";

export class VerifyMode implements Mode, Task {
  readonly purpose = "verify";
  readonly targetSeconds = 3;
  readonly severalFiles = false;
  readonly controls: HTMLElement;
  readonly outcome: HTMLElement;
  readonly #voices: WhenReady;
  readonly #person = element("select", { id: "person" });
  readonly #gauge = new Gauge(strings.verify.score);
  readonly #result = new ResultCard();
  readonly #attacks = new AttackList();
  #templates = new Map<string, Template>();
  #thresholdOf: (score: Score) => number = () => 0;

  constructor(voices: WhenReady) {
    this.#voices = voices;
    this.controls = element(
      "div",
      {},
      element("h2", {}, strings.verify.heading),
      element("p", { class: "hint" }, strings.verify.hint),
      element("label", { for: "person" }, strings.verify.person),
      this.#person,
    );
    this.outcome = element(
      "div",
      { class: "outcome" },
      this.#gauge.element,
      this.#result.element,
      this.#attacks.element,
    );
    this.#person.addEventListener("change", () => this.begun());
  }

  async open(stage: Stage): Promise<void> {
    stage.task = this;
    this.begun();
    const voices = await this.#voices();
    const people = (await voices.people()).flatMap(({ name, template }) =>
      template ? [[name, template] as const] : [],
    );
    this.#templates = new Map(people);
    this.#thresholdOf = (score) => voices.threshold(score);
    const before = this.#person.value;
    this.#person.replaceChildren(...people.map(([name]) => element("option", { value: name }, name)));
    this.#person.disabled = people.length === 0;
    if (this.#templates.has(before)) this.#person.value = before;
    if (people.length === 0) stage.say(strings.nobody);
  }

  sentence(): string {
    return strings.verify.sentence;
  }
  obstacle(): string | null {
    return this.#person.value === "" ? strings.nobody : null;
  }
  templates(): readonly Template[] {
    const template = this.#templates.get(this.#person.value);
    return template ? [template] : [];
  }
  begun(): void {
    this.#gauge.clear();
    this.#result.clear();
    this.#attacks.clear();
  }
  scored([score]: readonly Score[]): void {
    if (score) this.#gauge.show(score.llr, this.#thresholdOf(score));
  }

  async taken(audio: Samples): Promise<void> {
    const name = this.#person.value;
    const voices = await this.#voices();
    const [answer, findings] = await Promise.all([voices.verify(name, audio), voices.attacks(audio)]);
    const { decision, reason, ratio, threshold } = answer;
    if (ratio !== null && threshold !== null) this.#gauge.show(ratio, threshold);
    this.#attacks.show(findings);
    if (decision === "AUTHENTIC" && isAttacked(findings))
      this.#result.show("no", strings.attacks.matches(name), strings.attacks.doNotTrust);
    else if (decision === "AUTHENTIC") this.#result.show("yes", strings.verify.yes(name));
    else if (decision === "NO_MATCH") this.#result.show("no", strings.verify.no(name));
    else if (reason === "LOW_RELIABILITY") this.#result.show("unsure", strings.uncertain, strings.uncertainMore);
    else this.#result.show("unsure", strings.failed, refusal(reason));
  }
}
