/** The page in a browser that refuses or loses something: encryption, storage, the model, the person who is enrolled. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serveFolder } from "../../dist/server/http/static-files.js";
import { type Box, startBox } from "../../dist/server/start.js";
import { loadConfig } from "../../src/server/config.js";
import { strings } from "../../src/web/strings.js";
import { launch, recordingOf, serve } from "../chromium.js";

const folder = mkdtempSync(join(tmpdir(), "vivavoce-page-troubles-"));
let box: Box;
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  box = await startBox(loadConfig({ env: {}, flags: { store: "memory", port: 0, "log.level": "error" } }));
  browser = await launch(undefined, "--host-resolver-rules=MAP box.example 127.0.0.1");
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
const openAndEnroll = async (page: Page, url: string, name: string) => {
  await page.goto(url);
  await modelIs(page, "ready");
  await page.fill("#name", name);
  await page.setInputFiles("#files", recordings);
  await says(page, strings.enroll.trained(name));
};
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

test("an address without https is named as the reason why nothing works", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  // To the browser, only https and this machine are secure.
  await page.goto(box.url.replace("127.0.0.1", "box.example"));
  await modelIs(page, "failed");
  await page.getByRole("alert").getByText(strings.model.insecure, { exact: true }).waitFor();
  await page.fill("#name", "Anna");
  await page.click(".ring-button");
  await says(page, strings.microphone.insecure);
  expect(await page.getByText(strings.privacy.online).isVisible()).toBe(false);
  await page.close();
});

test("blocked storage is named as the reason, and not the voice model", { timeout: 120_000 }, async () => {
  for (const block of [
    () => {
      IDBFactory.prototype.open = () => {
        throw new DOMException("The operation is insecure.", "SecurityError");
      };
    },
    () => void Object.defineProperty(globalThis, "indexedDB", { value: undefined }),
  ]) {
    const page = await context.newPage();
    await page.addInitScript(block);
    await page.goto(box.url);
    await modelIs(page, "failed");
    expect(await page.getByRole("alert").textContent()).toBe(strings.storage.blocked);
    await page.close();
  }
});

test("full storage is named as the reason, at the start and when a recording cannot be stored", {
  timeout: 300_000,
}, async () => {
  const own = await browser.newContext();
  const page = await own.newPage();
  const devTools = await own.newCDPSession(page);
  const { origin } = new URL(box.url);
  await devTools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1000 });
  await page.goto(box.url);
  await modelIs(page, "failed");
  expect(await page.getByRole("alert").textContent()).toBe(strings.storage.full);
  await devTools.send("Storage.overrideQuotaForOrigin", { origin });
  await page.getByRole("button", { name: strings.model.retry }).click();
  await modelIs(page, "ready");
  // The browser looks at its quota only now and then.
  await page.evaluate(() => {
    IDBDatabase.prototype.transaction = () => {
      throw new DOMException("", "QuotaExceededError");
    };
  });
  await page.fill("#name", "Anna");
  await page.setInputFiles("#files", recordings[0]!);
  await says(page, strings.storage.full);
  await own.close();
});

test("a model that arrives in part is named as the reason, in words", { timeout: 120_000 }, async () => {
  const own = await browser.newContext();
  const page = await own.newPage();
  await page.addInitScript(() => {
    const cut = new TransformStream({
      start: (stream) => setTimeout(() => stream.error(new TypeError("network error"))),
    });
    globalThis.fetch = async () => new Response(cut.readable);
  });
  await page.goto(box.url);
  await modelIs(page, "failed");
  expect(await page.getByRole("alert").textContent()).toBe(strings.model.failed(strings.model.why.incomplete));
  await own.close();
});

test("a download that breaks off goes on where it stopped", { timeout: 180_000 }, async () => {
  const own = await browser.newContext({ serviceWorkers: "block" });
  const page = await own.newPage();
  const asked: string[] = [];
  let isCut = true;
  await page.route("**/*.vvm", (route) => {
    const range = route.request().headers().range!;
    asked.push(range);
    return isCut && range.startsWith("bytes=5242880-") ? route.abort() : route.continue();
  });
  await page.goto(box.url);
  await modelIs(page, "failed");
  expect(await page.getByRole("alert").textContent()).toBe(strings.model.failed(strings.model.why.noAnswer));
  const before = asked.splice(0);
  expect(before[0]).toBe("bytes=0-1048575");
  isCut = false;
  await page.getByRole("button", { name: strings.model.retry }).click();
  await modelIs(page, "ready");
  expect(asked).toContain("bytes=5242880-6291455");
  for (const range of ["bytes=0-1048575", "bytes=1048576-2097151"]) expect(asked).not.toContain(range);
  await own.close();
});

test("a server that knows no parts sends the model as a whole, once", { timeout: 120_000 }, async () => {
  const own = await browser.newContext({ serviceWorkers: "block" });
  const page = await own.newPage();
  let asked = 0;
  await page.route("**/*.vvm", (route) => {
    asked++;
    const { range: _, ...headers } = route.request().headers();
    return route.continue({ headers });
  });
  await page.goto(box.url);
  await modelIs(page, "ready");
  expect(asked).toBe(1);
  await own.close();
});

test("a program that does not arrive ends loading; trying again loads it, and the focus stays at the bar", {
  timeout: 180_000,
}, async () => {
  const own = await browser.newContext();
  const page = await own.newPage();
  let isCut = true;
  await page.route("**/voices.js", (route) => (isCut ? route.abort() : route.continue()));
  await page.goto(box.url);
  await modelIs(page, "failed");
  // Time for the model, which must not go on loading.
  await page.waitForTimeout(3_000);
  expect(await page.getByRole("alert").textContent()).toBe(strings.model.failed(strings.model.why.noAnswer));
  isCut = false;
  await page.getByRole("button", { name: strings.model.retry }).press("Enter");
  expect(await page.evaluate(() => document.activeElement?.matches(".model"))).toBe(true);
  await modelIs(page, "ready");
  await own.close();
});

test("says what to do if its script, or that of the operator view, does not arrive", { timeout: 60_000 }, async () => {
  const own = await browser.newContext();
  const page = await own.newPage();
  await page.route("**/main.js", (route) => route.abort());
  for (const path of ["/", "/operator/"]) {
    await page.goto(box.url + path);
    await page.getByText("If this text stays, reload it.").waitFor();
  }
  await own.close();
});

test("says what to do if the kernels do not arrive", { timeout: 60_000 }, async () => {
  const own = await browser.newContext({ serviceWorkers: "block" });
  const page = await own.newPage();
  await page.route("**/vivavoce.wasm", (route) => route.fulfill({ status: 404 }));
  await page.goto(box.url);
  await modelIs(page, "failed");
  expect(await page.getByRole("alert").textContent()).toBe(strings.model.notStarted);
  await own.close();
});

test("a check says that another tab erased the voice, and offers those that are left", {
  timeout: 180_000,
}, async () => {
  const page = await context.newPage();
  await openAndEnroll(page, box.url, "Bert");
  await page.click("#tab-verify");
  await page.selectOption("#person", "Bert");
  const other = await context.newPage();
  await other.goto(box.url);
  await modelIs(other, "ready");
  await peopleOn(other);
  // Keep is the safe answer; the focus returns to the button that asked.
  const erase = other.getByLabel(strings.people.eraseOf("Bert"));
  await erase.click();
  await other.getByRole("button", { name: strings.people.no }).press("Enter");
  expect(await erase.evaluate((button) => button === document.activeElement)).toBe(true);
  await erase.click();
  await other.getByRole("button", { name: strings.people.yes }).click();
  await says(other, strings.people.erased("Bert"));
  await page.bringToFront();
  await page.setInputFiles("#files", recordings[0]!);
  await says(page, strings.erasedElsewhere);
  expect(await page.locator("#person option").allTextContents()).toEqual(["Anna"]);
  await Promise.all([page.close(), other.close()]);
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
  await says(page, strings.storage.closed);
  await page.close();
});

test("shows which voice is damaged, lists the others, and erases it", { timeout: 180_000 }, async () => {
  const own = await browser.newContext();
  const page = await own.newPage();
  for (const name of ["Anna", "Bea"]) await openAndEnroll(page, box.url, name);
  await page.evaluate(async () => {
    const result = <T>(request: IDBRequest<T>) =>
      new Promise<T>((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
    const store = (await result(indexedDB.open("vivavoce")))
      .transaction("profiles", "readwrite")
      .objectStore("profiles");
    const [profile] = await result(store.getAll());
    profile.sealed[profile.sealed.length - 1] ^= 1;
    await result(store.put(profile));
  });
  expect(await peopleOn(page)).toEqual(["Anna", "Bea"]);
  await says(page, strings.damaged);
  await page.getByRole("button", { name: strings.people.eraseOf("Anna") }).click();
  await page.getByRole("button", { name: strings.people.yes }).click();
  await says(page, strings.people.erased("Anna"));
  expect(await peopleOn(page)).toEqual(["Bea"]);
  await own.close();
});

test("a page that is ready can record when the network goes, or when the box was upgraded meanwhile", {
  timeout: 120_000,
}, async () => {
  // Before the service worker has everything, and where there is none.
  const own = await browser.newContext({ serviceWorkers: "block" });
  const page = await own.newPage();
  await page.goto(box.url);
  await modelIs(page, "ready");
  await own.setOffline(true);
  await page.fill("#name", "Anna");
  await page.click(".ring-button");
  await page.waitForSelector('.ring[data-phase="recording"]', { timeout: 20_000 });
  await own.close();
});

test("after an upgrade with another model, an open tab still records, and voices of the old model are named as such", {
  timeout: 180_000,
}, async () => {
  const [before] = readdirSync("dist/page/assets");
  const model = "models/vivavoce-2-accurate.vvm";
  const old = serveFolder("dist/page");
  const edited = serveFolder("dist/page", "/", { [`/${model}`]: model }, (path, bytes) =>
    /(index\.html|service-worker\.js)$/.test(path)
      ? Buffer.from(
          bytes
            .toString()
            .replaceAll(before!, "next")
            .replace('VERSION="', 'VERSION="next-')
            .replace(/models\/[^"]+" data-bytes="\d+"/, `${model}" data-bytes="${statSync(model).size}"`),
        )
      : bytes,
  );
  const upgraded = ({ url }: Request) =>
    url.includes(before!) ? null : edited(new Request(url.replace("/next/", `/${before}/`)));
  let answer: (request: Request) => Response | null = old;
  const site = await serve((request) => answer(request));
  const own = await browser.newContext();
  const first = await own.newPage();
  await openAndEnroll(first, site.url, "Anna");
  await says(first, strings.privacy.online);

  answer = upgraded;
  const second = await own.newPage();
  await second.goto(site.url);
  await modelIs(second, "ready");
  await second.waitForFunction(async () => (await caches.keys()).some((name) => name.includes("next-")));
  await second.waitForFunction(() => navigator.serviceWorker.controller?.state === "activated");
  await first.fill("#name", "Bert");
  await first.click(".ring-button");
  await first.waitForSelector('.ring[data-phase="recording"]', { timeout: 20_000 });

  await second.fill("#name", "Anna");
  await says(second, strings.obsolete);
  await second.click("#tab-verify");
  await says(second, strings.nobody);
  await second.click("#tab-people");
  await says(second, strings.obsolete);
  await second.click("#tab-enroll");
  await second.setInputFiles("#files", recordings);
  await says(second, strings.enroll.trained("Anna"));
  await own.close();
  await site.close();
});

test("opens from the cache when a proxy answers that the box is away", { timeout: 120_000 }, async () => {
  const own = await browser.newContext();
  const page = await own.newPage();
  await page.goto(box.url);
  await modelIs(page, "ready");
  await says(page, strings.privacy.online);
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
  await own.route(`${box.url}/`, (route) => route.fulfill({ status: 502, body: "Bad gateway" }));
  await page.reload();
  await modelIs(page, "ready");
  await own.close();
});

test("a download that no longer moves ends, and trying again loads the model", { timeout: 120_000 }, async () => {
  const own = await browser.newContext({ serviceWorkers: "block" });
  const page = await own.newPage();
  // Half a minute passes in a moment.
  await page.addInitScript(() => {
    const set = setTimeout;
    Object.assign(globalThis, {
      setTimeout: (work: () => void, milliseconds = 0) => set(work, milliseconds === 30_000 ? 2_000 : milliseconds),
    });
  });
  const swallow = () => {};
  await page.route("**/*.vvm", swallow);
  await page.goto(box.url);
  await modelIs(page, "failed");
  expect(await page.getByRole("alert").textContent()).toBe(strings.model.failed(strings.model.why.noAnswer));
  await page.unroute("**/*.vvm", swallow);
  await page.click(".model button");
  await modelIs(page, "ready");
  await own.close();
});
