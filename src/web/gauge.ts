/** Shows a score and the mark that it has to reach. The mark is always in the middle. */
import { element } from "./dom.js";
import { decimal, none, strings } from "./strings.js";

/** A ratio this far from the mark (in natural logarithms) is at the end of the bar. */
const reach = 14;

export class Gauge {
  readonly #fill = element("span", { class: "gauge-fill" });
  readonly #text = element("span", { class: "gauge-text" });
  readonly #bar: HTMLElement;
  readonly element: HTMLElement;

  constructor(name: string) {
    this.#bar = element(
      "span",
      {
        class: "gauge-bar",
        role: "meter",
        "aria-label": name,
        "aria-valuemin": 0,
        "aria-valuemax": 100,
        "aria-valuenow": 0,
      },
      this.#fill,
      element("span", { class: "gauge-mark" }),
    );
    this.element = element(
      "div",
      { class: "gauge" },
      element("span", { class: "gauge-name" }, name),
      this.#text,
      this.#bar,
    );
    this.clear();
  }

  clear(): void {
    this.#show(0, none, false);
  }

  show(llr: number, threshold: number): void {
    const part = Math.min(1, Math.max(0, 0.5 + (llr - threshold) / (2 * reach)));
    this.#show(part, strings.verify.scoreOf(decimal(llr), decimal(threshold)), llr >= threshold);
  }

  #show(part: number, text: string, reached: boolean): void {
    this.#fill.style.width = `${100 * part}%`;
    this.#bar.setAttribute("aria-valuenow", String(Math.round(100 * part)));
    this.#bar.setAttribute("aria-valuetext", text);
    this.#text.textContent = text;
    this.element.classList.toggle("reached", reached);
  }
}
