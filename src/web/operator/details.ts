/** Opens a profile or a session by its id, from anywhere in the view. */
import { element } from "../dom.js";
import { NotFound } from "./box-client.js";
import type { DetailContext, Opens } from "./detail-context.js";
import { openDialog } from "./dialog.js";
import { keepingFocus } from "./focus.js";
import { addressOf } from "./place.js";
import { profileDetail } from "./profile-detail.js";
import { sessionDetail } from "./session-detail.js";
import { strings } from "./strings.js";
import type { Opening } from "./table.js";

export function details(context: () => Omit<DetailContext, "opens">): Opens {
  const opening = (part: keyof Opens, label: string, gone: string, detail: typeof profileDetail): Opening => ({
    label,
    open(id) {
      const dialog = openDialog(label, element("p", { class: "note", role: "status" }, strings.loading));
      const show = async () => {
        try {
          const shown = await detail({ ...context(), opens }, id, { close: dialog.close, again: () => void show() });
          keepingFocus(dialog.element, () => dialog.content.replaceChildren(...shown));
        } catch (error) {
          const text = error instanceof NotFound ? gone : strings.failed((error as Error).message);
          dialog.content.replaceChildren(element("p", { role: "alert" }, text));
        }
      };
      void show();
    },
    addressOf: (opened) => addressOf({ part, scope: context().scope, opened }),
  });
  const opens: Opens = {
    profiles: opening("profiles", strings.profiles.columns[7], strings.profile.gone, profileDetail),
    sessions: opening("sessions", strings.sessions.columns[7], strings.session.gone, sessionDetail),
  };
  return opens;
}
