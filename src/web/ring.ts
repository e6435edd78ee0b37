/** The ring shows how much speech was heard and how loud it is, with the record button in the middle. */
import { element, svg } from "./dom.js";
import { decimal, strings } from "./strings.js";

export type RingPhase = "idle" | "asking" | "recording" | "working";

const radius = 104;

export class Ring {
  readonly element: HTMLElement;
  readonly #button: HTMLButtonElement;
  readonly #arc = svg("circle", { class: "arc", cx: 120, cy: 120, r: radius, pathLength: 100 });
  readonly #halo = svg("circle", { class: "halo", cx: 120, cy: 120, r: 74 });
  readonly #label = element("span", { class: "ring-label" }, strings.record.start);
  readonly #amount = element("span", { class: "ring-amount", "aria-hidden": "true" });
  readonly #progress: HTMLElement;

  constructor(pressed: () => void) {
    const icon = (name: string, ...shapes: SVGElement[]) =>
      svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: `icon ${name}` }, ...shapes);
    const microphone = icon(
      "microphone",
      svg("path", { d: "M12 3a3 3 0 0 0-3 3v6a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3Z" }),
      svg("path", { d: "M5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3" }),
    );
    const square = icon("square", svg("rect", { x: 6, y: 6, width: 12, height: 12, rx: 2.5 }));
    this.#button = element(
      "button",
      { type: "button", class: "ring-button", click: pressed },
      microphone,
      square,
      this.#label,
    );
    this.#progress = element(
      "div",
      { class: "ring-progress", role: "progressbar", "aria-label": strings.record.netSpeech, "aria-valuemin": 0 },
      svg(
        "svg",
        { viewBox: "0 0 240 240", "aria-hidden": "true" },
        this.#halo,
        svg("circle", { class: "track", cx: 120, cy: 120, r: radius }),
        this.#arc,
      ),
    );
    this.element = element("div", { class: "ring" }, this.#progress, this.#button, this.#amount);
    this.phase = "idle";
    this.fill(0, 3);
  }

  set phase(phase: RingPhase) {
    this.element.dataset.phase = phase;
    const { start, stop, asking, working } = strings.record;
    this.#label.textContent = { idle: start, asking, recording: stop, working }[phase];
    // A button with `aria-disabled` keeps the focus, so keyboard users do not lose their place.
    this.#button.setAttribute("aria-disabled", String(phase === "asking" || phase === "working"));
    if (phase !== "recording") this.level(0);
  }

  fill(seconds: number, target: number): void {
    const part = Math.min(1, seconds / target);
    this.#arc.setAttribute("stroke-dasharray", `${part * 100} 100`);
    this.#arc.classList.toggle("empty", part === 0);
    this.#progress.setAttribute("aria-valuemax", String(target));
    this.#progress.setAttribute("aria-valuenow", Math.min(seconds, target).toFixed(1));
    const text = strings.record.ofTarget(decimal(Math.min(seconds, target)), target);
    this.#amount.textContent = text;
    // Else a screen reader says percent.
    this.#progress.setAttribute("aria-valuetext", text);
  }

  /** 0..1 */
  level(level: number): void {
    this.#halo.setAttribute("r", String(74 + 26 * level));
  }
}
