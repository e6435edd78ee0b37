import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import * as oauth from "oauth4webapi";
import { describe, expect, test, vi } from "vitest";
import { StatusCode } from "../../src/contract/index.js";
import { StatusError } from "../../src/contract/status-error.js";
import { StoreError } from "../../src/store/errors.js";
import { readText } from "../../src/token/form.js";
import { createTokenService } from "../../src/token/service.js";
import { createVerifier } from "../../src/token/verify.js";
import { type Box, basic, createBox, createRuntimeClient, form, ISSUER } from "./box.js";

const insecure = (box: Box) =>
  ({ [oauth.customFetch]: (url: string, init: RequestInit) => box.fetch(url, init) }) as never;

async function serverOf(box: Box): Promise<oauth.AuthorizationServer> {
  const response = await oauth.discoveryRequest(new URL(ISSUER), { algorithm: "oauth2", ...(insecure(box) as object) });
  return oauth.processDiscoveryResponse(new URL(ISSUER), response);
}

const tokenOf = async (box: Box, clientId: string, secret: string, scope: string) => {
  const response = await box.fetch(
    "/oauth2/token",
    form(basic(encodeURIComponent(clientId), secret), { grant_type: "client_credentials", scope }),
  );
  return { response, body: (await response.json()) as Record<string, unknown> };
};

describe("the runtime token endpoint", () => {
  test("an independent client finds it, gets a token and validates it against the published keys", async () => {
    const box = createBox({ startAt: Date.now() });
    const { clientId, secret, application } = await createRuntimeClient(box);
    const server = await serverOf(box);
    const client = { client_id: clientId };
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretBasic(secret),
      { scope: "bio tts" },
      insecure(box),
    );
    const result = await oauth.processClientCredentialsResponse(server, client, response);
    expect(result).toMatchObject({ token_type: "bearer", expires_in: 900, scope: "bio tts" });

    const request = new Request(ISSUER, { headers: { Authorization: `Bearer ${result.access_token}` } });
    const claims = await oauth.validateJwtAccessToken(server, request, box.service.audiences.runtime, insecure(box));
    expect(claims).toMatchObject({
      client_id: clientId,
      sub: clientId,
      scope: "bio tts",
      gk_scopes: ["scope-1"],
      app_id: application.id,
    });
    await expect(
      oauth.validateJwtAccessToken(server, request, box.service.audiences.tooling, insecure(box)),
    ).rejects.toThrow();
  });

  test("other failures are answered 500, without their cause, which the log has", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const failing = vi.spyOn(box.service.documents, "get");
    for (const [error, status] of [
      [Object.assign(new Error("broken pipe", { cause: "the cable" }), { code: "EPIPE" }), 500],
      [new Error("a bug"), 500],
      [new StatusError({ statusCode: StatusCode.BUSY, message: "the store is busy" }), 503],
    ] as const) {
      failing.mockRejectedValueOnce(error);
      const { response, body } = await tokenOf(box, clientId, secret, "bio");
      expect(response.status).toBe(status);
      expect(JSON.stringify(body)).not.toContain(error.message);
      expect(box.audited.at(-1)).toEqual({ event: "failure", stack: expect.stringContaining(error.message) });
      if (error.cause)
        expect(box.audited.at(-1)).toMatchObject({ stack: expect.stringMatching(/\ncaused by: the cable$/) });
    }
  });

  test("answers 503 while the database does not answer, and so do the pages", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const { documents } = box.service;
    const { get } = documents;
    documents.get = async () => {
      throw new StoreError("unavailable", "the database does not answer");
    };
    const { response, body } = await tokenOf(box, clientId, secret, "bio");
    expect([response.status, response.headers.get("Retry-After")]).toEqual([503, "5"]);
    expect(body).toMatchObject({
      error: "temporarily_unavailable",
      error_description: "the database does not answer; try again",
    });
    const page = await box.fetch("/profile", { headers: { Cookie: "vivavoce_session=some-session" } });
    expect([page.status, page.headers.get("Retry-After")]).toEqual([503, "5"]);
    documents.get = get;
    expect((await tokenOf(box, clientId, secret, "bio")).response.status).toBe(200);
  });

  test("is valid for 900 s and 5 s of clock skew, also if other issuers have a larger skew", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const token = String((await tokenOf(box, clientId, secret, "bio")).body.access_token);
    const foreign = { issuer: "https://other.example", keys: { keys: [] }, audience: "voice" };
    const clock = { now: box.now };
    const guard = createVerifier({ issuers: [box.service.runtimeIssuer, foreign], clock });
    box.advance(904_999);
    await guard.verify(token, "bio");
    box.advance(1);
    await expect(guard.verify(token, "bio")).rejects.toThrow("Access Token Expired");
    await expect(createVerifier({ issuers: [box.service.runtimeIssuer], clock }).verify(token)).rejects.toThrow();
  });

  test("answers with exactly the contract's four fields, and no-store", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const { response, body } = await tokenOf(box, clientId, secret, "asr nlu dlg tts log asr.wordset nlu.wordset bio");
    expect(response.status).toBe(200);
    expect(Object.keys(body).sort()).toEqual(["access_token", "expires_in", "scope", "token_type"]);
    expect(body).toMatchObject({
      expires_in: 900,
      token_type: "bearer",
      scope: "asr nlu dlg tts log asr.wordset nlu.wordset bio",
    });
    expect(response.headers.get("Cache-Control")).toBe("no-store");
    expect(response.headers.get("Content-Type")).toContain("application/json");
  });

  test("accepts escaped and raw ids in the Basic header", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const request = { grant_type: "client_credentials", scope: "tts" };
    for (const id of [clientId, clientId.replaceAll(":", "%3A"), clientId.replaceAll(":", "%3a")]) {
      expect((await box.fetch("/oauth2/token", form(basic(id, secret), request))).status).toBe(200);
    }
  });

  test("biometric scopes are only in tokens with bio, and follow the client", async () => {
    const box = createBox();
    const { application, clientId, secret } = await createRuntimeClient(box, ["a", "b"]);
    const other = await box.service.applications.createClient(application.id, { name: "second" });
    const otherSecret = await box.service.applications.regenerateSecret(application.id, other.id);
    const withBio = await box.service.runtime.verify(
      String((await tokenOf(box, clientId, secret, "tts bio")).body.access_token),
      "bio",
    );
    expect([...withBio.gkScopes]).toEqual(["a", "b"]);
    const without = await box.service.runtime.verify(
      String((await tokenOf(box, clientId, secret, "tts")).body.access_token),
    );
    expect(without.gkScopes.size).toBe(0);
    expect((await tokenOf(box, other.id, otherSecret, "bio")).body).toMatchObject({ error: "invalid_scope" });
    expect((await tokenOf(box, other.id, otherSecret, "tts")).response.status).toBe(200);
    await box.service.applications.bindScopes(application.id, other.id, ["c"]);
    const bound = await box.service.runtime.verify(
      String((await tokenOf(box, other.id, otherSecret, "bio")).body.access_token),
      "bio",
    );
    expect([...bound.gkScopes]).toEqual(["c"]);
  });

  test.each([
    ["no scope", { grant_type: "client_credentials" }, 400, "invalid_request"],
    ["an empty scope", { grant_type: "client_credentials", scope: "" }, 400, "invalid_request"],
    ["an unknown scope", { grant_type: "client_credentials", scope: "tts shout" }, 400, "invalid_scope"],
    ["the tooling scope", { grant_type: "client_credentials", scope: "platform-api" }, 400, "invalid_scope"],
    ["a malformed scope", { grant_type: "client_credentials", scope: 'a"b' }, 400, "invalid_scope"],
    ["no grant type", { scope: "tts" }, 400, "invalid_request"],
    ["another grant type", { grant_type: "password", scope: "tts" }, 400, "unsupported_grant_type"],
    [
      "a secret in the form beside the header's",
      { grant_type: "client_credentials", scope: "tts", client_secret: "x" },
      400,
      "invalid_request",
    ],
    [
      "another client in the form",
      { grant_type: "client_credentials", scope: "tts", client_id: "x" },
      400,
      "invalid_request",
    ],
    [
      "a client assertion",
      { grant_type: "client_credentials", scope: "tts", client_assertion: "x" },
      400,
      "invalid_request",
    ],
  ])("%s is refused as RFC 6749 has it", async (_, fields, status, error) => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const response = await box.fetch("/oauth2/token", form(basic(clientId, secret), fields as Record<string, string>));
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error, error_description: expect.any(String) });
    expect(response.headers.get("Cache-Control")).toBe("no-store");
  });

  test("a secret in the form needs the client's id; a client named in both places is accepted", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const grant = { grant_type: "client_credentials", scope: "tts" };
    const alone = await box.fetch("/oauth2/token", form(null, { ...grant, client_secret: secret }));
    expect([alone.status, await alone.json()]).toEqual([
      400,
      { error: "invalid_request", error_description: "client_secret is sent without client_id; send both" },
    ]);
    const named = form(basic(clientId, secret), { ...grant, client_id: clientId });
    expect((await box.fetch("/oauth2/token", named)).status).toBe(200);
  });

  test("the log has the address of the connection, or unknown without one", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const init = form(basic(clientId, secret), { grant_type: "client_credentials", scope: "tts" });
    const connection = { incoming: { socket: { remoteAddress: "192.0.2.1" } } } as never;
    await box.app.fetch(new Request(`${ISSUER}/oauth2/token`, init), connection);
    await box.fetch("/oauth2/token", init);
    expect(box.audited).toMatchObject([{ address: "192.0.2.1" }, { address: "unknown" }]);
  });

  test("a scope that the environment does not have is refused", async () => {
    const box = createBox();
    const { application, clientId, secret } = await createRuntimeClient(box);
    await box.service.applications.putGeography(application.id, "eu", { scopes: ["tts"] });
    expect((await tokenOf(box, clientId, secret, "tts")).response.status).toBe(200);
    expect((await tokenOf(box, clientId, secret, "tts asr")).body).toMatchObject({ error: "invalid_scope" });
  });

  test("wrong credentials: 401, invalid_client, a Basic challenge; the log has no secrets", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const request = { grant_type: "client_credentials", scope: "tts" };
    const swapped = basic(secret, clientId);
    for (const authorization of [
      null,
      "Basic",
      "Basic !!!",
      "Bearer x",
      basic("", ""),
      basic(clientId, "wrong"),
      basic("appID:a:geo:b:clientName:c", secret),
      swapped,
      `Basic ${Buffer.from("%zz:x").toString("base64")}`,
    ]) {
      const response = await box.fetch("/oauth2/token", form(authorization, request));
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error: "invalid_client" });
      expect(response.headers.get("WWW-Authenticate")).toMatch(/^Basic realm=/);
    }
    expect(await (await box.fetch("/oauth2/token", form(null, request))).json()).toMatchObject({
      error_description:
        "send the client id and secret in an Authorization header (Basic), or as the form fields client_id and client_secret",
    });
    await tokenOf(box, clientId, secret, "tts");
    const log = JSON.stringify(box.audited);
    expect(log).not.toContain(secret);
    expect(log).not.toMatch(/eyJ/);
    expect(log).toContain("client-refused");
    expect(log).toContain("token-issued");
  });

  test("repeated parameters, too many of them, other media types, other methods and long bodies are refused", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const authorization = basic(clientId, secret);
    const headers = {
      Authorization: authorization,
      "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
    };
    const post = (body: string, more: Record<string, string> = {}) =>
      box.fetch("/oauth2/token", { method: "POST", headers: { ...headers, ...more }, body });
    expect((await post("grant_type=client_credentials&scope=tts")).status).toBe(200);
    const repeated = await post("grant_type=client_credentials&scope=tts&scope=asr");
    expect(repeated.status).toBe(400);
    expect(await repeated.json()).toMatchObject({ error_description: "scope must be given once" });
    const odd = await post("grant_type=client_credentials&%22%0A=1&%22%0A=2");
    expect(await odd.json()).toMatchObject({ error_description: "a parameter must be given once" });
    expect((await post('{"grant_type":"client_credentials"}', { "Content-Type": "application/json" })).status).toBe(
      400,
    );
    const others = (count: number) => Array.from({ length: count }, (_, i) => `&other${i}=`).join("");
    expect((await post(`grant_type=client_credentials&scope=tts${others(98)}`)).status).toBe(200);
    expect(await (await post(`grant_type=client_credentials&scope=tts${others(99)}`)).json()).toMatchObject({
      error_description: "the body may have at most 100 parameters",
    });
    const longest = "grant_type=client_credentials&scope=".padEnd(32_768, "x");
    expect((await post(longest)).status).toBe(400);
    expect((await post(`${longest}x`)).status).toBe(413);
    for (const init of [{ body: new TextEncoder().encode("grant_type=client_credentials&scope=tts") }, {}]) {
      const bare = { method: "POST", headers: { Authorization: authorization }, ...init };
      expect(await (await box.fetch("/oauth2/token", bare)).json()).toMatchObject({
        error_description: "the body must be application/x-www-form-urlencoded",
      });
    }
    expect(await (await box.fetch("/oauth2/token", { method: "POST", headers })).json()).toMatchObject({
      error_description: "grant_type is missing",
    });
    const get = await box.fetch("/oauth2/token?grant_type=client_credentials&scope=tts", { headers });
    expect(get.status).toBe(405);
    expect(get.headers.get("Allow")).toBe("POST");
    expect(await get.json()).toMatchObject({ error_description: "GET is not allowed here; use POST" });
  });

  test("a body of a connection is read up to the longest form, with and without its length", async () => {
    const box = createBox();
    const server = createServer(getRequestListener((request) => box.app.fetch(request)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth2/token`;
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const post = async (body: RequestInit["body"]) => {
      const response = await fetch(url, { method: "POST", headers, body, duplex: "half" } as RequestInit);
      return {
        status: response.status,
        error: ((await response.json()) as { error_description: string }).error_description,
      };
    };
    const longest = "grant_type=a&x=".padEnd(32_768, "x");
    const refused = { status: 400, error: "grant_type must be client_credentials or authorization_code" };
    const tooLarge = { status: 413, error: "the request body is too large" };
    try {
      expect(await post(longest)).toEqual(refused);
      expect(await post(`${longest}x`)).toEqual(tooLarge);
      expect(await post(new Blob([longest]).stream())).toEqual(refused);
      expect(await post(new Blob([`${longest}x`]).stream())).toEqual(tooLarge);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test("guessing is slowed down for the pair of client and address, without locking out the client elsewhere", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const ask = (password: string, address: string) =>
      box.app.fetch(
        new Request(
          `${ISSUER}/oauth2/token`,
          form(basic(clientId, password), { grant_type: "client_credentials", scope: "tts" }),
        ),
        {
          incoming: { socket: { remoteAddress: address } },
        } as never,
      );
    for (let i = 0; i < 5; i++) expect((await ask("wrong", "192.0.2.1")).status).toBe(401);
    const slowed = await ask(secret, "192.0.2.1");
    expect(slowed.status).toBe(429);
    expect(Number(slowed.headers.get("Retry-After"))).toBeGreaterThan(0);
    expect((await ask(secret, "192.0.2.2")).status).toBe(200);
    box.advance(Number(slowed.headers.get("Retry-After")) * 1000);
    expect((await ask(secret, "192.0.2.1")).status).toBe(200);
  });

  test("delays double, and the address is slowed down for every client it tries", async () => {
    const box = createBox();
    const waits: number[] = [];
    const fail = async (clientId: string, address: string): Promise<void> =>
      (await box.service.throttle.attempt(clientId, address)).failed();
    for (let i = 0; i < 8; i++) {
      for (;;) {
        try {
          await fail("appID:a:geo:b:clientName:c", "192.0.2.9");
          break;
        } catch (error) {
          const wait = Number((error as { headers: Record<string, string> }).headers["Retry-After"]);
          waits.push(wait);
          box.advance(wait * 1000);
        }
      }
    }
    expect(waits).toEqual([1, 2, 4]);
    for (let i = 0; i < 30; i++) await fail(`client ${i}`, "192.0.2.10");
    await expect(box.service.throttle.attempt("fresh", "192.0.2.10")).rejects.toThrow("too many failed attempts");
    await box.service.throttle.attempt("fresh", "192.0.2.11");
  });

  test("failures expire after an hour and are counted over all replicas", async () => {
    const box = createBox();
    const other = createTokenService({ documents: box.service.documents, issuer: ISSUER, clock: box.service.clock });
    const [here, there] = [box.service.throttle, other.throttle];
    for (const throttle of [here, there, here, there, here])
      await (await throttle.attempt("guessed", "192.0.2.1")).failed();
    for (const throttle of [here, there])
      await expect(throttle.attempt("guessed", "192.0.2.1")).rejects.toMatchObject({ status: 429 });
    box.advance(3_600_000);
    for (let i = 0; i < 4; i++) await (await there.attempt("guessed", "192.0.2.1")).failed();
    await (await here.attempt("guessed", "192.0.2.1")).succeeded();
    expect((await box.service.documents.list("token.failures")).map(({ id }) => id)).toEqual(["address 192.0.2.1"]);
  });
});

describe("applications and clients", () => {
  test("an application starts with one client, default; the last client cannot be deleted", async () => {
    const box = createBox();
    const { applications } = box.service;
    const application = await applications.create({ name: "Bank", environment: "dev", geography: "us" });
    expect(application.clients.map(({ name }) => name)).toEqual(["default"]);
    expect(application.clients[0]!.id).toBe(`appID:${application.id}:geo:us:clientName:default`);
    const id = application.clients[0]!.id;
    await expect(applications.deleteClient(application.id, id)).rejects.toMatchObject({ code: "conflict" });
    await applications.createClient(application.id, { name: "ivr" });
    await expect(applications.createClient(application.id, { name: "ivr" })).rejects.toMatchObject({
      code: "conflict",
    });
    await applications.deleteClient(application.id, id);
    expect((await applications.get(application.id)).clients.map(({ name }) => name)).toEqual(["ivr"]);
    const names = ["c".repeat(64), "0"];
    for (const name of names) await applications.createClient(application.id, { name });
    expect((await applications.get(application.id)).clients.map(({ name }) => name)).toEqual(["ivr", ...names]);
    await expect(applications.deleteClient(application.id, id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("are listed from the oldest, and deleted once", async () => {
    const box = createBox();
    const { applications } = box.service;
    const create = (name: string) => applications.create({ name, environment: "dev", geography: "us" });
    const early = await create("early");
    box.advance(1000);
    const late = await create("late");
    const { documents } = box.service;
    const { list } = documents;
    // A store has no order of its own.
    for (const inStore of [list, async (name: string) => (await list(name)).reverse()]) {
      documents.list = inStore;
      expect((await applications.list()).map(({ name }) => name)).toEqual(["early", "late"]);
    }
    const deleted = await Promise.allSettled([applications.delete(early.id), applications.delete(early.id)]);
    expect(deleted).toMatchObject([{ status: "fulfilled" }, { status: "rejected", reason: { code: "not_found" } }]);
    expect((await applications.list()).map(({ id }) => id)).toEqual([late.id]);
  });

  test("names and environments have 1 to 128 characters", async () => {
    const { applications } = createBox().service;
    const create = (name: string, environment: string) => applications.create({ name, environment, geography: "us" });
    const [longest, longer] = ["n".repeat(128), "n".repeat(129)];
    expect(await create(longest, longest)).toMatchObject({ name: longest, environment: longest });
    for (const [name, environment] of [
      [longer, "dev"],
      ["Bank", longer],
    ] as const)
      await expect(create(name, environment)).rejects.toMatchObject({ code: "invalid_request", refusal: "nameLength" });
  });

  test("a geography keeps the settings that a change does not name", async () => {
    const { applications } = createBox().service;
    const given = { scopes: ["tts"], oauthServerUrl: "https://sso.example/token", endpoints: { tts: "tts.example:1" } };
    const { id, geographies } = await applications.create({
      name: "Bank",
      environment: "dev",
      geography: "us",
      ...given,
    });
    const bio = "box.example:443";
    expect(geographies).toEqual({ us: { ...given, endpoints: { bio, tts: "tts.example:1" } } });
    const changed = async (settings: object, geography = "us") =>
      (await applications.putGeography(id, geography, settings)).geographies[geography];
    expect(await changed({ endpoints: { asr: "asr.example:2" } })).toEqual({
      ...given,
      endpoints: { bio, tts: "tts.example:1", asr: "asr.example:2" },
    });
    expect(await changed({ scopes: ["nlu"] })).toMatchObject({ scopes: ["nlu"], oauthServerUrl: given.oauthServerUrl });
    expect(await changed({}, "eu")).toEqual({
      scopes: ["asr", "asr.wordset", "nlu", "nlu.wordset", "dlg", "tts", "log", "bio"],
      oauthServerUrl: `${ISSUER}/oauth2/token`,
      endpoints: { bio },
    });
    await expect(changed({ scopes: ["shout"] })).rejects.toMatchObject({ code: "invalid_scope" });
    await expect(changed({}, "e u")).rejects.toMatchObject({ refusal: "clientIdPart" });
  });

  test.each([
    ["http://box.example", "box.example:80"],
    ["http://127.0.0.1:8080", "127.0.0.1:8080"],
    ["http://[::1]:8080", "[::1]:8080"],
  ])("the voiceprint service of a box at %s is at %s", async (issuer, bio) => {
    const { applications } = createBox({ issuer }).service;
    const created = await applications.create({ name: "Bank", environment: "dev", geography: "us" });
    expect(created.geographies.us!.endpoints).toEqual({ bio });
  });

  test("a client shows whether and since when it has a secret", async () => {
    const box = createBox();
    const { applications } = box.service;
    const { id, clients } = await applications.create({ name: "Bank", environment: "dev", geography: "us" });
    expect(clients).toMatchObject([{ hasSecret: false, secretCreatedAt: null }]);
    box.advance(5);
    await applications.regenerateSecret(id, clients[0]!.id);
    expect((await applications.get(id)).clients).toMatchObject([{ hasSecret: true, secretCreatedAt: box.now() }]);
  });

  test("if two clients are deleted at the same moment, one stays", async () => {
    const box = createBox();
    const { applications } = box.service;
    const application = await applications.create({ name: "Bank", environment: "dev", geography: "us" });
    const second = await applications.createClient(application.id, { name: "second" });
    const results = await Promise.allSettled(
      [application.clients[0]!.id, second.id].map((id) => applications.deleteClient(application.id, id)),
    );
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect((await applications.get(application.id)).clients).toHaveLength(1);
  });

  test("a new secret replaces the old one at once; issued tokens stay valid for their 900 s", async () => {
    const box = createBox();
    const { application, clientId, secret } = await createRuntimeClient(box);
    const { body } = await tokenOf(box, clientId, secret, "tts");
    const next = await box.service.applications.regenerateSecret(application.id, clientId);
    expect(next).not.toBe(secret);
    expect(next).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect((await tokenOf(box, clientId, secret, "tts")).response.status).toBe(401);
    expect((await tokenOf(box, clientId, next, "tts")).response.status).toBe(200);
    await box.service.runtime.verify(String(body.access_token));
    box.advance(906_000);
    await expect(box.service.runtime.verify(String(body.access_token))).rejects.toMatchObject({
      code: "invalid_token",
      message: "Access Token Expired",
    });
  });

  test("neither a deleted client nor a client without a secret gets a token", async () => {
    const box = createBox();
    const { application, clientId, secret } = await createRuntimeClient(box);
    const bare = await box.service.applications.createClient(application.id, { name: "bare" });
    expect((await tokenOf(box, bare.id, "", "tts")).response.status).toBe(401);
    await box.service.applications.deleteClient(application.id, clientId);
    expect((await tokenOf(box, clientId, secret, "tts")).response.status).toBe(401);
  });

  test("the largest allowed binding gives a valid token; a larger one is refused", async () => {
    const box = createBox();
    const ids = Array.from({ length: 110 }, (_, i) => `00000000-0000-7000-8000-${String(i).padStart(12, "0")}`);
    const { application, clientId, secret } = await createRuntimeClient(box, ids);
    const { body } = await tokenOf(box, clientId, secret, "bio");
    expect((await box.service.runtime.verify(String(body.access_token), "bio")).gkScopes.size).toBe(110);
    await expect(
      box.service.applications.bindScopes(application.id, clientId, [...ids, "x".repeat(100)]),
    ).rejects.toMatchObject({ code: "invalid_request" });
    await expect(box.service.applications.bindScopes(application.id, clientId, ["a b"])).rejects.toMatchObject({
      code: "invalid_request",
    });
    const bind = async (...scopes: string[]) =>
      (await box.service.applications.bindScopes(application.id, clientId, scopes)).gkScopes;
    expect(await bind("a", "b", "a")).toEqual(["a", "b"]);
    // With the commas between them, the ids of a client have at most 4,096 characters.
    const many = Array.from({ length: 31 }, (_, i) => String(i).padEnd(128, "x"));
    expect(await bind(...many, "y".repeat(97))).toHaveLength(32);
    await expect(bind(...many, "y".repeat(98))).rejects.toMatchObject({ refusal: "scopeIds" });
  });

  test("the store has only hashes of secrets, and no view shows them", async () => {
    const box = createBox();
    const { application, secret } = await createRuntimeClient(box);
    const stored = JSON.stringify(await box.service.documents.list("token.applications"));
    expect(stored).toContain("sha256$");
    expect(stored).not.toContain(secret);
    expect(JSON.stringify(await box.service.applications.get(application.id))).not.toContain("sha256");
  });

  test.each(["", "a:b", "a b", "ä", "-x", "x".repeat(65)])("the client name %j is refused", async (name) => {
    const box = createBox();
    const { application } = await createRuntimeClient(box);
    await expect(box.service.applications.createClient(application.id, { name })).rejects.toMatchObject({
      code: "invalid_request",
    });
  });
});

test.each([{}, { "Content-Length": "100" }])("a body that breaks off is refused: %o", async (headers) => {
  const body = new ReadableStream({ pull: (controller) => controller.error(new Error("the connection is gone")) });
  const request = { method: "POST", headers, body, duplex: "half" } as RequestInit;
  await expect(readText(new Request(`${ISSUER}/oauth2/token`, request))).rejects.toMatchObject({
    code: "invalid_request",
    message: "the request body is incomplete",
  });
});
