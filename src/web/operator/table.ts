/** A table that is wider than a phone scrolls by itself, by keyboard too. */
import { element } from "../dom.js";

export type Cell = Node | string;

export class Table {
  readonly element: HTMLElement;
  readonly #body = element("tbody");
  readonly #columns: number;
  #shown = "";

  constructor(label: string, columns: readonly string[]) {
    this.#columns = columns.length;
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
    this.element = element(
      "div",
      { class: "scroll", role: "region", "aria-label": label, tabindex: 0 },
      element("table", {}, element("thead", {}, head), this.#body),
    );
  }

  /** `rows` are redrawn only when something in them changed, so that a selection or a scroll position stays. */
  show<Row>(rows: readonly Row[], cells: (row: Row) => readonly Cell[], none: string): void {
    const now = JSON.stringify(rows);
    if (now === this.#shown) return;
    this.#shown = now;
    if (rows.length === 0) {
      this.#body.replaceChildren(element("tr", {}, element("td", { colspan: this.#columns, class: "none" }, none)));
      return;
    }
    this.#body.replaceChildren(
      ...rows.map((row) => element("tr", {}, ...cells(row).map((cell) => element("td", {}, cell)))),
    );
  }
}

/** An id is long: what does not fit is behind its title, and can be selected as a whole. */
export const id = (value: string | null) => (value ? element("code", { class: "id", title: value }, value) : "–");

export const time = (at: number, style: Intl.DateTimeFormatOptions) =>
  element("time", { datetime: new Date(at).toISOString() }, new Date(at).toLocaleString("en-GB", style));
