// The page as a static site, dist/page, and the operator view, dist/operator: rollup configurations for their scripts,
// and the plugins that assemble them. Except for the pages themselves and the service worker, every file has an address that
// changes with its content.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join, resolve } from "node:path";

const parts = "dist/.page-parts";
const made = "dist/.page-new";
const site = "dist/page";

/**
 * Content security policy: own files only, and WebAssembly, which must be allowed explicitly. Some static hosts send no headers, so the page
 * sets the policy itself.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 12);

/** `plugins` are those of every browser bundle; `model` is the path of a model file. */
export function siteBundles(plugins, model) {
  return [
    {
      input: { main: "dist/web/main.js", voices: "dist/web/voices.js" },
      output: { dir: parts, format: "es", entryFileNames: "[name].js", chunkFileNames: "[name].js" },
      plugins,
    },
    script("dist/microphone/capture-worklet.js", "capture-worklet.js", plugins),
    script("dist/web/service-worker.js", "service-worker.js", [...plugins, assembled(model)]),
  ];
}

const script = (input, name, plugins) => ({
  input,
  output: { file: join(parts, name), format: "iife" },
  plugins,
});

/** Runs after the last one, when all files exist. */
const assembled = (model) => ({
  name: "site",
  buildStart() {
    const pieces = ["dist/browser/worker.js", "dist/engine/vivavoce.wasm", model];
    for (const path of [...pieces, ...["index.html", "style.css", "icon.svg"].map((name) => join("src/web", name))])
      this.addWatchFile(resolve(path));
  },
  async writeBundle() {
    if (!existsSync(model)) return this.warn(`${model} is missing: the page cannot be built without a model`);
    for (const name of ["style.css", "icon.svg"]) copyFileSync(join("src/web", name), join(parts, name));
    copyFileSync("dist/browser/worker.js", join(parts, "worker.js"));
    copyFileSync("dist/engine/vivavoce.wasm", join(parts, "vivavoce.wasm"));

    const worker = readFileSync(join(parts, "service-worker.js"), "utf8");
    rmSync(join(parts, "service-worker.js"));
    const names = readdirSync(parts).sort();
    const version = digest(Buffer.concat(names.map((name) => readFileSync(join(parts, name)))));
    const assets = `assets/${version}`;
    rmSync(made, { recursive: true, force: true });
    mkdirSync(join(made, "assets"), { recursive: true });
    mkdirSync(join(made, "models"));
    renameSync(parts, join(made, assets));

    const modelBytes = readFileSync(model);
    const modelName = `models/${basename(model, ".vvm")}-${digest(modelBytes)}.vvm`;
    writeFileSync(join(made, modelName), modelBytes);

    const words = { policy, assets, model: modelName, modelBytes: String(modelBytes.length) };
    const page = filled("src/web/index.html", words);
    writeFileSync(join(made, "index.html"), page);
    const files = JSON.stringify(["./", ...names.map((name) => `./${assets}/${name}`)]);
    const pageVersion = digest(version + page);
    writeFileSync(join(made, "service-worker.js"), `const FILES=${files},VERSION="${pageVersion}";\n${worker}`);
    rmSync(site, { recursive: true, force: true });
    renameSync(made, site);
  },
});

const operatorParts = "dist/.operator-parts";
const operatorMade = "dist/.operator-new";
const operatorSite = "dist/operator";

/** Own files only; WebAssembly is not needed here. */
const operatorPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/**
 * Plots insert a style sheet, which a strict policy refuses: its rules are in operator.css instead. One unused transform
 * needs a package that is not a module, so it is left out.
 */
const plots = {
  name: "plots",
  resolveId: (source) => (source === "interval-tree-1d" ? "\0unused" : null),
  load: (id) => (id === "\0unused" ? "export default null;" : null),
  transform(code, id) {
    if (!id.endsWith("/@observablehq/plot/src/plot.js")) return null;
    const styled =
      /\.call\(\(svg\) =>\s*\/\/ Warning[^\n]*\n\s*svg\.append\("style"\)\.text\([\s\S]*?\)\s*\)\n(?=\s*\.call\(applyInlineStyles)/;
    if (!styled.test(code)) this.error("Observable Plot has changed how it adds styles: see plot.js");
    return { code: code.replace(styled, ""), map: null };
  },
};

/** The operator view of a box. `plugins` as above. */
export const operatorBundle = (plugins) => ({
  input: "dist/web/operator/main.js",
  output: { file: join(operatorParts, "main.js"), format: "es", inlineDynamicImports: true },
  plugins: [
    plots,
    ...plugins,
    {
      name: "operator",
      buildStart() {
        const pieces = ["style.css", "icon.svg", "operator/operator.css", "operator/index.html"];
        for (const name of pieces) this.addWatchFile(resolve("src/web", name));
      },
      async writeBundle() {
        for (const name of ["style.css", "icon.svg", "operator/operator.css"])
          copyFileSync(join("src/web", name), join(operatorParts, basename(name)));
        const names = readdirSync(operatorParts).sort();
        const assets = `assets/${digest(Buffer.concat(names.map((name) => readFileSync(join(operatorParts, name)))))}`;
        rmSync(operatorMade, { recursive: true, force: true });
        mkdirSync(join(operatorMade, "assets"), { recursive: true });
        renameSync(operatorParts, join(operatorMade, assets));
        const page = filled("src/web/operator/index.html", { policy: operatorPolicy, assets });
        writeFileSync(join(operatorMade, "index.html"), page);
        rmSync(operatorSite, { recursive: true, force: true });
        renameSync(operatorMade, operatorSite);
      },
    },
  ],
});

const filled = (path, words) => readFileSync(path, "utf8").replace(/{{(\w+)}}/g, (_, name) => escaped(words[name]));

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
