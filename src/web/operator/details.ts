/** Opens a profile or a session by its id, from anywhere in the view. */
import { element } from "../dom.js";
import { NotFound } from "./box-client.js";
import type { DetailContext, DetailDialog, Opens } from "./detail-context.js";
import { openDialog } from "./dialog.js";
import { keepingFocus } from "./focus.js";
import { addressOf as addressOfPlace } from "./place.js";
import { profileDetail } from "./profile-detail.js";
import { sessionDetail } from "./session-detail.js";
import { strings } from "./strings.js";
import type { Cell } from "./table.js";

export function details(context: () => Omit<DetailContext, "opens">): Opens {
  const opened = async (
    heading: string,
    gone: string,
    content: (of: DetailContext, shownIn: DetailDialog) => Promise<Cell[]>,
  ) => {
    const dialog = openDialog(heading, element("p", { class: "note", role: "status" }, strings.loading));
    const show = async () => {
      try {
        const of = { ...context(), opens };
        const shown = await content(of, { close: dialog.close, again: () => void show() });
        keepingFocus(dialog.element, () => dialog.content.replaceChildren(...shown));
      } catch (error) {
        const text = error instanceof NotFound ? gone : strings.failed((error as Error).message);
        dialog.content.replaceChildren(element("p", { role: "alert" }, text));
      }
    };
    await show();
  };
  const { profile, session } = strings;
  const addressOf = (part: keyof Opens) => (opened: string) => addressOfPlace({ part, scope: context().scope, opened });
  const opens: Opens = {
    profiles: {
      label: profile.id,
      open: (id) => void opened(profile.id, profile.gone, (of, dialog) => profileDetail(of, id, dialog)),
      addressOf: addressOf("profiles"),
    },
    sessions: {
      label: session.id,
      open: (id) => void opened(session.id, session.gone, (of) => sessionDetail(of, id)),
      addressOf: addressOf("sessions"),
    },
  };
  return opens;
}
