import type { Score, Template } from "../engine/port.js";
import { AttackList, isAttacked } from "./attack-list.js";
import { element } from "./dom.js";
import { Gauge } from "./gauge.js";
import type { Mode, WhenReady } from "./mode.js";
import { ResultCard } from "./result-card.js";
import type { Stage, Task } from "./stage.js";
import { refusal, strings } from "./strings.js";
import type { Samples } from "./voices.js";

interface Candidate {
  readonly name: string;
  readonly template: Template;
  readonly gauge: Gauge;
}

export class IdentifyMode implements Mode, Task {
  readonly purpose = "verify";
  readonly targetSeconds = 3;
  readonly severalFiles = false;
  readonly controls: HTMLElement;
  readonly outcome: HTMLElement;
  readonly #voices: WhenReady;
  readonly #list = element("div", { class: "candidates" });
  readonly #result = new ResultCard();
  readonly #attacks = new AttackList();
  #candidates: Candidate[] = [];
  #thresholdOf: (score: Score, list: readonly Score[]) => number = () => 0;

  constructor(voices: WhenReady) {
    this.#voices = voices;
    this.controls = element(
      "div",
      {},
      element("h2", {}, strings.identify.heading),
      element("p", { class: "hint" }, strings.identify.hint),
    );
    this.outcome = element("div", { class: "outcome" }, this.#result.element, this.#attacks.element, this.#list);
  }

  async open(stage: Stage): Promise<void> {
    stage.task = this;
    this.#result.clear();
    this.#attacks.clear();
    const voices = await this.#voices();
    this.#candidates = (await voices.people()).flatMap(({ name, template }) =>
      template ? [{ name, template, gauge: new Gauge(name) }] : [],
    );
    this.#thresholdOf = (score, list) => voices.threshold(score, list);
    this.#list.replaceChildren(...this.#candidates.map(({ gauge }) => gauge.element));
    if (this.#candidates.length === 0) stage.say(strings.nobody);
  }

  sentence(): string {
    return strings.identify.sentence;
  }
  obstacle(): string | null {
    return this.#candidates.length === 0 ? strings.nobody : null;
  }
  templates(): readonly Template[] {
    return this.#candidates.map(({ template }) => template);
  }
  begun(): void {
    this.#result.clear();
    this.#attacks.clear();
    for (const { gauge } of this.#candidates) gauge.clear();
  }
  scored(scores: readonly Score[]): void {
    for (const [i, score] of scores.entries())
      this.#candidates[i]?.gauge.show(score.llr, this.#thresholdOf(score, scores));
  }

  async taken(audio: Samples): Promise<void> {
    const names = this.#candidates.map(({ name }) => name);
    const voices = await this.#voices();
    const [answer, findings] = await Promise.all([voices.identify(audio, names), voices.attacks(audio)]);
    const { decision, reason, person, candidates } = answer;
    for (const { name, ratio, threshold } of candidates)
      if (ratio !== null && threshold !== null)
        this.#candidates.find((one) => one.name === name)?.gauge.show(ratio, threshold);
    this.#attacks.show(findings);
    if (person !== null && isAttacked(findings))
      this.#result.show("no", strings.attacks.matches(person), strings.attacks.doNotTrust);
    else if (person !== null) this.#result.show("yes", strings.identify.yes(person));
    else if (decision === "NO_MATCH") this.#result.show("no", strings.identify.no);
    else if (reason === "LOW_RELIABILITY") this.#result.show("unsure", strings.uncertain, strings.uncertainMore);
    else this.#result.show("unsure", strings.failed, refusal(reason));
  }
}
