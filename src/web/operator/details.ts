/** Opens a profile or a session by its id, from anywhere in the view. */
import { element } from "../dom.js";
import { NotFound } from "./box-client.js";
import type { DetailContext, DetailDialog, Opens } from "./detail-context.js";
import { openDialog } from "./dialog.js";
import { keepingFocus } from "./focus.js";
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
  const opens: Opens = {
    profile: (id) =>
      void opened(strings.profile.id, strings.profile.gone, (of, dialog) => profileDetail(of, id, dialog)),
    session: (id) => void opened(strings.session.id, strings.session.gone, (of) => sessionDetail(of, id)),
  };
  return opens;
}
