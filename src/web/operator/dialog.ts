/**
 * Modal dialogs. The browser keeps the focus inside, restores it afterwards if it can, and closes the dialog with Escape. Each open dialog has an
 * entry in the history, so that the browser's Back closes the last one and leaves what is behind it.
 */
import { button, element } from "../dom.js";
import { focusAgain } from "./focus.js";
import { strings } from "./strings.js";
import type { Cell } from "./table.js";

let opened = 0;
const openers = new WeakMap<Element, Element | null>();

/** What had the focus when the dialog was opened. If that was in a dialog that is closed by now, where that one was opened. */
function openerOf(dialog: Element): Element | null {
  const opener = openers.get(dialog) ?? null;
  const around = opener?.closest("dialog:not([open])");
  return around ? openerOf(around) : opener;
}

const openDialogs = () => [...document.querySelectorAll("dialog")].filter(({ open }) => open);
let isGoingBack = false;

/** Closes the dialogs that the present entry of the history does not have, or leaves entries whose dialogs are closed. */
function matchHistory(): void {
  const wanted = (history.state as { readonly dialogs: number } | null)?.dialogs ?? 0;
  const dialogs = openDialogs();
  for (const dialog of dialogs.slice(wanted)) dialog.close();
  if (wanted <= dialogs.length || isGoingBack) return;
  isGoingBack = true;
  history.go(dialogs.length - wanted);
}

addEventListener("popstate", () => {
  isGoingBack = false;
  matchHistory();
});

export interface Dialog {
  readonly element: HTMLDialogElement;
  readonly content: HTMLElement;
  close(): void;
}

export function openDialog(heading: string, ...content: readonly Cell[]): Dialog {
  const labelId = `dialog-${++opened}`;
  const place = element("div", { class: "dialog-content" }, ...content);
  const close = () => dialog.close();
  const dialog = element(
    "dialog",
    { "aria-labelledby": labelId },
    element(
      "div",
      { class: "row dialog-head" },
      element("h2", { id: labelId, tabindex: -1 }, heading),
      button(strings.close, "quiet", close),
    ),
    place,
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    matchHistory();
    // The button that opened the dialog may be gone: redrawn, or what it belonged to was deleted.
    if (document.activeElement !== document.body) return;
    const place = [...document.querySelectorAll<HTMLElement>("#part, dialog[open]")].at(-1);
    if (place) focusAgain(openerOf(dialog), place);
  });
  document.body.append(dialog);
  openers.set(dialog, document.activeElement);
  history.pushState({ dialogs: openDialogs().length + 1 }, "");
  dialog.showModal();
  // The heading gets the focus, so that screen readers read from the beginning and not from the first button.
  dialog.querySelector("h2")!.focus();
  return { element: dialog, content: place, close };
}

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** One line, a password, several lines, checkboxes, or the hidden name whose password a browser is to keep. */
  readonly kind?: "text" | "password" | "lines" | "checks" | "username";
  readonly value?: string;
  readonly autocomplete?: string;
  readonly required?: boolean;
  readonly checks?: readonly string[];
  readonly checked?: readonly string[];
}

export interface Question {
  readonly heading: string;
  readonly note?: string;
  readonly fields?: readonly Field[];
  readonly action: string;
  readonly isDangerous?: boolean;
  /** If it throws, the form stays open and shows the message. */
  readonly submit: (given: FormData) => Promise<unknown>;
}

/** A form in a dialog, which closes after `submit` succeeds. */
export function ask({ heading, note, fields = [], action, isDangerous = false, submit }: Question): void {
  const trouble = element("p", { class: "trouble", role: "alert" });
  const submitButton = element("button", { type: "submit", class: isDangerous ? "danger" : "main" }, action);
  const form = element(
    "form",
    { class: "asked", autocomplete: "off" },
    ...(note === undefined ? [] : [element("p", {}, note)]),
    ...fields.map(fieldOf),
    trouble,
    element(
      "div",
      { class: "actions" },
      submitButton,
      button(strings.cancel, "quiet", () => dialog.close()),
    ),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (submitButton.getAttribute("aria-disabled") === "true") return;
    submitButton.setAttribute("aria-disabled", "true");
    trouble.textContent = "";
    try {
      await submit(new FormData(form));
      dialog.close();
    } catch (error) {
      trouble.textContent = strings.failed((error as Error).message);
    } finally {
      submitButton.removeAttribute("aria-disabled");
    }
  });
  const dialog = openDialog(heading, form);
  dialog.element.classList.add("small");
  form.querySelector<HTMLElement>("input:not([hidden]), textarea")?.focus();
}

function fieldOf(field: Field): HTMLElement {
  const { name, label, hint, kind = "text", value = "", autocomplete = "off", required = false } = field;
  const inputId = `field-${++opened}`;
  const hintId = `${inputId}-hint`;
  const about = hint === undefined ? [] : [element("p", { class: "note", id: hintId }, hint)];
  if (kind === "username") return element("input", { name, value, autocomplete: "username", hidden: true });
  if (kind === "checks") {
    const boxes = (field.checks ?? []).map((one) =>
      element(
        "label",
        { class: "check" },
        element("input", { type: "checkbox", name, value: one, checked: field.checked?.includes(one) ?? true }),
        one,
      ),
    );
    return element(
      "fieldset",
      {},
      element("legend", {}, label),
      ...about,
      element("div", { class: "checks" }, ...boxes),
    );
  }
  const given = { id: inputId, name, required, ...(hint === undefined ? {} : { "aria-describedby": hintId }) };
  const input =
    kind === "lines"
      ? element("textarea", { ...given, rows: 3, spellcheck: "false" }, value)
      : element("input", { ...given, type: kind, value, autocomplete, spellcheck: "false" });
  return element("div", {}, element("label", { for: inputId }, label), ...about, input);
}
