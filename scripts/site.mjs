// The page as a static site, dist/page: rollup configurations that build its scripts, and the plugin that puts it together.
// Everything but the page itself and its service worker lies at an address that changes with its content.
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
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const parts = "dist/.page-parts";
const made = "dist/.page-new";
const site = "dist/page";

/**
 * Own files only, and WebAssembly, which a strict policy must allow by name. Some hosts of static files send no headers, so the page
 * says it itself.
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

/** `plugins` are those of every bundle for browsers; `model` the path of a model file. */
export function siteBundles(plugins, model) {
  return [
    {
      input: { main: "dist/web/main.js", voices: "dist/web/voices.js" },
      output: { dir: parts, format: "es", entryFileNames: "[name].js", chunkFileNames: "[name].js" },
      plugins,
    },
    script("dist/web/capture-worklet.js", "capture.js", plugins),
    script("dist/web/service-worker.js", "service-worker.js", [...plugins, assembled(model)]),
  ];
}

const script = (input, name, plugins) => ({
  input,
  output: { file: join(parts, name), format: "iife" },
  plugins,
});

/** Runs with the last of them, when all files are there. */
const assembled = (model) => ({
  name: "site",
  async writeBundle() {
    if (!existsSync(model)) return this.warn(`${model} is missing: the page cannot be built without a model`);
    const { strings } = await import(pathToFileURL("dist/web/strings.js"));
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
    const modelName = `models/vivavoce-1-${digest(modelBytes)}.vvm`;
    writeFileSync(join(made, modelName), modelBytes);

    const words = { ...strings, policy, assets, model: modelName, modelBytes: String(modelBytes.length) };
    const page = readFileSync("src/web/index.html", "utf8").replace(/{{(\w+)}}/g, (_, name) => escaped(words[name]));
    writeFileSync(join(made, "index.html"), page);
    const files = JSON.stringify(["./", ...names.map((name) => `./${assets}/${name}`)]);
    const pageVersion = digest(version + page);
    writeFileSync(join(made, "service-worker.js"), `const FILES=${files},VERSION="${pageVersion}";\n${worker}`);
    rmSync(site, { recursive: true, force: true });
    renameSync(made, site);
  },
});

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
