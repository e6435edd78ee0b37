import { execFile } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { getRequestListener } from "@hono/node-server";
import * as oauth from "oauth4webapi";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createMemoryStore } from "../../src/store/memory.js";
import { createTokenApp } from "../../src/token/app.js";
import { languages } from "../../src/token/interactive/strings.js";
import { createTokenService, type TokenService } from "../../src/token/service.js";
import { barriersEverywhere, launch } from "../chromium.js";

const PASSWORD = "correct horse battery";
const run = promisify(execFile);

let browser: Browser;
let server: Server;
let application: Server;
let issuer: string;
let callback: string;
let service: TokenService;
const arrivals: string[] = [];

const listening = async (listener: Server): Promise<string> => {
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
};

beforeAll(async () => {
  let answer: Parameters<typeof createServer>[1] = () => {};
  server = createServer((request, response) => answer!(request, response as never));
  issuer = await listening(server);
  service = createTokenService({ documents: createMemoryStore().documents, issuer });
  const app = createTokenApp(service);
  answer = getRequestListener((request, env) => app.fetch(request, env as never)) as never;
  // The application that the user comes from and goes back to, on another origin.
  application = createServer((request, response) => {
    arrivals.push(request.url ?? "");
    response.setHeader("Content-Type", "text/html").end("<h1>Back at the application</h1>");
  });
  callback = `${await listening(application)}/callback`;
  await service.users.create({ name: "olga", role: "owner", password: PASSWORD });
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  server?.close();
  application?.close();
});

/** A fresh browser profile; anything that a page's policy blocks or its console prints is a failure. */
async function authorize(page: Page, clientId: string): Promise<void> {
  const begin = new URLSearchParams({
    client_id: clientId,
    redirect_uri: callback,
    response_type: "code",
    scope: "platform-api",
    code_challenge: await oauth.calculatePKCECodeChallenge(oauth.generateRandomCodeVerifier()),
    code_challenge_method: "S256",
  });
  await page.goto(`${issuer}/oauth2/authorize?${begin}`);
}

async function newPage(locale = "en-GB"): Promise<{ page: Page; complaints: string[] }> {
  const page = await (await browser.newContext({ locale })).newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return { page, complaints };
}

async function signIn(page: Page, password = PASSWORD, { signIn: words } = languages.en): Promise<void> {
  await page.getByLabel(words.name).fill("olga");
  await page.getByLabel(words.password).fill(password);
  await page.getByRole("button", { name: words.action }).click();
}

/** A click returns before the new page is loaded, so wait for something that only the new page has. */
const shows = (page: Page, heading: string) =>
  page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();

describe("in a real browser", () => {
  test("profile: sign in, create and delete credentials, sign out", { timeout: 180_000 }, async () => {
    const { page, complaints } = await newPage();
    await page.goto(`${issuer}/profile`);
    expect(new URL(page.url()).pathname).toBe("/sign-in");
    expect(await barriersEverywhere(page)).toEqual([]);
    await signIn(page, "wrong password");
    expect(await page.getByRole("alert").textContent()).toContain("wrong");
    // Only the password has to be typed again.
    expect(await page.getByLabel("User name").inputValue()).toBe("olga");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("password");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.keyboard.press("Enter");
    await shows(page, "Profile");

    // A service account: its secret is shown once and works.
    await page.getByLabel("Label", { exact: true }).fill("Nightly <job>");
    await page.getByRole("button", { name: "Create" }).click();
    const clientId = (await page.locator("#client-id").textContent())!;
    expect(await barriersEverywhere(page)).toEqual([]);
    const secret = (await page.locator("#client-secret").textContent())!;
    const { stdout } = await run("curl", [
      "-sS",
      "-u",
      `${clientId}:${secret}`,
      "-d",
      "grant_type=client_credentials&scope=platform-api",
      `${issuer}/oauth2/token`,
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ token_type: "bearer", expires_in: 3600 });
    await page.goto(`${issuer}/profile`);
    expect(await page.content()).not.toContain(secret);
    expect(await page.getByText("Nightly <job>", { exact: true }).count()).toBe(1);
    // Deleting asks first.
    await page.getByText("Delete", { exact: true }).focus();
    await page.keyboard.press("Enter");
    expect(await barriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Delete for good" }).press("Enter");
    await page.getByText("Nightly <job>", { exact: true }).waitFor({ state: "detached" });
    const gone = await run("curl", [
      "-sS",
      "-u",
      `${clientId}:${secret}`,
      "-d",
      "grant_type=client_credentials&scope=platform-api",
      `${issuer}/oauth2/token`,
    ]);
    expect(JSON.parse(gone.stdout)).toMatchObject({ error: "invalid_client" });

    // A user account needs a redirect address.
    await page.getByLabel("Label", { exact: true }).fill("Console");
    await page.getByRole("radio", { name: /User account/ }).check();
    await page.getByRole("button", { name: "Create" }).click();
    expect(await page.getByRole("alert").textContent()).toContain("redirect");
    // What was entered stays.
    expect(await page.getByLabel("Label", { exact: true }).inputValue()).toBe("Console");
    expect(await page.getByRole("radio", { name: /User account/ }).isChecked()).toBe(true);
    await page.getByLabel(/Redirect addresses/).fill(callback);
    await page.getByRole("button", { name: "Create" }).click();
    await page.locator("#client-secret").waitFor();

    // The password, with the current one; the browser stays signed in.
    const change = async (current: string, next: string, repeated = next) => {
      await page.getByLabel("Current password").fill(current);
      await page.getByLabel("New password", { exact: true }).fill(next);
      await page.getByLabel("New password again").fill(repeated);
      await page.getByRole("button", { name: "Change password" }).click();
    };
    await change("a wrong guess", "another password");
    await page.getByText("The current password is wrong.").waitFor();
    await change(PASSWORD, "another password", "another passwort");
    await page.getByText("The two new passwords are not the same.").waitFor();
    await change(PASSWORD, "another password");
    await page.getByText("Your password was changed.").waitFor();
    expect(await barriersEverywhere(page)).toEqual([]);
    await change("another password", PASSWORD);
    await page.getByText("Your password was changed.").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await shows(page, "Sign in");
    await page.goto(`${issuer}/profile`);
    expect(new URL(page.url()).pathname).toBe("/sign-in");
    expect(complaints).toEqual([]);
  });

  test("a form that has expired leads to one that works", async () => {
    const { page } = await newPage();
    await page.goto(`${issuer}/sign-in`);
    // As after a restart of the browser.
    await page.context().clearCookies();
    await signIn(page);
    await page.getByRole("alert").getByText(languages.en.refusals.formExpired).waitFor();
    expect(await barriersEverywhere(page)).toEqual([]);
    await page.getByRole("link", { name: languages.en.error.again }).press("Enter");
    await signIn(page);
    await shows(page, "Profile");
    // The session ended in another tab.
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("alert").getByText(languages.en.refusals.sessionEnded).waitFor();
    await page.getByRole("link", { name: languages.en.error.again }).click();
    await shows(page, "Sign in");
  });

  test("long names fit a phone", async () => {
    const { page } = await newPage();
    await service.users.create({ name: "w".repeat(128), role: "member", password: PASSWORD });
    await page.goto(`${issuer}/sign-in`);
    await page.getByLabel("User name").fill("w".repeat(128));
    await page.getByLabel("Password").fill(PASSWORD);
    await page.keyboard.press("Enter");
    await shows(page, "Profile");
    await page.getByLabel("Label", { exact: true }).fill("W".repeat(128));
    await page.getByRole("button", { name: "Create" }).click();
    await page.locator("#client-secret").waitFor();
    expect(await barriersEverywhere(page)).toEqual([]);
  });

  test("a label cannot turn the text of a page around", { timeout: 60_000 }, async () => {
    const { page } = await newPage();
    const user = (await service.users.find("olga"))!;
    const label = "Acme \u202egpj.exe";
    const { credential } = await service.credentials.create(user, { kind: "user", label, redirectUris: [callback] });
    const isReadable = async () => {
      expect(await page.textContent("main")).toContain("Acme \ufffdgpj.exe");
      expect(await page.content()).not.toContain("\u202e");
    };
    await authorize(page, credential.clientId);
    await isReadable();
    await signIn(page);
    await shows(page, "Allow access");
    await isReadable();
    await page.goto(`${issuer}/profile`);
    await isReadable();
  });

  test("an application: sign in and consent, then deny", async () => {
    const { page, complaints } = await newPage();
    const created = await service.credentials.create((await service.users.find("olga"))!, {
      kind: "user",
      label: "Console",
      redirectUris: [callback],
    });
    const console_ = { client_id: created.credential.clientId };
    // The independent client starts, the user signs in and consents, the client redeems the code.
    const options = { [oauth.allowInsecureRequests]: true };
    const found = await oauth.processDiscoveryResponse(
      new URL(issuer),
      await oauth.discoveryRequest(new URL(issuer), { algorithm: "oauth2", ...options }),
    );
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const begin = new URL(found.authorization_endpoint!);
    begin.search = new URLSearchParams({
      client_id: console_.client_id,
      redirect_uri: callback,
      response_type: "code",
      scope: "platform-api",
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    }).toString();
    await page.goto(begin.href);
    await signIn(page);
    await shows(page, "Allow access");
    expect(await page.getByText("Console").count()).toBeGreaterThan(0);
    expect(await barriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL(`${callback}**`);
    const parameters = oauth.validateAuthResponse(found, console_, new URL(page.url()), state);
    const response = await oauth.authorizationCodeGrantRequest(
      found,
      console_,
      oauth.ClientSecretBasic(created.secret),
      parameters,
      callback,
      verifier,
      options,
    );
    const token = await oauth.processAuthorizationCodeResponse(found, console_, response);
    const me = await oauth.protectedResourceRequest(
      token.access_token,
      "GET",
      new URL(`${issuer}/management/v1/me`),
      undefined,
      undefined,
      options,
    );
    expect(await me.json()).toMatchObject({ name: "olga", role: "owner" });

    // Already signed in: only consent is asked for, and this time it is denied.
    await page.goto(begin.href);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.waitForURL(/error=access_denied/);
    expect(complaints).toEqual([]);
  });

  test.each(["de-AT", "es-MX", "fr-CA", "pt-BR", "zh-TW"])(
    "sign-in, consent, profile and refusals in %s",
    { timeout: 180_000 },
    async (locale) => {
      const words = languages[locale.slice(0, 2) as keyof typeof languages];
      const { page, complaints } = await newPage(locale);
      const isClean = async () => expect(await barriersEverywhere(page)).toEqual([]);
      const { credential } = await service.credentials.create((await service.users.find("olga"))!, {
        kind: "user",
        label: `Console ${locale}`,
        redirectUris: [callback],
      });
      await authorize(page, credential.clientId);
      await shows(page, words.signIn.title);
      expect(await page.getAttribute("html", "lang")).toBe(words.locale);
      await signIn(page, "wrong password", words);
      await page.getByRole("alert").getByText(words.signIn.wrong).waitFor();
      await isClean();
      await signIn(page, PASSWORD, words);
      await shows(page, words.consent.title);
      expect(await page.textContent("dl")).toContain(`olga (${words.roles.owner})`);
      await page.getByText(words.consent.may.owner).waitFor();
      await isClean();
      await page.getByRole("button", { name: words.consent.allow }).click();
      await page.waitForURL(`${callback}**`);

      await page.goto(`${issuer}/profile`);
      await shows(page, words.profile.title);
      await page.getByLabel(words.profile.label, { exact: true }).fill("x");
      await page.getByRole("radio", { name: words.profile.user }).check();
      await page.getByRole("button", { name: words.profile.create }).click();
      await page.getByRole("alert").getByText(words.refusals.redirectsNeeded).waitFor();
      await isClean();
      // Errors for the developers of the application stay in English.
      await page.goto(`${issuer}/oauth2/authorize?client_id=nobody`);
      await shows(page, words.error.title);
      expect(await page.getAttribute("main .soft", "lang")).toBe("en");
      await isClean();
      await page.goto(`${issuer}/oauth2/interaction/gone`);
      await page.getByRole("alert").getByText(words.refusals.signInExpired).waitFor();
      expect(complaints).toEqual([]);
    },
  );

  test("another user who signs in after the first gets on: the policy allows the script of the library's page", {
    timeout: 180_000,
  }, async () => {
    const { page, complaints } = await newPage();
    const users = [(await service.users.find("olga"))!];
    users.push(await service.users.create({ name: "mia", role: "member", password: PASSWORD }));
    for (const user of users) {
      const account = { kind: "user", label: user.name, redirectUris: [callback] } as const;
      const { credential } = await service.credentials.create(user, account);
      await page.goto(`${issuer}/sign-in`);
      await page.getByLabel("User name").fill(user.name);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Sign in" }).click();
      await shows(page, "Profile");
      await authorize(page, credential.clientId);
      await shows(page, "Allow access");
      expect(await page.textContent("dl")).toContain(user.name);
      // What the application may do then depends on the user.
      await page.getByText(languages.en.consent.may[user.role]).waitFor();
      await page.getByRole("button", { name: "Allow" }).click();
      await page.waitForURL(`${callback}**`);
    }
    expect(complaints).toEqual([]);
  });

  test("a page of another origin can neither frame our pages nor submit our forms", async () => {
    const { page } = await newPage();
    await page.goto(`${issuer}/sign-in`);
    await signIn(page);
    await shows(page, "Profile");
    const before = await service.credentials.ofUser((await service.users.find("olga"))!);
    await page.goto(callback);
    await page.setContent(
      `<form method="post" action="${issuer}/profile/credentials"><input name="label" value="evil"><input name="kind" value="service"></form><iframe src="${issuer}/sign-in"></iframe>`,
    );
    const framed = page.frames().find((frame) => frame.parentFrame() !== null);
    expect(await framed?.getByLabel("Password").count()).toBe(0);
    await Promise.all([
      page.waitForNavigation(),
      page.locator("form").evaluate((form) => (form as HTMLFormElement).submit()),
    ]);
    await shows(page, "Something went wrong");
    expect(await service.credentials.ofUser((await service.users.find("olga"))!)).toEqual(before);
  });
});

describe("the contract's curl commands", () => {
  const curl = async (...options: string[]) =>
    JSON.parse((await run("curl", ["-sS", ...options])).stdout) as Record<string, unknown>;

  test("runtime: raw and escaped ids in the user option", async () => {
    const created = await service.applications.create({
      name: "Bank",
      environment: "production",
      geography: "eu",
      gkScopes: ["s1"],
    });
    const { id } = created.clients[0]!;
    const secret = await service.applications.regenerateSecret(created.id, id);
    for (const name of [id, id.replaceAll(":", "%3A")]) {
      const answer = await curl(
        "-u",
        `${name}:${secret}`,
        "-d",
        "grant_type=client_credentials",
        "--data-urlencode",
        "scope=bio tts",
        `${issuer}/oauth2/token`,
      );
      expect(answer).toEqual({
        access_token: expect.any(String),
        expires_in: 900,
        scope: "bio tts",
        token_type: "bearer",
      });
      await service.runtime.verify(String(answer.access_token), "bio");
    }
    // Guessing from one address becomes slow.
    const statuses: string[] = [];
    for (let i = 0; i < 7; i++) {
      const { stdout } = await run("curl", [
        "-sS",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-u",
        `${id}:guess${i}`,
        "-d",
        "grant_type=client_credentials&scope=tts",
        `${issuer}/oauth2/token`,
      ]);
      statuses.push(stdout);
    }
    expect(statuses.slice(0, 5)).toEqual(Array(5).fill("401"));
    expect(statuses).toContain("429");
  });

  test("engagement: token, then data", async () => {
    const { registration, secret } = await service.registrations.register({ name: "Shop", sites: ["306"] });
    await service.agents.put("306", 19001, { id: "ann", state: "online" });
    const authorization = Buffer.from(`${registration.clientId}:${secret}`).toString("base64");
    const token = await curl(
      "-H",
      `Authorization: Basic ${authorization}`,
      "-H",
      "Content-Type: application/x-www-form-urlencoded; charset=utf-8",
      "-d",
      `client_id=${registration.clientId}&grant_type=client_credentials`,
      `${issuer}/oauth-server/oauth/token`,
    );
    expect(token).toMatchObject({ token_type: "bearer", sites: ["306"], jti: expect.any(String) });
    const data = await curl(
      "-X",
      "POST",
      "-H",
      `Authorization: Bearer ${token.access_token}`,
      `${issuer}/engagementAPI/v2/customer/agentAvailability?businessUnitID=19001&output=JSON&siteID=306`,
    );
    expect(data).toEqual({ availability: true, inHOP: true, status: "online" });
  });
});
