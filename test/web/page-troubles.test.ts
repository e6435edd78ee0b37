/** The page in a browser that refuses or loses something: storage, the model, the person who is enrolled. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Box, startBox } from "../../dist/server/start.js";
import { loadConfig } from "../../src/server/config.js";
import { strings } from "../../src/web/strings.js";
import { launch, recordingOf } from "../chromium.js";

const folder = mkdtempSync(join(tmpdir(), "vivavoce-page-troubles-"));
let box: Box;
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  box = await startBox(loadConfig({ env: {}, flags: { store: "memory", port: 0, "log.level": "error" } }));
  browser = await launch();
  context = await browser.newContext();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await box?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const recordings = [0, 1, 2].map((take) => {
  const path = join(folder, `anna-${take}.wav`);
  writeFileSync(path, recordingOf(1, take, 6));
  return path;
});

const modelIs = (page: Page, state: "ready" | "failed") =>
  page.waitForSelector(`.model[data-state="${state}"]`, { timeout: 60_000 });
const says = (page: Page, text: string) => page.getByText(text, { exact: true }).waitFor({ timeout: 60_000 });
const peopleOn = async (page: Page) => {
  await page.click("#tab-people");
  await page.waitForSelector(".people li");
  return page.locator(".people strong").allTextContents();
};

test("files are enrolled for the person they were chosen for, not for the next name", {
  timeout: 180_000,
}, async () => {
  const page = await context.newPage();
  await page.goto(box.url);
  await modelIs(page, "ready");
  await page.fill("#name", "Anna");
  // The person types another name as soon as the first file is enrolled.
  await page.evaluate(() => {
    const name = document.querySelector<HTMLInputElement>("#name")!;
    new MutationObserver((_, observer) => {
      if (!document.querySelector(".steps .done")) return;
      observer.disconnect();
      name.value = "Bert";
      name.dispatchEvent(new Event("input"));
    }).observe(document.querySelector(".steps")!, { childList: true });
  });
  await page.setInputFiles("#files", recordings);
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>("#name")!.value === "Bert");
  // Time for the other files, if they were still used.
  await page.waitForTimeout(5_000);
  expect(await peopleOn(page)).toEqual(["Anna"]);
  await page.close();
});

test("an interrupted enrollment goes on where it stopped, and a phone scrolls to each message and result", {
  timeout: 180_000,
}, async () => {
  const page = await context.newPage();
  await page.setViewportSize({ width: 390, height: 560 });
  await page.goto(box.url);
  await modelIs(page, "ready");
  const visible = (text: string) =>
    page.waitForFunction(
      (wanted) => {
        const shown = [...document.querySelectorAll('[role="status"], [role="status"] *')].find(
          ({ textContent }) => textContent === wanted,
        );
        const box = shown?.getBoundingClientRect();
        return box && box.height > 0 && box.top >= -1 && box.bottom <= innerHeight + 1; // rounded to pixels
      },
      text,
      { timeout: 60_000 },
    );
  await page.click(".ring-button");
  await visible(strings.enroll.nameMissing);
  await page.fill("#name", "Anna");
  await says(page, strings.enroll.unfinished("Anna", 1));
  expect(await page.getByRole("img", { name: strings.enroll.steps(1, 3) }).count()).toBe(1);
  await says(page, strings.enroll.sentences[1]!);
  await page.setInputFiles("#files", recordings.slice(1));
  await visible(strings.enroll.trained("Anna"));
  await page.waitForSelector('.ring[data-phase="idle"]');
  await page.close();
});

test("a browser without Cache Storage loads the model at every visit", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  // As private windows of Firefox.
  await page.addInitScript(() => {
    CacheStorage.prototype.open = () => Promise.reject(new DOMException("The operation is insecure.", "SecurityError"));
  });
  await page.goto(box.url);
  await modelIs(page, "ready");
  await page.close();
});

test("after a failed start nothing stays behind, and trying again shows who is enrolled", {
  timeout: 180_000,
}, async () => {
  const page = await context.newPage();
  await page.addInitScript(() => {
    const open = IDBFactory.prototype.open;
    IDBFactory.prototype.open = () => {
      IDBFactory.prototype.open = open;
      throw new DOMException("Internal error.", "UnknownError");
    };
  });
  await page.goto(box.url);
  await page.click("#tab-verify");
  await modelIs(page, "failed");
  await expect.poll(() => page.workers().length).toBe(0);
  await page.click(".model button");
  await modelIs(page, "ready");
  await page.waitForSelector("#person option", { state: "attached", timeout: 10_000 });
  expect(await page.locator("#person option").allTextContents()).toEqual(["Anna"]);
  await page.close();
});

test("says that a voice could not be erased", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  await page.goto(box.url);
  await modelIs(page, "ready");
  expect(await peopleOn(page)).toEqual(["Anna"]);
  // Another window cleared the storage.
  await page.evaluate(
    () =>
      new Promise((resolve) => {
        indexedDB.deleteDatabase("vivavoce").onsuccess = resolve;
      }),
  );
  await page.getByLabel(strings.people.eraseOf("Anna")).click();
  await page.getByRole("button", { name: strings.people.yes }).click();
  await says(page, strings.refusals.other);
  await page.close();
});
