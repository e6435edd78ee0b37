/** The operator view in a real browser, against a real box with engine, tokens and sign-in. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { configSchema } from "../../dist/server/config.js";
import { type Box, startBox } from "../../dist/server/start.js";
import type { LastEvaluation } from "../../src/evaluate/last-evaluation.js";
import { languages as pages } from "../../src/token/interactive/strings.js";
import { nameOf, strings } from "../../src/web/operator/strings.js";
import { de } from "../../src/web/operator/words/de.js";
import { barriers, barriersEverywhere, launch, recordingOf } from "../chromium.js";
import { type ContractClient, overHttp } from "../server/contract-client.js";
import { enroll, openSession, verify } from "../server/workflows.js";

const anna = 1;
const bert = 24;
const artefacts = fileURLToPath(new URL("../../test-artefacts/web", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "vivavoce-operator-view-"));
const evaluationFile = join(folder, "last-evaluation.json");
const memberPassword = "not an owner at all";
/** Replaces the password that the box generated. */
const ownersPassword = "chosen by the owner";

let box: Box;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let client: ContractClient;
/** Of the first application. */
let token: string;
const complaints: string[] = [];
/** The owner's token, which the view sends. */
let authorization = "";

beforeAll(async () => {
  mkdirSync(artefacts, { recursive: true });
  box = await startBox(
    configSchema.parse({
      port: 0,
      store: "memory",
      log: { level: "silent" },
      evaluation: evaluationFile,
      limits: { concurrentAudio: 1 },
    }),
  );
  const { clientId, clientSecret } = box.firstApplication!;
  const { access_token } = (await (await tokenOf(clientId, clientSecret)).json()) as { access_token: string };
  token = access_token;
  client = overHttp(
    () => box.url,
    () => access_token,
  );
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1280, height: 1500 } });
  page = await opened(context);
  page.on("request", (request) => {
    authorization = request.headers().authorization ?? authorization;
  });
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await box?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function opened(of: BrowserContext): Promise<Page> {
  const one = await of.newPage();
  one.on("console", (message) => {
    // Errors from the box are shown on the page.
    if (message.type() === "error" && !/status of 40[034]/.test(message.text())) complaints.push(message.text());
  });
  one.on("pageerror", (error) => complaints.push(String(error)));
  return one;
}

async function tokenOf(clientId: string, clientSecret: string): Promise<Response> {
  return fetch(`${box.url}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${clientSecret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "bio" }),
  });
}

async function signIn(on: Page, name: string, password: string, { signIn: words } = pages.en): Promise<void> {
  await on.getByLabel(words.name).fill(name);
  await on.getByLabel(words.password).fill(password);
  await on.getByRole("button", { name: words.action }).click();
}

const rowsOf = (heading: string) => page.getByRole("table", { name: heading, exact: true }).locator("tbody tr");
const decisions = () => rowsOf(strings.decisions.heading);
const profiles = () => rowsOf(strings.parts.profiles);
const sessions = () => rowsOf(strings.parts.sessions);
/** Long enough for a busy machine. */
const soon = { timeout: 30_000 };
/** Search results come a moment after typing. */
const ownersAre = (...names: string[]) =>
  expect.poll(() => profiles().locator("td:first-child").allTextContents(), soon).toEqual(names);
const part = (name: keyof typeof strings.parts) => page.getByRole("tab", { name: strings.parts[name] }).click();
const dialog = () => page.getByRole("dialog").last();
const press = (name: string, exact = true) => dialog().getByRole("button", { name, exact }).click();
/** Closes the dialog that was opened last. */
const closed = async () => {
  const open = await page.getByRole("dialog").count();
  await press(strings.close);
  await page.waitForFunction((before) => document.querySelectorAll("dialog").length < before, open);
};
/** The page is accessible, whatever is open. */
const isClean = async (on = page) => expect(await barriersEverywhere(on)).toEqual([]);
const picture = (name: string) => page.screenshot({ path: join(artefacts, `${name}.png`), fullPage: true });
const takes = (speaker: number, take: number) => recordingOf(speaker, take, 5);

test("a visitor who is not signed in is sent to the sign-in page, and gets no data", async () => {
  expect((await fetch(`${box.url}/operator/v1/box`)).status).toBe(401);
  await page.goto(box.operatorUrl!);
  await page.waitForURL(/\/sign-in\?/);
  expect(await page.textContent("main")).toContain("the operator view");
});

test("an owner signs in, and finds an empty box", async () => {
  const { name, password } = box.firstOwner!;
  await signIn(page, name, password);
  await page.getByText(strings.account.signedInAs(name)).waitFor();
  expect(page.url()).toBe(`${box.operatorUrl}#overview`);
  await page.getByText(strings.decisions.none).waitFor();
  await page.getByText(strings.evaluation.none).waitFor();
  expect(await page.locator("figure svg").count()).toBe(3);
  await part("profiles");
  await page.getByText(strings.profiles.none).waitFor();
  await page.getByText(strings.watchlists.none).waitFor();
  await part("overview");
  // The token is only in the page's memory; the tab keeps no more than what it shows.
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  const place = JSON.stringify({ part: "overview", scope: "default" });
  expect(JSON.parse(kept)).toEqual([{}, { "vivavoce-place": place }, ""]);
  expect(await barriers(page)).toEqual([]);
});

test("decisions appear as they are made, together with load, profiles and watchlists", {
  timeout: 180_000,
}, async () => {
  const profileId = await enroll(client, takes, "anna", anna);
  expect(await verify(client, takes, "anna", anna)).toMatchObject({ decision: "DECISION_AUTHENTIC" });
  await decisions().getByText("Authentic", { exact: true }).waitFor();
  expect(await decisions().first().textContent()).toContain(profileId);
  expect(await verify(client, takes, "anna", bert)).toMatchObject({ decision: "DECISION_NO_MATCH" });
  await decisions().getByText("No match", { exact: true }).waitFor();
  expect(await decisions().count()).toBe(2);
  expect(await decisions().first().textContent()).toContain("No match");
  // The list may reach back days; risk and reliability have their scales.
  const [at, , , , risk, reliability] = await decisions().first().locator("td").allTextContents();
  expect(at).toMatch(/^\d{1,2} [A-Z][a-z]+, \d\d:\d\d:\d\d$/);
  expect(risk).toMatch(/^\d+ of 1000$/);
  expect(reliability).toMatch(/^\d+ of 100$/);

  const session = await openSession(client);
  const { gk_voiceprint_profile_id: fraudster } = await client.call("CreateVoiceprintProfile", {
    context: session,
    fraudster_id: "caller 7",
  });
  await client.call("CreateWatchlist", {
    context: session,
    tag: "known callers",
    gk_voiceprint_profile_ids: { unique_ids: [fraudster] },
  });
  for (let i = 0; i < 10; i++) {
    await client.call("CreateVoiceprintProfile", { context: session, person_id: `person ${i}` });
  }
  const latency = page.getByRole("img", { name: new RegExp(`^${strings.load.latencyPlot}; latest: median \\d`) });
  await latency.waitFor({ timeout: 30_000 });
  const factor = page.getByRole("img", { name: new RegExp(`^${strings.load.factor}; latest: median \\d`) });
  await factor.waitFor();
  expect(await latency.locator("circle").count()).toBeGreaterThan(0);

  await part("profiles");
  await profiles().getByText("caller 7").waitFor({ timeout: 30_000 });
  expect(await profiles().getByText("anna").count()).toBe(1);
  await rowsOf(strings.watchlists.heading).getByText("known callers").waitFor();

  // Twelve profiles make two pages; the keyboard turns them.
  expect(await profiles().count()).toBe(10);
  const pages = page.getByRole("navigation", { name: strings.pager.label(strings.parts.profiles) });
  await pages.getByRole("button", { name: strings.pager.next }).press("Enter");
  await pages.getByText(strings.pager.page(2)).waitFor();
  expect(await profiles().count()).toBe(2);
  await pages.getByRole("button", { name: strings.pager.previous }).press("Enter");
  await pages.getByText(strings.pager.page(1)).waitFor();
});

test("a live call is shown while it lasts, and disappears when it ends", async () => {
  await part("overview");
  const calls = page.getByRole("table", { name: strings.calls.heading });
  await calls.getByText(strings.calls.none).waitFor();
  const context = await openSession(client);
  const profile = await client.call("GetGkVoiceprintProfileId", { context, person_id: "anna" });
  const socket = new WebSocket(`${box.url.replace("http", "ws")}/v1/live`, ["vivavoce.live.v1", `bearer.${token}`]);
  await once(socket, "open");
  const { gk_voiceprint_profile_id } = profile;
  const parties = [{ name: "caller", ignore_checkpoints: true, verify: { gk_voiceprint_profile_id } }];
  socket.send(JSON.stringify({ start: { context, encoding: "pcm16", rate: 48_000, parties } }));
  // The samples of a WAV file without its 44 bytes of header.
  socket.send(takes(anna, 7).subarray(44));
  const row = calls.locator("tbody tr", { hasText: "websocket" });
  await row
    .getByText(/^[1-9]\.\d s$/)
    .first()
    .waitFor({ timeout: 30_000 });
  const ended = once(socket, "close");
  socket.send('{"end":{}}');
  await ended;
  await calls.getByText(strings.calls.none).waitFor({ timeout: 30_000 });
});

test("shows the last evaluation once there is one", async () => {
  const rate = (value: number) => ({ value, interval: { low: value / 2, high: 2 * value } });
  const steps = Array.from({ length: 60 }, (_, i) => 10 ** (-i / 15));
  const evaluation: LastEvaluation = {
    at: Date.UTC(2026, 10, 15, 9, 30),
    name: "branch recordings",
    condition: "as recorded",
    modelRevision: "another model",
    recordings: 400,
    speakers: 40,
    sameTrials: 360,
    differentTrials: 14_040,
    unscoredTrials: 3,
    equalErrorRate: rate(0.015),
    cllr: rate(0.07),
    operatingPoints: [{ falseMatchRate: 0.01, fnmr: rate(0.023), resolved: true }],
    curve: steps.map((fmr) => ({ fmr, fnmr: Math.min(1, 0.0002 / fmr) })),
  };
  writeFileSync(evaluationFile, JSON.stringify(evaluation));
  await page.getByRole("img", { name: /^Detection error trade-off/ }).waitFor({ timeout: 30_000 });
  const facts = (await page.textContent(".facts"))!;
  expect(facts).toContain("1.50 % (0.75 % to 3.00 %)");
  expect(facts).toContain("not the model of this box");
});

test("can be used in the dark, on a phone, and paused", { timeout: 120_000 }, async () => {
  await isClean();
  await picture("operator");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 844 });
  await picture("operator-phone-dark");
  await page.setViewportSize({ width: 1280, height: 1500 });
  await page.getByRole("button", { name: strings.pause }).press("Enter");
  await page.getByRole("status").getByText(strings.paused).waitFor();
  await page.getByRole("button", { name: strings.resume }).press("Enter");
  await page.getByRole("status").getByText(strings.live).waitFor();
});

test("finds profiles, and shows one in detail", { timeout: 120_000 }, async () => {
  await part("profiles");
  await isClean();
  const search = page.getByLabel(strings.idOrPerson);
  await search.fill("anna");
  await ownersAre("anna");
  // Screen readers announce it.
  const pages = page.getByRole("navigation", { name: strings.pager.label(strings.parts.profiles) });
  await pages.getByRole("status").getByText(strings.pager.rows(1)).waitFor();
  await profiles().getByRole("link").click();
  await dialog().getByText(nameOf("OPTIMAL_TRAINED")).waitFor();
  expect(await dialog().textContent()).toContain("vivavoce-2");
  expect(await dialog().getByRole("table", { name: strings.profile.enrolled }).locator("tbody tr").count()).toBe(3);
  await isClean();

  // Consent is withdrawn, and given again.
  await press(strings.profile.withdrawConsent);
  await dialog().getByLabel(strings.profile.reference).fill("form 7");
  await isClean();
  await press(strings.profile.withdrawConsent);
  await dialog().getByText(nameOf("WITHDRAWN")).waitFor();
  expect(await dialog().textContent()).toContain("form 7");
  await press(strings.profile.giveConsent);
  await isClean();
  await press(strings.profile.giveConsent);
  await dialog().getByText(nameOf("OPTIMAL_TRAINED")).waitFor();
  await closed();

  await search.fill("");
  await page.getByLabel(strings.profiles.columns[1]).selectOption("fraudster");
  await ownersAre("caller 7");
  await profiles().getByRole("link").click();
  await dialog().getByText("known callers").waitFor();
  await closed();
  await page.getByLabel(strings.profiles.columns[1]).selectOption("");
});

test("a profile is erased for good, after a question", { timeout: 120_000 }, async () => {
  const search = page.getByLabel(strings.idOrPerson);
  await search.fill("person 9");
  await ownersAre("person 9");
  await profiles().getByRole("link").click();
  await press(strings.profile.erase);
  await dialog().getByText(strings.profile.eraseHeading("person 9")).waitFor();
  await isClean();
  await press(strings.cancel);
  await press(strings.profile.erase);
  await press(strings.profile.eraseYes);
  await page.getByText(strings.profiles.none).waitFor();
  await search.fill("");

  // It is erased elsewhere while the table still shows it.
  await search.fill("person 8");
  await ownersAre("person 8");
  await page.getByRole("button", { name: strings.pause }).click();
  const id = (await profiles().getByRole("link").textContent())!;
  const path = `${box.url}/operator/v1/profiles/${id}?scope=default`;
  expect((await fetch(path, { method: "DELETE", headers: { authorization } })).status).toBe(204);
  await profiles().getByRole("link").click();
  await dialog().getByText(strings.profile.gone).waitFor();
  await isClean();
  await closed();
  await page.getByRole("button", { name: strings.resume }).click();
  await search.fill("");
});

test("finds sessions, and shows one with its checks and its audio", { timeout: 120_000 }, async () => {
  const context = await openSession(client);
  const { gk_media_segment_id } = await client.upload(context, takes(anna, 9));
  await client.call("AnalyzeAudio", {
    context,
    gk_media_segment_id,
    syntheticSpeechDetectionParameters: {},
    channelPlaybackDetectionParameters: {},
  });
  await part("sessions");
  await sessions().getByRole("link").first().waitFor();
  await isClean();
  const decision = page.getByLabel(strings.sessions.columns[3]);
  await decision.selectOption("NO_MATCH");
  await expect.poll(() => sessions().count(), soon).toBe(1);
  // A session without checks is named in the table as in the filter, and as in its details.
  await decision.selectOption("UNSPECIFIED");
  const named = async () => new Set(await sessions().locator(".badge").allTextContents());
  await expect.poll(named, soon).toEqual(new Set([nameOf("UNSPECIFIED")]));
  await decision.selectOption("");
  await page.getByLabel(strings.idOrPerson).fill("anna");
  await sessions().getByText("anna").first().waitFor();
  const until = page.getByLabel(strings.sessions.until);
  await until.fill("2020-01-01T00:00");
  await page.getByText(strings.sessions.none).waitFor();
  await until.fill("");
  await page.getByLabel(strings.idOrPerson).fill("");
  await expect.poll(() => sessions().count(), soon).toBeGreaterThan(3);

  // The newest has both attack checks, with the stretch that sounds most like an attack.
  await sessions().getByRole("link").first().click();
  const checks = dialog().getByRole("table", { name: strings.sessions.columns[6] });
  await checks.getByText(/^Synthetic speech: ratio .*strongest at \d/).waitFor();
  await checks.getByText(/^Playback: ratio /).waitFor();
  const audio = dialog().getByRole("table", { name: strings.session.audio });
  await audio.getByText(nameOf("AUDIO_OK")).waitFor();
  await isClean();
  await closed();

  // Go from a profile to its owner's sessions.
  await part("profiles");
  await profiles().getByRole("link").first().click();
  await press(strings.profile.sessions);
  await sessions().first().waitFor();
  expect(await page.getByLabel(strings.idOrPerson).inputValue()).not.toBe("");
});

test("a profile or session is a link: it opens in another tab, and from an address that somebody sent", {
  timeout: 120_000,
}, async () => {
  await part("sessions");
  const address = (await sessions().getByRole("link").first().getAttribute("href"))!;
  const id = address.split("/").at(-1)!;
  // Other rows must not come before it meanwhile.
  await page.getByLabel(strings.idOrPerson).fill(id);
  await expect.poll(() => sessions().count(), soon).toBe(1);
  const link = sessions().locator(`a[href="${address}"]`);
  const [other] = await Promise.all([context.waitForEvent("page"), link.click({ button: "middle" })]);
  const opens = async (on: Page) => {
    await on.getByRole("dialog").getByText(strings.sessions.columns[6]).first().waitFor(soon);
    expect(await on.getByRole("dialog").textContent()).toContain(id);
    await on.getByRole("tab", { name: strings.parts.sessions, selected: true }).waitFor();
  };
  await opens(other);
  // The dialog is in the tab that was opened, and not opened again by a reload.
  expect(await page.getByRole("dialog").count()).toBe(0);
  await other.reload();
  await other.getByRole("tab", { name: strings.parts.sessions, selected: true }).waitFor();
  expect(await other.getByRole("dialog").count()).toBe(0);
  // The same address in a tab that shows another part.
  await other.getByRole("tab", { name: strings.parts.overview }).click();
  await other.evaluate((hash) => {
    location.hash = hash;
  }, address);
  await opens(other);
  expect(await barriers(other)).toEqual([]);
  await other.close();
  await page.getByLabel(strings.idOrPerson).fill("");
});

test("creates, renames and deletes applications and their credentials", { timeout: 300_000 }, async () => {
  const words = strings.applications;
  const scopes = () => page.locator("#scope option").allTextContents();
  await part("applications");
  await page.getByRole("button", { name: words.create }).click();
  await dialog().getByLabel(words.name, { exact: true }).fill("Branch");
  await dialog().getByLabel(words.clientColumns[2]).fill("branch");
  await isClean();
  await press(words.create);
  await dialog().getByText(words.secretOnce).waitFor();
  await isClean();
  const [clientId, secret] = await dialog().locator("dd code").allTextContents();
  expect((await tokenOf(clientId!, secret!)).status).toBe(200);
  await closed();
  // The secret is shown once and is no longer in the page. The view has the new scope.
  expect(await page.content()).not.toContain(secret);
  await expect.poll(scopes, soon).toEqual(["branch", "default"]);

  const article = page.locator("article", { hasText: "Branch" });
  await article.getByRole("button", { name: words.addClientOf("Branch") }).click();
  await dialog().getByLabel(words.clientName).fill("not a name");
  await press(words.addClient);
  await dialog().getByRole("alert").getByText(strings.failed(strings.refusals.clientIdPart)).waitFor();
  await isClean();
  await dialog().getByLabel(words.clientName).fill("ivr");
  await press(words.addClient);
  await dialog().getByText(words.secretOnce).waitFor();
  await closed();
  expect(await article.locator("tbody tr").count()).toBe(2);
  await isClean();

  await article.getByRole("button", { name: words.secretOf("default") }).click();
  await isClean();
  await press(words.secretYes);
  await dialog().getByText(words.secretOnce).waitFor();
  const renewed = (await dialog().locator("dd code").allTextContents())[1]!;
  await closed();
  expect((await tokenOf(clientId!, secret!)).status).toBe(401);
  expect((await tokenOf(clientId!, renewed)).status).toBe(200);

  await article.getByRole("button", { name: words.scopesOf("default") }).click();
  await dialog().getByLabel(words.clientColumns[2]).fill("north\nsouth");
  await isClean();
  await press(strings.save);
  await article.getByText("north, south").waitFor();
  await expect.poll(scopes, soon).toEqual(["default", "north", "south"]);
  await article.getByRole("button", { name: words.deleteClientOf("ivr") }).click();
  await isClean();
  await press(words.deleteYes);
  await article.getByText("ivr", { exact: true }).waitFor({ state: "detached" });
  expect(await article.getByRole("button", { name: words.deleteClientOf("default") }).count()).toBe(0);

  await article.getByRole("button", { name: words.renameOf("Branch") }).click();
  await dialog().getByLabel(words.name, { exact: true }).fill("Branch office");
  await isClean();
  await press(strings.save);
  const renamed = page.locator("article", { hasText: "Branch office" });
  await renamed.getByRole("button", { name: words.deleteOf("Branch office") }).click();
  await isClean();
  await press(words.deleteYes);
  await renamed.waitFor({ state: "detached" });
  expect((await tokenOf(clientId!, renewed)).status).toBe(401);
});

test("hundreds of applications are shown page by page, newest first, and searched", { timeout: 120_000 }, async () => {
  const words = strings.applications;
  const headers = { authorization, "content-type": "application/json" };
  const create = (name: string, gkScopes: string[]) =>
    fetch(`${box.url}/management/v1/applications`, {
      method: "POST",
      headers,
      body: JSON.stringify({ name, environment: "test", geography: "eu", gkScopes }),
    });
  for (let i = 0; i < 10; i++) await create(`Office ${i}`, i === 3 ? ["harbour"] : []);
  // A name that would turn the text after it around, for example the question whether to delete it.
  await create("Office\u202e 10", []);
  const headings = () => page.locator("article h3").allTextContents();
  const newest = ["Office\ufffd 10 test", ...[9, 8, 7, 6, 5, 4, 3, 2, 1].map((i) => `Office ${i} test`)];
  await expect.poll(headings, soon).toEqual(newest);
  await isClean();
  const pages = page.getByRole("navigation", { name: strings.pager.label(strings.parts.applications) });
  await pages.getByRole("button", { name: strings.pager.next }).press("Enter");
  await expect.poll(headings, soon).toEqual(["Office 0 test", "vivavoce production"]);
  const search = page.getByLabel(words.search);
  await search.fill("harb");
  await expect.poll(headings, soon).toEqual(["Office 3 test"]);
  await search.fill("no such");
  await page.getByText(words.none).waitFor();
  await search.fill("");
  await expect.poll(headings, soon).toEqual(newest);
  await page.getByRole("button", { name: words.deleteOf("Office\ufffd 10") }).click();
  await dialog().getByText(words.deleteHeading("Office\ufffd 10")).waitFor();
  await press(words.deleteYes);
  await expect.poll(headings, soon).toEqual([...newest.slice(1), "Office 0 test"]);
});

test("changes the password, and stays signed in", { timeout: 120_000 }, async () => {
  const words = strings.account;
  const { name, password } = box.firstOwner!;
  await page.getByRole("button", { name: words.changePassword }).click();
  // A password manager must know whose password it keeps.
  expect(await dialog().locator("[autocomplete=username]").inputValue()).toBe(name);
  expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).autocomplete)).toBe("current-password");
  const fill = async (current: string, next: string, repeated: string) => {
    await dialog().getByLabel(words.current).fill(current);
    await dialog().getByLabel(words.password, { exact: true }).fill(next);
    await dialog().getByLabel(words.repeated).fill(repeated);
    await press(words.changePassword);
  };
  await isClean();
  await fill(password, ownersPassword, "something else");
  await dialog().getByRole("alert").getByText(strings.failed(strings.refusals.passwordsDiffer)).waitFor();
  await isClean();
  await fill("a wrong guess", ownersPassword, ownersPassword);
  await dialog().getByRole("alert").getByText(strings.failed(strings.refusals.wrongPassword)).waitFor();
  await fill(password, ownersPassword, ownersPassword);
  await page.getByText(words.changed).waitFor();
  await page.reload();
  await page.getByText(words.signedInAs(name)).waitFor();
});

test("a reload signs in by itself, and stays where it was", async () => {
  await part("sessions");
  await page.reload();
  await page.getByRole("tab", { name: strings.parts.sessions, selected: true }).waitFor();
  await part("overview");
  await decisions().getByText("Authentic", { exact: true }).first().waitFor();
  expect(page.url()).toBe(`${box.operatorUrl}#overview`);
});

test("a session that ends keeps what is typed into a dialog; afterwards the view signs in again, where it was", {
  timeout: 120_000,
}, async () => {
  const words = strings.applications;
  const other = await context.newPage();
  await other.clock.install();
  await other.goto(box.operatorUrl!);
  await other.getByRole("tab", { name: strings.parts.applications }).click();
  await other.getByRole("button", { name: words.create }).click();
  const name = other.getByRole("dialog").getByLabel(words.name, { exact: true });
  await name.fill("Half typed");
  const ended = (url: URL) => /^\/(operator|management)\/v1\//.test(url.pathname);
  await other.route(ended, (route) => route.fulfill({ status: 401, json: {} }));
  // A token that is refused sooner would not lead to signing in again.
  await other.clock.fastForward(20_000);
  await other.getByText(strings.lost(strings.refusals.sessionEnded)).waitFor(soon);
  expect(await name.inputValue()).toBe("Half typed");
  await other.unroute(ended);
  await other.reload();
  await other.getByRole("tab", { name: strings.parts.applications, selected: true }).waitFor();
  await other.close();
});

test("a user who is not an owner is rejected, and can sign in as another user", { timeout: 120_000 }, async () => {
  const created = await fetch(`${box.url}/management/v1/users`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ name: "mia", role: "member", password: memberPassword }),
  });
  expect(created.status).toBe(201);
  const other = await browser.newContext();
  const theirs = await opened(other);
  await theirs.goto(box.operatorUrl!);
  await signIn(theirs, "mia", memberPassword);
  await theirs.getByText(strings.refusals.ownersOnly).waitFor();
  expect(await theirs.locator("table").count()).toBe(0);
  expect(await barriers(theirs)).toEqual([]);
  await theirs.getByRole("button", { name: strings.signIn.asSomebodyElse }).click();
  await signIn(theirs, box.firstOwner!.name, ownersPassword);
  await theirs.getByText(strings.account.signedInAs(box.firstOwner!.name)).waitFor();
  await other.close();
});

test("speaks the browser's language", { timeout: 180_000 }, async () => {
  const other = await browser.newContext({ locale: "de-AT", viewport: { width: 1280, height: 900 } });
  const theirs = await opened(other);
  await theirs.goto(box.operatorUrl!);
  await signIn(theirs, box.firstOwner!.name, ownersPassword, pages.de);
  await theirs.getByRole("heading", { name: de.decisions.heading }).waitFor();
  expect(await theirs.getAttribute("html", "lang")).toBe("de");
  expect(await theirs.title()).toBe(de.title);
  for (const tab of Object.values(de.parts)) {
    await theirs.getByRole("tab", { name: tab }).click();
    await isClean(theirs);
  }
  // Also for errors from the box.
  await theirs.getByRole("button", { name: de.applications.create }).click();
  const asked = theirs.getByRole("dialog");
  await asked.getByLabel(de.applications.name, { exact: true }).fill("Filiale");
  await asked.getByLabel(de.applications.clientColumns[2]).fill("straße");
  await asked.getByRole("button", { name: de.applications.create }).click();
  await asked.getByRole("alert").getByText(de.failed(de.refusals.scopeIds)).waitFor();
  await other.close();
});

test("signs out for good", { timeout: 120_000 }, async () => {
  const words = strings.account;
  const used = authorization;
  // Another tab, with a token of its own.
  const other = await opened(context);
  let usedThere = "";
  other.on("request", (request) => {
    usedThere = request.headers().authorization ?? usedThere;
  });
  await other.goto(box.operatorUrl!);
  await other.getByRole("tab", { name: strings.parts.profiles }).click();
  let times = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/me/sign-out")) times++;
  });
  await page.getByRole("button", { name: words.signOut }).dblclick();
  await page.getByText(words.signedOut).waitFor();
  expect(times).toBe(1);
  await other.getByText(words.signedOut).waitFor();
  expect(await other.locator("table").count()).toBe(0);
  const status = async () =>
    (await fetch(`${box.url}/operator/v1/box`, { headers: { authorization: usedThere } })).status;
  await expect.poll(status, soon).toBe(401);
  await other.close();
  await isClean();
  const asked = await fetch(`${box.url}/operator/v1/box`, { headers: { authorization: used } });
  expect(asked.status).toBe(401);
  await page.getByRole("button", { name: strings.signIn.again }).click();
  await page.waitForURL(/\/sign-in\?/);
  await signIn(page, box.firstOwner!.name, ownersPassword);
  await page.getByText(words.signedInAs(box.firstOwner!.name)).waitFor();
});

test("a code from a sign-in that did not start here is not redeemed", async () => {
  const other = await browser.newContext();
  const theirs = await opened(other);
  await theirs.goto(`${box.operatorUrl}?code=stolen&state=guessed`);
  await theirs.getByText(strings.signIn.failed(strings.refusals.signInExpired)).waitFor();
  expect(theirs.url()).toBe(box.operatorUrl);
  await other.close();
});

test("the content security policy blocked nothing, and nothing failed", () => {
  expect(complaints).toEqual([]);
});
