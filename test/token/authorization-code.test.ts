import { createHash } from "node:crypto";
import * as oauth from "oauth4webapi";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { StoreError } from "../../src/store/errors.js";
import { OPERATOR_PAGE } from "../../src/token/own-pages.js";
import { type Box, basic, createBox, form, ISSUER } from "./box.js";
import { Browser } from "./form-browser.js";

/** The models of the library that we use, and our own collections. */
const KEPT = ["Session", "session-uid", "Interaction", "Grant", "AuthorizationCode", "AccessToken"];
const REDIRECT = "https://app.example/callback";
const PASSWORD = "correct horse battery";

const server: oauth.AuthorizationServer = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/oauth2/authorize`,
  token_endpoint: `${ISSUER}/oauth2/token`,
  authorization_response_iss_parameter_supported: true,
};

// oidc-provider and the client read the system time: it is fixed, and moves with the clock of the box.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function advance(box: Box, ms: number): void {
  box.advance(ms);
  vi.setSystemTime(box.now());
}

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());

describe("authorization code with PKCE", () => {
  let box: Box;
  let clientId: string;
  let secret: string;
  let verifier: string;
  let query: Record<string, string>;

  beforeEach(async () => {
    box = createBox({ startAt: Date.now() });
    const user = await box.service.users.create({ name: "olga", role: "owner", password: PASSWORD });
    const created = await box.service.credentials.create(user, {
      kind: "user",
      label: "Console",
      redirectUris: [REDIRECT],
    });
    ({ clientId } = created.credential);
    secret = created.secret;
    verifier = oauth.generateRandomCodeVerifier();
    query = {
      client_id: clientId,
      redirect_uri: REDIRECT,
      response_type: "code",
      scope: "platform-api",
      state: "s1",
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    };
  });

  const authorizeUrl = (change: Record<string, string | undefined> = {}): string =>
    `/oauth2/authorize?${new URLSearchParams(Object.entries({ ...query, ...change }).filter((entry): entry is [string, string] => entry[1] !== undefined))}`;

  async function allow(browser = new Browser(box), name = "olga"): Promise<URL> {
    const signIn = await browser.go(authorizeUrl());
    expect(signIn.text).toContain("<h1>Sign in</h1>");
    const consent = await browser.submit(signIn.text, { name, password: PASSWORD });
    if (consent.url.origin !== ISSUER) return consent.url;
    expect(consent.text).toContain("<h1>Allow access</h1>");
    return (await browser.submit(consent.text, { action: "allow" })).url;
  }

  const redeem = async (callback: URL, codeVerifier = verifier, id = clientId, password = secret) => {
    const client = { client_id: id };
    const parameters = oauth.validateAuthResponse(server, client, callback, "s1");
    const options = { [oauth.customFetch]: (url: string, init: RequestInit) => box.fetch(url, init) } as never;
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      oauth.ClientSecretBasic(password),
      parameters,
      REDIRECT,
      codeVerifier,
      options,
    );
    return oauth.processAuthorizationCodeResponse(server, client, response);
  };

  const me = (token: string) => box.fetch("/management/v1/me", { headers: { Authorization: `Bearer ${token}` } });

  test("anybody may begin a sign-in, which is not stored; who has signed in may begin 60 authorizations at once", async () => {
    const browser = new Browser(box);
    const begin = (change = {}) => {
      const cookie = [...browser.cookies].map(([name, { value }]) => `${name}=${value}`).join("; ");
      return box.fetch(authorizeUrl(change), { headers: { Cookie: cookie } });
    };
    const longest = "s".repeat(4000 - authorizeUrl({ state: "" }).length + "/oauth2/authorize".length);
    expect(await (await begin({ state: `${longest}s` })).text()).toContain("at most 4000 characters");
    expect((await begin({ state: longest })).status).toBe(303);
    for (let i = 0; i < 100; i++) expect((await begin()).headers.get("Location")).toMatch(/^\/sign-in\?/);
    for (const name of ["Interaction", "cookie-keys"])
      expect(await box.service.documents.list(`oidc.${name}`)).toEqual([]);
    const consent = await browser.submit((await browser.go(authorizeUrl())).text, { name: "olga", password: PASSWORD });
    for (let i = 1; i < 60; i++) expect((await begin()).headers.get("Location")).toMatch(/^\/oauth2\/interaction\//);
    const refused = await begin();
    expect([refused.status, refused.headers.get("Retry-After")]).toEqual([429, "1"]);
    // Whoever began before can finish.
    expect((await browser.submit(consent.text, { action: "allow" })).url.searchParams.has("code")).toBe(true);
    advance(box, 1000);
    expect((await begin()).status).toBe(303);
    expect((await begin()).status).toBe(429);
  });

  test("HEAD is answered like GET, without a body", async () => {
    const response = await box.fetch(authorizeUrl(), { method: "HEAD", redirect: "manual" });
    expect([response.status, await response.text()]).toEqual([303, ""]);
    expect(response.headers.get("Location")).toMatch(/^\/sign-in\?/);
  });

  test("sign in, allow, redeem, manage: the token belongs to the user", async () => {
    const result = await redeem(await allow());
    expect(result).toMatchObject({ token_type: "bearer", expires_in: 3600, scope: "platform-api" });
    const response = await me(result.access_token);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ name: "olga", role: "owner" });
    await expect(box.service.runtime.verify(result.access_token)).rejects.toMatchObject({ code: "invalid_token" });
    await expect(box.service.engagement.verify(result.access_token)).rejects.toMatchObject({ code: "invalid_token" });
    const log = JSON.stringify(box.audited);
    for (const hidden of [PASSWORD, secret, verifier, result.access_token]) expect(log).not.toContain(hidden);
    expect(box.audited).toEqual([
      { event: "sign-in", user: "olga", address: "unknown" },
      {
        event: "token-issued",
        audience: "tooling",
        clientId,
        scope: "platform-api",
        jti: claimsOf(result.access_token).jti,
        address: "unknown",
      },
    ]);
  });

  test("a sign-in may take any time, consent ten minutes, a code a minute, and a token lasts for an hour", async () => {
    const browser = new Browser(box);
    const signIn = await browser.go(authorizeUrl());
    advance(box, 3_600_000);
    const consent = await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    advance(box, 599_000);
    const { url } = await browser.submit(consent.text, { action: "allow" });
    advance(box, 59_000);
    const { access_token } = await redeem(url);
    advance(box, 3_604_000);
    expect((await me(access_token)).status).toBe(200);
    advance(box, 1_000);
    expect((await me(access_token)).status).toBe(401);

    const late = await browser.go(authorizeUrl());
    expect(late.text).toContain("<h1>Allow access</h1>");
    const expired = await allow();
    advance(box, 61_000);
    await expect(redeem(expired)).rejects.toMatchObject({ error: "invalid_grant" });
    advance(box, 540_000);
    const { response, text } = await browser.submit(late.text, { action: "allow" });
    expect(response.status).toBe(400);
    expect(text).toContain("This sign-in has expired or was started in another browser.");
  });

  test("no data of an authorization is kept forever", async () => {
    await redeem(await allow());
    const kept = async () =>
      (await Promise.all(KEPT.map((name) => box.service.documents.list(`oidc.${name}`)))).flat().length;
    expect(await kept()).toBeGreaterThan(0);
    advance(box, 3 * 3_600_000);
    expect(await kept()).toBe(0);
  });

  test("a signed-in user is asked only for consent, unless the client requires the password again", async () => {
    const browser = new Browser(box);
    await allow(browser);
    const again = await browser.go(authorizeUrl());
    expect(again.text).toContain("<h1>Allow access</h1>");
    const passwordAgain = await browser.go(authorizeUrl({ prompt: "login consent" }));
    expect(passwordAgain.text).toContain("<h1>Sign in</h1>");
    expect(passwordAgain.text).toContain("<strong>Console</strong>");
    const consent = await browser.submit(passwordAgain.text, { name: "olga", password: PASSWORD });
    expect(consent.text).toContain("<h1>Allow access</h1>");
    for (const response_mode of ["form_post", "fragment"])
      expect((await browser.go(authorizeUrl({ response_mode }))).text).toContain("response_mode must be query");
  });

  test("a user who signs out before the consent allows nothing", async () => {
    const browser = new Browser(box);
    const signIn = await browser.go(authorizeUrl());
    const consent = await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    expect(consent.response.headers.get("Content-Security-Policy")).toContain(
      "form-action 'self' https://app.example;",
    );
    browser.cookies.delete("vivavoce_session");
    for (const page of [await browser.go(consent.url.href), await browser.submit(consent.text, { action: "allow" })]) {
      expect(page.response.status).toBe(403);
      expect(page.text).toContain("Your session has ended. Sign in again.");
    }
    expect(await box.service.documents.list("oidc.AuthorizationCode")).toEqual([]);
  });

  test("the consent is not shown to another user of the same browser", async () => {
    await box.service.users.create({ name: "mallory", role: "member", password: PASSWORD });
    const browser = new Browser(box);
    const signIn = await browser.go(authorizeUrl());
    const consent = await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    await browser.submit((await browser.go("/sign-in")).text, { name: "mallory", password: PASSWORD });
    expect((await browser.go(consent.url.href)).url.searchParams.get("error")).toBe("access_denied");
  });

  test("a page of another sign-in, or of a credential deleted meanwhile, does not go on", async () => {
    const [one, other] = [new Browser(box), new Browser(box)];
    const consentIn = async (browser: Browser) =>
      browser.submit((await browser.go(authorizeUrl())).text, { name: "olga", password: PASSWORD });
    const mine = await consentIn(one);
    const theirs = await consentIn(other);
    const cookies = ["vivavoce_interaction", "vivavoce_interaction.sig", "vivavoce_session"].map(
      (name) => `${name}=${one.cookies.get(name)!.value}`,
    );
    expect((await box.fetch(mine.url.href, { headers: { Cookie: cookies.join("; ") } })).status).toBe(200);
    expect((await box.fetch(theirs.url.href, { headers: { Cookie: cookies.join("; ") } })).status).toBe(400);
    await box.service.credentials.delete((await box.service.users.find("olga"))!, clientId);
    const gone = await one.submit(mine.text, { action: "allow" });
    expect(gone.response.status).toBe(400);
    expect(gone.text).toContain("This sign-in has expired or was started in another browser.");
  });

  test("two users, one after the other in the same browser, each get their own token", async () => {
    const mia = await box.service.users.create({ name: "mia", role: "member", password: PASSWORD });
    const hers = await box.service.credentials.create(mia, { kind: "user", label: "Hers", redirectUris: [REDIRECT] });
    const browser = new Browser(box);
    const callback = await allow(browser);
    await browser.submit((await browser.go("/sign-in")).text, { name: "mia", password: PASSWORD });
    // The library's page, whose script sends its form, ends the first authorization.
    const ending = await browser.go(authorizeUrl({ client_id: hers.credential.clientId }));
    const [, script = ""] = /<script>([^<]*)</.exec(ending.text)!;
    const hash = createHash("sha256").update(script).digest("base64");
    const { headers } = ending.response;
    expect(headers.get("Content-Security-Policy")).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
    expect(headers.get("Content-Security-Policy")).toContain(`script-src 'sha256-${hash}';`);
    expect([headers.get("X-Frame-Options"), headers.get("X-Content-Type-Options")]).toEqual(["DENY", "nosniff"]);
    const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(ending.text)!;
    const action = /action="([^"]+)"/.exec(ending.text)![1]!;
    const consent = await browser.go(action, form(null, { xsrf, logout: "yes" }));
    expect(consent.text).toContain("<h1>Allow access</h1>");
    const { url } = await browser.submit(consent.text, { action: "allow" });
    const second = await redeem(url, verifier, hers.credential.clientId, hers.secret);
    const first = await redeem(callback);
    expect(await (await me(first.access_token)).json()).toMatchObject({ name: "olga" });
    expect(await (await me(second.access_token)).json()).toMatchObject({ name: "mia" });
  });

  test("deny redirects with access_denied", async () => {
    const browser = new Browser(box);
    const signIn = await browser.go(authorizeUrl());
    const consent = await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    const { url } = await browser.submit(consent.text, { action: "deny" });
    expect(`${url.origin}${url.pathname}`).toBe(REDIRECT);
    expect(url.searchParams.get("error")).toBe("access_denied");
    expect(url.searchParams.get("state")).toBe("s1");
  });

  test("another user's sign-in does not pass with this user's credential", async () => {
    await box.service.users.create({ name: "mallory", role: "member", password: PASSWORD });
    const url = await allow(new Browser(box), "mallory");
    expect(url.searchParams.get("error")).toBe("access_denied");
  });

  test("only the user who signed in can give consent, not one who signs in later in the same browser", async () => {
    await box.service.users.create({ name: "mallory", role: "member", password: PASSWORD });
    const browser = new Browser(box);
    const signIn = await browser.go(authorizeUrl());
    const consent = await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    const other = await browser.go("/sign-in");
    await browser.submit(other.text, { name: "mallory", password: PASSWORD });
    // Mallory's own form token, on olga's consent page.
    const profile = await browser.go("/profile");
    const [, token] = /name="form_token" value="([^"]+)"/.exec(profile.text)!;
    const { url } = await browser.submit(consent.text, { action: "allow", form_token: token! });
    expect(url.searchParams.get("error")).toBe("access_denied");
    expect(url.searchParams.has("code")).toBe(false);
    // The page is not shown to her either.
    const shown = await browser.go(authorizeUrl());
    expect(shown.url.searchParams.get("error")).toBe("access_denied");
  });

  test("a code works once; if it is used again, its token is revoked too", async () => {
    const callback = await allow();
    const first = await redeem(callback);
    expect((await me(first.access_token)).status).toBe(200);
    await expect(redeem(callback)).rejects.toMatchObject({ error: "invalid_grant" });
    const response = await me(first.access_token);
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: "invalid_token", error_description: "the token was revoked" });
  });

  test("one code redeemed twice at the same moment gives at most one token", async () => {
    const callback = await allow();
    const results = await Promise.allSettled([redeem(callback), redeem(callback)]);
    expect(results.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(1);
  });

  test("even if both requests read the code before either has used it", async () => {
    const callback = await allow();
    const { documents } = box.service;
    const { get } = documents;
    const waiting: (() => void)[] = [];
    documents.get = async (collection, id) => {
      const found = await get(collection, id);
      if (collection !== "oidc.AuthorizationCode") return found;
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        // We read it first, then the library does.
        if (waiting.length === 2) for (const go of waiting.splice(0)) go();
      });
      return found;
    };
    const results = await Promise.allSettled([redeem(callback), redeem(callback)]);
    documents.get = get;
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(results.find(({ status }) => status === "rejected")).toMatchObject({ reason: { error: "invalid_grant" } });
  });

  test("a proof of possession (DPoP) is not asked for and not read", async () => {
    const code = (await allow()).searchParams.get("code")!;
    const fields = { grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: REDIRECT };
    const init = form(basic(clientId, secret), fields);
    const response = await box.fetch("/oauth2/token", { ...init, headers: { ...init.headers, DPoP: "x" } });
    expect([response.status, await response.json()]).toMatchObject([200, { token_type: "bearer" }]);
  });

  test("a redemption without its code says what is missing", async () => {
    const init = form(basic(clientId, secret), { grant_type: "authorization_code", redirect_uri: REDIRECT });
    const refused = await box.fetch("/oauth2/token", init);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toEqual({
      error: "invalid_request",
      error_description: expect.stringContaining("'code'"),
    });
  });

  test("the proof, the client and its secret must be right", async () => {
    await expect(redeem(await allow(), oauth.generateRandomCodeVerifier())).rejects.toMatchObject({
      error: "invalid_grant",
    });
    await expect(redeem(await allow(), verifier, clientId, "wrong")).rejects.toMatchObject({
      cause: [{ parameters: {} }],
    });
    const user = (await box.service.users.find("olga"))!;
    const other = await box.service.credentials.create(user, {
      kind: "user",
      label: "Other",
      redirectUris: [REDIRECT],
    });
    await expect(redeem(await allow(), verifier, other.credential.clientId, other.secret)).rejects.toThrow();
  });

  test("a store that fails is reported and logged as such, not as a wrong code", async () => {
    const callback = await allow();
    const { documents } = box.service;
    const { get } = documents;
    documents.get = async (collection, id) => {
      if (collection === "oidc.AuthorizationCode") throw new Error("the database does not answer");
      return get(collection, id);
    };
    const fields = {
      grant_type: "authorization_code",
      code: callback.searchParams.get("code")!,
      code_verifier: verifier,
    };
    const redeemed = () =>
      box.fetch("/oauth2/token", form(basic(clientId, secret), { ...fields, redirect_uri: REDIRECT }));
    const failed = await redeemed();
    expect(failed.status).toBe(500);
    expect(await failed.json()).toMatchObject({ error: "server_error" });
    expect(box.audited.at(-1)).toMatchObject({
      event: "failure",
      stack: expect.stringContaining("the database does not answer"),
    });
    documents.get = get;
    expect((await redeemed()).status).toBe(200);
  });

  test("while the database is away, a code and an authorization are answered 503; afterwards both work", async () => {
    const code = (await allow()).searchParams.get("code")!;
    const { documents } = box.service;
    const { get, put } = documents;
    const away = () => Promise.reject(new StoreError("unavailable", "the database does not answer"));
    documents.get = async (collection, id) => (collection === "oidc.AuthorizationCode" ? away() : get(collection, id));
    documents.put = async (collection, ...rest) =>
      collection === "oidc.Interaction" ? away() : put(collection, ...rest);
    const fields = { grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: REDIRECT };
    const redeemed = () => box.fetch("/oauth2/token", form(basic(clientId, secret), fields));
    const refused = await redeemed();
    expect([refused.status, refused.headers.get("Retry-After")]).toEqual([503, "5"]);
    expect(await refused.json()).toMatchObject({ error: "temporarily_unavailable" });
    const browser = new Browser(box);
    await browser.submit((await browser.go("/sign-in")).text, { name: "olga", password: PASSWORD });
    const page = await browser.go(authorizeUrl());
    expect([page.response.status, page.response.headers.get("Retry-After")]).toEqual([503, "5"]);
    expect(page.text).toContain("<h1>");
    expect(box.audited.filter(({ event }) => event === "failure")).toHaveLength(2);
    Object.assign(documents, { get, put });
    const { url } = await browser.go(authorizeUrl());
    documents.get = async (collection, id) => (collection === "oidc.Interaction" ? away() : get(collection, id));
    expect((await browser.go(url.href)).response.status).toBe(503);
    documents.get = get;
    expect((await redeemed()).status).toBe(200);
    await allow();
  });

  test("RFC 7636 appendix B: the verifier matches the challenge", async () => {
    query.code_challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    expect(await redeem(await allow(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")).toMatchObject({
      scope: "platform-api",
    });
  });

  test.each([
    ["another path", { redirect_uri: `${REDIRECT}/more` }],
    ["another host", { redirect_uri: "https://evil.example/callback" }],
    ["a query of its own", { redirect_uri: `${REDIRECT}?x=1` }],
    ["another case", { redirect_uri: "https://app.example/Callback" }],
    ["another port", { redirect_uri: "https://app.example:8443/callback" }],
    ["none", { redirect_uri: undefined }],
    ["an unknown client", { client_id: "platform-00000000-0000-7000-8000-000000000000" }],
  ])("redirect addresses match exactly: %s stays on our page", async (_, change) => {
    const { response, url, text } = await new Browser(box).go(authorizeUrl(change));
    expect(url.origin).toBe(ISSUER);
    expect(response.status).toBe(400);
    expect(text).toContain("Something went wrong");
    expect(response.headers.get("Content-Security-Policy")).toContain("default-src 'none'");
  });

  test.each([
    ["platform-00000000-0000-7000-8000-000000000000", "the client_id is unknown"],
    [undefined, "the client_id is missing"],
  ])("the page says what is wrong with the client %s", async (client_id, why) => {
    expect((await new Browser(box).go(authorizeUrl({ client_id }))).text).toContain(why);
  });

  test.each([
    ["no proof", { code_challenge: undefined, code_challenge_method: undefined }, "invalid_request"],
    ["a plain proof", { code_challenge_method: "plain" }, "invalid_request"],
    ["another response type", { response_type: "token" }, "unsupported_response_type"],
    ["another scope", { scope: "bio" }, "invalid_scope"],
    ["no page allowed", { prompt: "none" }, "login_required"],
    ["no page and a page", { prompt: "none login" }, "invalid_request"],
    ["an unknown prompt", { prompt: "register" }, "invalid_request"],
    ["a pushed request", { request_uri: "urn:ietf:params:oauth:request_uri:x" }, "request_uri_not_supported"],
    ["a signed request", { request: "x" }, "request_not_supported"],
  ])("%s goes back to the client as an error", async (_, change, error) => {
    const { url } = await new Browser(box).go(authorizeUrl(change));
    expect(url.origin).toBe("https://app.example");
    expect(Object.fromEntries(url.searchParams)).toEqual({
      error,
      error_description: expect.any(String),
      state: "s1",
      iss: ISSUER,
    });
    // Not by the library, which takes several times as long: anybody may ask.
    expect(await box.service.documents.list("oidc.cookie-keys")).toEqual([]);
  });

  test("a parameter given twice goes back to the client as an error, others that nobody knows are ignored", async () => {
    const { url } = await new Browser(box).go(`${authorizeUrl()}&state=s2`);
    expect(url.searchParams.get("error")).toBe("invalid_request");
    expect((await new Browser(box).go(authorizeUrl({ max_age: "1", unknown: "x" }))).text).toContain(
      "<h1>Sign in</h1>",
    );
  });

  test.each(["/oauth2/authorize/x", "/oauth2/interaction/x"])(
    "nobody reaches the library at %s without a session",
    async (path) => {
      const cookie = "vivavoce_interaction=x; vivavoce_interaction.sig=x; vivavoce_session=x";
      const refused = await box.fetch(path, { headers: { Cookie: cookie } });
      expect(refused.status).toBeGreaterThanOrEqual(400);
      const ending = await box.fetch("/oauth2/session/end/confirm", form(null, { xsrf: "x", logout: "yes" }));
      expect(ending.status).toBe(403);
      expect(await box.service.documents.list("oidc.cookie-keys")).toEqual([]);
    },
  );

  test("a service account's credential does not authorize, a user's gets no client_credentials token", async () => {
    const user = (await box.service.users.find("olga"))!;
    const service = await box.service.credentials.create(user, { kind: "service", label: "Job" });
    const { response } = await new Browser(box).go(authorizeUrl({ client_id: service.credential.clientId }));
    expect(response.status).toBe(400);
    const answer = await box.fetch(
      "/oauth2/token",
      form(basic(clientId, secret), { grant_type: "client_credentials", scope: "platform-api" }),
    );
    expect(await answer.json()).toMatchObject({ error: "unauthorized_client" });
    const code = await box.fetch(
      "/oauth2/token",
      form(basic(service.credential.clientId, service.secret), {
        grant_type: "authorization_code",
        code: "x",
        redirect_uri: REDIRECT,
      }),
    );
    expect(await code.json()).toMatchObject({ error: "unauthorized_client" });
  });

  test("a token for another resource (RFC 8707) is refused, before anybody signs in and with a code", async () => {
    const { url } = await new Browser(box).go(authorizeUrl({ resource: "https://other.example" }));
    expect(url.origin + url.pathname).toBe(REDIRECT);
    expect(url.searchParams.get("error")).toBe("invalid_target");
    const redeemFor = async (resource: string) => {
      const code = (await allow()).searchParams.get("code")!;
      const fields = { grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: REDIRECT };
      return box.fetch("/oauth2/token", form(basic(clientId, secret), { ...fields, resource }));
    };
    const refused = await redeemFor("https://other.example");
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: "invalid_target" }]);
    expect((await redeemFor("urn:vivavoce:tooling")).status).toBe(200);
  });

  test("a wrong password is reported, delayed, and starts no session", async () => {
    const browser = new Browser(box);
    let page = await browser.go(authorizeUrl());
    for (let i = 0; i < 5; i++) {
      page = await browser.submit(page.text, { name: "olga", password: "wrong password" });
      expect(page.response.status).toBe(401);
      expect(page.text).toContain("The user name or the password is wrong.");
    }
    expect((await browser.submit(page.text, { name: "olga", password: PASSWORD })).response.status).toBe(429);
    expect(browser.cookies.has("vivavoce_session")).toBe(false);
  });

  test("refused sign-ins are logged, with the name only if there is such a user", async () => {
    const browser = new Browser(box);
    const { text } = await browser.go(authorizeUrl());
    for (const name of ["olga", "a password by mistake"]) await browser.submit(text, { name, password: "wrong" });
    expect(box.audited).toMatchObject([
      { event: "sign-in-refused", user: "olga" },
      { event: "sign-in-refused", user: null },
    ]);
  });

  test("a credential of an unknown kind is refused on the page, and none is created", async () => {
    const browser = new Browser(box);
    await allow(browser);
    const profile = await browser.go("/profile");
    const token = /name="form_token" value="([^"]+)"/.exec(profile.text)![1]!;
    const asked = form(null, { form_token: token, kind: "robot", label: "x" });
    const { response, text } = await browser.go("/profile/credentials", asked);
    expect(response.status).toBe(400);
    expect(text).toContain("the kind of a credential must be service or user, got");
    expect(await box.service.credentials.ofUser((await box.service.users.find("olga"))!)).toHaveLength(1);
  });

  test("a credential is deleted on the page, which then says that there is none", async () => {
    const browser = new Browser(box);
    await allow(browser);
    const before = await browser.go("/profile");
    expect(before.text).not.toContain("None yet.");
    const token = /name="form_token" value="([^"]+)"/.exec(before.text)![1]!;
    await browser.go("/profile/credentials/delete", form(null, { form_token: token, client_id: clientId }));
    expect(await box.service.credentials.ofUser((await box.service.users.find("olga"))!)).toEqual([]);
    expect((await browser.go("/profile")).text).toContain("None yet.");
  });

  test("a user has at most 50 credentials", async () => {
    const olga = (await box.service.users.find("olga"))!;
    for (let n = 2; n <= 50; n++) await box.service.credentials.create(olga, { kind: "service", label: `job ${n}` });
    await expect(box.service.credentials.create(olga, { kind: "service", label: "job 51" })).rejects.toMatchObject({
      code: "conflict",
      message: "a user can have at most 50 credentials; delete one first",
    });
    expect(await box.service.credentials.ofUser(olga)).toHaveLength(50);
  });

  test("also if many are created at once", async () => {
    const { credentials, users } = box.service;
    const olga = (await users.find("olga"))!;
    await credentials.deleteAllOf(olga);
    for (let n = 1; n <= 45; n++) await credentials.create(olga, { kind: "service", label: `job ${n}` });
    const more = Array.from({ length: 10 }, (_, n) =>
      credentials.create(olga, { kind: "service", label: `more ${n}` }),
    );
    const created = (await Promise.allSettled(more)).filter(({ status }) => status === "fulfilled").length;
    expect(created).toBeLessThanOrEqual(5);
    expect(await credentials.ofUser(olga)).toHaveLength(45 + created);
  });

  test("a page that fails says so, and the log has the cause", async () => {
    const browser = new Browser(box);
    await allow(browser);
    const failing = vi.spyOn(box.service.documents, "get").mockRejectedValueOnce(new Error("the disk is gone"));
    const { response, text } = await browser.go("/profile");
    failing.mockRestore();
    expect(response.status).toBe(500);
    expect(text).not.toContain("the disk is gone");
    expect(box.audited.at(-1)).toEqual({ event: "failure", stack: expect.stringContaining("the disk is gone") });
  });

  test("many simultaneous guesses are not all checked", async () => {
    const browser = new Browser(box);
    const { text } = await browser.go(authorizeUrl());
    const tries = await Promise.all(
      Array.from({ length: 20 }, (_, i) => browser.submit(text, { name: "olga", password: `guess number ${i}` })),
    );
    const statuses = tries.map(({ response }) => response.status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(15);
  });

  test("a new password ends the sessions of the old one", async () => {
    const browser = new Browser(box);
    await allow(browser);
    expect((await browser.go("/profile")).text).toContain("<h1>Profile</h1>");
    advance(box, 1);
    await box.service.users.change("olga", { password: "another password" });
    expect((await browser.go("/profile")).text).toContain("<h1>Sign in</h1>");
  });

  test("forms are accepted only from our own page in the same browser", async () => {
    const browser = new Browser(box);
    const signIn = await browser.go(authorizeUrl());
    const credentials = { name: "olga", password: PASSWORD };
    expect((await browser.submit(signIn.text, credentials, { Origin: "https://evil.example" })).response.status).toBe(
      403,
    );
    expect((await browser.submit(signIn.text, credentials, { "Sec-Fetch-Site": "cross-site" })).response.status).toBe(
      403,
    );
    expect((await browser.submit(signIn.text, { ...credentials, form_token: "guess" })).response.status).toBe(403);
    const stranger = new Browser(box);
    expect((await stranger.submit(signIn.text, credentials)).response.status).toBe(403);
    const consent = await browser.submit(signIn.text, credentials);
    expect((await browser.submit(consent.text, { action: "allow", form_token: "guess" })).response.status).toBe(403);
  });

  test("cookies are HttpOnly, SameSite and, under https, Secure; pages are not stored or framed", async () => {
    const browser = new Browser(box);
    const signIn = await browser.go(authorizeUrl());
    await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    const lines = browser.setCookies;
    const names = lines.map((line) => line.slice(0, line.indexOf("=")));
    for (const name of ["vivavoce_interaction", "vivavoce_form", "vivavoce_session", "vivavoce_authorization"])
      expect(names).toContain(name);
    // The library's own session ends with the browser.
    expect(lines.find((line) => line.startsWith("vivavoce_authorization="))).not.toMatch(/expires/i);
    for (const line of lines) {
      expect(line).toMatch(/httponly/i);
      expect(line).toMatch(/samesite=(lax|strict)/i);
      expect(line).toMatch(/secure/i);
    }
    expect(signIn.response.headers.get("Cache-Control")).toBe("no-store");
    expect(signIn.response.headers.get("X-Frame-Options")).toBe("DENY");
    expect(signIn.response.headers.get("Content-Security-Policy")).toMatch(/frame-ancestors 'none'/);
  });

  test("under http, the cookies of a sign-in are not Secure, so that the browser sends them back", async () => {
    const plain = createBox({ startAt: box.now(), issuer: "http://box.example" });
    const olga = await plain.service.users.create({ name: "olga", role: "owner", password: PASSWORD });
    const wanted = { kind: "user", label: "Console", redirectUris: [REDIRECT] } as const;
    const { credential } = await plain.service.credentials.create(olga, wanted);
    const browser = new Browser(plain);
    const signIn = await browser.go(authorizeUrl({ client_id: credential.clientId }));
    await browser.submit(signIn.text, { name: "olga", password: PASSWORD }, { Origin: "http://box.example" });
    expect([...browser.cookies.keys()]).toContain("vivavoce_interaction");
    for (const line of browser.setCookies) expect(line).not.toMatch(/secure/i);
  });

  test("tokens of a deleted credential or a disabled user are refused", async () => {
    const { access_token } = await redeem(await allow());
    await box.service.users.change("olga", { disabled: true });
    expect((await me(access_token)).status).toBe(401);
    await box.service.users.change("olga", { disabled: false });
    expect((await me(access_token)).status).toBe(200);
    await box.service.credentials.delete((await box.service.users.find("olga"))!, clientId);
    expect((await me(access_token)).status).toBe(401);
  });

  describe("after a new password was set", () => {
    const next = "another password";
    const introspected = async (token: string, id = clientId, password = secret) =>
      (await box.fetch("/oauth2/introspect", form(basic(id, password), { token }))).json();
    const authorized = (token: string, init: RequestInit = {}) => ({
      ...init,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    });

    test("earlier sessions, codes and tokens are refused; later ones work, even in the same second", async () => {
      const olga = (await box.service.users.find("olga"))!;
      const robot = await box.service.credentials.create(olga, { kind: "service", label: "robot" });
      const robotToken = async () => {
        const { credential, secret: key } = robot;
        const init = form(basic(credential.clientId, key), { grant_type: "client_credentials", scope: "platform-api" });
        return ((await (await box.fetch("/oauth2/token", init)).json()) as { access_token: string }).access_token;
      };
      const browser = new Browser(box);
      const { access_token } = await redeem(await allow(browser));
      const pending = await allow(new Browser(box));
      const served = await robotToken();
      for (const token of [access_token, served]) expect((await me(token)).status).toBe(200);
      expect(await introspected(access_token)).toMatchObject({ active: true });

      advance(box, 1);
      await box.service.users.change("olga", { password: next });
      for (const token of [access_token, served])
        expect(await (await me(token)).json()).toMatchObject({
          error: "invalid_token",
          error_description: "the token was revoked",
        });
      expect(await introspected(access_token)).toEqual({ active: false });
      expect(await introspected(served, robot.credential.clientId, robot.secret)).toEqual({ active: false });
      await expect(redeem(pending)).rejects.toMatchObject({ error: "invalid_grant" });
      expect((await browser.go("/profile")).url.pathname).toBe("/sign-in");

      expect((await me(await robotToken())).status).toBe(200);
      const again = await browser.go(authorizeUrl());
      const consent = await browser.submit(again.text, { name: "olga", password: next });
      const renewed = await redeem((await browser.submit(consent.text, { action: "allow" })).url);
      expect((await me(renewed.access_token)).status).toBe(200);
    });

    test("the browser that changes the password stays signed in; other users and role changes are not affected", async () => {
      const mia = await box.service.users.create({ name: "mia", role: "member", password: PASSWORD });
      const other = await redeem(await allow());
      const asking = await redeem(await allow());
      advance(box, 1);
      const change = JSON.stringify({ current: PASSWORD, password: next });
      const init = authorized(asking.access_token, { method: "PUT", body: change });
      expect((await box.fetch("/management/v1/me/password", init)).status).toBe(204);
      expect((await me(asking.access_token)).status).toBe(200);
      expect((await me(other.access_token)).status).toBe(401);

      await box.service.users.change(mia.name, { password: next });
      await box.service.users.change("olga", { role: "member" });
      expect((await me(asking.access_token)).status).toBe(200);
      await box.service.users.change("olga", { role: "owner" });
      const set = authorized(asking.access_token, { method: "PATCH", body: JSON.stringify({ password: PASSWORD }) });
      advance(box, 1);
      // An owner who sets a password, even their own, proves nothing by it.
      expect((await box.fetch("/management/v1/users/olga", set)).status).toBe(200);
      expect((await me(asking.access_token)).status).toBe(401);
    });
  });

  test("keys change between and during authorizations", async () => {
    const browser = new Browser(box);
    const callback = await allow(browser);
    await box.service.keyring.rotate({ revoke: true });
    const result = await redeem(callback);
    expect((await me(result.access_token)).status).toBe(200);
  });
});

describe("a page of the box itself", () => {
  const redirect = `${ISSUER}${OPERATOR_PAGE.path}`;
  const client = { client_id: OPERATOR_PAGE.clientId };
  let box: Box;
  let verifier: string;

  beforeEach(async () => {
    box = createBox({ startAt: Date.now(), pages: [OPERATOR_PAGE] });
    await box.service.users.create({ name: "olga", role: "owner", password: PASSWORD });
    await box.service.users.create({ name: "mia", role: "member", password: PASSWORD });
    verifier = oauth.generateRandomCodeVerifier();
  });

  const authorizeUrl = async (redirectUri = redirect) =>
    `/oauth2/authorize?${new URLSearchParams({
      ...client,
      redirect_uri: redirectUri,
      response_type: "code",
      scope: "platform-api",
      state: "s1",
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    })}`;

  /** With the origin of the page, as a browser sends it. */
  const fromPage = (url: string, init: RequestInit) =>
    box.fetch(url, { ...init, headers: { ...(init.headers as Record<string, string>), origin: ISSUER } });

  const redeem = async (callback: URL, codeVerifier = verifier) => {
    const options = { [oauth.customFetch]: fromPage } as never;
    const parameters = oauth.validateAuthResponse(server, client, callback, "s1");
    const { None: none, authorizationCodeGrantRequest } = oauth;
    return oauth.processAuthorizationCodeResponse(
      server,
      client,
      await authorizationCodeGrantRequest(server, client, none(), parameters, redirect, codeVerifier, options),
    );
  };

  const me = async (token: string) =>
    (await box.fetch("/management/v1/me", { headers: { Authorization: `Bearer ${token}` } })).json();

  test("every user can sign in to it, without further consent, and has the role's permissions", async () => {
    for (const [name, role] of [
      ["olga", "owner"],
      ["mia", "member"],
    ] as const) {
      const browser = new Browser(box);
      const signIn = await browser.go(await authorizeUrl());
      expect(signIn.text).toContain("the operator view");
      const { url } = await browser.submit(signIn.text, { name, password: PASSWORD });
      expect(`${url.origin}${url.pathname}`).toBe(redirect);
      const { access_token } = await redeem(url);
      expect(await me(access_token)).toMatchObject({ name, role });
      // A signed-in browser is redirected at once.
      expect((await browser.go(await authorizeUrl())).url.searchParams.get("code")).toBeTruthy();
      await box.service.users.change(name, { disabled: true });
      expect(await me(access_token)).toMatchObject({ error: "invalid_token" });
    }
  });

  test("a code of a user who was disabled or deleted meanwhile is refused", async () => {
    for (const end of [() => box.service.changeUser("mia", { disabled: true }), () => box.service.deleteUser("mia")]) {
      await box.service.changeUser("mia", { disabled: false });
      const browser = new Browser(box);
      const signIn = await browser.go(await authorizeUrl());
      const { url } = await browser.submit(signIn.text, { name: "mia", password: PASSWORD });
      await end();
      await expect(redeem(url)).rejects.toMatchObject({ error: "invalid_grant" });
    }
  });

  test("a sign-in that it begins does without the library until somebody signs in, because anybody may begin one", async () => {
    const browser = new Browser(box);
    const begun = await authorizeUrl();
    const signIn = await browser.go(begun);
    const wrong = await browser.submit(signIn.text, { name: "olga", password: "wrong" });
    expect([wrong.response.status, wrong.text]).toEqual([401, expect.stringContaining("the operator view")]);
    expect(await box.service.documents.list("oidc.cookie-keys")).toEqual([]);
    expect(await box.service.documents.list("oidc.Interaction")).toEqual([]);
    // However long they wait.
    advance(box, 3_600_000);
    const { url } = await browser.submit(wrong.text, { name: "olga", password: PASSWORD });
    expect(await redeem(url)).toMatchObject({ token_type: "bearer" });
  });

  test.each([
    ["another address", { redirect_uri: "https://evil.example/" }, 400],
    ["another scope", { scope: "openid" }, "invalid_scope"],
    ["no challenge", { code_challenge: undefined }, "invalid_request"],
    ["a short challenge", { code_challenge: "x" }, "invalid_request"],
    ["a plain challenge", { code_challenge_method: "plain" }, "invalid_request"],
    ["no type", { response_type: undefined }, "invalid_request"],
    ["no question", { prompt: "none" }, "login_required"],
  ])("a sign-in that it does not begin like this is refused before anybody signs in: %s", async (_, other, refusal) => {
    const begun = new URL(await authorizeUrl(), ISSUER);
    for (const [name, value] of Object.entries(other)) {
      if (value === undefined) begun.searchParams.delete(name);
      else begun.searchParams.set(name, value);
    }
    const { response, url } = await new Browser(box).go(begun.href);
    expect(typeof refusal === "number" ? response.status : url.searchParams.get("error")).toBe(refusal);
    // Nor does the page of the sign-in lead there.
    const browser = new Browser(box);
    const signIn = await browser.go(`/sign-in${begun.search}`);
    const signedIn = await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    expect(signedIn.url.pathname).toBe("/profile");
  });

  test("codes that do not exist are refused without the library, because anybody may send them", async () => {
    const guess = { grant_type: "authorization_code", client_id: OPERATOR_PAGE.clientId, code: "guess" };
    const response = await box.fetch("/oauth2/token", form(null, guess));
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: "invalid_grant", error_description: "the code is wrong, has expired or was already used" },
    ]);
    expect(await box.service.documents.list("oidc.cookie-keys")).toEqual([]);
  });

  test("a code is sent only to the page's own address, once, and only to the browser that started", async () => {
    const elsewhere = await new Browser(box).go(await authorizeUrl("https://evil.example/operator/"));
    expect(elsewhere.response.status).toBe(400);
    const browser = new Browser(box);
    const signIn = await browser.go(await authorizeUrl());
    const { url } = await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    await expect(redeem(url, oauth.generateRandomCodeVerifier())).rejects.toMatchObject({ error: "invalid_grant" });
    const again = (await browser.go(await authorizeUrl())).url;
    const { access_token } = await redeem(again);
    await expect(redeem(again)).rejects.toMatchObject({ error: "invalid_grant" });
    // Used twice: the first token is revoked as well.
    expect(await me(access_token)).toMatchObject({ error: "invalid_token" });
  });

  test("signing out ends the token of this page, not that of another browser", async () => {
    const signedIn = async () => {
      const browser = new Browser(box);
      const signIn = await browser.go(await authorizeUrl());
      return redeem((await browser.submit(signIn.text, { name: "olga", password: PASSWORD })).url);
    };
    const [here, there] = [await signedIn(), await signedIn()];
    const headers = { Authorization: `Bearer ${here.access_token}` };
    expect((await box.fetch("/management/v1/me/sign-out", { method: "POST", headers })).status).toBe(204);
    expect(await me(here.access_token)).toMatchObject({ error: "invalid_token" });
    expect(await me(there.access_token)).toMatchObject({ name: "olga" });
  });

  test("signing out at /profile ends its token too, not that of a credential", async () => {
    const browser = new Browser(box);
    const signIn = await browser.go(await authorizeUrl());
    const { access_token } = await redeem(
      (await browser.submit(signIn.text, { name: "olga", password: PASSWORD })).url,
    );
    const { id: accountId } = (await box.service.users.find("olga"))!;
    await box.service.documents.put("oidc.Grant", "of a credential", { accountId, clientId: "another" });
    const form = /<form[^>]*action="\/sign-out".*?<\/form>/s.exec((await browser.go("/profile")).text)![0];
    await browser.submit(form, {});
    expect(await me(access_token)).toMatchObject({ error: "invalid_token" });
    expect((await box.service.documents.list("oidc.Grant")).map(({ id }) => id)).toEqual(["of a credential"]);
  });

  test("a sign-in that has expired leads back to the page that began it; to nowhere else", async () => {
    const browser = new Browser(box);
    const onward = '<a href="/operator/">Operator view</a>';
    const signIn = await browser.go(`${await authorizeUrl()}&prompt=login`);
    await browser.submit(signIn.text, { name: "olga", password: PASSWORD });
    const sessionCookie = browser.cookies.get("vivavoce_session")!;
    for (const isSignedIn of [true, false]) {
      if (!isSignedIn) browser.cookies.delete("vivavoce_session");
      // As by the back button after a sign-in.
      const resumed = await browser.go("/oauth2/authorize/x");
      expect([resumed.response.status, resumed.text]).toEqual([400, expect.stringContaining(onward)]);
      expect(resumed.text).toContain("This sign-in has expired or was started in another browser.");
    }
    browser.cookies.set("vivavoce_session", sessionCookie);
    const user = (await box.service.users.find("olga"))!;
    const application = { kind: "user", label: "Console", redirectUris: [REDIRECT] } as const;
    const { credential } = await box.service.credentials.create(user, application);
    const elsewhere = (await authorizeUrl(REDIRECT)).replace(client.client_id, credential.clientId);
    const other = await browser.go(elsewhere);
    expect(other.text).toContain('<strong translate="no">Console</strong>');
    advance(box, 601_000);
    const { text } = await browser.submit(other.text, { action: "allow" });
    expect(text).toContain("This sign-in has expired or was started in another browser.");
    expect(text).not.toContain("<a ");
  });

  test("a box without the page does not have its client", async () => {
    box = createBox({ startAt: Date.now() });
    expect((await new Browser(box).go(await authorizeUrl())).response.status).toBe(400);
    const init = form(null, { ...client, grant_type: "authorization_code", code: "x", code_verifier: verifier });
    expect((await box.fetch("/oauth2/token", init)).status).toBe(401);
  });
});
