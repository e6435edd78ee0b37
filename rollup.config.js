// The browser bundle: dist/browser/vivavoce.js, the worker's script beside it, and the files that both look for there.
// Then the page that is built on it: dist/page.
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import resolve from "@rollup/plugin-node-resolve";
import terser from "@rollup/plugin-terser";
import { siteBundles } from "./scripts/site.mjs";

const file = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Node's platform file stays out of the bundle. */
const browserPlatform = {
  name: "browser-platform",
  resolveId(source, importer) {
    if (source.endsWith("/platform.js") && importer?.includes("engine")) return file("dist/engine/platform.browser.js");
    return null;
  },
};

/** What a page would fail on is an error here. */
const noNode = {
  name: "no-node",
  resolveId(source, importer) {
    if (source.startsWith("node:"))
      this.error(`${importer} imports ${source}: it cannot be part of the browser bundle`);
    return null;
  },
};

/** zod asks whether it may compile code; under a strict policy the very question is reported as a violation. */
const noEval = {
  name: "no-eval",
  transform(code, id) {
    if (!id.endsWith("/zod/v4/core/util.js")) return null;
    const question = /(allowsEval = (?:\/\*[^*]*\*\/ ?)?cached\(\(\) => \{)/;
    if (!question.test(code)) this.error("zod asks in another way: look at allowsEval");
    return { code: code.replace(question, "$1 return false;"), map: null };
  },
};

/** Another model for a build of one's own. */
const model = process.env.VIVAVOCE_MODEL ?? file("models/vivavoce-1.vvm");

const assets = {
  name: "assets",
  writeBundle() {
    copyFileSync(file("dist/engine/vivavoce.wasm"), file("dist/browser/vivavoce.wasm"));
    if (existsSync(model)) copyFileSync(model, file("dist/browser/vivavoce-1.vvm"));
    else this.warn(`${model} is missing: the bundle needs a model of its own`);
  },
};

const hasEntry = existsSync("dist/index.js") && readFileSync("dist/index.js", "utf8").includes("export");

const forBrowsers = [
  noNode,
  browserPlatform,
  noEval,
  resolve({ browser: true }),
  terser({ format: { comments: /@license|@preserve/ } }),
];

function bundle(input, output, plugins = []) {
  return {
    input,
    output: { file: `dist/browser/${output}`, format: "es", inlineDynamicImports: true },
    plugins: [...forBrowsers, ...plugins],
  };
}

export default [
  bundle(hasEntry ? "dist/index.js" : "dist/engine/index.js", "vivavoce.js", [assets]),
  bundle("dist/engine/worker.js", "worker.js"),
  ...siteBundles(forBrowsers, model),
];
