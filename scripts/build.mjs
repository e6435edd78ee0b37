// Builds dist/: the kernels (asc), the library (tsc), then the browser bundles (rollup).
// --if-stale skips what is newer than all of its sources, so that `npm start` and `npm test` cost nothing when nothing changed.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ifStale = process.argv.includes("--if-stale");

function newest(path) {
  if (!existsSync(path)) return 0;
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))));
}

function step(name, sources, command, ...args) {
  const stamp = `dist/.built-${name}`;
  if (ifStale && existsSync(stamp) && statSync(stamp).mtimeMs > Math.max(...sources.map(newest))) return;
  const startedAt = Date.now();
  execFileSync(process.execPath, [join("node_modules", command), ...args], { stdio: "inherit" });
  writeFileSync(stamp, "");
  console.error(`built ${name} in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
}

mkdirSync("dist/engine", { recursive: true });
step("kernels", ["assembly", "asconfig.json"], "assemblyscript/bin/asc.js", "assembly/index.ts", "--target", "release");
step("library", ["src", "tsconfig.json"], "typescript/bin/tsc", "-p", "tsconfig.json");
// The command of a checkout runs as that of an installed package does: `npx vivavoce`.
if (existsSync("dist/cli/main.js")) chmodSync("dist/cli/main.js", 0o755);
if (existsSync("rollup.config.js")) {
  step("browser", ["src", "assembly", "models", "rollup.config.js"], "rollup/dist/bin/rollup", "-c", "--silent");
}
