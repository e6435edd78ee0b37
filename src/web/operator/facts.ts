import { element } from "../dom.js";
import type { Cell } from "./table.js";

/** Names and values, one pair per line. */
export const facts = (rows: readonly (readonly [string, Cell])[]): HTMLElement =>
  element(
    "dl",
    { class: "facts" },
    ...rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
