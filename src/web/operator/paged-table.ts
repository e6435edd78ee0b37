import type { Page } from "../../server/operator/view.js";
import { element } from "../dom.js";
import { type Filter, Filters } from "./filters.js";
import { strings } from "./strings.js";
import { type Cell, Table, type TableWords } from "./table.js";
import { card } from "./table-panel.js";

export interface PageOfScope {
  readonly scope: string;
  readonly after: string;
  readonly filters: Readonly<Record<string, string>>;
}

/** A table that is loaded page by page, with filters. */
export class PagedTable<Row> {
  readonly element: HTMLElement;
  readonly #table: Table<Row>;
  readonly #filters: Filters;
  readonly #number = element("span", { role: "status" });
  readonly #previous = button(strings.pager.previous, () => void this.#turn(-1));
  readonly #next = button(strings.pager.next, () => void this.#turn(1));
  /** The page tokens of all pages so far; the last one is shown. */
  #pages: string[] = [""];
  #after: string | null = null;
  #scope = "";

  constructor(
    readonly words: TableWords & { readonly note?: string },
    readonly ask: (page: PageOfScope) => Promise<Page<Row>>,
    cells: (row: Row) => readonly Cell[],
    filters: readonly Filter[] = [],
  ) {
    this.#table = new Table(words, cells);
    this.#filters = new Filters(filters, () => this.#restart());
    this.element = card(
      words.heading,
      words.note,
      ...(filters.length > 0 ? [this.#filters.element] : []),
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

  /** Searches by one filter and clears the others. */
  search(name: string, value: string): void {
    this.#filters.set(name, value);
  }

  /** Reloads the current page. */
  async refresh(): Promise<void> {
    if (this.#scope === "") return;
    const [scope, pages] = [this.#scope, this.#pages];
    const { rows, next } = await this.ask({ scope, after: pages.at(-1)!, filters: this.#filters.values });
    // The page or scope was changed while the request was running.
    if (scope !== this.#scope || pages !== this.#pages) return;
    this.#after = next;
    this.#table.show(rows, next === null ? this.words.none : strings.pager.searchOn);
    const page = strings.pager.page(pages.length);
    if (this.#number.textContent !== page) this.#number.textContent = page;
    this.#previous.setAttribute("aria-disabled", String(pages.length === 1));
    this.#next.setAttribute("aria-disabled", String(next === null));
    this.element.classList.toggle("one-page", pages.length === 1 && next === null);
  }

  #restart(): void {
    this.#pages = [""];
    this.refresh().catch(() => {});
  }

  async #turn(step: 1 | -1): Promise<void> {
    if (step === 1 ? this.#after === null : this.#pages.length === 1) return;
    this.#pages = step === 1 ? [...this.#pages, this.#after!] : this.#pages.slice(0, -1);
    this.#after = null;
    await this.refresh().catch(() => {});
  }
}

/** Uses `aria-disabled`, because a `disabled` button loses the focus, and keyboard users lose their place. */
const button = (label: string, click: () => void) =>
  element("button", { type: "button", class: "quiet", "aria-disabled": "true", click }, label);
