// The browser bundle: dist/browser/vivavoce.js, the worker's script beside it, and the files that both look for there.
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import resolve from "@rollup/plugin-node-resolve";
import terser from "@rollup/plugin-terser";

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

const assets = {
  name: "assets",
  writeBundle() {
    copyFileSync(file("dist/engine/vivavoce.wasm"), file("dist/browser/vivavoce.wasm"));
    const model = file("models/vivavoce-1.vvm");
    if (existsSync(model)) copyFileSync(model, file("dist/browser/vivavoce-1.vvm"));
    else this.warn("models/vivavoce-1.vvm is missing: the bundle needs a model of its own");
  },
};

const hasEntry = existsSync("dist/index.js") && readFileSync("dist/index.js", "utf8").includes("export");

function bundle(input, output, plugins = []) {
  return {
    input,
    output: { file: `dist/browser/${output}`, format: "es", inlineDynamicImports: true },
    plugins: [
      noNode,
      browserPlatform,
      resolve({ browser: true }),
      terser({ format: { comments: /@license|@preserve/ } }),
      ...plugins,
    ],
  };
}

export default [
  bundle(hasEntry ? "dist/index.js" : "dist/engine/index.js", "vivavoce.js", [assets]),
  bundle("dist/engine/worker.js", "worker.js"),
];
