/**
 * Tabs as in the ARIA Authoring Practices: arrow keys move between them, and only one is in the tab order. The address names the tab that
 * is shown, so that a reload and a bookmark keep it and the browser's Back goes to the one before.
 */
import { element } from "./dom.js";

export class Tabs<Name extends string> {
  readonly element: HTMLElement;
  readonly #buttons: ReadonlyMap<Name, HTMLButtonElement>;
  readonly #panel: HTMLElement;
  readonly #chosen: (name: Name) => void;
  #shown: Name | null = null;

  constructor(labels: Readonly<Record<Name, string>>, label: string, panel: HTMLElement, chosen: (name: Name) => void) {
    this.#panel = panel;
    this.#chosen = chosen;
    const names = Object.keys(labels) as Name[];
    this.#buttons = new Map(
      names.map((name) => [
        name,
        element(
          "button",
          { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": panel.id, click: () => this.choose(name) },
          labels[name],
        ),
      ]),
    );
    this.element = element("div", { class: "tabs", role: "tablist", "aria-label": label }, ...this.#buttons.values());
    this.element.addEventListener("keydown", (event) => this.#moved(event, names));
    addEventListener("hashchange", () => {
      const named = this.named;
      if (named && named !== this.#shown && this.element.isConnected) this.#show(named);
    });
  }

  /** The tab in the address, or `null`: the address may name something else on the page. */
  get named(): Name | null {
    return [...this.#buttons.keys()].find((name) => location.hash === `#${name}`) ?? null;
  }

  /** Shows the first tab of a visit. The address may name something else on the page, which a visitor wants to see. */
  open(name: Name): void {
    const named = document.getElementById(location.hash.slice(1));
    if (!named) history.replaceState(null, "", `#${name}`);
    this.#show(name);
    named?.scrollIntoView();
  }

  choose(name: Name): void {
    if (this.named !== name) history.pushState(null, "", `#${name}`);
    this.#show(name);
  }

  #show(name: Name): void {
    this.#shown = name;
    for (const [other, button] of this.#buttons) {
      button.setAttribute("aria-selected", String(other === name));
      button.tabIndex = other === name ? 0 : -1;
    }
    this.#panel.setAttribute("aria-labelledby", `tab-${name}`);
    this.#chosen(name);
  }

  #moved(event: KeyboardEvent, names: readonly Name[]): void {
    const at = names.findIndex((name) => this.#buttons.get(name) === event.target);
    const last = names.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[
      event.key
    ];
    // With another key, an arrow belongs to the browser: Alt and left goes back.
    if (at < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.choose(names[to]!);
    this.#buttons.get(names[to]!)!.focus();
  }
}
