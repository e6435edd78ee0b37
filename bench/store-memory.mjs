// Resident memory of a box after its start, before any call, and its peak until then, for each store; and the peak of
// PGlite alone when it creates a database, opens it, or unpacks a copy of a new one. Linux.
//   npm run build && node bench/store-memory.mjs [postgres://… of an empty database for voices and keys]
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startBox } from "./box.mjs";

const [postgres] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "vivavoce-store-memory-"));
const SETTLE_MS = 5000;

/** The work of one process, and then its peak. */
const alone = (work) =>
  execFileSync(process.execPath, ["--input-type=module", "-e", `${PGLITE}${work};${PEAK}`], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    encoding: "utf8",
  }).trim();
const copy = join(folder, "copy.tar.gz");
const at = (name) => JSON.stringify(`file://${join(folder, name)}`);
const PGLITE = `
  import { PGlite } from "@electric-sql/pglite";
  import { readFileSync, writeFileSync } from "node:fs";
  const copy = ${JSON.stringify(copy)};
`;
const PEAK = `
  await database.close();
  const peak = /VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1];
  console.log(Math.round(peak / 1024) + " MB");
`;

const stores = [
  ["memory", "memory"],
  ["embedded, first start", join(folder, "store")],
  ["embedded, later starts", join(folder, "store")],
  ...(postgres ? [["PostgreSQL", postgres, `seal.keys=${join(folder, "keys")}`]] : []),
];
try {
  for (const [name, store, ...settings] of stores) {
    const { process: box } = await startBox(store, "limits.concurrentAudio=2", ...settings);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const status = readFileSync(`/proc/${box.pid}/status`, "utf8");
    const mb = (field) => Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)[1]) / 1024);
    console.log(`${name}: ${mb("VmRSS")} MB, at the most ${mb("VmHWM")} MB`);
    box.kill();
    await once(box, "exit");
  }
  console.log(`PGlite creates a database: ${alone(`const database = await PGlite.create(${at("alone")})`)}`);
  const keep = "writeFileSync(copy, Buffer.from(await (await database.dumpDataDir('gzip')).arrayBuffer()))";
  console.log(`PGlite opens it: ${alone(`const database = await PGlite.create(${at("alone")})`)}`);
  alone(`const database = await PGlite.create(${at("alone")}); ${keep}`);
  const unpack = `const loadDataDir = new Blob([readFileSync(copy)], { type: "application/x-gzip" });
    const database = await PGlite.create(${at("unpacked")}, { loadDataDir })`;
  console.log(`PGlite unpacks a copy of ${(statSync(copy).size / 1e6).toFixed(1)} MB: ${alone(unpack)}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
