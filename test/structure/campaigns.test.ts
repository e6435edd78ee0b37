/** The campaigns in a short form: seconds each, always with the same seeds. Long runs and their counts: docs/RELIABILITY.md. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { unfairness, unjudgedFairness } from "../../campaign/parts/fairness.mjs";

const RUN = fileURLToPath(new URL("../../campaign/run.mjs", import.meta.url));
/** On a busy machine a start alone may take many seconds. */
const TIMEOUT_MS = 600_000;

test("the load campaign notices a caller, and a scope, that starves", () => {
  const fair = Array.from({ length: 50 }, (_, i) => 6 + (i % 9));
  const few = [20, 21, 22];
  expect(unfairness({ large: fair, small: few })).toEqual([]);
  expect(unfairness({ large: [...fair, 2], small: few })).toEqual([expect.stringMatching(/^1 of 51 callers/)]);
  expect(unfairness({ large: fair, small: [...few, 4] })).toEqual([expect.stringMatching(/^1 of 4 callers/)]);
  expect(unfairness({ large: fair, small: [6, 7, 6] })).toEqual([expect.stringMatching(/^6.3 conversations/)]);
  expect(unjudgedFairness({ large: fair, small: few })).toBeNull();
  // Too few to say, and the report says so.
  expect(unfairness({ large: [0, 3, 6], small: [0] })).toEqual([]);
  expect(unjudgedFairness({ large: [0, 3, 6], small: few })).toMatch(/there were 3\.0 in the large scope:/);
});

test.each([
  ["tokens", ["--count", "2000"]],
  ["fuzz", ["--count", "8000"]],
  ["calls", ["--count", "600"]],
  ["erase", ["--count", "6"]],
  ["crash", ["--count", "6", "--store", "folder"]],
  ["crash", ["--only", "models", "--count", "2", "--store", "folder"]],
  ["crash", ["--only", "commands", "--count", "1"]],
  ["load", ["--seconds", "8", "--callers", "6", "--store", "memory"]],
])(
  "%s %s",
  async (name, options) => {
    const { stdout } = await promisify(execFile)(process.execPath, [RUN, name, ...options, "--seed", "1", "--json"], {
      maxBuffer: 2 ** 26,
    }).catch((error: { stdout: string; stderr: string }) => {
      if (error.stdout) return error;
      throw error;
    });
    const { violations, ...counts } = JSON.parse(stdout.trim().split("\n").at(-1)!);
    expect(violations).toEqual([]);
    expect(counts).toMatchObject({ campaign: name, seed: 1 });
  },
  TIMEOUT_MS,
);
