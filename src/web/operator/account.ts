/** Shows who is signed in, and the actions on their own account. */
import { button, element } from "../dom.js";
import type { BoxClient } from "./box-client.js";
import { ask } from "./dialog.js";
import { strings } from "./strings.js";

const words = strings.account;

/** `signedOut` is called when this browser is no longer signed in at the box. */
export function account(client: BoxClient, user: string, signedOut: () => void): HTMLElement {
  const state = element("span", { class: "note", role: "status" });
  let isLeaving = false;
  const signOut = async () => {
    if (isLeaving) return;
    isLeaving = true;
    try {
      await client.signOut();
      signedOut();
    } catch (error) {
      isLeaving = false;
      state.textContent = strings.failed((error as Error).message);
    }
  };
  return element(
    "div",
    { class: "account actions" },
    element("a", { class: "pill", href: "/profile" }, words.signedInAs(user)),
    button(words.changePassword, "quiet", () => changePassword(client, user, state)),
    button(words.signOut, "quiet", () => void signOut()),
    state,
  );
}

function changePassword(client: BoxClient, user: string, state: HTMLElement): void {
  const password = (name: string, label: string, autocomplete: string, hint?: string) =>
    ({ name, label, kind: "password", required: true, autocomplete, ...(hint === undefined ? {} : { hint }) }) as const;
  ask({
    heading: words.changePassword,
    note: words.signedInAs(user),
    fields: [
      { name: "username", label: "", kind: "username", value: user },
      password("current", words.current, "current-password"),
      password("password", words.password, "new-password", words.passwordHint),
      password("repeated", words.repeated, "new-password"),
    ],
    action: words.changePassword,
    submit: async (given) => {
      const [current, chosen] = [String(given.get("current")), String(given.get("password"))];
      if (chosen !== given.get("repeated")) throw new Error(strings.refusals.passwordsDiffer);
      await client.changePassword(current, chosen);
      state.textContent = words.changed;
    },
  });
}
