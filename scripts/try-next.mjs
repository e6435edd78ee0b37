// Tests examples/next with the package as users install it: built with webpack and with Turbopack, used in a browser.
//   node scripts/build.mjs && node scripts/try-next.mjs [folder]
// Not part of `npm test`: it installs Next.js (several hundred MB) from the registry. If a folder is given, it is kept and its
// installation is reused.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { pcm16Wav } from "../dist/audio/wav-writer.js";
import { mix, noise, utter } from "../dist/demo/voice.js";

const example = fileURLToPath(new URL("../examples/next", import.meta.url));
const manifest = JSON.parse(readFileSync(join(example, "package.json"), "utf8"));
const named = process.argv[2];
const folder = named ?? mkdtempSync(join(tmpdir(), "vivavoce-next-"));
const run = (command, ...args) =>
  execFileSync(command, args, {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" },
  });

function install() {
  cpSync(example, folder, { recursive: true });
  for (const old of readdirSync(folder).filter((name) => name.endsWith(".tgz"))) rmSync(join(folder, old));
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { stdio: "ignore" });
  const [tarball] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  const installed = join(folder, "node_modules/vivavoce");
  if (existsSync(installed)) {
    rmSync(installed, { recursive: true });
    mkdirSync(installed);
    run("tar", "xzf", tarball, "-C", installed, "--strip-components=1");
  } else {
    const dependencies = { ...manifest.dependencies, vivavoce: `file:${tarball}` };
    writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, dependencies }));
    run("npm", "install", "--no-audit", "--no-fund");
  }
}

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** What the built project shows in a browser for the enrolled person, and for another. */
async function opened() {
  const port = await freePort();
  const next = join(folder, "node_modules/next/dist/bin/next");
  const server = spawn(process.execPath, [next, "start", "-p", String(port), "-H", "127.0.0.1"], {
    cwd: folder,
    stdio: "ignore",
  });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu"],
  });
  try {
    const url = `http://127.0.0.1:${port}/`;
    for (let tries = 0; tries < 120 && !(await fetch(url).catch(() => null))?.ok; tries++)
      await new Promise((resolve) => setTimeout(resolve, 500));
    const tab = await browser.newPage();
    await tab.goto(url, { timeout: 60_000 });
    const told = tab.getByRole("status");
    const says = async (words) => {
      await told.filter({ hasText: words }).waitFor({ timeout: 120_000 });
      return told.textContent();
    };
    await says("Ready.");
    await tab.setInputFiles(
      "#enroll",
      [1, 2, 3].map((take) => recording(1, take)),
    );
    await says("You are enrolled.");
    await tab.setInputFiles("#check", recording(1, 4));
    const own = await says("needed");
    await tab.setInputFiles("#check", recording(9, 1));
    await says("NO_MATCH");
    return own;
  } finally {
    await browser.close();
    server.kill();
  }
}

function recording(speaker, take) {
  const rateHz = 16_000;
  const { samples } = utter({ speaker, seconds: 6, rateHz, seed: take });
  const buffer = Buffer.from(pcm16Wav(mix(samples, noise(6, rateHz, take), 35), rateHz));
  return { name: `${speaker}-${take}.wav`, mimeType: "audio/wav", buffer };
}

install();
let failed = false;
for (const bundler of ["webpack", "turbopack"]) {
  let said;
  try {
    rmSync(join(folder, ".next"), { recursive: true, force: true });
    run(process.execPath, join(folder, "node_modules/next/dist/bin/next"), "build", `--${bundler}`);
    said = await opened();
  } catch (error) {
    said = String(error.message ?? error);
  }
  const works = said.startsWith("AUTHENTIC");
  failed ||= !works;
  console.log(`Next.js ${manifest.dependencies.next} with ${bundler}: ${works ? "works" : `fails: ${said}`}`);
}
if (!named) rmSync(folder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
