/** Progress of loading the voice model, at the top of the page. */
import { element } from "./dom.js";
import { decimal, strings } from "./strings.js";

export class ModelBar {
  readonly #bar = element("progress", { max: 1, value: 0, "aria-label": strings.model.starting });
  readonly #text = element("span", {}, strings.model.starting);
  readonly #retry = element("button", { type: "button", class: "quiet", hidden: true }, strings.model.retry);
  /** Only this part is read out: progress would interrupt a screen reader again and again. */
  readonly #failure = element("span", { role: "alert" });
  readonly element = element(
    "div",
    { class: "row model", tabindex: -1 },
    this.#bar,
    this.#text,
    this.#failure,
    this.#retry,
  );

  constructor(retry: () => void) {
    this.#retry.addEventListener("click", () => {
      this.#state("loading", strings.model.starting);
      // The button is hidden now, so the focus would be lost.
      this.element.focus();
      retry();
    });
  }

  loading(have: number, all: number): void {
    this.#state(
      "loading",
      have < all ? strings.model.loading(decimal(have / 1e6), decimal(all / 1e6)) : strings.model.starting,
    );
    this.#bar.value = have / all;
  }

  ready(): void {
    this.#bar.value = 1;
    this.#state("ready", strings.model.ready);
  }

  failed(text: string): void {
    this.#state("failed", "");
    this.#failure.textContent = text;
  }

  #state(state: "loading" | "ready" | "failed", text: string): void {
    this.element.dataset.state = state;
    this.#text.textContent = text;
    this.#failure.textContent = "";
    this.#retry.hidden = state !== "failed";
  }
}
