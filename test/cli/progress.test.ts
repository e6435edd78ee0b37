import { afterEach, expect, it, vi } from "vitest";
import { createProgress } from "../../src/cli/progress.js";

afterEach(() => vi.unstubAllGlobals());

/** What a bar writes to a terminal. */
function written(columns: number, TERM = "xterm"): string {
  let text = "";
  const terminal = {
    isTTY: true,
    columns,
    write(part: string) {
      text += part;
      return true;
    },
    cursorTo: () => true,
  };
  vi.stubGlobal("process", { ...process, env: { TERM }, stderr: terminal });
  const progress = createProgress(true);
  progress.start("recordings", 45);
  progress.set(10);
  progress.start("figures", 1);
  progress.set(0);
  progress.stop();
  return text;
}

it("fits a narrow terminal, and changes nothing there that an interruption would leave changed", () => {
  expect(written(40)).toContain("22% | 10/45");
  // Of wrapping and of the cursor.
  expect(written(40)).not.toContain("[?");
});

it("shows no time as long as there is none", () => {
  expect(written(120)).toMatch(/0\/1 \| (00s|–)/);
  expect(written(120)).not.toMatch(/LLs|NFs/);
});

it("is not shown on a terminal that cannot move its cursor", () => {
  expect(written(80, "dumb")).toBe("");
});
