/** Opens a profile or a session by its id, from anywhere in the view. */
import { element } from "../dom.js";
import { NotFound } from "./box-client.js";
import type { DetailContext, Opens } from "./detail-context.js";
import { openDialog } from "./dialog.js";
import { profileDetail } from "./profile-detail.js";
import { sessionDetail } from "./session-detail.js";
import { strings } from "./strings.js";
import type { Cell } from "./table.js";

export function details(context: () => Omit<DetailContext, "opens">): Opens {
  const opened = async (
    heading: string,
    gone: string,
    content: (of: DetailContext, close: () => void) => Promise<Cell[]>,
  ) => {
    const dialog = openDialog(heading, element("p", { class: "note", role: "status" }, "…"));
    try {
      dialog.content.replaceChildren(...(await content({ ...context(), opens }, dialog.close)));
    } catch (error) {
      const text = error instanceof NotFound ? gone : strings.failed((error as Error).message);
      dialog.content.replaceChildren(element("p", { role: "alert" }, text));
    }
  };
  const opens: Opens = {
    profile: (id) => void opened(strings.profile.id, strings.profile.gone, (of, close) => profileDetail(of, id, close)),
    session: (id) => void opened(strings.session.id, strings.session.gone, (of) => sessionDetail(of, id)),
  };
  return opens;
}
