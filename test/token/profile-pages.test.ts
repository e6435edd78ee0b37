/** Sign-in and profile as a browser without scripts uses them. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { createTokenApp } from "../../src/token/app.js";
import { OPERATOR_PAGE } from "../../src/token/own-pages.js";
import { type Box, createBox, form, ISSUER } from "./box.js";
import { Browser } from "./form-browser.js";

const PASSWORD = "correct horse battery";
const NEXT = "another password";

let box: Box;
let browser: Browser;
beforeEach(async () => {
  box = createBox({ pages: [OPERATOR_PAGE] });
  await box.service.users.create({ name: "olga", role: "owner", password: PASSWORD });
  await box.service.users.create({ name: "mia", role: "member", password: PASSWORD });
  browser = new Browser(box);
});

async function signIn(name = "olga", password = PASSWORD, by = browser) {
  const { text } = await by.go("/sign-in");
  return by.submit(text, { name, password });
}

const formTokenOf = (text: string): string => /name="form_token" value="([^"]+)"/.exec(text)![1]!;

/** Sends a form of the profile page. */
async function send(action: string, fields: Record<string, string>) {
  const { text } = await browser.go("/profile");
  return browser.go(action, form(null, { form_token: formTokenOf(text), ...fields }));
}

describe("signing in", () => {
  test("shows the profile; a wrong password or no name is reported on the form", async () => {
    const page = await browser.go("/sign-in");
    expect(page.response.status).toBe(200);
    expect(page.text).not.toContain('role="alert"');
    // It leads to no application, so it names none.
    expect(page.text).not.toContain("<strong>");
    for (const fields of [{ name: "olga", password: "wrong" }, { password: PASSWORD }] as Record<string, string>[]) {
      const refused = await browser.submit(page.text, fields);
      expect([refused.response.status, refused.url.pathname]).toEqual([401, "/sign-in"]);
      expect(refused.text).toContain("The user name or the password is wrong.");
    }
    const { url, response, text } = await signIn(" Olga ");
    expect([url.pathname, response.status]).toEqual(["/profile", 200]);
    expect(text).toContain("Signed in as <strong>olga</strong>");
  });

  test("after wrong passwords, the page says how long to wait, in the reader's language", async () => {
    const { text } = await browser.go("/sign-in");
    const attempt = (language = "en") =>
      browser.submit(text, { name: "olga", password: "wrong" }, { Origin: ISSUER, "Accept-Language": language });
    for (let i = 0; i < 5; i++) expect((await attempt()).response.status).toBe(401);
    expect((await attempt()).text).toContain("Too many failed attempts. Try again in 1 second.");
    for (let seconds = 1; seconds < 128; seconds *= 2) {
      box.advance(1000 * seconds);
      expect((await attempt()).response.status).toBe(401);
    }
    const said = async (language: string) => /role="alert">([^<]*)/.exec((await attempt(language)).text)![1];
    expect(await said("en")).toBe("Too many failed attempts. Try again in 3 minutes.");
    expect(await said("de")).toBe("Zu viele Fehlversuche. Versuchen Sie es in 3 Minuten noch einmal.");
    expect(await said("es")).toBe("Demasiados intentos fallidos. Inténtelo de nuevo dentro de 3 minutos.");
    expect(await said("fr")).toBe("Trop de tentatives infructueuses. Réessayez dans 3 minutes.");
    expect(await said("pt")).toBe("Muitas tentativas sem sucesso. Tente de novo em 3 minutos.");
    expect(await said("zh")).toBe("失败次数过多。请在3分钟后再试。");
  });

  test("begins a new session with 256 random bits and ends the browser's old one", async () => {
    await signIn();
    const first = browser.cookies.get("vivavoce_session")!.value;
    await signIn("mia");
    const second = browser.cookies.get("vivavoce_session")!.value;
    for (const cookie of [first, second]) expect(cookie).toMatch(/^[\w-]{43}$/);
    expect(await box.service.sessions.find(first)).toBeNull();
    expect((await box.service.sessions.find(second))?.user.name).toBe("mia");
  });

  test("the form is bound to the browser: a cookie of ours is kept, a short one from elsewhere is replaced", async () => {
    const set = async (cookie: string) =>
      (await box.fetch("/sign-in", { headers: { Cookie: `vivavoce_form=${cookie}` } })).headers.get("Set-Cookie");
    const ours = /^vivavoce_form=([\w-]{43});/.exec((await set("guessed"))!)![1]!;
    expect(await set(ours)).toBeNull();
  });

  test("forms are accepted from the address of the box and from the address that the browser used", async () => {
    const local = createTokenApp(box.service);
    const at = "http://127.0.0.1:8080";
    const page = await local.fetch(new Request(`${at}/sign-in`));
    const [cookie] = page.headers.get("Set-Cookie")!.split(";");
    const init = form(null, { form_token: formTokenOf(await page.text()), name: "olga", password: PASSWORD });
    const status = async (headers: Record<string, string>) => {
      const sent = { ...init, headers: { ...(init.headers as object), Cookie: cookie!, ...headers } };
      return (await local.fetch(new Request(`${at}/sign-in`, sent))).status;
    };
    for (const headers of [{ Origin: at }, { Origin: ISSUER }, { Origin: at, "Sec-Fetch-Site": "same-origin" }])
      expect(await status(headers)).toBe(303);
    for (const headers of [{ Origin: "http://127.0.0.1:9090" }, { Origin: at, "Sec-Fetch-Site": "same-site" }])
      expect(await status(headers)).toBe(403);
  });

  test("a disabled user is signed out, until enabled again", async () => {
    await signIn();
    await box.service.users.change("olga", { disabled: true });
    expect((await browser.go("/profile")).url.pathname).toBe("/sign-in");
    expect((await signIn()).response.status).toBe(401);
    await box.service.users.change("olga", { disabled: false });
    expect((await browser.go("/profile")).url.pathname).toBe("/profile");
  });

  test.each([
    ["de-AT, en;q=0.5", "de"],
    ["de;q=0, fr;q=0.4", "fr"],
    ["nl", "en"],
    [undefined, "en"],
  ])("for a browser that wants %s, the page is in %s", async (wanted, language) => {
    const response = await box.fetch(
      "/sign-in",
      wanted === undefined ? {} : { headers: { "Accept-Language": wanted } },
    );
    expect(await response.text()).toContain(`<html lang="${language}">`);
  });

  test.each([
    [498, "de"],
    [499, "en"],
  ])("a language after %i other characters makes the page %s", async (before, language) => {
    const response = await box.fetch("/sign-in", { headers: { "Accept-Language": `${"nl,".padEnd(before)}de` } });
    expect(await response.text()).toContain(`<html lang="${language}">`);
  });
});

describe("signing out", () => {
  test("ends the session, but not for a form of another page", async () => {
    await signIn();
    const { value } = browser.cookies.get("vivavoce_session")!;
    const forged = await browser.go("/sign-out", form(null, { form_token: "guess" }));
    expect(forged.response.status).toBe(403);
    expect(forged.text).toContain("This form has expired. Open it again and try once more.");
    expect(await box.service.sessions.find(value)).not.toBeNull();

    expect((await send("/sign-out", {})).url.pathname).toBe("/sign-in");
    expect(browser.cookies.has("vivavoce_session")).toBe(false);
    expect(await box.service.sessions.find(value)).toBeNull();
  });

  test("makes earlier forms invalid", async () => {
    await signIn();
    const { text } = await browser.go("/profile");
    await send("/sign-out", {});
    const late = await browser.go(
      "/profile/credentials",
      form(null, { form_token: formTokenOf(text), kind: "service", label: "late" }),
    );
    expect(late.response.status).toBe(403);
    expect(late.text).toContain("Your session has ended. Sign in again.");
  });
});

describe("the profile", () => {
  test("leads owners to the operator view, if the box has one", async () => {
    const link = 'href="/operator/"';
    expect((await signIn()).text).toContain(link);
    expect((await signIn("mia")).text).not.toContain(link);
    const plain = createBox();
    await plain.service.users.create({ name: "olga", role: "owner", password: PASSWORD });
    expect((await signIn("olga", PASSWORD, new Browser(plain))).text).not.toContain(link);
  });

  test("creates a credential and shows its secret once", async () => {
    await signIn();
    const redirects = "https://one.example/cb\n\n https://two.example/cb ";
    const { response, text } = await send("/profile/credentials", {
      kind: "user",
      label: " Console ",
      redirect_uris: redirects,
    });
    expect(response.status).toBe(201);
    const [, id, secret] = /id="client-id">([^<]+)<.*id="client-secret">([^<]+)</s.exec(text)!;
    expect(await box.service.credentials.authenticate(id!, secret!)).toMatchObject({
      credential: { label: "Console", redirectUris: ["https://one.example/cb", "https://two.example/cb"] },
      user: { name: "olga" },
    });
    const later = await browser.go("/profile");
    expect(later.text).toContain(id);
    expect(later.text).not.toContain(secret);
  });

  test("shows a refused credential on the page, and a failure of the box as such", async () => {
    await signIn();
    const asked = { kind: "service", label: "job" };
    expect((await send("/profile/credentials", { kind: "service" })).text).toContain(
      "The label must have 1 to 128 characters.",
    );
    const failing = vi.spyOn(box.service.documents, "insert").mockRejectedValueOnce(new Error("the disk is gone"));
    const failed = await send("/profile/credentials", asked);
    failing.mockRestore();
    expect(failed.response.status).toBe(500);
    expect(failed.text).not.toContain("Profile");
    expect((await send("/profile/credentials", asked)).response.status).toBe(201);
  });

  test("changes the password: the browser stays signed in, others do not", async () => {
    const other = new Browser(box);
    await signIn("olga", PASSWORD, other);
    await signIn();
    const change = (current: string, password: string, repeated = password) =>
      send("/profile/password", { current, password, repeated });
    for (const [fields, status, message] of [
      [[PASSWORD, NEXT, "something else"], 400, "The two new passwords are not the same."],
      [["a wrong guess", NEXT], 403, "The current password is wrong."],
      [[PASSWORD, "too short"], 400, "The password must have 10 to 256 characters."],
    ] as [[string, string, string?], number, string][]) {
      const { response, text } = await change(...fields);
      expect([response.status, text.includes(message)]).toEqual([status, true]);
      expect(text).not.toContain("Your password was changed.");
    }
    expect(box.audited.at(-1)).toMatchObject({ event: "sign-in-refused", user: "olga" });
    expect((await send("/profile/password", { current: PASSWORD })).response.status).toBe(400);
    expect((await send("/profile/password", { password: NEXT, repeated: NEXT })).response.status).toBe(403);

    const { response, text } = await change(PASSWORD, NEXT);
    expect(response.status).toBe(200);
    expect(text).toContain("Your password was changed.");
    expect((await browser.go("/profile")).url.pathname).toBe("/profile");
    expect((await other.go("/profile")).url.pathname).toBe("/sign-in");
    expect(await box.service.users.authenticate("olga", NEXT)).not.toBeNull();
  });

  test("only a few of many simultaneous guesses at the current password are checked", async () => {
    await signIn();
    const { text } = await browser.go("/profile");
    const guess = (n: number) =>
      form(null, { form_token: formTokenOf(text), current: `guess ${n}`, password: NEXT, repeated: NEXT });
    const tries = await Promise.all(Array.from({ length: 20 }, (_, n) => browser.go("/profile/password", guess(n))));
    const statuses = tries.map(({ response }) => response.status);
    expect([403, 429].map((status) => statuses.filter((one) => one === status).length)).toEqual([5, 15]);
    // What was not checked makes nobody wait longer.
    const waits = tries.flatMap(({ response }) => response.headers.get("Retry-After") ?? []);
    expect(waits).toEqual(Array(15).fill("1"));
  });
});
