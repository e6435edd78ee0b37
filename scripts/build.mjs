// Builds dist/ in three steps: the kernels (asc), the library (tsc), the browser bundles (rollup).
//   node scripts/build.mjs [kernels | library | bundles] [--force]
// A step builds the ones before it too; by default all are built. Outputs that are up to date are skipped: dist/.build holds, for each
// output, a hash of the files it was made from and of the files it wrote.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { writeKernelExports } from "./kernel-exports.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const records = "dist/.build";
const STEPS = ["kernels", "library", "bundles"];

/** Builds everything up to and including the step `last`. */
export async function build(last = "bundles", { force = false } = {}) {
  if (!STEPS.includes(last)) throw new Error(`unknown step "${last}": use one of ${STEPS.join(", ")}`);
  const folder = process.cwd();
  process.chdir(root);
  try {
    mkdirSync("dist/engine", { recursive: true });
    if (force) rmSync(records, { recursive: true, force: true });
    mkdirSync(records, { recursive: true });
    await kernels();
    if (last !== "kernels") await library();
    if (last === "bundles") await bundles();
  } finally {
    process.chdir(folder);
  }
}

function kernels() {
  return unlessCurrent("kernels", (previous) => {
    const inputs = ["assembly", "asconfig.json", "node_modules/assemblyscript/package.json"];
    const outputs = ["dist/engine/vivavoce.wasm"];
    if (previous?.isCurrent(inputs, outputs)) return null;
    writeKernelExports();
    node("assemblyscript/bin/asc.js", "assembly/index.ts", "--target", "release");
    return { inputs, outputs };
  });
}

function library() {
  return unlessCurrent("library", (previous) => {
    const inputs = ["src", "tsconfig.json", "node_modules/typescript/package.json"];
    if (previous?.isCurrent(inputs, compiledFiles())) return null;
    // tsc compiles what changed since its last run, but does not notice when one of its output files is gone.
    if (!previous?.wrote(compiledFiles())) rmSync(join(records, "tsbuildinfo"), { force: true });
    node("typescript/bin/tsc", "-p", "tsconfig.json");
    for (const path of compiledFiles()) if (!existsSync(sourceOf(path))) rmSync(path);
    // Lets `npx vivavoce` work in a checkout as in an installed package.
    chmodSync("dist/cli/main.js", 0o755);
    return { inputs, outputs: compiledFiles() };
  });
}

async function bundles() {
  // Loaded only when needed: the plugins take a while.
  const { groups, configuration } = await import(pathToFileURL(join(root, "scripts/bundles.mjs")).href);
  for (const { name, outputs, configs } of groups) {
    await unlessCurrent(name, async (previous) => {
      if (previous?.isCurrent(previous.inputs, outputs)) return null;
      const { rollup } = await import("rollup");
      const inputs = new Set(configuration);
      for (const { output, ...input } of configs) {
        const bundle = await rollup({ ...input, logLevel: "silent" });
        await bundle.write(output);
        for (const path of bundle.watchFiles) if (existsSync(path)) inputs.add(relative(root, path));
        await bundle.close();
      }
      return { inputs: [...inputs], outputs };
    });
  }
  const wanted = groups.flatMap(({ outputs }) => outputs);
  for (const path of filesUnder("dist/browser"))
    if (!wanted.includes(path) && !existsSync(sourceOf(path))) rmSync(path);
}

/** `make` gets the record of the last build. It returns inputs and outputs, or null when there was nothing to do. */
async function unlessCurrent(name, make) {
  const path = join(records, `${name}.json`);
  const startedAt = Date.now();
  const made = await make(existsSync(path) ? recordFrom(path) : null);
  if (made === null) return;
  const { inputs, outputs } = made;
  writeFileSync(path, JSON.stringify({ inputs, made: digest(inputs), wrote: digest(outputs) }));
  console.error(`built ${name} in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
}

function recordFrom(path) {
  const record = JSON.parse(readFileSync(path, "utf8"));
  const wrote = (outputs) => record.wrote === digest(outputs);
  return {
    inputs: record.inputs,
    wrote,
    isCurrent: (inputs, outputs) => record.made === digest(inputs) && wrote(outputs),
  };
}

/** Hash of the names and contents of all files under `paths`. */
function digest(paths) {
  const hash = createHash("sha256").update(process.env.VIVAVOCE_MODEL ?? "");
  for (const path of paths.flatMap(filesUnder).sort()) hash.update(`\0${path}\0`).update(readFileSync(path));
  return hash.digest("hex");
}

function filesUnder(path) {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesUnder(join(path, name)));
}

/** The folders of dist/ that rollup fills, not tsc. dist/browser holds both bundles and output of tsc. */
const bundled = ["page", "operator"];

function compiledFiles() {
  return readdirSync("dist", { withFileTypes: true })
    .filter(({ name }) => !name.startsWith(".") && !bundled.includes(name))
    .flatMap(({ name }) => filesUnder(join("dist", name)))
    .filter((path) => /\.(js|d\.ts)$/.test(path) && !(path.startsWith("dist/browser/") && !existsSync(sourceOf(path))));
}

const sourceOf = (path) => path.replace(/^dist/, "src").replace(/(\.d\.ts|\.js)$/, ".ts");

function node(command, ...args) {
  execFileSync(process.execPath, [join("node_modules", command), ...args], { stdio: ["ignore", 2, 2] });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [last] = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
  try {
    await build(last, { force: process.argv.includes("--force") });
  } catch (error) {
    // The compiler has already printed the error.
    if (error.status === undefined) console.error(error.message);
    process.exitCode = 1;
  }
}
