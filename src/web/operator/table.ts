/** A table; on a phone each row is a card with column names next to the cells. ARIA roles are explicit, as browsers do not see a card as a table. */
import { readable } from "../../languages.js";
import { element } from "../dom.js";
import { keepingFocus } from "./focus.js";
import { strings } from "./strings.js";

export type Cell = Node | string;

export interface TableWords {
  readonly heading: string;
  readonly none: string;
  readonly columns: readonly string[];
}

export class Table<Row> {
  readonly element: HTMLElement;
  readonly #body = element("tbody", { role: "rowgroup" });
  #shown = "";

  constructor(
    readonly words: TableWords,
    readonly cells: (row: Row) => readonly Cell[],
  ) {
    const head = words.columns.map((name) => element("th", { scope: "col", role: "columnheader" }, name));
    this.element = element(
      "table",
      { role: "table", "aria-label": words.heading },
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...head)),
      this.#body,
    );
    this.show([], strings.loading);
  }

  /** Redraws `rows` only if something in them changed, so that the selection stays. */
  show(rows: readonly Row[], none = this.words.none): void {
    const now = JSON.stringify([rows, none]);
    if (now === this.#shown) return;
    this.#shown = now;
    const { columns } = this.words;
    const row = (...cells: HTMLElement[]) => element("tr", { role: "row" }, ...cells);
    const cell = (content: Cell, i: number) =>
      element(
        "td",
        { role: "cell", "data-column": columns[i] ?? "", class: content === strings.none ? "empty" : "" },
        // The card layout needs elements, not bare text.
        typeof content === "string" ? element("span", {}, content) : content,
      );
    const empty = element("td", { role: "cell", colspan: columns.length, class: "none" }, none);
    const drawn = rows.length === 0 ? [row(empty)] : rows.map((one) => row(...this.cells(one).map(cell)));
    keepingFocus(this.element, () => this.#body.replaceChildren(...drawn));
  }
}

/** Names may be one long word. The browser's translator must leave them as they are: "Rose" is not a flower here. */
export const nameCell = (value: string): Cell =>
  value ? element("span", { class: "name", translate: "no" }, readable(value)) : strings.none;

/** Ids are long: one that does not fit is cut off, but its title shows all of it, and it can be selected completely. */
export const id = (value: string | null): Cell =>
  value ? element("code", { class: "id", title: value, translate: "no" }, value) : strings.none;

/** How a profile or session is opened by its id. */
export interface Opening {
  readonly label: string;
  open(id: string): void;
  addressOf(id: string): string;
}

/** An id that opens its profile or session: a link, which can be opened in another tab or sent to somebody. */
export function link(value: string | null, { label, open, addressOf }: Opening): Cell {
  if (!value) return strings.none;
  const click = (event: Event) => {
    const { ctrlKey, metaKey, shiftKey, altKey } = event as MouseEvent;
    // With these keys, the browser opens another tab or window, or saves the link.
    if (ctrlKey || metaKey || shiftKey || altKey) return;
    event.preventDefault();
    open(value);
  };
  const spoken = { title: value, "aria-label": `${label} ${value}`, translate: "no" };
  return element("a", { class: "id link", href: addressOf(value), ...spoken, click }, value);
}

/** In the reader's time zone. Its title is in UTC, as in the log of the box: when clocks go back, an hour comes twice. */
export const time = (at: number, style: Intl.DateTimeFormatOptions): HTMLTimeElement => {
  const moment = new Date(at);
  const utc = moment.toISOString();
  return element("time", { datetime: utc, title: utc }, moment.toLocaleString(strings.locale, style));
};

export const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
/** For rows of more than one day. */
export const clockAndDay: Intl.DateTimeFormatOptions = { day: "numeric", month: "short", ...clock };
export const moment: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "short" };
export const day: Intl.DateTimeFormatOptions = { dateStyle: "medium" };

/** A badge whose color depends on its value. */
export const badge = (kind: "decision" | "state" | "verdict", value: string, text: string): HTMLElement =>
  element("span", { class: "badge", [`data-${kind}`]: value }, text);

export const figure = (
  value: number | null,
  write: (value: number) => string = (one) => String(Math.round(one)),
): string => (value === null ? strings.none : write(value));

/** Names and values, one pair per line. */
export const facts = (rows: readonly (readonly [string, Cell])[]): HTMLElement =>
  element(
    "dl",
    { class: "facts" },
    ...rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
