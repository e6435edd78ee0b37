// The rollup builds: dist/browser (the library for browsers, its worker script and the files that both load from there), the page
// that uses it, dist/page, and the operator view, dist/operator.
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import resolve from "@rollup/plugin-node-resolve";
import terser from "@rollup/plugin-terser";
import { shippedModel } from "../dist/engine/shipped-model.js";
import { operatorBundle, siteBundles } from "./site.mjs";

const file = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Replaces Node's platform file by that for browsers. */
const platform = (kind) => ({
  name: "platform",
  resolveId(source, importer) {
    const isOfEngine = importer?.startsWith(file("dist/engine/"));
    if (source.endsWith("/platform.js") && isOfEngine) return file(`dist/browser/${kind}.js`);
    if (source.endsWith("audio/to-wav.js")) return file("dist/browser/to-wav.js");
    return null;
  },
});

/** This bundle contains what is beside the other one. Its worker script is built first. */
const inlined = {
  name: "inlined",
  buildStart() {
    for (const path of ["dist/engine/vivavoce.wasm", "dist/browser/worker.js"]) this.addWatchFile(file(path));
  },
  transform(code, id) {
    if (!id.endsWith("/browser/inline.js")) return null;
    const kernels = readFileSync(file("dist/engine/vivavoce.wasm")).toString("base64");
    const worker = readFileSync(file("dist/browser/worker.js"), "utf8");
    const constants = `const KERNELS=${JSON.stringify(kernels)},WORKER=${JSON.stringify(worker)};\n`;
    return { code: constants + code, map: null };
  },
  renderChunk(code) {
    // Tree shaking must remove Node's half; otherwise a bundler would look for these files.
    if (/vivavoce\.(wasm|vvm)["']/.test(code) || /["']\.\/worker\.js["']/.test(code))
      this.error("the inlined build still refers to a separate file");
    return null;
  },
};

/** Turns imports that would fail in a page into build errors. */
const noNode = {
  name: "no-node",
  resolveId(source, importer) {
    if (source.startsWith("node:"))
      this.error(`${importer} imports ${source}: it cannot be part of the browser bundle`);
    return null;
  },
};

/** zod tests whether it may compile code; under a strict content security policy even the test is reported as a violation. */
const noEval = {
  name: "no-eval",
  transform(code, id) {
    if (!id.endsWith("/zod/v4/core/util.js")) return null;
    const question = /(allowsEval = (?:\/\*[^*]*\*\/ ?)?cached\(\(\) => \{)/;
    if (!question.test(code)) this.error("zod has changed how it tests for eval: see allowsEval");
    return { code: code.replace(question, "$1 return false;"), map: null };
  },
};

/** Another model, for a custom build. */
const model = process.env.VIVAVOCE_MODEL ?? file(`models/${shippedModel}`);

const assets = {
  name: "assets",
  buildStart() {
    for (const path of [file("dist/engine/vivavoce.wasm"), model]) this.addWatchFile(path);
  },
  writeBundle() {
    copyFileSync(file("dist/engine/vivavoce.wasm"), file("dist/browser/vivavoce.wasm"));
    if (existsSync(model)) copyFileSync(model, file("dist/browser/vivavoce.vvm"));
    else this.warn(`${model} is missing: the bundle has no model`);
  },
};

const minified = terser({ format: { comments: /@license|@preserve/ } });
const forBrowsers = (kind) => [noNode, platform(kind), noEval, resolve({ browser: true }), minified];

function bundle(input, output, plugins) {
  return {
    input,
    output: { file: `dist/browser/${output}`, format: "es", inlineDynamicImports: true },
    plugins,
  };
}

const browser = forBrowsers("platform");
const inBrowserFolder = (...names) => names.map((name) => `dist/browser/${name}`);

/** In dependency order. */
export const groups = [
  {
    name: "worker",
    outputs: inBrowserFolder("worker.js"),
    configs: [bundle("dist/engine/worker.js", "worker.js", browser)],
  },
  {
    name: "browser",
    outputs: inBrowserFolder("vivavoce.js", "vivavoce.wasm", "vivavoce.vvm"),
    configs: [bundle("dist/index.js", "vivavoce.js", [...browser, assets])],
  },
  {
    name: "inline",
    outputs: inBrowserFolder("vivavoce-inline.js"),
    configs: [bundle("dist/index.js", "vivavoce-inline.js", [inlined, ...forBrowsers("inline")])],
  },
  { name: "page", outputs: ["dist/page"], configs: siteBundles(browser, model) },
  { name: "operator", outputs: ["dist/operator"], configs: [operatorBundle(browser)] },
];

/** What every bundle depends on, besides its own modules. */
export const configuration = ["scripts/bundles.mjs", "scripts/site.mjs", "package-lock.json"];
