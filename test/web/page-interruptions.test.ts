/** The page when people change their mind, or when something ends in the middle of a recording. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Box, startBox } from "../../dist/server/start.js";
import { loadConfig } from "../../src/server/config.js";
import { strings } from "../../src/web/strings.js";
import { barriersEverywhere, launch, recordingOf } from "../chromium.js";

const folder = mkdtempSync(join(tmpdir(), "vivavoce-page-interruptions-"));
const microphone = join(folder, "microphone.wav");
/** As long as the page allows, and one word for the browser, which cannot break it. */
const longName = "W".repeat(100);
let box: Box;
let browser: Browser;
let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  writeFileSync(microphone, recordingOf(1, 1, 30));
  box = await startBox(loadConfig({ env: {}, flags: { store: "memory", port: 0, "log.level": "error" } }));
  browser = await launch(microphone);
  context = await browser.newContext({ viewport: { width: 900, height: 1250 } });
  page = await context.newPage();
  await page.addInitScript(() => {
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    const given: MediaStreamTrack[] = [];
    navigator.mediaDevices.getUserMedia = async (wanted) => {
      const stream = await ask(wanted);
      given.push(...stream.getTracks());
      return stream;
    };
    Object.assign(globalThis, {
      unplug: () => given.at(-1)!.dispatchEvent(new Event("ended")),
      isListening: () => given.some(({ readyState }) => readyState === "live"),
    });
  });
  await page.goto(box.url);
  await isReady(page);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await box?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const recordingsOf = (speaker: number) =>
  [1, 2, 3].map((take) => {
    const path = join(folder, `${speaker}-${take}.wav`);
    writeFileSync(path, recordingOf(speaker, take, 5));
    return path;
  });

const isReady = (on: Page) => on.waitForSelector('.model[data-state="ready"]', { timeout: 60_000 });
const isIdle = () => page.waitForSelector('.ring[data-phase="idle"]', { timeout: 60_000 });
const says = (on: Page, text: string) => on.getByText(text, { exact: true }).waitFor({ timeout: 60_000 });
const advice = (on = page) => on.textContent(".advice");
const record = async () => {
  await page.click(".ring-button");
  await page.waitForSelector('.ring[data-phase="recording"]');
};
const heard = (seconds: number) =>
  page.waitForFunction(
    (least) => Number(document.querySelector(".ring-progress")!.getAttribute("aria-valuenow")) >= least,
    seconds,
    { timeout: 60_000 },
  );
const people = async () => {
  await page.click("#tab-people");
  await page.waitForSelector(".people li");
  return page.locator(".people strong").allTextContents();
};

test("the list of voices ends a recording, and a file dropped there is not used", { timeout: 120_000 }, async () => {
  await page.fill("#name", "Anna");
  await record();
  expect(await people()).toEqual([]);
  await page.waitForFunction(() => !(globalThis as unknown as { isListening(): boolean }).isListening());
  await page.evaluate(
    (bytes) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))], "anna.wav"));
      document.dispatchEvent(new DragEvent("drop", { dataTransfer, cancelable: true }));
    },
    recordingOf(1, 2, 5).toString("base64"),
  );
  // Time for the file, if it were used.
  await page.waitForTimeout(4_000);
  await page.click("#tab-enroll");
  expect(await people()).toEqual([]);
});

test("a microphone that is unplugged ends the recording, and what was said until then counts", {
  timeout: 120_000,
}, async () => {
  await page.click("#tab-enroll");
  await page.fill("#name", "Anna");
  await record();
  await heard(2.5);
  await page.evaluate(() => (globalThis as unknown as { unplug(): void }).unplug());
  await says(page, strings.enroll.taken(2));
  await isIdle();
  expect(await advice()).toBe(strings.microphone.unplugged);
  // Without a word, or before any sound arrives, nothing is enrolled.
  await page.evaluate(() => {
    const ring = document.querySelector<HTMLElement>(".ring")!;
    new MutationObserver((_, observer) => {
      if (ring.dataset.phase !== "recording") return;
      observer.disconnect();
      (globalThis as unknown as { unplug(): void }).unplug();
    }).observe(ring, { attributes: true });
  });
  await page.click(".ring-button");
  await says(page, strings.microphone.unplugged);
  await isIdle();
  expect(await page.getByRole("img", { name: strings.enroll.steps(1, 3) }).count()).toBe(1);
});

test("a recording is not counted for a name that was typed while it was checked", { timeout: 120_000 }, async () => {
  await page.fill("#name", "Carla");
  await page.evaluate(() => {
    const ring = document.querySelector<HTMLElement>(".ring")!;
    new MutationObserver((_, observer) => {
      if (document.querySelector(".advice")!.textContent !== "") return;
      observer.disconnect();
      const name = document.querySelector<HTMLInputElement>("#name")!;
      name.value = "Dora";
      name.dispatchEvent(new Event("input"));
    }).observe(ring.parentElement!, { subtree: true, childList: true, characterData: true });
  });
  await page.setInputFiles("#files", recordingsOf(9)[0]!);
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>("#name")!.value === "Dora");
  await page.waitForTimeout(3_000);
  expect(await page.locator(".steps .done").count()).toBe(0);
  expect(await page.textContent(".headline")).toBe("");
  await expect.poll(people, { timeout: 60_000 }).toEqual(["Anna", "Carla"]);
});

test("a name of 100 letters fits a phone in every part of the page", { timeout: 180_000 }, async () => {
  await page.click("#tab-enroll");
  await page.fill("#name", longName);
  await page.setInputFiles("#files", recordingsOf(24));
  await says(page, strings.enroll.trained(longName));
  await isIdle();
  expect(await barriersEverywhere(page)).toEqual([]);
  await page.click("#tab-people");
  await page.getByRole("button", { name: strings.people.eraseOf(longName) }).click();
  expect(await barriersEverywhere(page)).toEqual([]);
  for (const mode of ["verify", "identify"]) {
    await page.click(`#tab-${mode}`);
    await page.setInputFiles("#files", recordingsOf(24)[1]!);
    await page.waitForSelector(".headline:not(:empty)");
    await isIdle();
    expect(await barriersEverywhere(page)).toEqual([]);
  }
});

test("the score moves for the person who is chosen now", { timeout: 180_000 }, async () => {
  await page.click("#tab-enroll");
  await page.fill("#name", "Anna");
  await page.setInputFiles("#files", recordingsOf(1));
  await says(page, strings.enroll.trained("Anna"));
  await isIdle();
  await page.click("#tab-verify");
  await page.selectOption("#person", "Anna");
  await record();
  // Far above what the other voice can reach with little speech.
  await page.waitForFunction(() => Number.parseFloat(document.querySelector(".gauge-text")!.textContent!) > 3);
  const shown: string[] = [];
  await page.exposeFunction(
    "shown",
    (person: string, score: string) => void (person === longName && shown.push(score)),
  );
  await page.evaluate(() => {
    const text = document.querySelector(".gauge-text")!;
    const person = document.querySelector<HTMLSelectElement>("#person")!;
    const { shown } = globalThis as unknown as { shown(person: string, score: string): void };
    new MutationObserver(() => shown(person.value, text.textContent!)).observe(text, { childList: true });
  });
  await page.selectOption("#person", longName);
  await says(page, strings.verify.no(longName));
  await isIdle();
  expect(shown.length).toBeGreaterThan(1);
  expect(shown.filter((score) => Number.parseFloat(score) > 3)).toEqual([]);
});

test("while the voice model loads, nobody is said to be missing", { timeout: 120_000 }, async () => {
  const own = await browser.newContext();
  const slow = await own.newPage();
  let go = () => {};
  const gone = new Promise<void>((resolve) => {
    go = resolve;
  });
  await slow.route("**/voices*.js", async (route) => {
    await gone;
    await route.continue();
  });
  await slow.goto(box.url);
  await slow.click("#tab-verify");
  await slow.click(".ring-button");
  expect(await advice(slow)).toBe(strings.advice.loading);
  await slow.click("#tab-people");
  expect(await slow.textContent(".people")).toBe(strings.people.loading);
  // What Verify finds once it has loaded does not concern Enroll.
  await slow.click("#tab-verify");
  await slow.click("#tab-enroll");
  go();
  await isReady(slow);
  await slow.waitForTimeout(1_000);
  expect(await advice(slow)).toBe(strings.advice.ready);
  await slow.click("#tab-people");
  await says(slow, strings.people.none);
  await own.close();
});

test("a key that goes back in the browser also does so on a tab", { timeout: 60_000 }, async () => {
  await page.focus("#tab-verify");
  const isPrevented = await page.evaluate(
    () =>
      !document.activeElement!.dispatchEvent(
        new KeyboardEvent("keydown", { key: "ArrowLeft", altKey: true, bubbles: true, cancelable: true }),
      ),
  );
  expect(isPrevented).toBe(false);
});

test("the address keeps the tab: a reload stays there, and Back goes to the one before", {
  timeout: 120_000,
}, async () => {
  const isShown = (name: keyof typeof strings.modes) =>
    page.getByRole("tab", { name: strings.modes[name], selected: true }).waitFor();
  await page.goto(`${box.url}/#verify`);
  await isShown("verify");
  await page.click("#tab-people");
  await page.reload();
  await isReady(page);
  await isShown("people");
  // A place on the page is no tab.
  await page.getByRole("link", { name: strings.privacy.short }).click();
  await isShown("people");
  const panel = page.getByRole("complementary");
  await page.reload();
  await isReady(page);
  expect(page.url()).toBe(`${box.url}/#privacy`);
  expect(await panel.evaluate((one) => one.getBoundingClientRect().top < innerHeight)).toBe(true);
  await page.goBack();
  await page.goBack();
  await isShown("verify");
  await page.goForward();
  await isShown("people");
});

test("the list of voices shows what another tab did", { timeout: 120_000 }, async () => {
  const listed = await people();
  const other = await context.newPage();
  await other.goto(`${box.url}/#people`);
  await other.getByRole("button", { name: strings.people.eraseOf("Anna") }).click({ timeout: 60_000 });
  await other.getByRole("button", { name: strings.people.yes }).click();
  await says(other, strings.people.erased("Anna"));
  await other.close();
  await page.bringToFront();
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await expect
    .poll(() => page.locator(".people strong").allTextContents())
    .toEqual(listed.filter((one) => one !== "Anna"));
  // A question that is open stays open if nothing changed.
  await page.getByRole("button", { name: strings.people.eraseOf(longName) }).click();
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await page.waitForTimeout(1_000);
  expect(await page.getByRole("button", { name: strings.people.yes }).count()).toBe(1);
});
