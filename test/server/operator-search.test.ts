import { expect, test } from "vitest";
import { searched } from "../../src/server/operator/page.js";

test("a search that finds nothing lets others be served after every few rows", async () => {
  let turns = 0;
  let isOver = false;
  const serve = () => {
    turns++;
    if (!isOver) setImmediate(serve);
  };
  setImmediate(serve);
  const rows = Array.from({ length: 1000 }, (_, i) => ({ id: String(i).padStart(4, "0") }));
  const list = async (from: string | null, most: number) =>
    rows.filter(({ id }) => from === null || id > from).slice(0, most);
  expect(await searched(list, null, 24, 500, () => null)).toEqual({ rows: [], next: "0499" });
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(20);
});
