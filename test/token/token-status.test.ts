/** client_secret_post, introspection (RFC 7662) and revocation (RFC 7009), by an independent client and by hand. */
import * as oauth from "oauth4webapi";
import { expect, test } from "vitest";
import { createMemoryStore } from "../../src/store/memory.js";
import { createVerifier } from "../../src/token/verify.js";
import { type Box, basic, createBox, createRuntimeClient, form, ISSUER } from "./box.js";

const insecure = (box: Box) =>
  ({ [oauth.customFetch]: (url: string, init: RequestInit) => box.fetch(url, init) }) as never;

async function discovered(box: Box): Promise<oauth.AuthorizationServer> {
  const response = await oauth.discoveryRequest(new URL(ISSUER), { algorithm: "oauth2", ...(insecure(box) as object) });
  return oauth.processDiscoveryResponse(new URL(ISSUER), response);
}

test("tokens end with their client, its application or a lost scope: at once, and on another replica after a second", async () => {
  const box = createBox({ startAt: Date.now() });
  const { applications, runtime } = box.service;
  const application = await applications.create({
    name: "IVR",
    environment: "production",
    geography: "local",
    scopes: ["bio"],
    gkScopes: ["one", "two"],
  });
  const second = await applications.createClient(application.id, { name: "second", gkScopes: ["one"] });
  const tokenOf = async (clientId: string, again?: string) => {
    const secret = again ?? (await applications.regenerateSecret(application.id, clientId));
    const client = { clientId, secret };
    const { access_token } = await box.service.clientCredentials({ client, scope: "bio", address: "127.0.0.1" });
    return { token: access_token, secret };
  };
  const revoked = { status: 401, message: "the token was revoked" };
  const first = application.clients[0]!.id;
  const [both, other] = [await tokenOf(first), await tokenOf(second.id)];
  await runtime.verify(both.token, "bio");

  await applications.bindScopes(application.id, first, ["one"]);
  await expect(runtime.verify(both.token, "bio")).rejects.toMatchObject(revoked);
  // A token issued from now on includes only the remaining scopes, even in the same second; the other client never had the scope.
  const left = await tokenOf(first, both.secret);
  expect([...(await runtime.verify(left.token, "bio")).gkScopes]).toEqual(["one"]);
  await runtime.verify(other.token, "bio");

  // Bound to the same scopes again, it loses nothing. A token of the same second would count as ended, so it is not issued.
  await applications.bindScopes(application.id, first, ["one", "two"]);
  await expect(tokenOf(first, both.secret)).rejects.toMatchObject({ status: 503, headers: { "Retry-After": "1" } });
  box.advance(1000);
  const whole = await tokenOf(first, both.secret);
  box.advance(1000);
  await applications.bindScopes(application.id, first, ["two", "one"]);
  await runtime.verify(whole.token, "bio");

  await applications.deleteClient(application.id, second.id);
  await expect(runtime.verify(other.token, "bio")).rejects.toMatchObject(revoked);
  await runtime.verify(left.token, "bio");

  await applications.delete(application.id);
  await expect(runtime.verify(left.token, "bio")).rejects.toMatchObject(revoked);
});

test("a token that was requested before its application or client was deleted is not issued afterwards", async () => {
  const { documents } = createMemoryStore();
  let whenRead = async () => {};
  const box = createBox({
    documents: {
      ...documents,
      async get(collection, id) {
        const found = await documents.get(collection, id);
        if (collection === "token.applications") await whenRead();
        return found;
      },
    },
  });
  const { applications } = box.service;
  for (const remove of [
    (id: string) => applications.delete(id),
    (id: string, clientId: string) => applications.deleteClient(id, clientId),
    (id: string, clientId: string) => applications.bindScopes(id, clientId, []),
  ]) {
    const { application, clientId, secret } = await createRuntimeClient(box);
    await applications.createClient(application.id, { name: "another" });
    whenRead = async () => {
      whenRead = async () => {};
      await remove(application.id, clientId);
      // Checking the secret and signing take a moment.
      box.advance(2000);
    };
    const client = { clientId, secret };
    const requested = box.service.clientCredentials({ client, scope: "bio", address: "127.0.0.1" });
    await expect(requested).rejects.toMatchObject({ message: "the tokens of this client were just ended; try again" });
  }
});

test("a client authenticates in the form, introspects its token and revokes it; the token is then refused", async () => {
  const box = createBox({ startAt: Date.now() });
  const { clientId, secret } = await createRuntimeClient(box);
  const server = await discovered(box);
  const client = { client_id: clientId };
  const post = oauth.ClientSecretPost(secret);
  const granted = await oauth.processClientCredentialsResponse(
    server,
    client,
    await oauth.clientCredentialsGrantRequest(server, client, post, { scope: "bio" }, insecure(box)),
  );
  const token = granted.access_token;
  const introspect = async () =>
    oauth.processIntrospectionResponse(
      server,
      client,
      await oauth.introspectionRequest(server, client, post, token, insecure(box)),
    );
  expect(await introspect()).toMatchObject({ active: true, client_id: clientId, scope: "bio", gk_scopes: ["scope-1"] });
  const guard = createVerifier({ issuers: [box.service.runtimeIssuer], clock: { now: box.now } });
  await guard.verify(token, "bio");

  const revoked = await oauth.revocationRequest(server, client, post, token, insecure(box));
  expect(await oauth.processRevocationResponse(revoked)).toBeUndefined();
  expect(await introspect()).toEqual({ active: false });
  await expect(guard.verify(token, "bio")).rejects.toMatchObject({ status: 401, message: "the token was revoked" });
  // Revoking twice is not an error, and no record remains after the token would have expired.
  expect((await oauth.revocationRequest(server, client, post, token, insecure(box))).status).toBe(200);
  expect(await box.service.documents.list("revoked-tokens")).toHaveLength(1);
  box.advance(1000_000);
  expect(await box.service.documents.list("revoked-tokens")).toEqual([]);
});

test("another replica refuses it within a second", async () => {
  const box = createBox();
  const replica = createBox({ documents: box.service.documents });
  const { clientId, secret } = await createRuntimeClient(box);
  const asked = form(basic(encodeURIComponent(clientId), secret), { grant_type: "client_credentials", scope: "bio" });
  const { access_token: token } = (await (await box.fetch("/oauth2/token", asked)).json()) as { access_token: string };
  await replica.service.runtime.verify(token);
  await box.fetch("/oauth2/revoke", form(basic(encodeURIComponent(clientId), secret), { token }));
  replica.advance(1000);
  await expect(replica.service.runtime.verify(token)).rejects.toMatchObject({ status: 401 });
});

test("a client cannot introspect or revoke another client's token; a secret may be sent in one place only", async () => {
  const box = createBox();
  const one = await createRuntimeClient(box);
  const other = await createRuntimeClient(box);
  const asked = form(null, {
    grant_type: "client_credentials",
    scope: "bio",
    client_id: one.clientId,
    client_secret: one.secret,
  });
  const { access_token: token } = (await (await box.fetch("/oauth2/token", asked)).json()) as { access_token: string };
  const stranger = basic(encodeURIComponent(other.clientId), other.secret);
  expect(await (await box.fetch("/oauth2/introspect", form(stranger, { token }))).json()).toEqual({ active: false });
  const refused = await box.fetch("/oauth2/revoke", form(stranger, { token }));
  expect([refused.status, ((await refused.json()) as { error: string }).error]).toEqual([400, "unauthorized_client"]);
  await box.service.runtime.verify(token);

  const answerOf = async (path: string, init: RequestInit) => {
    const response = await box.fetch(path, init);
    return [response.status, ((await response.json()) as { error: string }).error];
  };
  const twice = { token, client_id: other.clientId, client_secret: other.secret };
  expect(await answerOf("/oauth2/introspect", form(stranger, twice))).toEqual([400, "invalid_request"]);
  expect(await answerOf("/oauth2/introspect", form(null, { token }))).toEqual([401, "invalid_client"]);
  expect(await answerOf("/oauth2/introspect", form(null, { ...twice, client_secret: "wrong" }))).toEqual([
    401,
    "invalid_client",
  ]);
  expect(await answerOf("/oauth2/revoke", form(stranger, {}))).toEqual([400, "invalid_request"]);
  for (const path of ["/oauth2/introspect", "/oauth2/revoke"]) {
    const response = await box.fetch(path);
    expect([response.status, response.headers.get("Allow")]).toEqual([405, "POST"]);
  }
});

test("clients of one application may introspect and revoke each other's tokens", async () => {
  const box = createBox();
  const { application, clientId, secret } = await createRuntimeClient(box);
  const { id } = await box.service.applications.createClient(application.id, { name: "guard" });
  const guard = basic(id, await box.service.applications.regenerateSecret(application.id, id));
  const asked = form(basic(clientId, secret), { grant_type: "client_credentials", scope: "bio" });
  const { access_token: token } = (await (await box.fetch("/oauth2/token", asked)).json()) as { access_token: string };
  const introspect = async () => (await box.fetch("/oauth2/introspect", form(guard, { token }))).json();
  const { jti, iat, exp } = (await box.service.runtime.verify(token)).claims;
  expect(await introspect()).toEqual({
    active: true,
    token_type: "bearer",
    client_id: clientId,
    sub: clientId,
    scope: "bio",
    gk_scopes: ["scope-1"],
    aud: "vivavoce:runtime",
    iss: ISSUER,
    jti,
    iat,
    exp,
  });
  expect((await box.fetch("/oauth2/revoke", form(guard, { token }))).status).toBe(200);
  expect(await introspect()).toEqual({ active: false });
});

test("a box that cannot read its keys says so, and does not call a token inactive", async () => {
  const box = createBox();
  const { clientId, secret } = await createRuntimeClient(box);
  const asked = form(basic(clientId, secret), { grant_type: "client_credentials", scope: "bio" });
  const { access_token: token } = (await (await box.fetch("/oauth2/token", asked)).json()) as { access_token: string };
  const { documents } = box.service;
  const { get } = documents;
  documents.get = async (collection, id) => {
    if (collection === "token.keyring") throw new Error("the disk is gone");
    return get(collection, id);
  };
  box.advance(11_000);
  const introspect = () => box.fetch("/oauth2/introspect", form(basic(clientId, secret), { token }));
  const failed = await introspect();
  expect([failed.status, failed.headers.get("Retry-After")]).toEqual([503, "5"]);
  documents.get = get;
  expect(await (await introspect()).json()).toMatchObject({ active: true });
});

test("the metadata (RFC 8414) names every address and what is supported", async () => {
  const response = await createBox().fetch("/.well-known/oauth-authorization-server");
  expect(await response.json()).toEqual({
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/oauth2/authorize`,
    token_endpoint: `${ISSUER}/oauth2/token`,
    jwks_uri: `${ISSUER}/oauth2/jwks`,
    introspection_endpoint: `${ISSUER}/oauth2/introspect`,
    revocation_endpoint: `${ISSUER}/oauth2/revoke`,
    scopes_supported: ["asr", "asr.wordset", "nlu", "nlu.wordset", "dlg", "tts", "log", "bio", "platform-api"],
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["client_credentials", "authorization_code"],
    token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
    introspection_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
    revocation_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
  });
});

test("the service owns its paths and no others", async () => {
  const { app } = createBox();
  const ours = [
    ...[
      "/oauth2/token",
      "/oauth2/authorize/x",
      "/oauth-server/oauth/token",
      "/engagementAPI/v2/x",
      "/management/v1/me",
    ],
    ...["/profile", "/profile/password", "/sign-in", "/sign-out", "/.well-known/jwks.json"],
  ];
  expect(ours.filter((path) => !app.owns(path))).toEqual([]);
  const others = ["/", "/oauth2", "/profiles", "/sign-in/x", "/management/v2/me", "/.well-known/x", "/operator/"];
  expect(others.filter((path) => app.owns(path))).toEqual([]);
  const response = await app.fetch(new Request(`${ISSUER}/oauth2/nothing`));
  expect([response.status, await response.json()]).toMatchObject([404, { error: "not_found" }]);
});
