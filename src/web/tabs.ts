/** Tabs as in the ARIA Authoring Practices: arrow keys move between them, and only one is in the tab order. */
import { element } from "./dom.js";

export class Tabs<Name extends string> {
  readonly element: HTMLElement;
  readonly #buttons: ReadonlyMap<Name, HTMLButtonElement>;
  readonly #panel: HTMLElement;
  readonly #chosen: (name: Name) => void;

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
  }

  choose(name: Name): void {
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
