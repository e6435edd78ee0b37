/** `vivavoce/microphone` in a real browser, with a file as its microphone. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { mix, noise, utter } from "../../src/demo/voice.js";
import type * as Module from "../../src/microphone/index.js";
import { MicrophoneError, openMicrophone } from "../../src/microphone/index.js";
import { serveFolder } from "../../src/server/http/static-files.js";
import { launch, type Site, serve } from "../chromium.js";
import { wav } from "../voice.js";

const folder = mkdtempSync(join(tmpdir(), "vivavoce-microphone-"));
const microphoneFile = join(folder, "microphone.wav");
const site = join(folder, "site");
const rateHz = 48_000;
let served: Site;
let browser: Browser;
let page: Page;

declare global {
  var microphone: typeof Module;
  var told: { states: { state: string; afterLevels: number }[]; levels: number[]; lost: number };
}

beforeAll(async () => {
  mkdirSync(site);
  cpSync(fileURLToPath(new URL("../../dist/microphone", import.meta.url)), join(site, "microphone"), {
    recursive: true,
  });
  writeFileSync(join(site, "index.html"), '<!doctype html><script type="module" src="app.js"></script>');
  writeFileSync(join(site, "app.js"), 'globalThis.microphone = await import("./microphone/index.js");');
  // With the content security policy of the box.
  served = await serve(serveFolder(site));
  browser = await launch(microphoneFile);
}, 120_000);
beforeEach(async () => {
  await page?.close();
  page = await browser.newPage();
  await page.goto(served.url);
  await page.waitForFunction(() => globalThis.microphone);
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Records for this long, and returns the result. */
async function recorded(sound: Float32Array, ms: number) {
  writeFileSync(microphoneFile, wav(sound, rateHz));
  return page.evaluate(async (forMs) => {
    globalThis.told = { states: [], levels: [], lost: 0 };
    const { told } = globalThis;
    const recorder = await globalThis.microphone.startRecording({
      level: (levelDb) => told.levels.push(levelDb),
      state: (state) => told.states.push({ state, afterLevels: told.levels.length }),
      lost: () => {
        told.lost++;
      },
    });
    await new Promise((resolve) => setTimeout(resolve, forMs));
    // As with a double click.
    const [{ samples, rateHz }, again] = await Promise.all([recorder.stop(), recorder.stop()]);
    const after = told.levels.length;
    await new Promise((resolve) => setTimeout(resolve, 200));
    let largest = 0;
    for (const sample of samples) largest = Math.max(largest, Math.abs(sample));
    const seconds = samples.length / rateHz;
    const isSameAgain = again.samples.length === samples.length && (await recorder.stop()).samples === samples;
    return { ...told, seconds, rateHz, largest, quietAfter: told.levels.length === after, isSameAgain };
  }, ms);
}

test("records at the device's rate, reports levels, and ends when stopped", { timeout: 60_000 }, async () => {
  const { samples } = utter({ speaker: 1, seconds: 10, rateHz, seed: 1 });
  const heard = await recorded(mix(samples, noise(10, rateHz, 1), 35), 3000);
  // A device's chunks arrive with a delay, which is longer on a busy machine.
  expect(heard.seconds).toBeGreaterThan(1.5);
  expect(heard.seconds).toBeLessThan(6);
  expect(heard.rateHz).toBeGreaterThanOrEqual(16_000);
  expect(heard.levels.length).toBeCloseTo(heard.seconds / 0.04, -1);
  expect(Math.max(...heard.levels)).toBeGreaterThan(-40);
  expect(heard.largest).toBeGreaterThan(0.01);
  expect(heard.states).toEqual([]);
  expect(heard.quietAfter).toBe(true);
  expect(heard.isSameAgain).toBe(true);
});

test("reports a muted microphone within two seconds of its sound", { timeout: 60_000 }, async () => {
  const heard = await recorded(new Float32Array(rateHz * 5), 2500);
  expect(heard.states[0]).toMatchObject({ state: "muted" });
  // Of 40 ms each.
  expect(heard.states[0]!.afterLevels).toBeLessThan(50);
});

test("reports a silent one, and when sound comes back", { timeout: 60_000 }, async () => {
  const faint = Float32Array.from(noise(6, rateHz, 2, 0), (value) => 2e-4 * value);
  const heard = await recorded(faint, 3500);
  expect(heard.states.map(({ state }) => state)).toEqual(["silent"]);
});

test("says if the browser, or another program, has no microphones for pages", async () => {
  const said = await page.evaluate(async () => {
    const problems: string[] = [];
    const failed = (error: { problem: string; message: string }) => problems.push(`${error.problem}: ${error.message}`);
    for (const mediaDevices of [{}, undefined]) {
      Object.defineProperty(navigator, "mediaDevices", { value: mediaDevices, configurable: true });
      await globalThis.microphone.openMicrophone({ heard: () => {} }).catch(failed);
    }
    return problems;
  });
  const unsupported = "other: This browser or program does not support microphones.";
  expect(said).toEqual([unsupported, unsupported]);
  // Node has no devices, and Node 20 no navigator either.
  await expect(openMicrophone({ heard: () => {} })).rejects.toThrow(MicrophoneError);
});

test("names the problem, and reports when it is unplugged", { timeout: 60_000 }, async () => {
  writeFileSync(microphoneFile, wav(noise(5, rateHz, 3, -30), rateHz));
  const said = await page.evaluate(async () => {
    const problems: string[] = [];
    const own = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    for (const name of ["NotAllowedError", "NotFoundError", "NotReadableError", "TypeError"]) {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", name));
      await globalThis.microphone
        .startRecording()
        .catch((error) => problems.push(`${error.problem}: ${error.message}`));
    }
    let stream: MediaStream | null = null;
    navigator.mediaDevices.getUserMedia = async (wanted) => {
      stream = await own(wanted);
      return stream;
    };
    const lost = new Promise<string>((resolve) => {
      void globalThis.microphone
        .openMicrophone({ heard: () => {}, lost: () => resolve("lost") })
        .then(() => stream!.getTracks()[0]!.dispatchEvent(new Event("ended")));
    });
    return { problems, lost: await lost, running: stream!.getTracks()[0]!.readyState };
  });
  expect(said.problems).toEqual([
    "refused: The browser does not allow the microphone. Allow it for this page, then try again.",
    "none: No microphone was found. Plug one in, then try again.",
    "busy: The microphone is in use by another program, or does not answer. Close that program, then try again.",
    "other: no",
  ]);
  expect(said.lost).toBe("lost");
});
