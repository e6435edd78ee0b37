/** What the documents tell people to do, done on the packages as they are installed: each trial is one user's first hour. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "vite";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { shippedModel } from "../../src/engine/shipped-model.js";
import { serveFolder } from "../../src/server/http/static-files.js";
import { launch, serve } from "../chromium.js";
import { publishedCampplus, tensorsOf } from "../model-import/published-graphs.js";
import { speak, wav } from "../voice.js";
import { type Installed, install, root } from "./install.js";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });
const run = promisify(execFile);

let installed: Installed;
let environment: NodeJS.ProcessEnv;
beforeAll(async () => {
  installed = await install("react@19.2.0", "react-dom@19.2.0");
  const home = join(installed.folder, "home");
  environment = { PATH: process.env.PATH, HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home };
  await vivavoce("demo", "--wav", "voices");
});
afterAll(() => installed && rmSync(installed.folder, { recursive: true, force: true }));

const inLibrary = (...path: string[]) => join(installed.withLibrary, ...path);

async function vivavoce(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [installed.command, ...args], {
    cwd: installed.withLibrary,
    env: environment,
    maxBuffer: 2 ** 26,
  });
  return stdout;
}

/** The blocks of a document, by their language. */
const blocks = (path: string, language: string): string[] =>
  [...readFileSync(join(root, path), "utf8").matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, name, text]) =>
    name === language ? [text!] : [],
  );

test("a Node developer runs the program of the README", async () => {
  writeFileSync(inLibrary("program.mjs"), blocks("README.md", "js")[0]!);
  const { stdout } = await run(process.execPath, ["program.mjs"], { cwd: installed.withLibrary });
  expect(stdout).toMatch(/^AUTHENTIC \d+\.\d \d+\.\d\n$/);
});

test("a frontend developer puts the React button on a Vite page and speaks", async () => {
  mkdirSync(inLibrary("src"), { recursive: true });
  mkdirSync(inLibrary("public"), { recursive: true });
  cpSync(join(root, "examples/react/VerifyButton.jsx"), inLibrary("src/VerifyButton.jsx"));
  for (const take of [1, 2, 3]) cpSync(inLibrary(`voices/ada-${take}.wav`), inLibrary(`public/ada-${take}.wav`));
  writeFileSync(inLibrary("public/favicon.ico"), "");
  writeFileSync(
    inLibrary("src/main.jsx"),
    `import { createRoot } from "react-dom/client";
    import { openIndexedDbStore, openVoiceprints } from "vivavoce";
    import { VerifyButton } from "./VerifyButton.jsx";
    const voices = await openVoiceprints({ store: await openIndexedDbStore("voices") });
    const recordings = await Promise.all([1, 2, 3].map(async (i) => (await fetch(\`ada-\${i}.wav\`)).blob()));
    await voices.enroll("ada", recordings);
    await voices.close();
    const answered = (decision) => { document.title = decision; };
    createRoot(document.querySelector("main")).render(<VerifyButton person="ada" onAnswer={answered} />);`,
  );
  writeFileSync(
    inLibrary("index.html"),
    '<!doctype html><html lang="en"><title>…</title><main></main><script type="module" src="/src/main.jsx"></script></html>',
  );
  const outDir = inLibrary("built");
  // As docs/browser.md says for a strict policy, which is the one it is served with here.
  await build({
    root: installed.withLibrary,
    configFile: false,
    logLevel: "silent",
    build: { outDir, target: "es2022", assetsInlineLimit: 0 },
  });
  const site = await serve(serveFolder(outDir));
  const browser = await launch(inLibrary("voices/ada-4.wav"));
  try {
    const page = await browser.newPage();
    const refused: string[] = [];
    page.on("console", (message) => message.type() === "error" && refused.push(message.text()));
    page.on("pageerror", (error) => refused.push(error.message));
    await page.goto(site.url);
    await page.click("button", { timeout: 60_000 });
    await page.waitForFunction(() => document.querySelector("button")?.textContent?.includes("Speak now"));
    await page.waitForTimeout(6000);
    await page.click("button");
    await page.waitForFunction(() => document.title !== "…", undefined, { timeout: 60_000 });
    expect(refused).toEqual([]);
    expect(await page.title()).toBe("AUTHENTIC");
    expect(await page.textContent("button")).toMatch(/^AUTHENTIC: \d+\.\d, needed \d+\.\d/);
  } finally {
    await browser.close();
    await site.close();
  }
});

/**
 * Six speakers, two sessions, two recordings each: a little more than calibrating asks for. Only four, the fewest that scale a network, have the 2 s of
 * speech that this needs: each of them takes an import many seconds.
 */
function writeRecordings(): void {
  for (const [i, speaker] of [3, 8, 13, 21, 34, 40].entries())
    for (const session of [1, 2])
      for (const take of [1, 2]) {
        const place = inLibrary("recordings", `speaker-${speaker}`, `session-${session}`);
        mkdirSync(place, { recursive: true });
        const seconds = i < 4 && session === 1 && take === 1 ? 4 : 1.9;
        const said = speak({ speaker, seconds, rateHz: 8000, seed: 10 * session + take });
        writeFileSync(join(place, `${take}.wav`), wav(said, 8000));
      }
}

test("a data scientist evaluates and calibrates with their own recordings", async () => {
  writeRecordings();
  // The lines of docs/voiceprints.md, "A calibration of your own".
  const before = await vivavoce("evaluate", "recordings/", "--resamples", "100", "--json");
  const fit = JSON.parse(await vivavoce("calibrate", "recordings/", "--out", "calibration.json", "--json"));
  const calibration = ["--calibration", "calibration.json"];
  const after = await vivavoce("evaluate", "recordings/", "--resamples", "100", ...calibration, "--json");
  writeFileSync(inLibrary("before.json"), before);
  writeFileSync(inLibrary("after.json"), after);
  expect(JSON.parse(before).summary.speakers).toBe(6);
  expect(JSON.parse(after)).toMatchObject({ calibrationRevision: fit.revision, summary: { speakers: 6 } });
  expect(fit).toMatchObject({ file: "calibration.json", speakers: 6 });
  expect(await vivavoce("evaluate", "--compare", "before.json", "after.json")).toMatch(/EER|equal/i);
});

test("a researcher imports their own network and compares it", { timeout: 600_000 }, async () => {
  // A CAM++ as it is published, with the weights of the shipped one; test/model-import imports a ResNet34.
  writeFileSync(inLibrary("net.onnx"), publishedCampplus(await tensorsOf(shippedModel)));
  writeRecordings();
  // The lines of docs/engine.md, "A network of your own".
  const lines = blocks("docs/engine.md", "sh").flatMap((block) => block.split("\n"));
  const command = (name: string) => {
    const line = lines.find((one) => one.startsWith(`npx vivavoce model ${name}`))!;
    return vivavoce(...line.split(" ").slice(2), "--json");
  };
  const imported = JSON.parse(await command("import"));
  expect(imported).toMatchObject({ file: "mine.vvm", architecture: "campplus-1", dimensions: 256, windows: 4 });
  expect(imported.likeness.median).toBeGreaterThan(0.995);
  expect(imported.calibration).toMatchObject({ fit: { speakers: 6 } });
  expect(JSON.parse(await command("info"))).toMatchObject({ name: "mine", revision: imported.revision });
  const compared = JSON.parse(await command("compare"));
  expect(compared).toMatchObject({ one: "vivavoce-2", other: "mine.vvm" });
  // It is a model like the shipped ones: for the command line, and for the library.
  environment = { ...environment, VIVAVOCE_MODEL: inLibrary("mine.vvm") };
  await vivavoce("enroll", "ada", "voices/ada-1.wav", "voices/ada-2.wav", "voices/ada-3.wav");
  expect(JSON.parse(await vivavoce("verify", "ada", "voices/ada-4.wav", "--json"))).toMatchObject({
    decision: "AUTHENTIC",
  });
  writeFileSync(
    inLibrary("own-network.mjs"),
    `import { readFileSync } from "node:fs";
    import { openVoiceprints } from "vivavoce";
    const voices = await openVoiceprints({ engineOptions: { model: readFileSync("mine.vvm"), workers: 1 } });
    await voices.enroll("ada", [1, 2, 3].map((take) => readFileSync(\`voices/ada-\${take}.wav\`)));
    const { decision } = await voices.verify("ada", readFileSync("voices/ada-4.wav"));
    console.log(decision, (await voices.people()).join());
    await voices.close();`,
  );
  const { stdout } = await run(process.execPath, ["own-network.mjs"], { cwd: installed.withLibrary });
  expect(stdout).toBe("AUTHENTIC ada\n");

  // Its own thresholds, and a box that runs it.
  const fit = JSON.parse(
    await vivavoce("calibrate", "recordings/", "--model", "mine.vvm", "--out", "of-mine.json", "--json"),
  );
  const options = ["--model", "mine.vvm", "--calibration", "of-mine.json", "--resamples", "0", "--json"];
  expect(JSON.parse(await vivavoce("evaluate", "recordings/", ...options))).toMatchObject({
    modelRevision: imported.revision,
    calibrationRevision: fit.revision,
    summary: { speakers: 6 },
  });
  const { VIVAVOCE_MODEL: _, ...env } = environment;
  environment = env;
  const port = await freePort();
  const store = inLibrary("store-of-mine");
  const line = lines
    .find((one) => one.startsWith("npx vivavoce serve"))!
    .split(" ")
    .slice(2);
  const place = ["--port", String(port), "--store", store, "--calibration", inLibrary("of-mine.json")];
  const served = line.map((word) => (word === "mine.vvm" ? inLibrary(word) : word));
  const box = { url: `http://127.0.0.1:${port}`, env, store };
  await withBox([process.execPath, installed.command, ...served, ...place], box, async (ask) => {
    await enrollsAndVerifies(ask);
    const metrics = await (await fetch(`${box.url}/metrics`)).text();
    expect(metrics).toContain(`vivavoce_model{revision="${imported.revision}",calibration="${fit.revision}"} 1`);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface RunningBox {
  readonly url: string;
  readonly env: NodeJS.ProcessEnv;
  /** The folder with what its first start wrote. */
  readonly store: string;
  readonly signal?: NodeJS.Signals;
}

/** Runs `vivavoce serve …`, waits until it is healthy, lets a client of its first application ask it, and ends it. */
async function withBox(
  [command, ...args]: readonly string[],
  { url, env, store, signal = "SIGTERM" }: RunningBox,
  use: (ask: (...words: string[]) => Promise<string>) => Promise<void>,
): Promise<void> {
  const box: ChildProcess = spawn(command!, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [box.stdout!, box.stderr!])
    stream.on("data", (chunk) => {
      said += chunk;
    });
  const ended = new Promise<number | null>((resolve) => box.once("exit", resolve));
  const asked = (words: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    run(process.execPath, [installed.command, ...words], { env: { ...env, ...more }, cwd: installed.withLibrary });
  try {
    const healthy = () =>
      asked(["health", "--url", url]).then(
        () => true,
        () => false,
      );
    await vi.waitFor(async () => expect(await healthy(), said).toBe(true), { timeout: 90_000, interval: 500 });
    // Its secrets are in a file of its own, not in what it says; with them a client gets in.
    const first = readFileSync(join(store, "first-start.txt"), "utf8");
    const id = /^.*client id\s+(\S+)$/im.exec(first)![1]!;
    const secret = /^.*client secret\s+(\S+)$/im.exec(first)![1]!;
    expect(said).not.toContain(secret);
    const client = { VIVAVOCE_CLIENT_ID: id, VIVAVOCE_CLIENT_SECRET: secret };
    await use(async (...words) => (await asked([...words, "--url", url, "--json"], client)).stdout);
  } finally {
    box.kill(signal);
  }
  expect(await ended, said).toBe(0);
}

async function enrollsAndVerifies(ask: (...words: string[]) => Promise<string>): Promise<void> {
  await ask("enroll", "ada", "voices/ada-1.wav", "voices/ada-2.wav", "voices/ada-3.wav");
  expect(JSON.parse(await ask("verify", "ada", "voices/ada-4.wav"))).toMatchObject({ decision: "AUTHENTIC" });
  await expect(ask("verify", "ada", "voices/bob-1.wav")).rejects.toMatchObject({
    stdout: expect.stringContaining('"decision": "NO_MATCH"'),
  });
}

test("an operator starts a box with TLS as the systemd unit does", async () => {
  const deploy = join(installed.withBox, "node_modules/vivavoce-box/deploy");
  const unit = join(deploy, "vivavoce.service");
  expect(execFileSync("systemd-analyze", ["verify", unit], { encoding: "utf8", stdio: "pipe" })).toBe("");
  const lines = readFileSync(unit, "utf8").split("\n");
  const values = (key: string) =>
    lines.flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []));
  // The folders that systemd would make, elsewhere.
  const state = join(installed.folder, "state");
  const configuration = join(installed.folder, "etc");
  for (const folder of [state, configuration]) mkdirSync(folder, { mode: 0o700 });
  const [key, cert] = [join(configuration, "key.pem"), join(configuration, "cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
  const certificate = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", [...certificate, "-keyout", key, "-out", cert, ...subject], { stdio: "pipe" });
  const port = await freePort();
  const settings = JSON.parse(readFileSync(join(deploy, "config.json"), "utf8"));
  writeFileSync(join(configuration, "config.json"), JSON.stringify({ ...settings, port, tls: { cert, key } }));
  const bin = join(installed.folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "vivavoce"), `#!/bin/sh\nexec "${process.execPath}" "${installed.command}" "$@"\n`, {
    mode: 0o755,
  });
  const elsewhere = (text: string) =>
    text.replaceAll("/var/lib/vivavoce", state).replaceAll("/etc/vivavoce", configuration);
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: state,
    ...Object.fromEntries(values("Environment").map((line) => elsewhere(line).split(/=(.*)/s).slice(0, 2))),
  };
  await withBox(
    elsewhere(values("ExecStart")[0]!).split(" "),
    {
      url: `https://127.0.0.1:${port}`,
      env: { ...env, NODE_EXTRA_CA_CERTS: cert },
      store: join(state, "store"),
      signal: values("KillSignal")[0] as NodeJS.Signals,
    },
    enrollsAndVerifies,
  );
});
