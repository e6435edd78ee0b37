/** The programs of examples/ that need no telephone system, run as they stand. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startBox } from "../../dist/server/start.js";
import { connectVoiceprints } from "../../src/client/index.js";
import { loadConfig } from "../../src/server/config.js";
import { serveFolder } from "../../src/server/http/static-files.js";
import { launch, serve } from "../chromium.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const execute = promisify(execFile);
// A process with a model each, on a machine that may be busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

let folder: string;
const at = (...parts: string[]) => join(folder, ...parts);
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "vivavoce-examples-"));
  await execute(process.execPath, [join(ROOT, "dist/cli/main.js"), "demo", "--wav", at("voices")]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("express: enrolls with three requests, checks, erases, and reports errors", async () => {
  const app = spawn(process.execPath, [join(ROOT, "examples/express/app.mjs")], {
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const url = String((await once(app.stdout, "data"))[0]).trim();
    const send = async (path: string, file: string) => {
      const headers = { "content-type": "audio/wav" };
      const response = await fetch(url + path, { method: "POST", headers, body: readFileSync(at("voices", file)) });
      return { status: response.status, body: await response.json() };
    };
    expect((await send("/people/ada", "ada-1.wav")).body).toMatchObject({ trained: false, missingRecordings: 2 });
    await send("/people/ada", "ada-2.wav");
    expect((await send("/people/ada", "ada-3.wav")).body).toMatchObject({ trained: true, validity: "AUDIO_OK" });
    expect((await send("/people/ada/check", "ada-4.wav")).body).toMatchObject({ decision: "AUTHENTIC" });
    expect((await send("/people/ada/check", "bob-1.wav")).body).toMatchObject({ decision: "NO_MATCH" });
    expect(await send("/people/nobody/check", "ada-4.wav")).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    writeFileSync(at("voices/text.wav"), "no audio");
    expect(await send("/people/ada/check", "text.wav")).toMatchObject({
      status: 400,
      body: { code: "INVALID_REQUEST" },
    });
    expect((await fetch(`${url}/people/ada`, { method: "DELETE" })).status).toBe(204);
    expect((await fetch(`${url}/people/ada`, { method: "DELETE" })).status).toBe(404);
  } finally {
    app.kill();
    await once(app, "exit");
  }
});

it("batch: writes a line for each claim, whatever else is in its folder and whoever cannot be enrolled", async () => {
  for (const person of ["ada", "bob"]) {
    mkdirSync(at("enrolled", person), { recursive: true });
    for (const take of [1, 2, 3])
      copyFileSync(at(`voices/${person}-${take}.wav`), at("enrolled", person, `${take}.wav`));
  }
  writeFileSync(at("enrolled/.DS_Store"), "");
  mkdirSync(at("enrolled/eve"));
  writeFileSync(
    at("claims.csv"),
    "ada,voices/ada-4.wav\r\nbob,voices/ada-4.wav\r\nada,missing.wav\r\ncarol,voices/ada-4.wav\r\n",
  );
  const program = join(ROOT, "examples/batch/batch.mjs");
  const { stdout, stderr } = await execute(process.execPath, [program, at("enrolled"), at("claims.csv")]);
  expect(stderr).toBe("eve is not enrolled: recordings must be a list of at least one recording\n");
  const [header, ...lines] = stdout.trim().split("\n");
  expect(header).toBe("person,file,decision,reason,ratio,threshold");
  expect(lines).toHaveLength(4);
  expect(lines[0]).toMatch(/^ada,voices\/ada-4\.wav,AUTHENTIC,VOICEPRINT_MATCH,[\d.]+,[\d.]+$/);
  expect(lines[1]).toMatch(/^bob,voices\/ada-4\.wav,NO_MATCH,/);
  expect(lines[2]).toMatch(/^ada,missing\.wav,ERROR,.*no such file/);
  expect(lines[3]).toMatch(/^carol,voices\/ada-4\.wav,ERROR,.*has no voiceprint/);
  // More claims than the engine takes at once.
  writeFileSync(at("voices/short.wav"), readFileSync(at("voices/ada-4.wav")).subarray(0, 2000));
  writeFileSync(at("many.csv"), "ada,voices/short.wav\n".repeat(600));
  const many = await execute(process.execPath, [program, at("enrolled"), at("many.csv")]);
  expect(many.stdout.match(/,UNCERTAIN,AUDIO_TOO_SHORT,/g)).toHaveLength(600);
});

it("plain page: enrolls and checks files in a browser without a bundler, and recognizes the person after a reload", async () => {
  cpSync(join(ROOT, "examples/plain-page"), at("site"), { recursive: true });
  cpSync(join(ROOT, "dist/browser"), at("site/vivavoce"), { recursive: true });
  const site = await serve(serveFolder(at("site")));
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(site.url);
    const told = page.getByRole("status");
    const says = (text: string) => told.filter({ hasText: text }).waitFor({ timeout: 60_000 });
    await says("Ready.");
    await page.setInputFiles("#enroll", [at("voices/ada-1.wav")]);
    await says("Not yet: 2 more recordings");
    await page.setInputFiles("#enroll", [at("voices/ada-2.wav"), at("voices/ada-3.wav")]);
    await says("You are enrolled.");
    await page.reload();
    await says("You are enrolled here.");
    await page.setInputFiles("#check", at("voices/ada-4.wav"));
    await says("AUTHENTIC");
    await page.setInputFiles("#check", at("voices/bob-1.wav"));
    await says("NO_MATCH");
  } finally {
    await browser.close();
    await site.close();
  }
});

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

it("browser: streams the microphone to a box that lists the page, and says so if the box does not answer", async () => {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const box = await startBox(
    loadConfig({
      env: {},
      flags: { store: "memory", port: 0, "log.level": "error", "cors.origins": [origin] },
    }),
  );
  let stopped: Promise<boolean> | null = null;
  const stop = () => (stopped ??= box.stop());
  const { clientId, clientSecret } = box.firstApplication!;
  const voices = connectVoiceprints({ url: box.url, credentials: { clientId, clientSecret } });
  await voices.enroll(
    "ada",
    [1, 2, 3].map((take) => readFileSync(at(`voices/ada-${take}.wav`))),
  );
  const access = { VIVAVOCE_URL: box.url, VIVAVOCE_CLIENT_ID: clientId, VIVAVOCE_CLIENT_SECRET: clientSecret };
  const program = spawn(process.execPath, [join(ROOT, "examples/browser/serve.mjs")], {
    env: { ...process.env, ...access, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const browser = await launch(at("voices/ada-4.wav"));
  try {
    expect(String((await once(program.stdout, "data"))[0])).toBe(`${origin}/\n`);
    expect((await fetch(`${origin}/serve.mjs`)).status).toBe(404);
    const page = await browser.newPage();
    await page.goto(origin);
    const says = (text: RegExp) => page.getByRole("status").filter({ hasText: text }).waitFor({ timeout: 60_000 });
    await page.click("#speak");
    await says(/^AUTHENTIC: \d+\.\d, needed/);
    await page.fill("#person", "nobody");
    await page.click("#speak");
    await says(/the person "nobody" has no voiceprint/);
    await stop();
    await page.click("#speak");
    await says(/^cannot connect to http/);
  } finally {
    await browser.close();
    program.kill();
    await once(program, "exit");
    await voices.close();
    await stop();
  }
});

it("desktop: opens a browser window, whose page enrolls and checks the microphone", async () => {
  // In place of a browser: says how it was called, and stays.
  writeFileSync(at("window.sh"), `#!/bin/sh\necho "$@" > "${at("window.txt")}"\nexec sleep 600\n`, { mode: 0o755 });
  const program = spawn(process.execPath, [join(ROOT, "examples/desktop/desktop.mjs")], {
    env: { ...process.env, PORT: "0", BROWSER: at("window.sh"), VOICES: at("desktop-voices") },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = String((await once(program.stdout, "data"))[0]).trim();
  const browser = await launch(at("voices/ada-4.wav"));
  try {
    await expect.poll(() => readFileSync(at("window.txt"), "utf8")).toContain(`--app=${url}`);
    expect(readFileSync(at("window.txt"), "utf8")).toContain(`--user-data-dir=${at("desktop-voices")}`);
    for (const path of ["desktop.mjs", "../package.json", "vivavoce/", "vivavoce/../index.js", "microphone/none.js"])
      expect((await fetch(url + path)).status, path).toBe(404);
    const page = await browser.newPage();
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(error.message));
    await page.addInitScript(() => {
      const { mediaDevices } = navigator;
      const ask = mediaDevices.getUserMedia.bind(mediaDevices);
      mediaDevices.getUserMedia = (constraints) => {
        document.title += " opened";
        return ask(constraints);
      };
    });
    await page.goto(url);
    const told = page.getByRole("status");
    const says = (text: RegExp) => told.filter({ hasText: text }).waitFor({ timeout: 60_000 });
    await says(/Ready\./);
    // A busy machine may lose part of a recording: then the page asks for another.
    let enrolled = false;
    for (let recordings = 1; !enrolled; recordings++) {
      expect(recordings).toBeLessThanOrEqual(6);
      // A double click.
      await page.evaluate(() => {
        for (const _ of [1, 2]) document.querySelector<HTMLElement>("#enroll")!.click();
      });
      await says(/Speak now/);
      expect((await page.title()).match(/opened/g)).toHaveLength(recordings);
      await page.waitForTimeout(5000);
      await page.click("#enroll");
      await says(recordings === 1 ? /2 more recordings/ : /more recording|Not yet|You are enrolled\./);
      enrolled = ((await told.textContent()) ?? "").includes("You are enrolled.");
    }
    await page.click("#check");
    await says(/Speak now/);
    await page.waitForTimeout(5000);
    await page.click("#check");
    await says(/^AUTHENTIC: \d+\.\d, needed/);
    expect(wrong).toEqual([]);
  } finally {
    await browser.close();
    program.kill();
    await once(program, "exit");
  }
});
