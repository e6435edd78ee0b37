/** Meters for level, speech over noise and clipping, each with a word and a bar. */
import type { Measures } from "../engine/port.js";
import type { Limits } from "./advice.js";
import { element } from "./dom.js";
import { none, strings, whole } from "./strings.js";

const decibels = (value: number) => `${whole(value)} dB`;

class Meter {
  readonly #value = element("span", { class: "meter-value" }, none);
  readonly #bar = element("meter", { min: 0, max: 1, value: 0 });
  readonly element: HTMLElement;

  constructor(name: string) {
    this.#bar.setAttribute("aria-label", name);
    this.element = element(
      "div",
      { class: "meter" },
      element("span", { class: "meter-name" }, name),
      this.#value,
      this.#bar,
    );
  }

  show(part: number, text: string, good: boolean): void {
    this.#bar.value = Math.min(1, Math.max(0, part));
    this.#value.textContent = text;
    this.element.classList.toggle("poor", !good);
  }
}

export class Meters {
  readonly #level = new Meter(strings.meters.level);
  readonly #snr = new Meter(strings.meters.snr);
  readonly #clipping = new Meter(strings.meters.clipping);
  readonly element = element(
    "div",
    { class: "meters" },
    this.#level.element,
    this.#snr.element,
    this.#clipping.element,
  );

  clear(): void {
    for (const meter of [this.#level, this.#snr, this.#clipping]) meter.show(0, none, true);
  }

  /** Shows the level at once, directly from the samples. */
  level(levelDb: number): void {
    this.#level.show((levelDb + 60) / 60, decibels(Math.max(-90, levelDb)), levelDb < -1);
  }

  /** Shows the engine's measures of all audio so far. */
  measured({ snrDb, saturationRatio }: Measures, limits: Limits): void {
    if (snrDb === null) this.#snr.show(0, none, true);
    else this.#snr.show(snrDb / 40, decibels(snrDb), snrDb >= limits.minSnrDb);
    const fine = saturationRatio <= limits.maxSaturationRatio;
    this.#clipping.show(
      saturationRatio / (2 * limits.maxSaturationRatio),
      fine ? strings.meters.clean : strings.meters.clipped,
      fine,
    );
  }
}
