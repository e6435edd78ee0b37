import { expect, test } from "vitest";
import { watchlistConsistency } from "../../src/voiceprint/watchlist.js";

const prints = [
  { id: "alice", revision: "current" },
  { id: "bob", revision: null },
  { id: "carol", revision: "older" },
  { id: "dave", revision: "current" },
  { id: "erin", revision: "older" },
];
const canBeScored = (revision: string) => revision === "current";

test("a print can be scored if it has a template of a revision in use; the others are listed in order", () => {
  const { compatible, incompatible, listed } = watchlistConsistency(prints, canBeScored, 10);
  expect({ compatible, incompatible }).toEqual({ compatible: 2, incompatible: 3 });
  expect(listed.map(({ id }) => id)).toEqual(["bob", "carol", "erin"]);
});

test("all incompatible prints are counted, but no more than the limit are listed", () => {
  for (const limit of [0, 1, 2]) {
    const { incompatible, listed } = watchlistConsistency(prints, canBeScored, limit);
    expect(incompatible).toBe(3);
    expect(listed).toEqual([prints[1], prints[2]].slice(0, limit));
  }
});
