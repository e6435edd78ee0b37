/** The library in a page: from a plain script, and built by bundlers without special configuration. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { build as bundle } from "esbuild";
import type { Browser } from "playwright-core";
import { rollup } from "rollup";
import { build, createServer } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import webpack from "webpack";
import { libraryFiles } from "../../scripts/pack.mjs";
import { shippedModel } from "../../src/engine/shipped-model.js";
import { serveFolder } from "../../src/server/http/static-files.js";
import { launch, recordingOf, serve } from "../chromium.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const project = mkdtempSync(join(tmpdir(), "vivavoce-bundlers-"));
let browser: Browser;

const app = `
import { openIndexedDbStore, openVoiceprints } from "vivavoce";
const voices = await openVoiceprints({ store: await openIndexedDbStore("bundled"), engineOptions: { workers: 1 } });
const recording = await (await fetch("voice.wav")).blob();
const { netSpeechSeconds, validity } = await voices.analyze(recording);
document.title = validity + " " + netSpeechSeconds.toFixed(1) + " " + (await voices.people()).length;
`;
const html = (script: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>…</title><script type="module" src="${script}"></script></html>`;

beforeAll(async () => {
  const modules = join(project, "node_modules");
  for (const path of libraryFiles()) cpSync(join(root, path), join(modules, "vivavoce", path));
  // The dependencies as an installation would place them; nothing here uses `/client`.
  for (const name of ["@bufbuild/protobuf", "comlink", "idb", "uuid", "zod"])
    cpSync(join(root, "node_modules", name), join(modules, name), { recursive: true });
  mkdirSync(join(project, "src"));
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
  writeFileSync(join(project, "src/app.js"), app);
  writeFileSync(join(project, "index.html"), html("/src/app.js"));
  browser = await launch();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  rmSync(project, { recursive: true, force: true });
});

/** Opens a folder with the content security policy of the box. */
async function opened(folder: string): Promise<{ title: string; refused: string[] }> {
  writeFileSync(join(folder, "voice.wav"), recordingOf(1, 1, 3));
  const site = await serve(serveFolder(folder));
  try {
    return await visited(site.url);
  } finally {
    await site.close();
  }
}

/** The title that the page set, and what the policy blocked. */
async function visited(url: string): Promise<{ title: string; refused: string[] }> {
  const page = await browser.newPage();
  const refused: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") refused.push(message.text());
  });
  page.on("pageerror", (error) => refused.push(error.message));
  try {
    await page.goto(url);
    await page.waitForFunction(() => document.title !== "…", undefined, { timeout: 60_000 }).catch(() => {});
    return { title: await page.title(), refused: refused.filter((text) => !/favicon/.test(text)) };
  } finally {
    await page.close();
  }
}

const heard = { title: expect.stringMatching(/^AUDIO_OK [12]\.\d 0$/), refused: [] };

test("a plain module script, under a strict policy", { timeout: 120_000 }, async () => {
  const folder = join(project, "plain");
  cpSync(join(root, "dist/browser"), folder, { recursive: true });
  writeFileSync(join(folder, "app.js"), app.replace('"vivavoce"', '"./vivavoce.js"'));
  writeFileSync(join(folder, "index.html"), html("./app.js"));
  writeFileSync(join(folder, "favicon.ico"), "");
  expect(await opened(folder)).toEqual(heard);
});

test("a file that is missing, on a site that answers with its page instead", { timeout: 120_000 }, async () => {
  const library = serveFolder(join(root, "dist/browser"));
  const script =
    'import { openEngine } from "./vivavoce.js"; openEngine().catch((error) => { document.title = error.message; });';
  const site = await serve((request) => {
    const name = new URL(request.url).pathname;
    if (name === "/app.js") return new Response(script, { headers: { "content-type": "text/javascript" } });
    if (name === "/vivavoce.js") return library(request);
    return new Response(html("./app.js"), { headers: { "content-type": "text/html; charset=utf-8" } });
  });
  try {
    const { title } = await visited(site.url);
    expect(title).toMatch(/vivavoce\.(wasm|vvm) cannot be loaded: the answer is a page/);
  } finally {
    await site.close();
  }
});

test.each([
  ["webm", ["-c:a", "libopus"]],
  ["mp3", []],
])("a recording as %s is decoded by the browser", { timeout: 120_000 }, async (format, codec) => {
  const folder = join(project, format);
  cpSync(join(root, "dist/browser"), folder, { recursive: true });
  const encode = ["-loglevel", "error", "-i", "pipe:0", ...codec, join(folder, `voice.${format}`)];
  execFileSync("ffmpeg", encode, { input: recordingOf(1, 1, 3) });
  const compressed = app.replace('"vivavoce"', '"./vivavoce.js"').replace("voice.wav", `voice.${format}`);
  writeFileSync(join(folder, "app.js"), compressed);
  writeFileSync(join(folder, "index.html"), html("./app.js"));
  writeFileSync(join(folder, "favicon.ico"), "");
  expect(await opened(folder)).toEqual(heard);
});

test("one file, with kernels and worker inside", { timeout: 120_000 }, async () => {
  const folder = join(project, "inline");
  mkdirSync(folder);
  cpSync(join(root, "dist/browser/vivavoce-inline.js"), join(folder, "vivavoce-inline.js"));
  cpSync(join(root, `models/${shippedModel}`), join(folder, "my-model.vvm"));
  const inline = (options: string) =>
    app
      .replace('"vivavoce"', '"./vivavoce-inline.js"')
      .replace("workers: 1", `${options}, model: new URL("./my-model.vvm", location.href)`);
  writeFileSync(join(folder, "app.js"), inline("workers: 1"));
  writeFileSync(join(folder, "index.html"), html("./app.js"));
  writeFileSync(join(folder, "favicon.ico"), "");
  // The box's policy allows workers from a blob.
  expect(await opened(folder)).toEqual(heard);
  // If a policy does not, the engine works in the calling thread.
  const strict = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'";
  const policy = `<meta http-equiv="Content-Security-Policy" content="${strict}"><script`;
  writeFileSync(join(folder, "app.js"), inline("workers: 0"));
  writeFileSync(join(folder, "index.html"), html("./app.js").replace("<script", policy));
  expect(await opened(folder)).toEqual(heard);
  // Without a model it says what is missing, and requests no file.
  const noModel =
    'import { openEngine } from "./vivavoce-inline.js"; openEngine().catch((error) => { document.title = error.message; });';
  writeFileSync(join(folder, "app.js"), noModel);
  const { title } = await opened(folder);
  expect(title).toContain("has no model");
});

test("Vite", { timeout: 180_000 }, async () => {
  const outDir = join(project, "vite");
  await build({
    root: project,
    configFile: false,
    logLevel: "silent",
    build: { outDir, minify: false, target: "es2022" },
  });
  writeFileSync(join(outDir, "favicon.ico"), "");
  expect(await opened(outDir)).toEqual(heard);
});

test("Vite's development server", { timeout: 180_000 }, async () => {
  mkdirSync(join(project, "public"));
  writeFileSync(join(project, "public/voice.wav"), recordingOf(1, 1, 3));
  writeFileSync(join(project, "public/favicon.ico"), "");
  const server = await createServer({
    root: project,
    configFile: false,
    logLevel: "silent",
    server: { host: "127.0.0.1", port: 0 },
  });
  try {
    await server.listen();
    expect(await visited(server.resolvedUrls!.local[0]!)).toEqual(heard);
  } finally {
    await server.close();
  }
});

test("webpack", { timeout: 180_000 }, async () => {
  const path = join(project, "webpack");
  const stats = await new Promise<webpack.Stats>((resolve, reject) => {
    webpack(
      {
        context: project,
        entry: "./src/app.js",
        mode: "production",
        optimization: { minimize: false },
        output: { path, filename: "app.js" },
      },
      (error, done) => (error ? reject(error) : resolve(done!)),
    );
  });
  expect(stats.toJson({ all: false, errors: true }).errors).toEqual([]);
  writeFileSync(join(path, "index.html"), html("./app.js"));
  writeFileSync(join(path, "favicon.ico"), "");
  expect(await opened(path)).toEqual(heard);
});

/** Bundlers that do not process `new URL("./worker.js", import.meta.url)` need these files copied next to their output. */
const besides = ["worker.js", "vivavoce.wasm", "vivavoce.vvm"];
function copyBeside(folder: string): void {
  for (const name of besides) cpSync(join(project, "node_modules/vivavoce/dist/browser", name), join(folder, name));
  writeFileSync(join(folder, "index.html"), html("./app.js"));
  writeFileSync(join(folder, "favicon.ico"), "");
}

test("esbuild, with three files copied", { timeout: 180_000 }, async () => {
  const folder = join(project, "esbuild");
  await bundle({
    entryPoints: [join(project, "src/app.js")],
    outfile: join(folder, "app.js"),
    bundle: true,
    format: "esm",
  });
  copyBeside(folder);
  expect(await opened(folder)).toEqual(heard);
});

test("Rollup, with three files copied", { timeout: 180_000 }, async () => {
  const folder = join(project, "rollup");
  const made = await rollup({
    input: join(project, "src/app.js"),
    plugins: [nodeResolve({ browser: true })],
    logLevel: "silent",
  });
  await made.write({ file: join(folder, "app.js"), format: "es" });
  await made.close();
  copyBeside(folder);
  expect(await opened(folder)).toEqual(heard);
});

test.each([
  ["readRecording", 30_000],
  ["openEngine", 120_000],
])("unused code is removed: %s alone is at most %i bytes", async (name, most) => {
  const entry = join(project, `src/${name}.js`);
  writeFileSync(entry, `export { ${name} } from "vivavoce";`);
  const { outputFiles } = await bundle({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    write: false,
  });
  expect(outputFiles[0]!.contents.length).toBeLessThanOrEqual(most);
});
