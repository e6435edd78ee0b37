import { execFileSync, spawnSync } from "node:child_process";
import { openSync } from "node:fs";
import { expect, test } from "vitest";

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
