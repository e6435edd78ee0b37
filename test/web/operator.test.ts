/** The operator view in a real browser, against a real box: engine, tokens, sign-in and all. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { configSchema } from "../../dist/server/config.js";
import { type Box, startBox } from "../../dist/server/start.js";
import { keepLastEvaluation } from "../../src/evaluate/last-evaluation.js";
import { strings } from "../../src/web/operator/strings.js";
import { launch, recordingOf, seriousViolations } from "../chromium.js";
import { type ContractClient, overHttp } from "../server/contract-client.js";
import { enroll, openSession, verify } from "../server/workflows.js";

const anna = 1;
const bert = 24;
const artefacts = fileURLToPath(new URL("../../test-artefacts/web", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "vivavoce-operator-view-"));
const evaluationFile = join(folder, "last-evaluation.json");
const memberPassword = "not an owner at all";

let box: Box;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let client: ContractClient;
/** Of the first application. */
let token: string;
const complaints: string[] = [];
/** What the view asked with: the owner's token. */
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
  const answer = await fetch(`${box.url}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${clientSecret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "bio" }),
  });
  const { access_token } = (await answer.json()) as { access_token: string };
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
    if (message.type() === "error" && !/status of 403/.test(message.text())) complaints.push(message.text());
  });
  one.on("pageerror", (error) => complaints.push(String(error)));
  return one;
}

async function signIn(on: Page, name: string, password: string): Promise<void> {
  await on.getByLabel("User name").fill(name);
  await on.getByLabel("Password").fill(password);
  await on.getByRole("button", { name: "Sign in" }).click();
}

const decisions = () => page.getByRole("region", { name: strings.decisions.heading }).locator("tbody tr");
const profiles = () => page.getByRole("region", { name: strings.profiles.heading }).locator("tbody tr");
const picture = (name: string) => page.screenshot({ path: join(artefacts, `${name}.png`), fullPage: true });
const takes = (speaker: number, take: number) => recordingOf(speaker, take, 5);

test("who is not signed in is sent to the sign-in page, and gets no datum", async () => {
  expect((await fetch(`${box.url}/operator/v1/box`)).status).toBe(401);
  await page.goto(box.operatorUrl!);
  await page.waitForURL(/\/oauth2\/interaction\//);
  expect(await page.textContent("main")).toContain("the operator view");
});

test("an owner signs in, and finds an empty box", async () => {
  const { name, password } = box.firstOwner!;
  await signIn(page, name, password);
  await page.getByText(strings.signedInAs(name)).waitFor();
  expect(page.url()).toBe(box.operatorUrl);
  await page.getByText(strings.decisions.none).waitFor();
  await page.getByText(strings.profiles.none).waitFor();
  await page.getByText(strings.watchlists.none).waitFor();
  await page.getByText(strings.evaluation.none).waitFor();
  expect(await page.locator("figure svg").count()).toBe(3);
  // The token is in the page's memory alone.
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  expect(kept).toBe('[{},{},""]');
  expect(await seriousViolations(page)).toEqual([]);
});

test("decisions appear as they are made, beside load, profiles and watchlists", { timeout: 180_000 }, async () => {
  const profileId = await enroll(client, takes, "anna", anna);
  expect(await verify(client, takes, "anna", anna)).toMatchObject({ decision: "DECISION_AUTHENTIC" });
  await decisions().getByText("Authentic", { exact: true }).waitFor();
  expect(await decisions().first().textContent()).toContain(profileId);
  expect(await verify(client, takes, "anna", bert)).toMatchObject({ decision: "DECISION_NO_MATCH" });
  await decisions().getByText("No match", { exact: true }).waitFor();
  expect(await decisions().count()).toBe(2);
  expect(await decisions().first().textContent()).toContain("No match");

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
  await profiles().getByText("caller 7").waitFor({ timeout: 30_000 });
  expect(await profiles().getByText("anna").count()).toBe(1);
  await page.getByRole("region", { name: strings.watchlists.heading }).getByText("known callers").waitFor();

  // Twelve profiles are two pages, turned by keyboard.
  expect(await profiles().count()).toBe(10);
  const pages = page.getByRole("navigation", { name: strings.pager.label(strings.profiles.heading) });
  await pages.getByRole("button", { name: strings.pager.next }).press("Enter");
  await pages.getByText(strings.pager.page(2)).waitFor();
  expect(await profiles().count()).toBe(2);
  await pages.getByRole("button", { name: strings.pager.previous }).press("Enter");
  await pages.getByText(strings.pager.page(1)).waitFor();

  const latency = page.getByRole("img", { name: new RegExp(`^${strings.load.latencyPlot}; latest: median \\d`) });
  await latency.waitFor({ timeout: 30_000 });
  const factor = page.getByRole("img", { name: new RegExp(`^${strings.load.factorPlot}; latest: median 0\\.\\d`) });
  await factor.waitFor();
  expect(await latency.locator("circle").count()).toBeGreaterThan(0);
});

test("a live call is shown while it is spoken, and goes when it ends", async () => {
  const calls = page.getByRole("region", { name: strings.calls.heading });
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
  await keepLastEvaluation(evaluationFile, {
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
  });
  await page.getByRole("img", { name: /^Detection error trade-off/ }).waitFor({ timeout: 30_000 });
  const facts = (await page.textContent(".facts"))!;
  expect(facts).toContain("1.50 % (0.75 % to 3.00 %)");
  expect(facts).toContain("not this box’s");
});

test("is usable in the dark, on a phone, and paused", async () => {
  expect(await seriousViolations(page)).toEqual([]);
  await picture("operator");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await seriousViolations(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await picture("operator-phone-dark");
  await page.getByRole("button", { name: strings.pause }).press("Enter");
  await page.getByRole("status").getByText(strings.paused).waitFor();
  await page.getByRole("button", { name: strings.resume }).press("Enter");
  await page.getByRole("status").getByText(strings.live).waitFor();
});

test("a reload signs in by itself", async () => {
  await page.reload();
  await decisions().getByText("Authentic", { exact: true }).first().waitFor();
  expect(page.url()).toBe(box.operatorUrl);
});

test("a user who is no owner is refused, and can give way to one", async () => {
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
  await theirs.getByText(strings.signIn.refused("only owners may see this")).waitFor();
  expect(await theirs.locator("table").count()).toBe(0);
  expect(await seriousViolations(theirs)).toEqual([]);
  await theirs.getByRole("button", { name: strings.signIn.asSomebodyElse }).click();
  await signIn(theirs, box.firstOwner!.name, box.firstOwner!.password);
  await theirs.getByText(strings.signedInAs(box.firstOwner!.name)).waitFor();
  await other.close();
});

test("a code that did not begin here is not redeemed", async () => {
  const other = await browser.newContext();
  const theirs = await opened(other);
  await theirs.goto(`${box.operatorUrl}?code=stolen&state=guessed`);
  await theirs.getByText(strings.signIn.failed("it began in another tab")).waitFor();
  expect(theirs.url()).toBe(box.operatorUrl);
  await other.close();
});

test("nothing was refused by the policy on the way, nothing failed", () => {
  expect(complaints).toEqual([]);
});
