import type { Page } from "../../server/operator/view.js";
import { element } from "../dom.js";
import { type Filter, Filters } from "./filters.js";
import { strings } from "./strings.js";
import type { TableWords } from "./table.js";
import { card } from "./table-panel.js";

export interface PageOfScope {
  readonly scope: string;
  readonly after: string;
  readonly filters: Readonly<Record<string, string>>;
}

/** A search that has found nothing by then goes on when the reader wants it to. */
const mostAnswers = 50;

/** What shows the rows of a page, or `none`. */
export interface Rows<Row> {
  readonly element: HTMLElement;
  show(rows: readonly Row[], none?: string): void;
}

/** Rows that are loaded page by page, with filters. */
export class PagedTable<Row> {
  readonly element: HTMLElement;
  readonly #table: Rows<Row>;
  readonly #filters: Filters;
  readonly #number = element("span", { role: "status" });
  readonly #previous = button(strings.pager.previous, () => void this.#turn(-1));
  readonly #next = button(strings.pager.next, () => void this.#turn(1));
  /** The page tokens of all pages so far; the last one is shown. */
  #pages: string[] = [""];
  #after: string | null = null;
  /** From where a search of these pages found rows, or goes on. */
  readonly #begins = new WeakMap<readonly string[], string>();
  /** The pages that are being searched through. */
  #searched: readonly string[] | null = null;
  #scope = "";
  /** The rows that are shown are not those that were asked for: another page or search. */
  #isOutdated = true;

  constructor(
    readonly words: Omit<TableWords, "columns"> & { readonly note?: string },
    readonly ask: (page: PageOfScope) => Promise<Page<Row>>,
    table: Rows<Row>,
    filters: readonly Filter[] = [],
    ...actions: readonly HTMLElement[]
  ) {
    this.#table = table;
    this.#filters = new Filters(words.heading, filters, () => this.#restart());
    this.element = card(
      words.heading,
      words.note,
      ...actions,
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
    this.#isOutdated = true;
    this.#table.show([], strings.loading);
  }

  /** Searches by one filter and clears the others. */
  search(name: string, value: string): void {
    this.#filters.set(name, value);
  }

  /** Reloads the current page. */
  async refresh(): Promise<void> {
    if (this.#scope === "") return this.#table.show([]);
    const [scope, pages, filters] = [this.#scope, this.#pages, this.#filters.values];
    if (pages === this.#searched) return;
    // The page, the scope or the part of the view may be changed while the request is running.
    const isCurrent = () => scope === this.#scope && pages === this.#pages && this.element.isConnected;
    this.#table.element.setAttribute("aria-busy", String(this.#isOutdated));
    const asked = this.#search(pages, (after) => this.ask({ scope, after, filters }), isCurrent);
    const { rows, next } = await asked.catch((error: Error) => {
      if (this.#isOutdated && isCurrent()) this.#show([], strings.lost(error.message));
      throw error;
    });
    if (!isCurrent()) return;
    this.#isOutdated = false;
    this.#after = next;
    this.#show(rows, next === null ? this.words.none : strings.pager.searchOn);
    // Also the number of rows: screen readers announce what a search found.
    const page = `${strings.pager.page(pages.length)}: ${strings.pager.rows(rows.length)}`;
    if (this.#number.textContent !== page) this.#number.textContent = page;
    this.#previous.setAttribute("aria-disabled", String(pages.length === 1));
    this.#next.setAttribute("aria-disabled", String(next === null));
    this.element.classList.toggle("one-page", pages.length === 1 && next === null);
  }

  /** For one answer the box reads a limited number of rows, so the first ones that match may be many answers away. */
  async #search(
    pages: readonly string[],
    ask: (after: string) => Promise<Page<Row>>,
    isCurrent: () => boolean,
  ): Promise<Page<Row>> {
    let found = await ask(pages.at(-1)!);
    // When it is repeated, the rows in between need not be read again.
    const most = this.#isOutdated ? mostAnswers : 1;
    for (let i = 0; i < most && found.rows.length === 0 && found.next !== null && isCurrent(); i++) {
      if (this.#isOutdated) this.#table.show([], strings.loading);
      const after = (i === 0 && this.#begins.get(pages)) || found.next;
      this.#begins.set(pages, after);
      this.#searched = pages;
      found = await ask(after).finally(() => {
        this.#searched = null;
      });
    }
    return found;
  }

  #show(rows: readonly Row[], none: string): void {
    this.#table.element.setAttribute("aria-busy", "false");
    this.#table.show(rows, none);
  }

  #restart(): void {
    this.#pages = [""];
    this.#isOutdated = true;
    this.refresh().catch(() => {});
  }

  async #turn(step: 1 | -1): Promise<void> {
    if (step === 1 ? this.#after === null : this.#pages.length === 1) return;
    this.#pages = step === 1 ? [...this.#pages, this.#after!] : this.#pages.slice(0, -1);
    this.#after = null;
    this.#isOutdated = true;
    await this.refresh().catch(() => {});
  }
}

/** Uses `aria-disabled`, because a `disabled` button loses the focus, and keyboard users lose their place. */
const button = (label: string, click: () => void) =>
  element("button", { type: "button", class: "quiet", "aria-disabled": "true", click }, label);
