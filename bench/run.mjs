// npm run bench [-- --json] [-- --only gallery,front-end]: every figure is a ratio against a named peer in the same run.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { printJson, printTable } from "./table.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { values } = parseArgs({ options: { json: { type: "boolean" }, only: { type: "string" } } });
const npm = (...args) => execFileSync("npm", args, { stdio: ["ignore", "ignore", "inherit"] });

if (!existsSync(here("node_modules/onnxruntime-web"))) npm("install", "--prefix", here("."));
if (!existsSync(here("node_modules/hnswlib-node/build"))) {
  // The only peer that must be compiled. Without a compiler, its rows are reported as missing.
  try {
    npm("rebuild", "hnswlib-node", "--ignore-scripts=false", "--prefix", here("."));
  } catch {}
}
execFileSync(process.execPath, [here("../scripts/build.mjs")], {
  cwd: here(".."),
  stdio: ["ignore", 2, 2],
});

const groups = [
  "front-end",
  "gallery",
  "pipeline",
  "cold-start",
  "threads",
  "memory",
  "download",
  "install",
  "page",
  "nn",
  "processor",
];
const chosen = values.only?.split(",") ?? groups;
const rows = [];
for (const group of groups) {
  if (!chosen.includes(group)) continue;
  const path = [`./${group}.mjs`, `./${group}/index.mjs`].find((name) => existsSync(here(name)));
  if (!path) continue;
  if (!values.json) console.error(`${group} …`);
  try {
    const { default: measure } = await import(path);
    for (const row of await measure()) rows.push({ group, ...row });
  } catch (error) {
    rows.push({
      group,
      work: group,
      peer: "",
      ratio: null,
      target: "",
      met: false,
      unit: "",
      detail: String(error?.stack ?? error),
    });
  }
}

if (values.json) await printJson(rows);
else printTable(rows);
process.exit(0);
