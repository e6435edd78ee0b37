/** Keyboard users keep their place when what has the focus is removed: by a redraw, or because it was deleted. */

const nameOf = (one: Element) => one.getAttribute("aria-label") ?? one.textContent;

/** Focuses `lost`, or the button or link in `place` that replaced it (it has the same name), or else `place`. */
export function focusAgain(lost: Element | null, place: HTMLElement): void {
  const again =
    lost &&
    [...place.querySelectorAll<HTMLElement>("a, button")].find((one) => one === lost || nameOf(one) === nameOf(lost));
  again?.focus();
  if (again && again === document.activeElement) return;
  place.tabIndex = -1;
  place.focus();
}

/** Runs `change`, which redraws `place`. */
export function keepingFocus(place: HTMLElement, change: () => void): void {
  const before = document.activeElement;
  change();
  if (before && !before.isConnected) focusAgain(before, place);
}
