/** The package in a page: from a plain script, and in projects of Vite and webpack that know nothing of it. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { build, createServer } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import webpack from "webpack";
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
  const installed = join(project, "node_modules/vivavoce");
  mkdirSync(installed, { recursive: true });
  cpSync(join(root, "package.json"), join(installed, "package.json"));
  cpSync(join(root, "dist/browser"), join(installed, "dist/browser"), { recursive: true });
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

/** Opens a folder under the policy of the box. */
async function opened(folder: string): Promise<{ title: string; refused: string[] }> {
  writeFileSync(join(folder, "voice.wav"), recordingOf(1, 1, 3));
  const site = await serve(serveFolder(folder));
  try {
    return await visited(site.url);
  } finally {
    await site.close();
  }
}

/** The title that the page gave itself, and what the policy refused. */
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
  // Where a policy does not, the engine works in the calling thread.
  const strict = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'";
  const policy = `<meta http-equiv="Content-Security-Policy" content="${strict}"><script`;
  writeFileSync(join(folder, "app.js"), inline("workers: 0"));
  writeFileSync(join(folder, "index.html"), html("./app.js").replace("<script", policy));
  expect(await opened(folder)).toEqual(heard);
  // Without a model it says what is missing, and asks for no file.
  const noModel =
    'import { openEngine } from "./vivavoce-inline.js"; openEngine().catch((error) => { document.title = error.message; });';
  writeFileSync(join(folder, "app.js"), noModel);
  const { title } = await opened(folder);
  expect(title).toContain("carries no model");
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
