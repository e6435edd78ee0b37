// Resident memory of a box after its start, before any call, for each store. Linux.
//   npm run build && node bench/store-memory.mjs [postgres://… of an empty database for voices and keys]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const [postgres] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "vivavoce-store-memory-"));
const SETTLE_MS = 5000;

const stores = [
  ["memory", []],
  [join(folder, "store"), []],
  ...(postgres ? [[postgres, ["--set", `seal.keys=${join(folder, "keys")}`]]] : []),
];
try {
  for (const [store, more] of stores) {
    const flags = [
      "--store",
      store,
      "--port",
      "0",
      "--json",
      "--log-level",
      "error",
      "--set",
      "limits.concurrentAudio=2",
    ];
    const box = spawn(process.execPath, [main, "serve", ...flags, ...more], { stdio: ["ignore", "pipe", "inherit"] });
    await once(box.stdout, "data");
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${box.pid}/status`, "utf8"));
    const name = store === "memory" ? "memory" : store === postgres ? "PostgreSQL" : "embedded";
    console.log(`${name}: ${Math.round(kilobytes / 1024)} MB`);
    box.kill();
    await once(box, "exit");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
