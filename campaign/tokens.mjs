/**
 * Calls every operation of the contract without permission, in every way: without a token, and with tokens that are forged, altered, expired, or
 * of another service or scope. All must be refused. With a valid token of one scope, the data of another scope must look as if it did not exist.
 */
import { createHmac, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import http2 from "node:http2";
import { fromJson, toBinary } from "@bufbuild/protobuf";
import { createTokenService } from "../dist/token/service.js";
import { clientOf, fill, OTHER, openBank, recordsOf, runtimeToken, VICTIM } from "./parts/bank.mjs";
import { randomOf } from "./parts/random.mjs";
import { BINDINGS, httpRequestOf, requestOf } from "./parts/requests.mjs";

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
/** Share of the requests that are sent as gRPC over a real connection. */
const GRPC_SHARE = 0.1;
const TOKEN_REQUEST_SHARE = 0.05;
const TOKENS_MS = 300_000;

export async function campaign({
  count = 100_000,
  seconds = Number.POSITIVE_INFINITY,
  seed,
  log,
  isStopped = () => false,
}) {
  const random = randomOf(seed);
  const bank = await openBank();
  const violations = [];
  const counts = {
    requests: 0,
    operations: new Set(BINDINGS.map(({ method }) => method.name)).size,
    ways: 0,
    refused: 0,
    twins: 0,
    foreignIds: 0,
    grpc: 0,
    tokenRequests: 0,
  };
  const until = performance.now() + seconds * 1000;
  // Tokens expire after 900 s, and a slow machine takes longer, so they are renewed in time.
  let [token, ways, madeAt] = [null, [], 0];
  const renew = async () => {
    token = await runtimeToken(bank.tokens, bank.clients[OTHER]);
    ways = await waysToLackARight(bank, random);
    madeAt = performance.now();
  };
  await renew();
  counts.ways = ways.length;
  const grpc = http2.connect(bank.service.url);
  const violate = (text) => violations.length < 1000 && violations.push(text);

  const ask = async (binding, json, authorization) => {
    counts.requests++;
    const { verb, path, type, body } = httpRequestOf(binding, json);
    const response = await bank.service.app.fetch(
      new Request(`http://box${path}`, {
        method: verb,
        headers: { "content-type": type, ...(authorization === null ? {} : { authorization }) },
        ...(body === undefined || verb === "GET" ? {} : { body }),
      }),
    );
    return { status: response.status, text: await response.text() };
  };

  /** A request without permission must be refused and reveal nothing else. */
  async function refusedEverywhere(binding) {
    const { name, token: given, malformed = false } = random.pick(ways);
    const json = requestOf(binding.method.input, idsOf(bank, VICTIM, random), random);
    json.context = { ...json.context, gk_scope_id: { value: VICTIM } };
    const what = `${binding.method.name}, ${name}`;
    if (random.chance(GRPC_SHARE) && binding.method.methodKind === "unary") {
      counts.grpc++;
      counts.requests++;
      const code = await grpcStatus(grpc, binding.method, json, given());
      if (code !== "16" && code !== "7" && !(malformed && code === "3")) violate(`${what}: gRPC status ${code}`);
      else counts.refused++;
      return;
    }
    const { status, text } = await ask(binding, json, given());
    if (status !== 401 && status !== 403 && !(malformed && status === 400))
      violate(`${what}: ${status} ${text.slice(0, 200)}`);
    else if (Object.keys(JSON.parse(text)).join() !== "status")
      violate(`${what}: reveals more than its status: ${text.slice(0, 200)}`);
    else counts.refused++;
  }

  /** Sends a request twice, with ids of the other scope and with ids that do not exist: the answers must be the same. */
  async function nothingOfOthersIsSeen(binding) {
    const choices = randomOf(random.below(2 ** 31));
    const seedOfBoth = choices.below(2 ** 31);
    const scope = random.chance(0.5) ? OTHER : VICTIM;
    const answers = [];
    for (const known of [true, false]) {
      const ids = known ? idsOf(bank, scope, random) : () => randomUUID();
      const json = requestOf(binding.method.input, ids, randomOf(seedOfBoth));
      json.context = { ...json.context, gk_scope_id: { value: scope } };
      const { status, text } = await ask(binding, json, `Bearer ${token}`);
      answers.push(masked(status, text));
      if (status >= 500) violate(`${binding.method.name}: ${status} ${text.slice(0, 200)}`);
      if (scope === VICTIM && status !== 403)
        violate(`${binding.method.name} in a scope that the token does not include: ${status} ${text.slice(0, 200)}`);
    }
    counts.twins++;
    if (answers[0] !== answers[1])
      violate(
        `${binding.method.name} reveals what is in another scope: ${answers[0].slice(0, 300)} | ${answers[1].slice(0, 300)}`,
      );
  }

  /**
   * A request that is right in the caller's own scope, but for one id: one of the other scope must be answered like one that does not exist.
   * Each is sent with new records, because it may succeed.
   */
  async function oneForeignId(binding) {
    const seedOfBoth = random.below(2 ** 31);
    let fields = 0;
    requestOf(binding.method.input, () => String(fields++), randomOf(seedOfBoth));
    if (fields === 0) return;
    const foreign = random.below(fields);
    const filled = () => fill(bank.store, OTHER, [`own-${randomUUID()}`, `own-${randomUUID()}`]);
    // Before the first is sent: both see the same lists.
    const records = [await filled(), await filled()];
    const answers = [];
    for (const [i, own] of records.entries()) {
      const known = i === 0;
      const choices = randomOf(seedOfBoth);
      let at = 0;
      const ids = (name) => {
        const others = idsOf(bank, VICTIM, choices)(name);
        if (at++ === foreign) return known ? others : randomUUID();
        return own[name.replace("_agent_", "_")] ?? randomUUID();
      };
      const json = requestOf(binding.method.input, ids, randomOf(seedOfBoth));
      json.context = { ...json.context, gk_scope_id: { value: OTHER } };
      const { status, text } = await ask(binding, json, `Bearer ${token}`);
      answers.push(masked(status, text));
      // The stand-in for a model has no attack checks.
      if (status >= 500 && status !== 501)
        violate(`${binding.method.name}, an id of another scope: ${status} ${text.slice(0, 200)}`);
    }
    counts.foreignIds++;
    if (answers[0] !== answers[1])
      violate(
        `${binding.method.name}, one id of another scope: ${answers[0].slice(0, 300)} | ${answers[1].slice(0, 300)}`,
      );
  }

  async function tokenEndpoint() {
    counts.requests++;
    counts.tokenRequests++;
    const { what, init } = badTokenRequest(bank, random);
    const response = await bank.service.app.fetch(new Request("http://box/oauth2/token", init));
    if (response.status < 400 || response.status >= 500)
      violate(`token endpoint, ${what}: ${response.status} ${(await response.text()).slice(0, 200)}`);
    else counts.refused++;
  }

  // A caller with permission must be admitted; otherwise the rest would show nothing.
  const right = `Bearer ${await runtimeToken(bank.tokens, bank.clients[VICTIM])}`;
  for (const binding of BINDINGS) {
    const json = requestOf(binding.method.input, () => randomUUID(), random);
    json.context = { ...json.context, gk_scope_id: { value: VICTIM } };
    const { status } = await ask(binding, json, right);
    if (status === 401 || status === 403) violate(`${binding.method.name} refuses a caller with permission: ${status}`);
  }

  const before = await recordsOf(bank.store, VICTIM, bank.ids);
  for (let at = 0; counts.requests < count && performance.now() < until && !isStopped(); at++) {
    const binding = BINDINGS[at % BINDINGS.length];
    if (random.chance(TOKEN_REQUEST_SHARE)) await tokenEndpoint();
    else if (random.chance(0.3)) await nothingOfOthersIsSeen(binding);
    else if (random.chance(0.2)) await oneForeignId(binding);
    else await refusedEverywhere(binding);
    if (performance.now() - madeAt > TOKENS_MS) await renew();
    if (at % 20_000 === 19_999) log(JSON.stringify(counts));
  }
  grpc.close();
  if ((await recordsOf(bank.store, VICTIM, bank.ids)) !== before) violate("records of another scope were changed");
  for (const line of bank.errors.slice(0, 20)) violate(`the log says: ${line.slice(0, 400)}`);
  await bank.close();
  return { counts, violations };
}

/** Ids, names and times differ between two requests, and so does the export of a caller's own profile. */
const masked = (status, text) =>
  `${status} ${text
    .replace(UUID, "*")
    .replace(TIME, "*")
    .replace(/"profile":"\w+=*"/, '"profile":"*"')
    .replace(/(\\?")(?:alice|mallory|own-\*)\1/g, "$1*$1")}`;

const idsOf = (bank, _scope, random) => (name) =>
  bank.ids[name.replace("_agent_", "_")] ?? (random.chance(0.5) ? randomUUID() : random.pick(Object.values(bank.ids)));

/** Each with a name, and a function that gives an `Authorization` header, or `null` for none. A header that cannot be parsed is a bad request (RFC 6750). */
async function waysToLackARight(bank, random) {
  const { tokens, clients, store } = bank;
  const good = await runtimeToken(tokens, clients[VICTIM]);
  const [header, payload, signature] = good.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url"));
  const head = JSON.parse(Buffer.from(header, "base64url"));
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const bearer = (text) => () => `Bearer ${text}`;
  const [jwk] = (await tokens.keyring.jwks()).keys;
  const forged = (alg, key, more = {}) => {
    const text = `${encode({ ...head, alg, ...more })}.${payload}`;
    return `${text}.${key(text)}`;
  };
  // Of the kind that the box signs with, so that only the key is wrong.
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const ownKey = (text) => sign("sha256", Buffer.from(text), pair.privateKey).toString("base64url");
  /** Signed with the real keys, but wrong in one respect. */
  const serviceWith = (change) => createTokenService({ documents: store.documents, issuer: tokens.issuer, ...change });
  const issuedBy = async (change, scope = "bio") => runtimeToken(serviceWith(change), clients[VICTIM], scope);
  const at = (ms) => ({ clock: { now: () => Date.now() + ms } });
  const noBio = await clientOf(tokens, VICTIM, ["asr"]);
  const swapped = {
    audiences: { runtime: "vivavoce-tooling", tooling: "vivavoce-runtime", engagement: "vivavoce-engagement" },
  };
  const payloadWith = (change) => `${header}.${encode({ ...claims, ...change })}.${signature}`;
  return [
    { name: "no token", token: () => null },
    { name: "empty", token: () => "" },
    { name: "Bearer alone", token: () => random.pick(["Bearer", "Bearer ", "bearer   "]) },
    { name: "Basic", token: () => `Basic ${Buffer.from(`${clients[VICTIM].id}:x`).toString("base64")}` },
    { name: "the secret as a token", token: bearer(clients[VICTIM].secret) },
    {
      name: "random text",
      token: () => `Bearer ${Buffer.from(random.bytes(1 + random.below(300))).toString("base64url")}`,
    },
    { name: "a byte changed", token: () => `Bearer ${changedAt(good, random)}` },
    { name: "cut off", token: () => `Bearer ${good.slice(0, random.below(good.length))}` },
    { name: "longer than any token", token: bearer(`${good}${"A".repeat(20_000)}`) },
    { name: "alg none", token: bearer(`${encode({ ...head, alg: "none" })}.${payload}.`) },
    { name: "alg nOnE", token: bearer(`${encode({ ...head, alg: "nOnE" })}.${payload}.${signature}`) },
    {
      name: "HMAC with the public key",
      token: bearer(
        forged("HS256", (text) => createHmac("sha256", JSON.stringify(jwk)).update(text).digest("base64url")),
      ),
    },
    { name: "signed by a key of its own", token: bearer(forged("RS256", ownKey)) },
    {
      name: "signed by a key that it brings",
      token: bearer(forged("RS256", ownKey, { jwk: pair.publicKey.export({ format: "jwk" }) })),
    },
    {
      name: "a key from elsewhere",
      token: bearer(forged("RS256", ownKey, { jku: "http://127.0.0.1:9/jwks", kid: "x" })),
    },
    { name: "an unknown key id", token: bearer(forged("RS256", () => signature, { kid: "unknown" })) },
    { name: "an altered scope", token: bearer(payloadWith({ gk_scopes: [VICTIM, OTHER] })) },
    { name: "an altered expiry", token: bearer(payloadWith({ exp: claims.exp + 1_000_000 })) },
    { name: "critical header", token: bearer(forged("RS256", ownKey, { crit: ["x"], x: 1 })) },
    { name: "expired", token: bearer(await issuedBy(at(-3_600_000))) },
    { name: "not yet valid", token: bearer(await issuedBy(at(3_600_000))) },
    { name: "another issuer", token: bearer(await issuedBy({ issuer: "http://127.0.0.1:9999" })) },
    { name: "another service's audience", token: bearer(await issuedBy(swapped)) },
    { name: "without the scope bio", token: bearer(await runtimeToken(tokens, noBio, "asr")) },
    { name: "of another biometric scope", token: bearer(await runtimeToken(tokens, clients[OTHER])) },
    { name: "two tokens", malformed: true, token: bearer(`${good} ${good}`) },
    { name: "in a list", malformed: true, token: bearer(`${good},${good}`) },
  ];
}

/** Not the last character of a part, which has unused bits. */
function changedAt(token, random) {
  for (;;) {
    const at = random.below(token.length);
    const next = token[at + 1];
    if (token[at] === "." || next === "." || next === undefined) continue;
    const other = random.pick("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
    if (other !== token[at]) return token.slice(0, at) + other + token.slice(at + 1);
  }
}

function badTokenRequest({ clients }, random) {
  const { id, secret } = clients[VICTIM];
  const basic = (user, password) =>
    `Basic ${Buffer.from(`${encodeURIComponent(user)}:${password}`).toString("base64")}`;
  const right = { grant_type: "client_credentials", scope: "bio" };
  const post = (authorization, fields, type = "application/x-www-form-urlencoded") => ({
    method: "POST",
    headers: { "content-type": type, ...(authorization ? { authorization } : {}) },
    body: typeof fields === "string" ? fields : new URLSearchParams(fields).toString(),
  });
  const good = basic(id, secret);
  return random.pick([
    { what: "no client", init: post(null, right) },
    { what: "unknown client", init: post(basic(randomUUID(), secret), right) },
    { what: "no grant", init: post(good, { scope: "bio" }) },
    {
      what: "another grant",
      init: post(good, { ...right, grant_type: random.pick(["password", "refresh_token", "implicit", "x"]) }),
    },
    { what: "no scope", init: post(good, { grant_type: "client_credentials" }) },
    {
      what: "another client's scope",
      init: post(good, { ...right, scope: random.pick(["platform-api", "tts", "bio platform-api", "*"]) }),
    },
    {
      what: "a grant twice",
      init: post(good, "grant_type=client_credentials&grant_type=client_credentials&scope=bio"),
    },
    { what: "JSON", init: post(good, JSON.stringify(right), "application/json") },
    {
      what: "not a code",
      init: post(good, { grant_type: "authorization_code", code: randomUUID(), redirect_uri: "http://127.0.0.1/" }),
    },
    { what: "a wrong verb", init: { method: "PUT", headers: { authorization: good } } },
  ]);
}

function grpcStatus(session, method, json, authorization) {
  return new Promise((resolve) => {
    const message = toBinary(method.input, fromJson(method.input, json));
    const frame = Buffer.alloc(5 + message.length);
    frame.writeUInt32BE(message.length, 1);
    frame.set(message, 5);
    const stream = session.request({
      ":method": "POST",
      ":path": `/${method.parent.typeName}/${method.name}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...(authorization ? { authorization } : {}),
    });
    let status = null;
    const note = (headers) => {
      status = headers["grpc-status"] ?? status;
    };
    stream.on("response", note);
    stream.on("trailers", note);
    stream.on("error", () => resolve("broken"));
    stream.on("data", () => {});
    stream.on("close", () => resolve(status));
    stream.end(frame);
  });
}
