import * as oauth from "oauth4webapi";
import { describe, expect, test } from "vitest";
import type { Application } from "../../src/token/applications.js";
import { createTokenCache } from "../../src/token/cache.js";
import {
  administerService,
  createManagementClient,
  type TokenAdministration,
} from "../../src/token/management-client.js";
import { type Box, basic, createBox, form, ISSUER } from "./box.js";

async function administrator(box: Box, role: "owner" | "member" = "owner", name = "olga") {
  const user = await box.service.users.create({ name, role, password: "correct horse battery" });
  const { credential, secret } = await box.service.credentials.create(user, { kind: "service", label: "job" });
  const cache = createTokenCache({
    tokenUrl: `${ISSUER}/oauth2/token`,
    clientId: credential.clientId,
    clientSecret: secret,
    scope: "platform-api",
    clock: { now: box.now },
    fetch: (url, init) => box.fetch(String(url), init),
  });
  const client = createManagementClient({
    url: ISSUER,
    authorization: () => cache.authorization(),
    fetch: (url, init) => box.fetch(String(url), init),
  });
  const call = async (method: string, path: string, body?: unknown) =>
    box.fetch(`/management/v1${path}`, {
      method,
      headers: {
        Authorization: await cache.authorization(),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  return { user, credential, secret, client, call, cache };
}

describe("service accounts", () => {
  test("an independent client gets a platform-api token for an hour", async () => {
    const box = createBox();
    const { credential, secret } = await administrator(box);
    const server = { issuer: ISSUER, token_endpoint: `${ISSUER}/oauth2/token` };
    const client = { client_id: credential.clientId };
    const options = { [oauth.customFetch]: (url: string, init: RequestInit) => box.fetch(url, init) } as never;
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretBasic(secret),
      { scope: "platform-api" },
      options,
    );
    expect(await oauth.processClientCredentialsResponse(server, client, response)).toMatchObject({
      token_type: "bearer",
      expires_in: 3600,
      scope: "platform-api",
    });
  });

  test.each(["asr", "bio", "platform-api asr"])("gets no scope %s", async (scope) => {
    const box = createBox();
    const { credential, secret } = await administrator(box);
    const response = await box.fetch(
      "/oauth2/token",
      form(basic(credential.clientId, secret), { grant_type: "client_credentials", scope }),
    );
    expect(await response.json()).toMatchObject({ error: "invalid_scope" });
  });

  test("has its user's current permissions", async () => {
    const box = createBox();
    const { call, user } = await administrator(box, "member");
    expect((await call("GET", "/me")).status).toBe(200);
    for (const [method, path] of [
      ["GET", "/applications"],
      ["POST", "/applications"],
      ["PATCH", "/applications/any"],
      ["POST", "/registrations"],
      ["GET", "/users"],
      ["POST", "/keys/rotate"],
      ["GET", "/nothing"],
    ] as const) {
      const response = await call(method, path, method === "POST" ? {} : undefined);
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: "access_denied" });
    }
    await box.service.users.change(user.name, { role: "owner" });
    expect((await call("GET", "/applications")).status).toBe(200);
    await box.service.users.change(user.name, { disabled: true });
    expect((await call("GET", "/me")).status).toBe(401);
  });

  test("users change their own password, and need the current one", async () => {
    const box = createBox();
    const { call } = await administrator(box, "member");
    const change = (current: string, password: string) => call("PUT", "/me/password", { current, password });
    expect((await change("a wrong guess", "another password")).status).toBe(403);
    expect((await change("correct horse battery", "short")).status).toBe(400);
    expect(await box.service.users.authenticate("olga", "correct horse battery")).not.toBeNull();
    const session = await box.service.sessions.start((await box.service.users.find("olga"))!);
    box.advance(1);
    expect((await change("correct horse battery", "another password")).status).toBe(204);
    expect(await box.service.users.authenticate("olga", "another password")).not.toBeNull();
    expect(await box.service.users.authenticate("olga", "correct horse battery")).toBeNull();
    expect(await box.service.sessions.find(session.cookie)).toBeNull();
    // The token ended with the password; the account gets another one.
    expect((await call("GET", "/me")).status).toBe(401);
    box.advance(3_600_000);
    expect((await call("GET", "/me")).status).toBe(200);
    expect((await change("another password", "another password")).headers.get("Set-Cookie")).toBeNull();
    box.advance(3_600_000);
    for (let i = 0; i < 5; i++) await change(`guess number ${i}`, "another password");
    expect((await change("another password", "yet another one")).status).toBe(429);
  });

  test("the browser that changes the password stays signed in, and signs out", async () => {
    const box = createBox();
    const { cache } = await administrator(box);
    const { cookie } = await box.service.sessions.start((await box.service.users.find("olga"))!);
    box.advance(1);
    const asked = async (method: string, path: string, sent: string, body?: unknown) =>
      box.fetch(`/management/v1${path}`, {
        method,
        headers: {
          Authorization: await cache.authorization(),
          Cookie: `vivavoce_session=${sent}`,
          "Content-Type": "application/json",
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    const passwords = { current: "correct horse battery", password: "another password" };
    const changed = await asked("PUT", "/me/password", cookie, passwords);
    const renewed = /vivavoce_session=([^;]+)/.exec(changed.headers.get("Set-Cookie") ?? "")![1]!;
    expect(await box.service.sessions.find(cookie)).toBeNull();
    expect((await box.service.sessions.find(renewed))?.user.name).toBe("olga");
    // The change also ended the token of this service account.
    expect((await asked("GET", "/me", renewed)).status).toBe(401);
    cache.discard(await cache.token());
    expect((await asked("POST", "/me/sign-out", renewed)).status).toBe(204);
    expect(await box.service.sessions.find(renewed)).toBeNull();
    // The token is revoked with it.
    expect((await asked("GET", "/me", "")).status).toBe(401);
  });

  test("another user who is signed in to the browser stays so when a token's user changes the password", async () => {
    const box = createBox();
    const { cache } = await administrator(box);
    const mia = await box.service.users.create({ name: "mia", role: "member", password: "correct horse battery" });
    const { cookie } = await box.service.sessions.start(mia);
    const changed = await box.fetch("/management/v1/me/password", {
      method: "PUT",
      headers: {
        Authorization: await cache.authorization(),
        Cookie: `vivavoce_session=${cookie}`,
        "Content-Type": "application/json",
      },
      body: JSON.stringify({ current: "correct horse battery", password: "another password" }),
    });
    expect([changed.status, changed.headers.get("Set-Cookie")]).toEqual([204, null]);
    expect((await box.service.sessions.find(cookie))?.user.name).toBe("mia");
  });

  test("users see and delete their own credentials only", async () => {
    const box = createBox();
    const olga = await administrator(box);
    const mia = await administrator(box, "member", "mia");
    expect(await (await mia.call("GET", "/me/credentials")).json()).toMatchObject([
      { clientId: mia.credential.clientId },
    ]);
    expect((await mia.call("DELETE", `/me/credentials/${olga.credential.clientId}`)).status).toBe(404);
    const created = (await (await mia.call("POST", "/me/credentials", { kind: "service", label: "more" })).json()) as {
      credential: { clientId: string };
      secret: string;
    };
    expect(created.secret).toMatch(/^[\w-]{43}$/);
    expect((await mia.call("DELETE", `/me/credentials/${created.credential.clientId}`)).status).toBe(204);
    expect((await mia.call("DELETE", `/me/credentials/${mia.credential.clientId}`)).status).toBe(204);
    expect((await mia.call("GET", "/me")).status).toBe(401);
  });

  test("a new user with the name of a deleted one inherits nothing", async () => {
    const box = createBox();
    const { call, credential, secret } = await administrator(box);
    await call("GET", "/me");
    await box.service.users.create({ name: "max", role: "owner", password: "correct horse battery" });
    await box.service.deleteUser("olga");
    expect(await box.service.credentials.get(credential.clientId)).toBeNull();
    await box.service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
    expect((await call("GET", "/me")).status).toBe(401);
    const response = await box.fetch(
      "/oauth2/token",
      form(basic(credential.clientId, secret), { grant_type: "client_credentials", scope: "platform-api" }),
    );
    expect(response.status).toBe(401);
  });

  test.each([
    [{ kind: "user", label: "x" }, "needs 1 to 10 redirect addresses"],
    [{ kind: "service", label: "x", redirectUris: ["https://a.example/"] }, "cannot have redirect address"],
    [{ kind: "user", label: "x", redirectUris: ["/relative"] }, "must be absolute"],
    [{ kind: "user", label: "x", redirectUris: ["https://a.example/#f"] }, "must not have a fragment"],
    [{ kind: "user", label: "x", redirectUris: ["https://*.example/"] }, "must not have a wildcard"],
    [{ kind: "user", label: "x", redirectUris: ["http://a.example/"] }, "must be https, or http on this machine"],
    [{ kind: "user", label: "x", redirectUris: ["javascript:alert(1)"] }, "must be https"],
    [{ kind: "user", label: "x", redirectUris: ["ftp://localhost/"] }, "must be https"],
    [{ kind: "user", label: "x", redirectUris: ["https://olga@a.example/"] }, "must not have a user name or password"],
    [{ kind: "user", label: "x", redirectUris: ["https://:pw@a.example/"] }, "must not have a user name or password"],
    [
      { kind: "user", label: "x", redirectUris: Array.from({ length: 11 }, (_, i) => `https://a.example/${i}`) },
      "needs 1 to 10 redirect addresses",
    ],
    [{ kind: "user", label: "x", redirectUris: ["https://a.example/".padEnd(257, "x")] }, "redirectUris.0"],
    [{ kind: "robot", label: "x" }, "kind"],
    [{ kind: "service", label: "" }, "label"],
    [{ kind: "service", label: "x", extra: 1 }, "extra"],
  ])("the credential %j is refused", async (body, why) => {
    const { call } = await administrator(createBox());
    const response = await call("POST", "/me/credentials", body);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error_description: string }).error_description).toContain(why);
  });

  test("a credential of a user has up to ten redirect addresses, each of up to 256 characters", async () => {
    const { call } = await administrator(createBox());
    const redirectUris = [
      ...["http://127.0.0.1:8080/cb", "http://[::1]/cb", "http://localhost/cb"],
      ...Array.from({ length: 7 }, (_, i) => `https://a.example/${i}/`.padEnd(256, "x")),
    ];
    const created = await call("POST", "/me/credentials", { kind: "user", label: " Console ", redirectUris });
    expect(created.status).toBe(201);
    expect(await created.json()).toMatchObject({ credential: { label: "Console", redirectUris } });
  });

  test("a user's credentials are listed from the oldest, and deleted once", async () => {
    const box = createBox();
    const { call, user, credential } = await administrator(box);
    box.advance(-1000);
    const { credential: older } = await box.service.credentials.create(user, { kind: "service", label: "older" });
    box.advance(1000);
    const listed = async () =>
      ((await (await call("GET", "/me/credentials")).json()) as { clientId: string }[]).map(({ clientId }) => clientId);
    const { list } = box.service.documents;
    // A store has no order of its own.
    for (const inStore of [list, async (name: string) => (await list(name)).reverse()]) {
      box.service.documents.list = inStore;
      expect(await listed()).toEqual([older.clientId, credential.clientId]);
    }
    const remove = () => box.service.credentials.delete(user, older.clientId);
    expect((await Promise.allSettled([remove(), remove()])).map(({ status }) => status).sort()).toEqual([
      "fulfilled",
      "rejected",
    ]);
    expect(await listed()).toEqual([credential.clientId]);
  });

  const application = { name: "x", environment: "y", geography: "eu" };
  test.each<[string, string, string, unknown]>([
    ["nameLength", "POST", "/applications", { ...application, name: " " }],
    ["nameLength", "POST", "/applications", { ...application, environment: "" }],
    ["clientIdPart", "POST", "/applications", { ...application, geography: "e u" }],
    ["servicesNeeded", "POST", "/applications", { ...application, scopes: [] }],
    ["scopeIds", "POST", "/applications", { ...application, gkScopes: ["straße"] }],
    ["scopeIds", "POST", "/applications", { ...application, gkScopes: Array(101).fill("x") }],
    ["requestTooLarge", "POST", "/applications", { ...application, name: "x".repeat(40_000) }],
    ["applicationNotFound", "DELETE", "/applications/none", undefined],
    ["clientIdPart", "POST", "/applications/:id/clients", { name: "a b" }],
    ["clientExists", "POST", "/applications/:id/clients", { name: "default" }],
    ["geographyNotFound", "POST", "/applications/:id/clients", { name: "a", geography: "us" }],
    ["clientNotFound", "DELETE", "/applications/:id/clients/none", undefined],
    ["lastClient", "DELETE", "/applications/:id/clients/:client", undefined],
    ["wrongPassword", "PUT", "/me/password", { current: "no", password: "long enough for it" }],
  ])("%s, of %s %s", async (refusal, method, path, body) => {
    const { call } = await administrator(createBox());
    const { id, clients } = (await (await call("POST", "/applications", application)).json()) as Application;
    const named = path.replace(":id", id).replace(":client", encodeURIComponent(clients[0]!.id));
    expect(await (await call(method, named, body)).json()).toMatchObject({ refusal });
  });
});

describe("the management interface", () => {
  test("refuses requests without a token, with a malformed body, and for unknown paths", async () => {
    const box = createBox();
    const { call, cache } = await administrator(box);
    const bare = await box.fetch("/management/v1/applications");
    expect(bare.status).toBe(401);
    expect(bare.headers.get("WWW-Authenticate")).toBe('Bearer realm="vivavoce", scope="platform-api"');
    expect((await call("GET", "/nothing")).status).toBe(404);
    expect(await (await call("POST", "/applications", { name: 7 })).json()).toEqual({
      error: "invalid_request",
      error_description: expect.stringContaining("name: "),
    });
    expect(await (await call("POST", "/applications", [])).json()).toMatchObject({
      error_description: expect.stringMatching(/^the body: /),
    });
    const text = await box.fetch("/management/v1/applications", {
      method: "POST",
      headers: { Authorization: await cache.authorization(), "Content-Type": "text/plain" },
      body: JSON.stringify({ name: "Bank", environment: "dev", geography: "eu" }),
    });
    expect(await text.json()).toMatchObject({ error_description: "the body must be application/json" });
    const broken = await box.fetch("/management/v1/applications", {
      method: "POST",
      headers: { Authorization: await cache.authorization(), "Content-Type": "application/json" },
      body: "{",
    });
    expect(await broken.json()).toMatchObject({ error: "invalid_request", error_description: "the body is not JSON" });
    expect((await call("GET", "/applications/none")).status).toBe(404);
    expect(broken.headers.get("Cache-Control")).toBe("no-store");
  });

  test("an unknown path of one's own account is not found, for members too", async () => {
    const { call } = await administrator(createBox(), "member");
    for (const [method, path] of [
      ["PUT", "/me"],
      ["GET", "/me/nothing"],
      ["DELETE", "/me/credentials"],
    ] as const)
      expect((await call(method, path)).status).toBe(404);
  });

  test("what is created is answered 201, what is changed 200, what is deleted 204", async () => {
    const { call } = await administrator(createBox());
    const answered = async (status: number, method: string, path: string, body?: unknown) => {
      const response = await call(method, path, body);
      expect([method, path, response.status]).toEqual([method, path, status]);
      expect(response.headers.get("Cache-Control")).toBe("no-store");
      return status === 204 ? null : response.json();
    };
    const names = { name: "Bank", environment: "dev", geography: "eu" };
    const { id } = (await answered(201, "POST", "/applications", names)) as Application;
    await answered(200, "PATCH", `/applications/${id}`, { name: "Bank of Ada" });
    await answered(200, "PUT", `/applications/${id}/geographies/us`, {});
    const client = (await answered(201, "POST", `/applications/${id}/clients`, { name: "ivr" })) as { id: string };
    const at = `/applications/${id}/clients/${encodeURIComponent(client.id)}`;
    expect(await answered(201, "POST", `${at}/secret`)).toEqual({
      clientId: client.id,
      clientSecret: expect.stringMatching(/^[\w-]{43}$/),
    });
    await answered(200, "PUT", `${at}/scopes`, { gkScopes: ["s"] });
    await answered(204, "DELETE", at);
    await answered(204, "DELETE", `/applications/${id}`);
    const shop = { name: "Shop", sites: ["306"] };
    const { registration } = (await answered(201, "POST", "/registrations", shop)) as {
      registration: { clientId: string };
    };
    expect(await answered(200, "GET", `/registrations/${registration.clientId}`)).toMatchObject(shop);
    await answered(200, "POST", `/registrations/${registration.clientId}/lock`);
    await answered(201, "POST", `/registrations/${registration.clientId}/reregister`);
    await answered(201, "POST", "/users", { name: "mia", role: "member", password: "correct horse battery" });
    await answered(200, "PATCH", "/users/mia", { disabled: true });
    await answered(204, "DELETE", "/users/mia");
    await answered(200, "PUT", "/sites/306/business-units/1/agents/ann", { state: "online" });
    await answered(200, "PUT", "/sites/306/business-units/1/hours", { timeZone: "UTC", weekly: {} });
    await answered(200, "DELETE", "/sites/306/business-units/1/hours");
    await answered(200, "DELETE", "/sites/306/business-units/1/agents/ann");
    await answered(201, "POST", "/keys/rotate", {});
  });

  test("the last owner can neither be demoted, nor disabled, nor deleted", async () => {
    const { call } = await administrator(createBox());
    for (const [method, body] of [["PATCH", { role: "member" }], ["PATCH", { disabled: true }], ["DELETE"]] as const) {
      const refused = await call(method, "/users/olga", body);
      expect([refused.status, await refused.json()]).toMatchObject([
        409,
        { error: "conflict", error_description: "olga is the last owner; make another user an owner first" },
      ]);
    }
    for (const body of [{ role: "owner" }, { disabled: false }])
      expect((await call("PATCH", "/users/olga", body)).status).toBe(200);
    expect((await call("PATCH", "/users/olga", { password: "another password" })).status).toBe(200);
  });

  test.each(["%20", "0x10", "1e3", "-1", "1".repeat(16)])("refuses business unit %s", async (unit) => {
    const { call, client } = await administrator(createBox());
    const refused = await call("PUT", `/sites/306/business-units/${unit}/agents/ann`, { state: "online" });
    expect(await refused.json()).toMatchObject({
      error: "invalid_request",
      error_description: `businessUnitID must be a number of at most 15 digits, got '${decodeURIComponent(unit)}'`,
    });
    expect(await client.agents.list()).toEqual([]);
  });

  test.each([
    [{ oauthServerUrl: "javascript:alert(1)" }, "oauthServerUrl must be an http or https address"],
    [{ oauthServerUrl: "box.example" }, "oauthServerUrl must be an http or https address"],
    [{ endpoints: { asr: "https://asr.example" } }, "the address of asr must be host:port, got https://asr.example"],
    [{ endpoints: { tts: "tts.example" } }, "the address of tts must be host:port, got tts.example"],
  ])("refuses addresses that could not be read from config.json: %j", async (addresses, message) => {
    const { call, client } = await administrator(createBox());
    const names = { name: "Bank", environment: "dev", geography: "eu" };
    const refused = await call("POST", "/applications", { ...names, ...addresses });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: "invalid_request", error_description: expect.stringContaining(message) },
    ]);
    const { id } = await client.applications.create(names);
    await expect(client.applications.putGeography(id, "eu", addresses)).rejects.toMatchObject({ status: 400 });
    const { geographies } = await client.applications.putGeography(id, "eu", { endpoints: { bio: "" } });
    expect(geographies.eu!.endpoints).toEqual({ bio: "" });
    expect(await client.config(id, "eu")).toEqual([expect.not.objectContaining({ bio_endpoint: expect.anything() })]);
  });

  test("logs who changed what, without secrets", async () => {
    const box = createBox();
    const { call } = await administrator(box);
    await call("POST", "/applications", { name: "Bank", environment: "dev", geography: "eu" });
    expect(box.audited).toContainEqual({
      event: "managed",
      user: "olga",
      method: "POST",
      route: "/management/v1/applications",
      status: 201,
    });
  });

  test("logs a refused request without its path, in which an id may be a secret", async () => {
    const box = createBox();
    const { call, secret } = await administrator(box);
    expect((await call("POST", `/registrations/${secret}/lock`)).status).toBe(404);
    expect((await call("DELETE", `/me/credentials/${secret}`)).status).toBe(404);
    expect((await call("POST", `/${secret}`)).status).toBe(404);
    expect((await call("PATCH", `/users/${secret}`, { role: "king" })).status).toBe(400);
    expect((await call("GET", `/${secret}`)).status).toBe(404);
    expect(JSON.stringify(box.audited)).not.toContain(secret);
    expect(box.audited.flatMap((event) => (event.event === "managed" ? [event.route] : []))).toEqual([
      "/management/v1/registrations/:clientId/lock",
      "/management/v1/me/credentials/:clientId",
      "*",
      "/management/v1/users/:name",
    ]);
  });

  test("a credential has a label of 1 to 128 characters", async () => {
    const { service } = createBox();
    const user = await service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
    const created = (length: number) =>
      service.credentials.create(user, { kind: "service", label: "l".repeat(length) });
    for (const length of [1, 128]) expect((await created(length)).credential.label).toHaveLength(length);
    for (const length of [0, 129])
      await expect(created(length)).rejects.toThrow(`label must have 1 to 128 characters, got ${length}`);
  });

  // The same steps on the store and on a box: an administrator can do the same on both.
  describe.each<[string, (box: Box) => Promise<TokenAdministration>]>([
    ["on the store", async (box) => administerService(box.service)],
    ["over HTTP", async (box) => (await administrator(box)).client],
  ])("administration %s", (place, open) => {
    test("applications, clients and secrets", async () => {
      const box = createBox();
      const { applications, config } = await open(box);
      const application = await applications.create({
        name: "Bank",
        environment: "dev",
        geography: "eu",
        gkScopes: ["s1"],
      });
      expect(await applications.list()).toEqual([application]);
      const renamed = await applications.rename(application.id, { name: "Bank of Ada" });
      expect(renamed).toEqual({ ...application, name: "Bank of Ada" });
      expect(await applications.rename(application.id, { environment: "test" })).toMatchObject({ environment: "test" });
      await expect(applications.rename(application.id, { name: " " })).rejects.toMatchObject({
        code: "invalid_request",
      });
      await expect(applications.rename("none", { name: "x" })).rejects.toMatchObject({ code: "not_found" });
      const client = await applications.createClient(application.id, { name: "ivr", gkScopes: ["s2"] });
      const secret = await applications.regenerateSecret(application.id, client.id);
      const token = await box.fetch(
        "/oauth2/token",
        form(basic(client.id, secret), { grant_type: "client_credentials", scope: "bio" }),
      );
      expect(token.status).toBe(200);
      expect((await applications.bindScopes(application.id, client.id, [])).gkScopes).toEqual([]);
      await applications.putGeography(application.id, "us", { scopes: ["tts"], endpoints: { tts: "tts.example:443" } });
      expect((await config(application.id, "eu")).map((block) => block.client_id)).toEqual([
        application.clients[0]!.id,
        client.id,
      ]);
      await applications.deleteClient(application.id, client.id);
      await expect(applications.deleteClient(application.id, application.clients[0]!.id)).rejects.toMatchObject({
        code: "conflict",
      });
      expect(await applications.delete(application.id)).toBeUndefined();
      await expect(applications.get(application.id)).rejects.toMatchObject({ code: "not_found" });
    });

    test("users", async () => {
      const box = createBox();
      const { users, deleteUser } = await open(box);
      await users.create({ name: "Mia@Bank", role: "member", password: "correct horse battery" });
      await expect(
        users.create({ name: "mia@bank", role: "member", password: "correct horse battery" }),
      ).rejects.toMatchObject({ code: "conflict" });
      await expect(users.create({ name: "new", role: "member", password: "short" })).rejects.toMatchObject({
        code: "invalid_request",
      });
      expect((await users.list()).map(({ name }) => name)).toContain("mia@bank");
      expect(JSON.stringify(await users.list())).not.toContain("scrypt");
      for (const wrong of [{ name: "a b" }, { name: "" }, { role: "king" as never }])
        await expect(
          users.create({ name: "new", role: "member", password: "correct horse battery", ...wrong }),
        ).rejects.toMatchObject({ code: "invalid_request" });
      await expect(users.change("mia@bank", { role: "king" as never })).rejects.toMatchObject({
        code: "invalid_request",
      });
      await expect(users.change("nobody", { disabled: true })).rejects.toMatchObject({
        code: "not_found",
        message: "user nobody does not exist",
      });
      for (const length of [10, 256]) {
        const password = "p".repeat(length);
        await users.change("mia@bank", { password });
        expect(await box.service.users.authenticate(" Mia@Bank ", password)).toMatchObject({ name: "mia@bank" });
      }
      for (const length of [9, 257])
        await expect(users.change("mia@bank", { password: "p".repeat(length) })).rejects.toMatchObject({
          message: `the password must have 10 to 256 characters, got ${length}`,
        });
      expect(await users.change("mia@bank", { role: "owner", disabled: true })).toMatchObject({
        role: "owner",
        disabled: true,
      });
      await deleteUser("mia@bank");
      await expect(deleteUser("mia@bank")).rejects.toMatchObject({ code: "not_found" });
    });

    test("registrations, agents and hours", async () => {
      const { registrations, agents } = await open(createBox());
      const { registration } = await registrations.register({ name: "Shop", sites: ["306"] });
      await expect(registrations.register({ name: "Shop", sites: [] })).rejects.toMatchObject({
        code: "invalid_request",
      });
      await expect(registrations.register({ name: "Shop", sites: ["306"], scopes: [] })).rejects.toMatchObject({
        message: "scopes must name at least one scope, or be left out",
      });
      await expect(
        registrations.register({ name: "Shop", sites: ["306"], scopes: ["everything"] }),
      ).rejects.toMatchObject({ code: "invalid_scope" });
      expect((await registrations.lock(registration.clientId)).lockedAt).toEqual(expect.any(Number));
      const again = await registrations.reregister(registration.clientId);
      expect(again.registration.replaces).toBe(registration.clientId);
      expect(await registrations.list()).toHaveLength(2);
      await agents.put("306", 1, { id: "ann", state: "online", groups: ["sales"] });
      await agents.setHours("306", 1, {
        timeZone: "Europe/Paris",
        weekly: { mon: [["09:00", "17:00"]] },
        exceptions: { "2026-12-25": [] },
      });
      expect(await agents.list()).toEqual([
        {
          siteId: "306",
          businessUnitId: 1,
          agents: [{ id: "ann", state: "online", groups: ["sales"] }],
          hours: { timeZone: "Europe/Paris", weekly: { mon: [["09:00", "17:00"]] }, exceptions: { "2026-12-25": [] } },
        },
      ]);
      expect((await agents.setHours("306", 1, null)).hours).toBeNull();
      expect((await agents.remove("306", 1, "ann")).agents).toEqual([]);
      await expect(agents.remove("306", 1, "ann")).rejects.toMatchObject({ code: "not_found" });
    });

    test("keys and credentials", async () => {
      const box = createBox();
      const administration = await open(box);
      const before = await administration.keyring.list();
      const { kid } = await administration.keyring.rotate();
      expect((await administration.keyring.list()).map((key) => key.kid)).toEqual([
        ...before.map((key) => key.kid),
        kid,
      ]);
      if (place === "on the store")
        await box.service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
      expect(
        (await administration.createCredential("olga", { kind: "service", label: "more" })).credential.userName,
      ).toBe("olga");
      await expect(administration.createCredential("nobody", { kind: "service", label: "more" })).rejects.toThrow();
      const own = administration.createCredential(undefined, { kind: "service", label: "mine" });
      if (place === "on the store") await expect(own).rejects.toMatchObject({ code: "not_found" });
      else expect((await own).credential).toMatchObject({ userName: "olga", label: "mine" });
    });
  });
});

test.each([
  [
    new Response("<h1>Bad gateway</h1>", { status: 502 }),
    { code: "server_error", status: 502, message: "the box answered HTTP 502" },
  ],
  [
    Response.json({ error: "conflict", error_description: "again" }, { status: 409 }),
    { code: "conflict", status: 409, message: "again" },
  ],
])("the management client reports what the box answered", async (response, error) => {
  const asked: string[] = [];
  const client = createManagementClient({
    url: `${ISSUER}/`,
    authorization: async () => "Bearer x",
    fetch: async (url) => {
      asked.push(String(url));
      return response;
    },
  });
  await expect(client.users.list()).rejects.toMatchObject(error);
  expect(asked).toEqual([`${ISSUER}/management/v1/users`]);
});
