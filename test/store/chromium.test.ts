/** The browser's store in a real browser. */
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { build, type Rollup } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StorePage } from "./browser/page.js";

declare const storePage: StorePage;

/** Served by the test itself. Keys need a secure origin. */
const ORIGIN = "https://vivavoce.test/";
let browser: Browser;
let script: string;

beforeAll(async () => {
  const here = (name: string) => fileURLToPath(new URL(`./browser/${name}`, import.meta.url));
  const output = (await build({
    configFile: false,
    logLevel: "silent",
    resolve: { alias: { vitest: here("collecting-vitest.ts") } },
    build: { write: false, minify: false, lib: { entry: here("page.ts"), formats: ["iife"], name: "storeTests" } },
    define: { "process.env.NODE_ENV": '"test"' },
  })) as Rollup.RollupOutput[];
  script = output[0]!.output[0].code;
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
}, 120_000);
afterAll(() => browser?.close());

async function openPage(): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.route(`${ORIGIN}**`, (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html>" }));
  await visit(page);
  return page;
}

async function visit(page: Page): Promise<void> {
  await page.goto(ORIGIN);
  await page.addScriptTag({ content: script });
}

test("passes the store's contract suite", { timeout: 180_000 }, async () => {
  const page = await openPage();
  const results = await page.evaluate(() => storePage.run());
  expect(results.filter(({ error }) => error !== null)).toEqual([]);
  expect(results.length).toBeGreaterThan(30);
});

test("says that the browser's storage is full", { timeout: 120_000 }, async () => {
  const page = await openPage();
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Storage.overrideQuotaForOrigin", { origin: new URL(ORIGIN).origin, quotaSize: 1000 });
  await expect(page.evaluate(() => storePage.enroll("voices"))).rejects.toThrow(
    "StoreError: the browser's storage for this page is full, so nothing was written",
  );
});

test("keeps a print for the next visit, sealed, and erases it for good", { timeout: 120_000 }, async () => {
  const page = await openPage();
  const { id, audio, embeddings } = await page.evaluate(() => storePage.enroll("voices"));
  await visit(page);
  expect(await page.evaluate((profile) => storePage.template("voices", profile), id)).toEqual(embeddings[0]);

  const database = await page.evaluate(() => storePage.dump("voices"));
  const keys = await page.evaluate(() => storePage.dump("voices-keys"));
  // The wrapping key, and the one that wraps the secret for turning embeddings: neither can leave the browser.
  expect(keys.exportable).toEqual([false, false]);
  expect(database.bytes.length).toBeGreaterThan(3);
  const secrets = [Buffer.from(audio), ...embeddings.map((values) => Buffer.from(Float32Array.from(values).buffer))];
  for (const secret of secrets) {
    const fragment = secret.subarray(64, 128);
    for (const bytes of [...database.bytes, ...keys.bytes]) expect(Buffer.from(bytes).includes(fragment)).toBe(false);
  }

  expect(await page.evaluate((profile) => storePage.erase("voices", profile), id)).toBe(true);
  await visit(page);
  expect(await page.evaluate((profile) => storePage.template("voices", profile), id)).toBeNull();
  expect((await page.evaluate(() => storePage.dump("voices"))).bytes).toEqual([]);
});

test("refuses a store whose keys were removed", async () => {
  const page = await openPage();
  await page.evaluate(() => storePage.enroll("voices"));
  const code = await page.evaluate(async () => {
    await new Promise((resolve) => {
      indexedDB.deleteDatabase("voices-keys").onsuccess = resolve;
    });
    return storePage.template("voices", "anybody").catch((error) => error.code);
  });
  expect(code).toBe("wrong-key");
});
