import type { Page } from "../../server/operator/view.js";
import { element } from "../dom.js";
import { strings } from "./strings.js";
import { type Cell, Table } from "./table.js";

/** A table that is asked for page by page. */
export class PagedTable<Row> {
  readonly element: HTMLElement;
  readonly #table: Table;
  readonly #number = element("span", { role: "status" });
  readonly #previous = button(strings.pager.previous, () => void this.#turn(-1));
  readonly #next = button(strings.pager.next, () => void this.#turn(1));
  /** What each page so far was asked for with; the last one is shown. */
  #pages: string[] = [""];
  #after: string | null = null;
  #scope = "";

  constructor(
    readonly words: { readonly heading: string; readonly none: string; readonly columns: readonly string[] },
    readonly ask: (scope: string, after: string) => Promise<Page<Row>>,
    readonly cells: (row: Row) => readonly Cell[],
  ) {
    this.#table = new Table(words.heading, words.columns);
    this.element = element(
      "section",
      { class: "card" },
      element("h2", {}, words.heading),
      this.#table.element,
      element(
        "nav",
        { class: "pager", "aria-label": strings.pager.label(words.heading) },
        this.#previous,
        this.#number,
        this.#next,
      ),
    );
  }

  set scope(scope: string) {
    this.#scope = scope;
    this.#pages = [""];
  }

  /** Asks for the page that is shown. */
  async refresh(): Promise<void> {
    if (this.#scope === "") return;
    const [scope, pages] = [this.#scope, this.#pages];
    const { rows, next } = await this.ask(scope, pages.at(-1)!);
    // Turned, or another scope, while the answer was on its way.
    if (scope !== this.#scope || pages !== this.#pages) return;
    this.#after = next;
    this.#table.show(rows, this.cells, this.words.none);
    this.#number.textContent = strings.pager.page(pages.length);
    this.#previous.setAttribute("aria-disabled", String(pages.length === 1));
    this.#next.setAttribute("aria-disabled", String(next === null));
    this.element.classList.toggle("one-page", pages.length === 1 && next === null);
  }

  async #turn(step: 1 | -1): Promise<void> {
    if (step === 1 ? this.#after === null : this.#pages.length === 1) return;
    this.#pages = step === 1 ? [...this.#pages, this.#after!] : this.#pages.slice(0, -1);
    this.#after = null;
    await this.refresh().catch(() => {});
  }
}

/** Not `disabled`: a button that loses the focus while it is used is lost to a keyboard. */
const button = (label: string, click: () => void) =>
  element("button", { type: "button", class: "quiet", "aria-disabled": "true", click }, label);
