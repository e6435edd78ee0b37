// Resident memory of a box after its start, before any call, and its peak until then, for each store. Linux.
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
  ["memory", "memory", []],
  ["embedded, first start", join(folder, "store"), []],
  ["embedded, later starts", join(folder, "store"), []],
  ...(postgres ? [["PostgreSQL", postgres, ["--set", `seal.keys=${join(folder, "keys")}`]]] : []),
];
try {
  for (const [name, store, more] of stores) {
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
    const status = readFileSync(`/proc/${box.pid}/status`, "utf8");
    const mb = (field) => Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)[1]) / 1024);
    console.log(`${name}: ${mb("VmRSS")} MB, at the most ${mb("VmHWM")} MB`);
    box.kill();
    await once(box, "exit");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
