// The README's pictures of the page: docs/images/*.png. A synthesized voice speaks into a real browser's microphone.
//   node scripts/build.mjs --if-stale && node scripts/screenshots.mjs
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { mix, noise, utter, wav } from "../dist/demo/voice.js";
import { serveFolder } from "../dist/server/http/static-files.js";

const images = "docs/images";
const rateHz = 48_000;

function recording(speaker, seed, seconds) {
  const { samples } = utter({ speaker, seconds, rateHz, seed });
  return wav(mix(samples, noise(seconds, rateHz, seed), 35), rateHz);
}

const files = serveFolder("dist/page");
const server = createServer(async (incoming, outgoing) => {
  const response = files(new Request(`http://page${incoming.url}`)) ?? new Response(null, { status: 404 });
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.end(Buffer.from(await response.arrayBuffer()));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}/`;

const folder = mkdtempSync(join(tmpdir(), "vivavoce-screenshots-"));
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
  // Others for the list of voices, so that identifying has a choice.
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
} finally {
  await browser.close();
  server.close();
  rmSync(folder, { recursive: true, force: true });
}
