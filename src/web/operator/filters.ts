/** The filters of a table. */
import { element } from "../dom.js";
import { keepFilters, keptFilters } from "./place.js";

export type Filter =
  /** `untilTime` includes the minute that was entered. */
  | { readonly name: string; readonly label: string; readonly kind: "search" | "time" | "untilTime" }
  | {
      readonly name: string;
      readonly label: string;
      readonly kind: "choice";
      readonly any: string;
      readonly choices: readonly (readonly [value: string, text: string])[];
    };

/** Wait for a pause in typing, because each search is a request to the box. */
const pauseMs = 300;
const minuteMs = 60_000;
let made = 0;

export class Filters {
  readonly element: HTMLElement;
  readonly #inputs = new Map<string, HTMLInputElement | HTMLSelectElement>();
  #waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(
    /** Under which this tab keeps what was entered. */
    readonly name: string,
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
    const kept = keptFilters(name);
    for (const [field, input] of this.#inputs) input.value = kept[field] ?? "";
  }

  /** Values for the request to the box: times in milliseconds, empty strings for unused filters. */
  get values(): Record<string, string> {
    const entries = [...this.#inputs].map(([name, input]) => {
      if (input.type !== "datetime-local" || input.value === "") return [name, input.value.trim()];
      // While a year is typed, it begins with 0002.
      const at = Math.max(0, new Date(input.value).getTime());
      return [name, String(input.dataset.kind === "untilTime" ? at + minuteMs : at)];
    });
    return Object.fromEntries(entries.filter(([, value]) => value !== "")) as Record<string, string>;
  }

  /** Sets one filter and clears the others. */
  set(name: string, value: string): void {
    for (const [other, input] of this.#inputs) input.value = other === name ? value : "";
    this.#apply();
  }

  #soon(): void {
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(() => this.#apply(), pauseMs);
  }

  #apply(): void {
    keepFilters(this.name, Object.fromEntries([...this.#inputs].map(([field, input]) => [field, input.value])));
    this.changed();
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
            "data-kind": filter.kind,
            type: filter.kind === "search" ? "search" : "datetime-local",
            ...(filter.kind === "search" ? { maxlength: 256, spellcheck: "false", autocapitalize: "none" } : {}),
          });
    this.#inputs.set(filter.name, input);
    return element("div", { class: filter.kind }, element("label", { for: id }, filter.label), input);
  }
}
