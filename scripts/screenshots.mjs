// Makes the screenshots of the page and of the operator view, docs/images/*.png. Runs a box, a synthesized voice speaks into a real browser's
// microphone, and calls come in.
//   node scripts/build.mjs && node scripts/screenshots.mjs
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { pcm16Wav as wav } from "../dist/audio/wav-writer.js";
import { mix, noise, utter } from "../dist/demo/voice.js";
import { configSchema } from "../dist/server/config.js";
import { startBox } from "../dist/server/start.js";

const images = "docs/images";
const rateHz = 48_000;

function recording(speaker, seed, seconds) {
  const { samples } = utter({ speaker, seconds, rateHz, seed });
  return wav(mix(samples, noise(seconds, rateHz, seed), 35), rateHz);
}

const folder = mkdtempSync(join(tmpdir(), "vivavoce-screenshots-"));
const evaluation = join(folder, "last-evaluation.json");
const box = await startBox(
  configSchema.parse({ port: 0, store: "memory", log: { level: "silent" }, evaluation, limits: { queuedAudio: 16 } }),
);
const url = `${box.url}/`;

const microphone = join(folder, "microphone.wav");
writeFileSync(microphone, recording(1, 1, 30));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    `--use-file-for-fake-audio-capture=${microphone}`,
  ],
});
try {
  mkdirSync(images, { recursive: true });
  const context = await browser.newContext({ viewport: { width: 820, height: 1180 } });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector('.model[data-state="ready"]', { timeout: 120_000 });
  const atRest = () => page.waitForSelector('.ring[data-phase="idle"]', { timeout: 120_000 });
  const filled = (part) =>
    page.waitForFunction(
      (least) => Number(document.querySelector(".ring-progress").getAttribute("aria-valuenow")) >= least,
      part,
      { timeout: 120_000 },
    );

  await page.fill("#name", "Anna");
  await page.click(".ring-button");
  await filled(1.5);
  await page.screenshot({ path: join(images, "enroll.png") });
  await atRest();
  for (let i = 1; i < 3; i++) {
    await page.click(".ring-button");
    await page.waitForSelector('.ring[data-phase="recording"]');
    await atRest();
  }
  // More voices for the list, so that Identify has a choice.
  for (const [name, speaker] of [
    ["Bert", 3],
    ["Carla", 21],
  ]) {
    await page.fill("#name", name);
    for (let i = 0; i < 3; i++) {
      const path = join(folder, `${name}-${i}.wav`);
      writeFileSync(path, recording(speaker, i + 1, 5));
      await page.setInputFiles("#files", path);
      await page.waitForSelector('.ring[data-phase="working"]');
      await atRest();
    }
  }

  await page.click("#tab-verify");
  await page.waitForSelector("#person option", { state: "attached" });
  await page.selectOption("#person", "Anna");
  await page.click(".ring-button");
  await page.waitForSelector('.ring[data-phase="recording"]');
  await atRest();
  await page.screenshot({ path: join(images, "verify.png") });

  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 1000 });
  await page.click("#tab-identify");
  await page.waitForSelector(".candidates .gauge");
  await page.click(".ring-button");
  await page.waitForSelector('.ring[data-phase="recording"]');
  await atRest();
  await page.screenshot({ path: join(images, "identify-phone-dark.png") });
  await context.close();

  await evaluate();
  await takeCalls();
  const operators = await browser.newContext({ viewport: { width: 1240, height: 900 } });
  const view = await operators.newPage();
  await view.goto(box.operatorUrl);
  await view.getByLabel("User name").fill(box.firstOwner.name);
  await view.getByLabel("Password").fill(box.firstOwner.password);
  await view.getByRole("button", { name: "Sign in" }).click();
  await view.waitForSelector(".facts");
  await view.waitForSelector(".badge");
  await view.screenshot({ path: join(images, "operator.png"), fullPage: true });
  await view.getByRole("tab", { name: "Sessions" }).click();
  await view.locator("tr", { hasText: "No match" }).getByRole("link").first().click();
  await view.getByRole("heading", { name: "Checks" }).waitFor();
  await view.screenshot({ path: join(images, "operator-session.png") });
} finally {
  await browser.close();
  await box.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Runs `vivavoce …` on the box. A voice that does not match is a valid result too. */
function vivavoce(...args) {
  const { clientId, clientSecret } = box.firstApplication;
  const env = {
    ...process.env,
    VIVAVOCE_URL: box.url,
    VIVAVOCE_CLIENT_ID: clientId,
    VIVAVOCE_CLIENT_SECRET: clientSecret,
  };
  return promisify(execFile)(process.execPath, ["dist/cli/main.js", ...args], { env }).catch((error) => error);
}

function file(name, ...voice) {
  const path = join(folder, `${name}.wav`);
  writeFileSync(path, recording(...voice));
  return path;
}

/** People and a fraudster enroll, then callers are checked. */
async function takeCalls() {
  const callers = [
    ["ada", 1],
    ["bert", 3],
    ["carla", 21],
  ];
  for (const [name, speaker] of callers)
    await vivavoce("enroll", name, ...[1, 2, 3].map((n) => file(`${name}-${n}`, speaker, n, 5)));
  await vivavoce("enroll", "--fraudster", "caller-7", ...[1, 2, 3].map((n) => file(`f-${n}`, 9, n, 5)));
  const { stdout } = await vivavoce("watchlist", "create", "caller-7", "--tag", "known callers");
  const watchlist = stdout.trim();
  for (const [i, [name, speaker]] of [...callers, ["ada", 3], ["bert", 3], ["carla", 1]].entries())
    await vivavoce("verify", name, file(`call-${i}`, speaker, 10 + i, 6));
  await vivavoce("identify", file("who", 21, 20, 6), ...callers.map(([name]) => name));
  for (const speaker of [1, 9]) await vivavoce("watchlist", "check", watchlist, file(`w-${speaker}`, speaker, 30, 8));
}

/** Short recordings of synthesized voices with some noise, so that errors occur. */
async function evaluate() {
  const voices = join(folder, "synthesized voices");
  for (let speaker = 0; speaker < 12; speaker++) {
    for (const session of [1, 2]) {
      const place = join(voices, `speaker-${speaker}`, `session-${session}`);
      mkdirSync(place, { recursive: true });
      for (const n of [1, 2]) {
        const seed = 100 * speaker + 10 * session + n;
        const { samples } = utter({ speaker: 40 + speaker, seconds: 3, rateHz, seed });
        writeFileSync(join(place, `${n}.wav`), wav(mix(samples, noise(3, rateHz, seed), 15), rateHz));
      }
    }
  }
  await vivavoce("evaluate", voices, "--no-cache", "--keep", evaluation, "--resamples", "200");
}
