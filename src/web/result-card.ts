/** The answer in one large sentence, and the reason. */
import { element } from "./dom.js";

export type Tone = "yes" | "no" | "unsure" | "plain";

export class ResultCard {
  readonly #headline = element("p", { class: "headline" });
  readonly #detail = element("p", { class: "detail" });
  readonly element = element("div", { class: "result", role: "status" }, this.#headline, this.#detail);

  constructor() {
    this.clear();
  }

  show(tone: Tone, headline: string, detail = ""): void {
    this.element.dataset.tone = tone;
    this.#headline.textContent = headline;
    this.#detail.textContent = detail;
    // On a phone the result is below the fold.
    if (headline !== "") this.element.scrollIntoView({ block: "nearest" });
  }

  clear(): void {
    this.show("plain", "");
  }
}
