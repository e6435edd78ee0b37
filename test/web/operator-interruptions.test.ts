/** The operator view when rows disappear under the keyboard, the network is slow or away, the session ends, or the page is reloaded. */
import type { Browser, BrowserContext, Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configSchema } from "../../dist/server/config.js";
import { type Box, startBox } from "../../dist/server/start.js";
import type { OperatorAnswers, ProfileView } from "../../src/server/operator/view.js";
import { languages as pages } from "../../src/token/interactive/strings.js";
import { strings } from "../../src/web/operator/strings.js";
import { launch } from "../chromium.js";

/** The box is real. Where a test needs rows or trouble, it answers in place of the box. */
let box: Box;
let browser: Browser;
let context: BrowserContext;
let page: Page;

const scopes = ["first", "second"];
const longId = "W".repeat(128);
let people = ["ada", "bert", longId];
const profileOf = (ownerId: string): ProfileView => ({
  id: `id-of-${ownerId}`,
  kind: "person",
  ownerId,
  tag: "",
  state: "BASIC_TRAINED",
  printVersion: 1,
  netSpeechSeconds: 12.3,
  createdAt: Date.UTC(2026, 0, 2),
});
let consent: OperatorAnswers["profile"]["consent"] = null;
const detailOf = (ownerId: string): OperatorAnswers["profile"] => ({
  ...profileOf(ownerId),
  printType: null,
  model: null,
  snrDb: 30,
  bandwidthHz: 8000,
  consent,
  enrolled: [],
  learned: [],
  lists: [],
});

async function answer(route: Route): Promise<void> {
  const { pathname, searchParams } = new URL(route.request().url());
  const [, , , kind, id] = pathname.split("/").map(decodeURIComponent);
  const owner = people.find((one) => id === `id-of-${one}`);
  if (kind === "box") {
    const response = await route.fetch();
    return route.fulfill({ response, json: { ...(await response.json()), scopes } });
  }
  if (kind === "profiles" && id === undefined) {
    const rows = searchParams.get("scope") === "first" ? people.map(profileOf) : [profileOf("somebody else")];
    return route.fulfill({ json: { rows, next: null } });
  }
  if (kind !== "profiles" || owner === undefined) return route.fallback();
  if (route.request().method() === "DELETE") people = people.filter((one) => one !== owner);
  if (route.request().method() === "PUT") consent = { state: "given", at: Date.UTC(2026, 0, 3), reference: "" };
  return route.request().method() === "GET" ? route.fulfill({ json: detailOf(owner) }) : route.fulfill({ status: 204 });
}

beforeAll(async () => {
  box = await startBox(configSchema.parse({ port: 0, store: "memory", log: { level: "silent" } }));
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, timezoneId: "America/St_Johns" });
  page = await context.newPage();
  await page.clock.install();
  await page.route("**/operator/v1/**", answer);
  await page.goto(box.operatorUrl!);
  await signIn();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await box?.stop();
});

async function signIn(): Promise<void> {
  const { name, password } = box.firstOwner!;
  const { signIn: words } = pages.en;
  await page.getByLabel(words.name).fill(name);
  await page.getByLabel(words.password).fill(password);
  await page.getByRole("button", { name: words.action }).click();
  await page.getByText(strings.account.signedInAs(name)).waitFor();
}

/** The view reads its tables every ten seconds. operator-troubles waits for that; here the clock is set forward. */
const readAgain = () => page.clock.fastForward(10_000);
/** Long enough for a busy machine. */
const soon = { timeout: 30_000 };
const tab = (name: keyof typeof strings.parts) => page.getByRole("tab", { name: strings.parts[name] });
const table = (name: string) => page.getByRole("table", { name, exact: true });
const profiles = () => table(strings.parts.profiles).locator("tbody tr");
const linkOf = (owner: string) =>
  page.getByRole("link", { name: `${strings.profiles.columns[7]} id-of-${owner}`, exact: true });
const dialogs = (count: number) => expect.poll(() => page.getByRole("dialog").count(), soon).toBe(count);
const inDialog = (name: string) => page.getByRole("dialog").last().getByRole("button", { name, exact: true });
/** The name and the role of what has the focus, as a screen reader says it. */
const focused = () =>
  page.evaluate(() => {
    const { localName, id, textContent, ariaLabel } = document.activeElement!;
    return id === "" ? `${localName} ${ariaLabel ?? textContent}` : `#${id}`;
  });

test("the focus stays on a row while the table is redrawn", { timeout: 120_000 }, async () => {
  await tab("profiles").click();
  await linkOf("bert").focus();
  people = ["zoe", ...people];
  await readAgain();
  await linkOf("zoe").waitFor(soon);
  await expect.poll(focused, soon).toBe(`a ${strings.profiles.columns[7]} id-of-bert`);
});

test("after a dialog the focus is where it was, or near it if that is gone", { timeout: 120_000 }, async () => {
  await linkOf("bert").press("Enter");
  await inDialog(strings.profile.giveConsent).press("Enter");
  await inDialog(strings.profile.giveConsent).press("Enter");
  // The dialog shows the consent at once, and stays the same dialog.
  await page.getByText(strings.profile.consents.given, { exact: false }).first().waitFor();
  await dialogs(1);
  await expect.poll(() => page.evaluate(() => document.activeElement!.closest("dialog") !== null), soon).toBe(true);
  await page.keyboard.press("Escape");
  await dialogs(0);
  await expect.poll(focused, soon).toBe(`a ${strings.profiles.columns[7]} id-of-bert`);
  // Somebody else erases the row behind the dialog.
  await linkOf("zoe").press("Enter");
  await inDialog(strings.profile.erase).waitFor();
  people = people.filter((one) => one !== "zoe");
  await readAgain();
  await expect.poll(() => profiles().count(), soon).toBe(people.length);
  await page.keyboard.press("Escape");
  await dialogs(0);
  await expect.poll(focused, soon).toBe("#part");
  // A profile is erased by keyboard: the focus goes to the table that it was in.
  await linkOf("bert").press("Enter");
  await inDialog(strings.profile.erase).press("Enter");
  await inDialog(strings.profile.eraseYes).press("Enter");
  await dialogs(0);
  await expect.poll(() => profiles().count(), soon).toBe(people.length);
  await expect.poll(focused, soon).toBe(`table ${strings.parts.profiles}`);
});

test("another scope never shows the rows of the one before, also if the box does not answer", {
  timeout: 120_000,
}, async () => {
  let fail = () => {};
  const failed = new Promise<void>((resolve) => {
    fail = resolve;
  });
  const cut = async (route: Route) => {
    await failed;
    await route.abort();
  };
  await page.route("**/operator/v1/profiles?*", cut);
  await page.getByLabel(strings.scope, { exact: true }).selectOption("second");
  await expect.poll(() => profiles().allTextContents(), soon).toEqual([strings.loading]);
  fail();
  await expect.poll(() => profiles().allTextContents(), soon).toEqual([strings.lost(strings.noAnswer)]);
  await page.unroute("**/operator/v1/profiles?*", cut);
  await readAgain();
  await linkOf("somebody else").waitFor(soon);
  await page.getByLabel(strings.scope, { exact: true }).selectOption("first");
  await linkOf("ada").waitFor(soon);
});

test("a long id fits a phone, also in the question whether to erase it", { timeout: 120_000 }, async () => {
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  for (const width of [320, 390, 1280]) {
    await page.setViewportSize({ width, height: 1000 });
    for (const name of ["overview", "sessions", "applications", "profiles"] as const) {
      await tab(name).click();
      if (name === "profiles") await linkOf(longId).waitFor(soon);
      expect(await wide(), `${name} at ${width} px`).toBe(0);
    }
    await linkOf(longId).click();
    await inDialog(strings.profile.erase).click();
    const { x, width: size } = (await inDialog(strings.close).boundingBox())!;
    expect(x + size, `the dialog at ${width} px`).toBeLessThan(width);
    await page.keyboard.press("Escape");
    await dialogs(1);
    await page.keyboard.press("Escape");
    await dialogs(0);
  }
});

test("the question whether to erase somebody can be answered on a small screen, whatever the name", {
  timeout: 120_000,
}, async () => {
  const backwards = "\u202ebackwards";
  people = [...people, backwards];
  await readAgain();
  // A screen of 1280 x 1024 at 400 %.
  await page.setViewportSize({ width: 320, height: 256 });
  // A character that turns text around is shown as one, in the table and in the question.
  const shown = { [longId]: longId, [backwards]: "\ufffdbackwards" };
  for (const [owner, name] of Object.entries(shown)) {
    await linkOf(owner).click();
    await inDialog(strings.profile.erase).click();
    await page.getByRole("heading", { name: strings.profile.eraseHeading(name) }).waitFor();
    // Not covered by the heading.
    await inDialog(strings.profile.eraseYes).click({ trial: true, timeout: 10_000 });
    await page.keyboard.press("Escape");
    await dialogs(1);
    await page.keyboard.press("Escape");
    await dialogs(0);
    expect(await profiles().locator(".name").allTextContents()).toContain(name);
  }
  await page.setViewportSize({ width: 1280, height: 1000 });
  people = people.filter((one) => one !== backwards);
});

test("filters are kept by a reload, and forgotten by signing out", { timeout: 120_000 }, async () => {
  await page.getByLabel(strings.idOrPerson).fill("ad");
  await page.getByLabel(strings.profiles.columns[3]).selectOption("OBSOLETE");
  await page.waitForRequest((request) => /profiles\?.*state=OBSOLETE/.test(request.url()));
  await tab("sessions").click();
  await page.getByLabel(strings.sessions.until).fill("2026-03-01T10:05");
  await page.waitForRequest((request) => /sessions\?.*until=/.test(request.url()));
  const asked = page.waitForRequest((request) => /\/operator\/v1\/sessions\?/.test(request.url()));
  await page.reload();
  // The minute that was entered is included, in the reader's time zone (3.5 hours behind UTC).
  expect(new URL((await asked).url()).searchParams.get("until")).toBe(String(Date.UTC(2026, 2, 1, 13, 36)));
  expect(await page.getByLabel(strings.sessions.until).inputValue()).toBe("2026-03-01T10:05");
  const searched = page.waitForRequest((request) => /\/operator\/v1\/profiles\?/.test(request.url()));
  await tab("profiles").click();
  const { searchParams } = new URL((await searched).url());
  expect([searchParams.get("search"), searchParams.get("state")]).toEqual(["ad", "OBSOLETE"]);
  await page.getByRole("button", { name: strings.account.signOut }).click();
  await page.getByText(strings.account.signedOut).waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  await page.getByRole("button", { name: strings.signIn.again }).click();
  await signIn();
});

test("a search goes on by itself until it finds something, and is not repeated from the beginning", {
  timeout: 120_000,
}, async () => {
  const asked: string[] = [];
  const row = { ...profileOf("far away"), type: "IVR", externalId: "", startedAt: 0, stoppedAt: 1, checkCount: 0 };
  const far = { ...row, person: "far away", matchedPerson: "", decision: "FRAUD", reason: "", risk: 1, reliability: 1 };
  const search = (route: Route) => {
    const after = new URL(route.request().url()).searchParams.get("after")!;
    asked.push(after);
    const at = Number(after);
    return route.fulfill({ json: { rows: at === 4 ? [far] : [], next: at === 9 ? null : String(at + 1) } });
  };
  await tab("sessions").click();
  await page.route("**/operator/v1/sessions?*", search);
  await page.getByLabel(strings.idOrPerson).fill("far");
  const rows = table(strings.parts.sessions).locator("tbody tr");
  await rows.getByText("far away", { exact: true }).waitFor(soon);
  await page.getByText(strings.pager.page(1)).waitFor();
  expect(asked.splice(0)).toEqual(["", "1", "2", "3", "4"]);
  // The next poll also finds what is new at the beginning.
  await readAgain();
  await expect.poll(() => asked, soon).toEqual(["", "4"]);
  asked.length = 0;
  await page.getByRole("button", { name: strings.pager.next }).click();
  await rows.getByText(strings.sessions.none).waitFor(soon);
  expect(asked).toEqual(["5", "6", "7", "8", "9"]);
  await page.unroute("**/operator/v1/sessions?*", search);
  await page.getByLabel(strings.idOrPerson).fill("");
  await tab("overview").click();
});

test("a session that ends is renewed once, however many requests are refused on a slow network, also behind details", {
  timeout: 120_000,
}, async () => {
  await tab("profiles").click();
  await linkOf("ada").click();
  await inDialog(strings.profile.erase).waitFor();
  const begun: string[] = [];
  const isBeginning = (url: URL) => url.pathname === "/oauth2/authorize";
  await page.route(isBeginning, async (route) => {
    begun.push(new URL(route.request().url()).searchParams.get("state")!);
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    await route.continue();
  });
  // A token that is refused soon after it was issued would not lead to signing in again.
  await page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 60_000;
  });
  const refuse = (route: Route) => route.fulfill({ status: 401, json: {} });
  await page.route("**/operator/v1/**", refuse);
  page.once("framenavigated", () => void page.unroute("**/operator/v1/**", refuse));
  await readAgain();
  await page.waitForRequest((request) => new URL(request.url()).pathname === "/oauth2/token", soon);
  await linkOf("ada").waitFor(soon);
  await dialogs(0);
  expect(begun).toHaveLength(1);
});

test("nothing stays on the screen of a user who is no longer an owner", { timeout: 120_000 }, async () => {
  await tab("profiles").click();
  await linkOf("ada").click();
  const forbid = (route: Route) =>
    route.fulfill({ status: 403, json: { error: "access_denied", refusal: "ownersOnly" } });
  await page.route("**/operator/v1/**", forbid);
  await readAgain();
  await page.getByText(strings.refusals.ownersOnly, { exact: true }).waitFor(soon);
  expect(await page.locator("table, dialog").count()).toBe(0);
  await page.getByRole("button", { name: strings.signIn.asSomebodyElse }).waitFor();
  await page.unroute("**/operator/v1/**", forbid);
  await page.goto(box.operatorUrl!);
  await tab("profiles").click();
});

test("a request that is refused while the session is being ended does not lead to a new sign-in", {
  timeout: 120_000,
}, async () => {
  await page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 60_000;
  });
  let refused = () => {};
  const poll = new Promise<void>((resolve) => {
    refused = resolve;
  });
  await page.route("**/management/v1/me/sign-out", async (route) => {
    await page.route("**/operator/v1/**", (polled) => polled.fulfill({ status: 401, json: {} }).then(refused));
    await readAgain();
    await poll;
    await route.continue();
  });
  await page.getByRole("button", { name: strings.account.signOut }).click();
  await page.getByText(strings.account.signedOut).waitFor(soon);
  expect(new URL(page.url()).pathname).toBe(new URL(box.operatorUrl!).pathname);
});
