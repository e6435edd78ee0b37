import { element } from "../dom.js";
import { strings } from "./strings.js";
import { type Cell, Table, type TableWords } from "./table.js";

/** A section of the view: heading, note and content. */
export const card = (heading: string, note: string | undefined, ...content: readonly Cell[]): HTMLElement =>
  element(
    "section",
    { class: "card" },
    element("h2", {}, heading),
    ...(note === undefined ? [] : [element("p", { class: "note" }, note)]),
    ...content,
  );

/** A table in a card, with optional advice below. */
export class TablePanel<Row> {
  readonly #table: Table<Row>;
  readonly #advice = element("p", { class: "note", role: "status" });
  readonly element: HTMLElement;

  constructor(words: TableWords & { readonly note?: string }, cells: (row: Row) => readonly Cell[]) {
    this.#table = new Table(words, cells);
    this.element = card(words.heading, words.note, this.#table.element, this.#advice);
  }

  /** Shows no rows until the next ones arrive. */
  load(): void {
    this.#table.show([], strings.loading);
    this.#advice.replaceChildren();
  }

  /** The advice is a sentence and a command. */
  show(rows: readonly Row[], advice: { readonly text: string; readonly command: string } | null = null): void {
    this.#table.show(rows);
    this.#advice.replaceChildren(...(advice ? [advice.text, " ", element("code", {}, advice.command)] : []));
  }
}
