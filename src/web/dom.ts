/** Creates elements in one line each. Text is never parsed as HTML. */
type Value = string | number | boolean | ((event: Event) => void);
type Attributes = Readonly<Record<string, Value>>;
type Child = Node | string;

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  return fill(document.createElement(tag), attributes, children);
}

/** `spoken` names it for screen readers, if its label alone does not say enough. */
export const button = (label: string, kind: string, click: () => void, spoken?: string): HTMLButtonElement =>
  element(
    "button",
    { type: "button", class: kind, click, ...(spoken === undefined ? {} : { "aria-label": spoken }) },
    label,
  );

export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<T extends Element>(made: T, attributes: Attributes, children: readonly Child[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}
