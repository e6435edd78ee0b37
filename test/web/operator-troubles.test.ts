/** The operator view in a browser that refuses something, on another machine, and on a network that loses answers. */
import type { Browser, BrowserContext, Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configSchema } from "../../dist/server/config.js";
import { type Box, startBox } from "../../dist/server/start.js";
import { languages as pages } from "../../src/token/interactive/strings.js";
import { strings } from "../../src/web/operator/strings.js";
import { launch } from "../chromium.js";

let box: Box;
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  box = await startBox(configSchema.parse({ port: 0, store: "memory", log: { level: "silent" } }));
  browser = await launch(undefined, "--host-resolver-rules=MAP box.example 127.0.0.1");
  context = await browser.newContext({ viewport: { width: 1280, height: 1000 } });
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await box?.stop();
});

/** Long enough for a busy machine. */
const soon = { timeout: 30_000 };
const says = (page: Page, text: string) => page.getByText(text, { exact: true }).waitFor(soon);
const isPart = (page: Page, name: keyof typeof strings.parts) =>
  page.getByRole("tab", { name: strings.parts[name], selected: true }).waitFor(soon);

test("from another machine it says what to set up, and does not lead to that machine", {
  timeout: 120_000,
}, async () => {
  const page = await context.newPage();
  await page.goto(box.operatorUrl!.replace("127.0.0.1", "box.example"));
  await says(page, strings.signIn.failed(strings.signIn.elsewhere(box.url)));
  // The same box with this address as its public one, but without https.
  const issuer = new URL(page.url()).origin;
  const metadata = (await (await fetch(`${box.url}/.well-known/oauth-authorization-server`)).json()) as object;
  await page.route("**/.well-known/oauth-authorization-server", (route) =>
    route.fulfill({ json: { ...metadata, issuer } }),
  );
  await page.getByRole("button", { name: strings.signIn.again }).click();
  await says(page, strings.signIn.failed(strings.signIn.insecure));
  await page.close();
});

test("says that the browser lets it store nothing", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  // As Chromium with site data blocked.
  await page.addInitScript(() => {
    Object.defineProperty(globalThis, "sessionStorage", {
      get: () => {
        throw new DOMException("Access is denied for this document.", "SecurityError");
      },
    });
  });
  await page.goto(box.operatorUrl!);
  await says(page, strings.signIn.failed(strings.signIn.blocked));
  await page.close();
});

test("a box that does not answer at sign-in is named each time, and found once it is back", {
  timeout: 120_000,
}, async () => {
  const page = await context.newPage();
  const cut = (route: Route) => route.abort();
  await page.route("**/.well-known/**", cut);
  await page.goto(`${box.operatorUrl}#sessions`);
  const failed = strings.signIn.failed(strings.noAnswer);
  await says(page, failed);
  const again = page.waitForRequest("**/.well-known/**");
  await page.getByRole("button", { name: strings.signIn.again }).click();
  await again;
  await says(page, failed);
  await page.unroute("**/.well-known/**", cut);
  await page.getByRole("button", { name: strings.signIn.again }).click();
  // The answer to the code is lost on the way.
  await page.route("**/oauth2/token", cut);
  const { signIn: words } = pages.en;
  await page.getByLabel(words.name).fill(box.firstOwner!.name);
  await page.getByLabel(words.password).fill(box.firstOwner!.password);
  await page.getByRole("button", { name: words.action }).click();
  await says(page, failed);
  await page.unroute("**/oauth2/token", cut);
  await page.getByRole("button", { name: strings.signIn.again }).click();
  // Signed in, at the part that the address named.
  await isPart(page, "sessions");
  expect(page.url()).toBe(`${box.operatorUrl}#sessions`);
  await page.close();
});

test("a code that has expired is named in the reader's language", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  await page.route("**/oauth2/token", (route) =>
    route.fulfill({ status: 400, json: { error: "invalid_grant", error_description: "grant request is invalid" } }),
  );
  await page.goto(box.operatorUrl!);
  await says(page, strings.signIn.failed(strings.refusals.signInExpired));
  await page.close();
});

test("a connection that is lost silently is not called live", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  // Also the tables, which are read every ten seconds.
  const readAgain = () => page.clock.fastForward(10_000);
  await page.clock.install();
  // A tenth of a second for each second.
  await page.addInitScript(() => {
    AbortSignal.timeout = (milliseconds) => {
      const timer = new AbortController();
      setTimeout(() => timer.abort(), milliseconds / 10);
      return timer.signal;
    };
  });
  await page.goto(box.operatorUrl!);
  await says(page, strings.live);
  const swallow = () => {};
  await page.route("**/operator/v1/**", swallow);
  await says(page, strings.lost(strings.noAnswer));
  await page.unroute("**/operator/v1/**", swallow);
  await readAgain();
  // A proxy's own page is no answer of the box either.
  const signInToProxy = (route: Route) => route.fulfill({ contentType: "text/html", body: "<h1>Guest network</h1>" });
  await says(page, strings.live);
  await page.route("**/operator/v1/**", signInToProxy);
  await says(page, strings.lost(strings.noAnswer));
  await page.unroute("**/operator/v1/**", signInToProxy);
  await readAgain();
  await says(page, strings.live);
  await page.close();
});

test("the browser's Back closes a dialog, and then goes to the part before", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  await page.goto(box.operatorUrl!);
  await isPart(page, "overview");
  await page.getByRole("tab", { name: strings.parts.sessions }).click();
  await page.getByRole("tab", { name: strings.parts.applications }).click();
  const create = page.getByRole("button", { name: strings.applications.create });
  const closed = () => expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await create.click();
  await page.goBack();
  await closed();
  await isPart(page, "applications");
  // Closed in another way, a dialog leaves no step behind.
  await create.click();
  await page.keyboard.press("Escape");
  await closed();
  await page.waitForFunction(() => history.state === null);
  await page.goBack();
  await isPart(page, "sessions");
  await page.goBack();
  await isPart(page, "overview");
  await page.goForward();
  await isPart(page, "sessions");
  await page.reload();
  await isPart(page, "sessions");
  await page.close();
});

test("a year that is being typed is not refused", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  await page.goto(`${box.operatorUrl}#sessions`);
  await isPart(page, "sessions");
  const answered = page.waitForResponse((response) => /\/operator\/v1\/sessions\?.*from=/.test(response.url()));
  await page.getByLabel(strings.sessions.from).fill("0002-03-04T05:06");
  expect((await answered).status()).toBe(200);
  await page.close();
});

test("after signing out on another page, Back shows nothing of the view", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  await page.goto(box.operatorUrl!);
  await isPart(page, "overview");
  await page.evaluate(() => {
    dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
  });
  expect(await page.textContent("body")).toBe("");
  // As when the browser shows the page that it kept.
  await page.evaluate(() => {
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
  });
  await isPart(page, "overview");
  await page.close();
});

test("an application is created once, also if its secret or the list does not arrive", {
  timeout: 120_000,
}, async () => {
  const words = strings.applications;
  const page = await context.newPage();
  await page.goto(`${box.operatorUrl}#applications`);
  await isPart(page, "applications");
  // The application that the box made at its first start.
  await page.locator("article").first().waitFor();
  const before = await page.locator("article").count();
  const cut = (route: Route) => route.abort();
  await page.route("**/secret", cut);
  await page.getByRole("button", { name: words.create }).click();
  const dialog = () => page.getByRole("dialog").last();
  await dialog().getByLabel(words.name, { exact: true }).fill("Branch");
  await dialog().getByRole("button", { name: words.create }).click();
  await says(page, strings.failed(strings.noAnswer));
  await expect.poll(() => page.getByRole("dialog").count(), soon).toBe(1);
  await dialog().getByRole("button", { name: strings.close }).click();
  await page.unroute("**/secret", cut);
  await expect.poll(() => page.locator("article").count(), soon).toBe(before + 1);
  // It can be deleted although the list is lost on the way back.
  const lost = (route: Route) => (route.request().method() === "GET" ? route.abort() : route.fallback());
  await page.route("**/management/v1/applications", lost);
  await page.getByRole("button", { name: words.deleteOf("Branch") }).click();
  await dialog().getByRole("button", { name: words.deleteYes }).click();
  await expect.poll(() => page.getByRole("dialog").count(), soon).toBe(0);
  await page.unroute("**/management/v1/applications", lost);
  await expect.poll(() => page.locator("article").count(), soon).toBe(before);
  await page.close();
});

test("scopes and the version that change meanwhile are shown without a reload", { timeout: 120_000 }, async () => {
  const page = await context.newPage();
  await page.goto(box.operatorUrl!);
  await isPart(page, "overview");
  await page.route(/\/operator\/v1\/box/, async (route) => {
    const response = await route.fetch();
    const found = (await response.json()) as { scopes: string[] };
    await route.fulfill({ response, json: { ...found, version: "99.0.0", scopes: [...found.scopes, "branch"] } });
  });
  await expect.poll(() => page.locator("#scope option").allTextContents(), soon).toContain("branch");
  await page.getByText("vivavoce 99.0.0", { exact: false }).waitFor(soon);
  await page.close();
});
