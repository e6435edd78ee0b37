import { execFileSync, spawnSync } from "node:child_process";
import { openSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { jsonLog } from "../../src/server/log.js";

/** Every write to this device fails, as on a full disk. */
const FULL = "/dev/full";

test("a box whose log is on a full disk goes on", () => {
  const log = new URL("../../dist/server/log.js", import.meta.url).href;
  const script = `
    import { jsonLog } from "${log}";
    const log = jsonLog("info");
    log.info("one");
    setTimeout(() => { log.info("two"); console.log("alive"); }, 50);
  `;
  const full = openSync(FULL, "w");
  const out = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", full],
  });
  expect(out.toString()).toBe("alive\n");
});

test("the log of a box with many workers begins without a warning of Node", () => {
  const log = new URL("../../dist/server/log.js", import.meta.url).href;
  // Node connects the output of each worker without counting the listeners, and counts them when the next one is added.
  const script = `
    import { jsonLog } from "${log}";
    const log = jsonLog("info");
    process.stderr.setMaxListeners(0);
    for (let i = 0; i < 20; i++) process.stderr.on("error", () => {});
    process.stderr.setMaxListeners(10);
    log.info("one");
  `;
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(stderr).toMatch(/^\{[^\n]*"message":"one"\}\n$/);
});

test.each([
  ["debug", ["debug", "info", "warn", "error"]],
  ["info", ["info", "warn", "error"]],
  ["warn", ["warn", "error"]],
  ["error", ["error"]],
  ["silent", []],
] as const)("a log of level %s has the lines of %j", (level, expected) => {
  const lines: string[] = [];
  const log = jsonLog(
    level,
    (line) => lines.push(line),
    () => new Date(0),
  );
  for (const name of ["debug", "info", "warn", "error"] as const) log[name]("happened", { line: "desk" });
  const time = "1970-01-01T00:00:00.000Z";
  expect(lines).toEqual(
    expected.map((name) => `${JSON.stringify({ time, level: name, message: "happened", line: "desk" })}\n`),
  );
});

test("goes to the error output, one line for each", () => {
  const lines: string[] = [];
  const write = vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  const listeners = process.stderr.listenerCount("error");
  try {
    const log = jsonLog("info");
    for (const message of ["one", "two"]) log.info(message);
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(["one", "two"]);
    expect(process.stderr.listenerCount("error")).toBe(listeners + 1);
  } finally {
    write.mockRestore();
  }
});
