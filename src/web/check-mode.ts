/** Verify and Identify: a recording is compared with enrolled voices and checked for attacks. */
import type { Score, Template } from "../engine/port.js";
import { AttackList, isAttacked } from "./attack-list.js";
import type { Gauge } from "./gauge.js";
import type { Mode, WhenReady } from "./mode.js";
import { ResultCard } from "./result-card.js";
import type { Stage, Task } from "./stage.js";
import { refusal, strings } from "./strings.js";
import type { KnownPerson, Samples, Voices } from "./voices.js";

export type EnrolledPerson = Pick<KnownPerson, "name"> & { readonly template: Template };

/** Who was recognized, or why nobody was; `no` says that it is somebody else. */
interface Verdict {
  readonly person: string | null;
  readonly decision: string;
  readonly reason: string;
  readonly no: string;
}

/** Asked again for each check, because another tab may enroll and erase. */
const enrolledPeople = async (voices: Voices): Promise<EnrolledPerson[]> =>
  (await voices.people()).flatMap(({ name, template }) => (template ? [{ name, template }] : []));

export abstract class CheckMode implements Mode, Task {
  readonly purpose = "verify";
  readonly targetSeconds = 3;
  readonly severalFiles = false;
  abstract readonly controls: HTMLElement;
  abstract readonly outcome: HTMLElement;
  protected readonly findings: readonly HTMLElement[];
  readonly #result = new ResultCard();
  readonly #attacks = new AttackList();
  /** The enrolled people are known; not while the page loads. */
  #isLoaded = false;
  #thresholdOf: (score: Score, list: readonly Score[]) => number = () => 0;

  constructor(private readonly voices: WhenReady) {
    this.findings = [this.#result.element, this.#attacks.element];
  }

  /** Offers these people, or nobody. */
  protected abstract offer(people: readonly EnrolledPerson[]): void;
  /** The people that are compared, and a gauge for each. */
  protected abstract compared(): readonly (EnrolledPerson & { readonly gauge: Gauge })[];
  /** Checks the recording and shows the scores. */
  protected abstract check(voices: Voices, audio: Samples): Promise<Verdict>;

  async open(stage: Stage): Promise<void> {
    stage.task = this;
    this.begun();
    const voices = await this.voices();
    const people = await enrolledPeople(voices);
    this.#thresholdOf = (score, list) => voices.threshold(score, list);
    this.offer(people);
    this.#isLoaded = true;
    // The person may have gone on to another tab meanwhile.
    if (stage.task === this) stage.say(people.length === 0 ? strings.nobody : strings.advice.ready);
  }

  sentence(): string {
    return strings.anything;
  }
  obstacle(): string | null {
    if (this.compared().length > 0) return null;
    return this.#isLoaded ? strings.nobody : strings.advice.loading;
  }
  templates(): readonly Template[] {
    return this.compared().map(({ template }) => template);
  }
  begun(): void {
    this.#result.clear();
    this.#attacks.clear();
    for (const { gauge } of this.compared()) gauge.clear();
  }
  scored(templates: readonly Template[], scores: readonly Score[]): void {
    for (const { template, gauge } of this.compared()) {
      const score = scores[templates.indexOf(template)];
      if (score) gauge.show(score.llr, this.#thresholdOf(score, scores));
    }
  }

  async taken(audio: Samples): Promise<void> {
    const voices = await this.voices();
    const asked = new Set(this.compared().map(({ name }) => name));
    this.offer(await enrolledPeople(voices));
    if (!this.compared().some(({ name }) => asked.has(name)))
      return this.#result.show("unsure", strings.failed, strings.erasedElsewhere);
    const [verdict, attacks] = await Promise.all([this.check(voices, audio), voices.attacks(audio)]);
    const { person, decision, reason, no } = verdict;
    this.#attacks.show(attacks);
    if (person !== null && isAttacked(attacks))
      this.#result.show("no", strings.attacks.matches(person), strings.attacks.doNotTrust);
    else if (person !== null) this.#result.show("yes", strings.itIs(person));
    else if (decision === "NO_MATCH") this.#result.show("no", no);
    else if (reason === "LOW_RELIABILITY") this.#result.show("unsure", strings.uncertain, strings.uncertainMore);
    else this.#result.show("unsure", strings.failed, refusal(reason));
  }
}
