import { expect, test } from "vitest";
import { newIds } from "../../src/processor/new-ids.js";

const timeOf = (id: string) => Number.parseInt(id.replace("-", "").slice(0, 12), 16);

test("ids are in the order in which they were made, within a millisecond and if the clock is set back a little", () => {
  const clock = { at: Date.UTC(2026, 0, 1), now: () => clock.at };
  const { next } = newIds(clock);
  const ids = Array.from({ length: 1000 }, () => next());
  clock.at -= 5_000;
  ids.push(next());
  clock.at += 6_000;
  ids.push(next());
  expect(ids).toEqual(ids.toSorted());
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("ids follow the clock back after it was far ahead, so that a list by time has them in their place", () => {
  const clock = { at: Date.UTC(2027, 0, 1), now: () => clock.at };
  const { next } = newIds(clock);
  next();
  clock.at = Date.UTC(2026, 0, 1);
  expect(timeOf(next())).toBe(clock.at);
});
