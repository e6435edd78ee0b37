// The package inside a Next.js project that knows nothing of it: built with webpack and with Turbopack, opened in a browser.
//   node scripts/build.mjs && node scripts/try-next.mjs [folder]
// Not part of `npm test`: it installs Next.js (several hundred MB) from the registry. A folder that is named is kept, and not
// installed into again.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { mix, noise, utter, wav } from "../dist/demo/voice.js";

const versions = ["next@16.4.6", "react@19.2.0", "react-dom@19.2.0"];
const named = process.argv[2];
const folder = named ?? mkdtempSync(join(tmpdir(), "vivavoce-next-"));
const run = (command, ...args) =>
  execFileSync(command, args, {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" },
  });

function install() {
  mkdirSync(join(folder, "app"), { recursive: true });
  mkdirSync(join(folder, "public"), { recursive: true });
  for (const old of readdirSync(folder).filter((name) => name.endsWith(".tgz"))) rmSync(join(folder, old));
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { stdio: "ignore" });
  const [tarball] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  const installed = join(folder, "node_modules/vivavoce");
  if (existsSync(installed)) {
    rmSync(installed, { recursive: true });
    mkdirSync(installed);
    run("tar", "xzf", tarball, "-C", installed, "--strip-components=1");
  } else {
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    run("npm", "install", "--no-audit", "--no-fund", "--save-exact", ...versions, `./${tarball}`);
  }
}

const layout = `export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>;
}
`;
const page = `"use client";
import { useEffect, useState } from "react";
import { openIndexedDbStore, openVoiceprints } from "vivavoce";

export default function Page() {
  const [said, say] = useState("…");
  useEffect(() => {
    (async () => {
      const voices = await openVoiceprints({ store: await openIndexedDbStore("next"), engineOptions: { workers: 1 } });
      const recording = await (await fetch("/voice.wav")).blob();
      const { netSpeechSeconds, validity } = await voices.analyze(recording);
      say(\`\${validity} \${netSpeechSeconds.toFixed(1)} \${(await voices.people()).length}\`);
    })().catch((error) => say(\`failed: \${error.stack}\`));
  }, []);
  return <p id="said">{said}</p>;
}
`;

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** What the built project says in a browser. */
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
    await tab.waitForFunction(() => document.querySelector("#said")?.textContent !== "…", undefined, {
      timeout: 120_000,
    });
    return await tab.textContent("#said");
  } finally {
    await browser.close();
    server.kill();
  }
}

install();
writeFileSync(join(folder, "app/layout.jsx"), layout);
writeFileSync(join(folder, "app/page.jsx"), page);
const rateHz = 48_000;
const { samples } = utter({ speaker: 1, seconds: 3, rateHz, seed: 1 });
writeFileSync(join(folder, "public/voice.wav"), wav(mix(samples, noise(3, rateHz, 1), 35), rateHz));

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
  const works = /^AUDIO_OK [12]\.\d 0$/.test(said);
  failed ||= !works;
  console.log(`${versions[0]} with ${bundler}: ${works ? "works" : `fails: ${said}`}`);
}
if (!named) rmSync(folder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
