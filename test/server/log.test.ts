import { execFileSync } from "node:child_process";
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
