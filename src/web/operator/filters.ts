/** The filters of a table. */
import { element } from "../dom.js";

export type Filter =
  | { readonly name: string; readonly label: string; readonly kind: "search" | "time" }
  | {
      readonly name: string;
      readonly label: string;
      readonly kind: "choice";
      readonly any: string;
      readonly choices: readonly (readonly [value: string, text: string])[];
    };

/** Wait for a pause in typing, because each search is a request to the box. */
const pauseMs = 300;
let made = 0;

export class Filters {
  readonly element: HTMLElement;
  readonly #inputs = new Map<string, HTMLInputElement | HTMLSelectElement>();
  #waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(
    filters: readonly Filter[],
    readonly changed: () => void,
  ) {
    this.element = element(
      "form",
      { class: "filters", role: "search" },
      ...filters.map((filter) => this.#field(filter)),
    );
    this.element.addEventListener("submit", (event) => event.preventDefault());
    this.element.addEventListener("input", () => this.#soon());
  }

  /** Values for the request to the box: times in milliseconds, empty strings for unused filters. */
  get values(): Record<string, string> {
    const entries = [...this.#inputs].map(([name, input]) => {
      const isTime = input.type === "datetime-local" && input.value !== "";
      return [name, isTime ? String(new Date(input.value).getTime()) : input.value.trim()];
    });
    return Object.fromEntries(entries.filter(([, value]) => value !== "")) as Record<string, string>;
  }

  /** Sets one filter and clears the others. */
  set(name: string, value: string): void {
    for (const [other, input] of this.#inputs) input.value = other === name ? value : "";
    this.changed();
  }

  #soon(): void {
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(this.changed, pauseMs);
  }

  #field(filter: Filter): HTMLElement {
    const id = `filter-${++made}`;
    const input =
      filter.kind === "choice"
        ? element(
            "select",
            { id },
            element("option", { value: "" }, filter.any),
            ...filter.choices.map(([value, text]) => element("option", { value }, text)),
          )
        : element("input", {
            id,
            type: filter.kind === "time" ? "datetime-local" : "search",
            ...(filter.kind === "search" ? { maxlength: 256, spellcheck: "false", autocapitalize: "none" } : {}),
          });
    this.#inputs.set(filter.name, input);
    return element("div", { class: filter.kind }, element("label", { for: id }, filter.label), input);
  }
}
