import { expect, test } from "vitest";
import { searched } from "../../src/server/operator/page.js";
import { Sessions } from "../../src/server/operator/sessions.js";
import { openWorld, scopeA } from "../processor/world.js";

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

test("a session that was started while the clock was ahead does not end a search from a time on", async () => {
  const { processor, store, context } = await openWorld();
  const engagementId = context.gkEngagementId.value;
  const now = Date.UTC(2026, 10, 18);
  const start = async (at: number) => {
    const hex = at.toString(16).padStart(12, "0");
    const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
    const session = { id, scopeId: scopeA, engagementId, externalId: "", type: 1, claimedPersonId: "" };
    await store.sessions.create({ ...session, startedAt: at, stoppedAt: null });
    return id;
  };
  await start(now + 365 * 86_400_000);
  await store.sessions.capTimes(now);
  const id = await start(now + 3_600_000);
  const search = { text: "", decision: null, from: now + 1, until: null };
  const { rows } = await new Sessions(store, processor).find(scopeA, search, null, 10);
  expect(rows.map((row) => row.id)).toEqual([id]);
});
