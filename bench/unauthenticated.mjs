// CPU time of a box for each request that needs no token, over many requests of a kind: what a flood of them costs.
// Before they are counted, more of them are sent (--warm), until Node has compiled the code. What the process takes while
// nobody asks is not counted: a refused body is cut off after half a second, in which the box does other things. Two kinds are
// also sent to a bare Node server: /healthz, to show how fast the machine is, and a part of the model, whose cost is mostly
// the kernel's copying. TLS handshakes are those of the box's listener alone. The RTP rows count 64 packets as one request. Linux, openssl.
//   npm run build && node bench/unauthenticated.mjs [--requests 1000] [--warm 3000] [--store FOLDER] [--only PATTERN] [--json]
import { readdirSync, readFileSync, statSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startBox, startServer } from "./box.mjs";
import { atMost } from "./measure.mjs";
import { printJson, printTable } from "./table.mjs";
import { LINES, lineKinds, startTlsPort, tlsKinds } from "./unauthenticated-connections.mjs";

const { values: options } = parseArgs({
  options: {
    requests: { type: "string", default: "1000" },
    warm: { type: "string", default: "3000" },
    store: { type: "string", default: "memory" },
    only: { type: "string", default: "" },
    json: { type: "boolean", default: false },
  },
});
const [requests, warm] = [Number(options.requests), Number(options.warm)];
const CONCURRENT = 64;
const IDLE_MS = 10_000;
const TARGET_MS = 1;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const box = await startBox(options.store, 'trustProxy=["127.0.0.1"]', `telephony=${JSON.stringify(LINES)}`);
const ecdsa = await startTlsPort("ec", "-pkeyopt", "ec_paramgen_curve:P-256");
const rsa = await startTlsPort("rsa:2048");
const { url, application } = box;
const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENT });

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_TYPE = { "content-type": "application/json" };
const basic = (id, secret) => ({
  ...FORM,
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${secret}`).toString("base64")}`,
});
const grant = "grant_type=client_credentials&scope=bio";
const encoded = (json) => Buffer.from(JSON.stringify(json)).toString("base64url");
/** A token in our name, with the id of a key, but without a signature. */
const forged = (kid) =>
  `Bearer ${encoded({ alg: "RS256", typ: "at+jwt", kid })}.${encoded({ iss: url, exp: 4e9 })}.${"A".repeat(342)}`;
const published = await (await fetch(`${url}/oauth2/jwks`)).json();
const kid = published.keys[0].kid;
/** A gRPC message whose only field, of that number, is a text. */
const framed = (field, text) => {
  const message = Buffer.concat([Buffer.from([(field << 3) | 2, text.length]), Buffer.from(text)]);
  return Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
};
const GRPC = { "content-type": "application/grpc", te: "trailers" };
const model = readdirSync(here("../dist/page/models"))[0];
const modelBytes = statSync(here(`../dist/page/models/${model}`)).size;
const script = readdirSync(here("../dist/page/assets"), { recursive: true }).find((name) => name.endsWith(".js"));

/** As many as fit into a header, or into another length. */
const many = (entry, between, length = 15_000) => {
  const entries = [];
  for (let left = length; left > 0; left -= between.length + entries.at(-1).length) entries.push(entry(entries.length));
  return entries.slice(0, -1).join(between);
};
const word = (i) => i.toString(36);

const SOCKET = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-protocol": "vivavoce.live.v1",
};
/** Headers of Genesys. Who knows the API key is no stranger, but it is sent in clear; nobody else gets as far. */
function wronglySigned() {
  const names = [
    "@request-target",
    "audiohook-session-id",
    "audiohook-organization-id",
    "audiohook-correlation-id",
    "x-api-key",
  ];
  const now = Math.floor(Date.now() / 1000);
  return {
    ...Object.fromEntries(names.slice(1).map((name) => [name, "x"])),
    "x-api-key": LINES.find(({ apiKey }) => apiKey).apiKey,
    "signature-input": `sig1=(${names.map((name) => `"${name}"`).join(" ")});created=${now};expires=${now + 86_400}`,
    signature: `sig1=:${Buffer.alloc(32).toString("base64")}:`,
  };
}
const START = "/vendor.biosec.v1.SessionsProcessor/StartSession";
const OPERATOR = `client_id=vivavoce-operator&redirect_uri=${encodeURIComponent(`${url}/operator/`)}`;
const AUTHORIZE = `/oauth2/authorize?response_type=code&${OPERATOR}&scope=platform-api&code_challenge=${"x".repeat(43)}&code_challenge_method=S256`;

const PART_OF_MODEL = "a part of a model, 1 MB";
const nobody = (i) => basic(`appID:nobody-${i}:geo:eu:clientName:default`, "x");
const elsewhere = (i) => ({ "x-forwarded-for": `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}` });

/**
 * Path, what else is sent (or `send`, which does it), and how many at most: a model is 9 MB. The check of a password is missing, because it is meant
 * to be slow; how many are checked is limited (src/token/throttle.ts).
 */
const KINDS = {
  "/healthz": {},
  "/readyz": {},
  "/metrics": {},
  "/openapi.json": {},
  "/": {},
  "a script of the page": { path: `/assets/${script}` },
  "HEAD of a model": { path: `/models/${model}`, method: "HEAD" },
  "a model, not changed": { path: `/models/${model}`, unchanged: true },
  [PART_OF_MODEL]: { path: `/models/${model}`, headers: { range: "bytes=1048576-2097151" } },
  // Before the limit: 60 at once.
  "a model as a whole, for each MB": { path: `/models/${model}`, isCold: true, most: 50, units: modelBytes / 1e6 },
  "a model as a whole, 9 MB": { path: `/models/${model}`, most: 200 },
  "/operator/": {},
  "/sign-in": {},
  "/oauth2/jwks": {},
  "/.well-known/oauth-authorization-server": {},
  "/oauth2/authorize without a client": { path: "/oauth2/authorize?response_type=code" },
  "a path that does not exist": { path: "/nothing" },
  "gRPC health": { path: "/grpc.health.v1.Health/Check", headers: GRPC, body: framed(1, "") },
  "gRPC reflection, a service with its imports": {
    path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    headers: GRPC,
    body: framed(4, "vendor.biosec.v1.VoiceprintsProcessor"),
  },
  "gRPC-Web health": {
    path: "/grpc.health.v1.Health/Check",
    headers: { "content-type": "application/grpc-web+proto" },
    body: framed(1, ""),
  },
  "a gRPC method that does not exist": { path: "/no.Such/Method", headers: GRPC, body: framed(1, "") },
  "a gRPC call without a token": { path: START, headers: GRPC, body: framed(1, "") },
  "a gRPC stream without a token": {
    path: "/vendor.biosec.v1.LiveProcessor/Listen",
    headers: GRPC,
    body: framed(1, ""),
  },
  "a Connect call without a token": { path: START, headers: JSON_TYPE, body: "{}" },
  "a WebSocket without a token, each a new connection": { path: "/v1/live", headers: SOCKET, isAlone: true },
  "/healthz, each a new connection": { path: "/healthz", isAlone: true },
  "/healthz, many headers": {
    path: "/healthz",
    headers: Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`x-${i}`, "1"])),
  },
  "/sign-in, many languages": {
    path: "/sign-in",
    headers: { "accept-language": many((i) => `${word(i)};q=0.1`, ",") },
  },
  "/sign-in, many cookies": { path: "/sign-in", headers: { cookie: many((i) => `${word(i)}=1`, "; ") } },
  "/oauth2/authorize of the operator view, each from another address": {
    path: AUTHORIZE,
    headers: elsewhere,
    most: 300,
  },
  "/oauth2/authorize of the operator view, the password again, each from another address": {
    path: `${AUTHORIZE}&prompt=login`,
    headers: elsewhere,
    most: 300,
  },
  "/oauth2/authorize, a faulty request of the operator view": { path: AUTHORIZE.replace("code_challenge=", "x=") },
  "/oauth2/authorize, no page allowed": { path: `${AUTHORIZE}&prompt=none` },
  "/oauth2/authorize, another redirect address": { path: AUTHORIZE.replace("redirect_uri=", "redirect_uri=x") },
  "/oauth2/authorize, a session that does not exist": {
    path: AUTHORIZE,
    headers: (i) => ({ cookie: `vivavoce_session=${String(i).padEnd(43, "x")}` }),
  },
  "/oauth2/authorize/x": {},
  "/oauth2/interaction/x": {},
  "/oauth2/interaction/x, forged cookies": {
    path: "/oauth2/interaction/x",
    headers: { cookie: `vivavoce_interaction=x; vivavoce_interaction.sig=${"x".repeat(27)}` },
  },
  "/oauth2/interaction/x, a form": { path: "/oauth2/interaction/x", headers: FORM, body: "action=allow" },
  "/oauth2/session/end/confirm": { headers: FORM, body: "xsrf=x&logout=yes" },
  "/sign-in, a form of another page": { path: "/sign-in", headers: FORM, body: "name=x&password=x" },
  "/profile": {},
  "a path of 7,500 words": { path: `/v1${"/x".repeat(7500)}` },
  "a long query": { path: `/v1/sessions/start?${many(word, "&")}`, method: "POST" },
  "an operation without a token": { path: "/v1/sessions/start", headers: JSON_TYPE, body: "{}" },
  "an operation without a token, many forwarded addresses": {
    path: "/v1/sessions/start",
    headers: { ...JSON_TYPE, "x-forwarded-for": many(() => "1", ",") },
    body: "{}",
  },
  "an operation without a token, 1 MB": {
    path: "/v1/sessions/start",
    headers: JSON_TYPE,
    body: Buffer.alloc(1_000_000, " "),
    most: 2000,
  },
  "an operation without a token, 1 MB in chunks": {
    path: "/v1/sessions/start",
    headers: { ...JSON_TYPE, "transfer-encoding": "chunked" },
    body: Buffer.alloc(1_000_000, " "),
    most: 2000,
  },
  "an operation without a token, 1 MB over HTTP/2": {
    path: "/v1/sessions/start",
    headers: JSON_TYPE,
    body: Buffer.alloc(1_000_000, " "),
    most: 2000,
    isHttp2: true,
  },
  "an operation without a token, over HTTP/2": {
    path: "/v1/sessions/start",
    headers: JSON_TYPE,
    body: "{}",
    isHttp2: true,
  },
  "/healthz over HTTP/2": { path: "/healthz", isHttp2: true },
  "a part of a model, 1 MB, over HTTP/2": {
    path: `/models/${model}`,
    headers: { range: "bytes=1048576-2097151" },
    isHttp2: true,
  },
  "gRPC-Web text, a call without a token": {
    path: START,
    headers: { "content-type": "application/grpc-web-text+proto" },
    body: framed(1, "").toString("base64"),
  },
  "gRPC, a call without a token, many metadata entries": {
    path: START,
    headers: { ...GRPC, ...Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, "1".repeat(100)])) },
    body: framed(1, ""),
    isHttp2: true,
  },
  "gRPC reflection over gRPC-Web": {
    path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    headers: { "content-type": "application/grpc-web+proto" },
    body: framed(4, "vendor.biosec.v1.VoiceprintsProcessor"),
  },
  "gRPC reflection with gzip": {
    path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    headers: { ...GRPC, "grpc-encoding": "gzip" },
    body: framed(4, "vendor.biosec.v1.VoiceprintsProcessor"),
    isHttp2: true,
  },
  "a Connect call by GET": { path: `${START}?encoding=json&message=%7B%7D` },
  "OPTIONS of an operation": { path: "/v1/sessions/start", method: "OPTIONS" },
  "TRACE of an operation": { path: "/v1/sessions/start", method: "TRACE" },
  "PROPFIND of the page": { path: "/", method: "PROPFIND" },
  "a WebSocket at a path that has none": { path: "/nothing", headers: SOCKET, isAlone: true },
  "an operation with a forged token of an unknown key": {
    path: "/v1/sessions/start",
    headers: { ...JSON_TYPE, authorization: forged("x") },
    body: "{}",
  },
  "an operation with a forged token of our key": {
    path: "/v1/sessions/start",
    headers: { ...JSON_TYPE, authorization: forged(kid) },
    body: "{}",
  },
  "Twilio's WebSocket without a signature": { path: "/telephony/twilio", headers: SOCKET, isAlone: true },
  "Twilio's WebSocket with a wrong signature": {
    path: "/telephony/twilio",
    headers: { ...SOCKET, "x-twilio-signature": "A".repeat(15_000) },
    isAlone: true,
  },
  "AudioHook's WebSocket without a signature": { path: "/telephony/audiohook", headers: SOCKET, isAlone: true },
  "AudioHook's WebSocket with the API key and a wrong signature": {
    path: "/telephony/audiohook",
    headers: { ...SOCKET, ...wronglySigned() },
    isAlone: true,
  },
  "jambonz's WebSocket with a wrong password": {
    path: "/telephony/jambonz",
    headers: { ...SOCKET, authorization: `Basic ${"A".repeat(15_000)}` },
    isAlone: true,
  },
  "a call announced without a token": { path: "/telephony/rtp/calls", headers: JSON_TYPE, body: "{}" },
  ...(await lineKinds(box)),
  ...(await tlsKinds(ecdsa, rsa)),
  "/management/v1 without a token": { path: "/management/v1/applications" },
  "/engagementAPI/v2 without a token": { path: "/engagementAPI/v2/customer/agentAvailability", method: "POST" },
  "/oauth2/token, unknown client": { path: "/oauth2/token", headers: nobody(0), body: grant },
  "/oauth2/token, many parameters": { path: "/oauth2/token", headers: FORM, body: many(word, "&", 32_000) },
  "/oauth2/token, a code that does not exist": {
    path: "/oauth2/token",
    headers: FORM,
    body: `grant_type=authorization_code&${OPERATOR}&code=x&code_verifier=${"x".repeat(43)}`,
  },
  "/oauth2/introspect, unknown clients, each from another address": {
    path: "/oauth2/introspect",
    headers: (i) => ({ ...nobody(i), ...elsewhere(i) }),
    body: "token=x",
  },
  "/oauth2/revoke, unknown clients, each from another address": {
    path: "/oauth2/revoke",
    headers: (i) => ({ ...nobody(i), ...elsewhere(i) }),
    body: "token=x",
  },
  "/oauth2/token, wrong secret": { path: "/oauth2/token", headers: basic(application.clientId, "x"), body: grant },
  "/oauth2/token, other unknown clients": {
    path: "/oauth2/token",
    headers: nobody,
    body: grant,
  },
  "/oauth2/token, unknown clients, each from another address": {
    path: "/oauth2/token",
    headers: (i) => ({ ...nobody(i), ...elsewhere(i) }),
    body: grant,
  },
  "/oauth2/token, wrong secret, each from another address": {
    path: "/oauth2/token",
    headers: (i) => ({ ...basic(application.clientId, "x"), ...elsewhere(i) }),
    body: grant,
  },
};

/** The kinds that are also sent to a bare Node server, and how many times its cost they may have. */
const PEERS = { "/healthz": 4, [PART_OF_MODEL]: 4 };
/** One buffer, written at once. */
const BARE = `
  const bytes = require("node:fs").readFileSync(${JSON.stringify(here(`../dist/page/models/${model}`))}).subarray(0, 1 << 20);
  const server = require("node:http").createServer(({ url }, response) => response.end(url === "/healthz" ? "ok" : bytes));
  server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: "http://127.0.0.1:" + server.address().port })));
`;

let session;
function askHttp2(from, { path, headers, body }) {
  if (!session || session.destroyed || session.closed) {
    session = http2.connect(from);
    session.on("error", () => {});
  }
  return new Promise((resolve) => {
    const stream = session.request({ ":method": body === undefined ? "GET" : "POST", ":path": path, ...headers });
    let status;
    const seen = (given) => {
      status = given["grpc-status"] ? `grpc-status ${given["grpc-status"]}` : (given[":status"] ?? status);
    };
    stream.on("response", seen);
    stream.on("trailers", seen);
    // What is left of a request that was refused is cut off.
    stream.on("error", () => {});
    stream.once("close", () => resolve({ statusCode: status ?? `reset ${stream.rstCode}`, headers: {} }));
    stream.resume();
    stream.end(body);
  });
}

async function ask(from, request, i) {
  if (request.send) return { statusCode: await request.send() };
  const { path, method, headers = {}, body, isAlone = false } = request;
  if (headers === GRPC || request.isHttp2) return askHttp2(from, request);
  return new Promise((resolve) => {
    const given = typeof headers === "function" ? headers(i) : headers;
    const asked = http.request(
      `${from}${path}`,
      { agent: isAlone ? false : agent, method: method ?? (body === undefined ? "GET" : "POST"), headers: given },
      (answer) => {
        answer.resume();
        answer.once("end", () => resolve(answer));
      },
    );
    // A WebSocket is refused with its first message.
    asked.once("upgrade", (answer, socket) => {
      // It is closed with its answer, maybe while that is read.
      socket.on("error", () => {});
      socket.once("data", () => socket.destroy());
      socket.once("close", () => resolve(answer));
    });
    asked.on("error", ({ code }) => resolve({ statusCode: code, headers: {} }));
    asked.end(body);
  });
}

/** Milliseconds of CPU of a process, threads and kernel included; the kernel counts in hundredths of a second. */
function cpuMs({ process: { pid } }) {
  const [, user, system] = /\) \S+(?: \S+){10} (\d+) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"));
  return 10 * (Number(user) + Number(system));
}

/** CPU time of an idle process, as a share of the time that passes. */
async function idleShareOf(server) {
  await setTimeout(IDLE_MS / 2);
  const before = cpuMs(server);
  await setTimeout(IDLE_MS);
  return (cpuMs(server) - before) / IDLE_MS;
}

/** Milliseconds of CPU for each request, or each unit of it, after those that are not counted. */
async function measure(server, idleShare, kind) {
  const { most = requests, unchanged = false, isCold = false, units = 1, ...request } = kind;
  const first = await ask(server.url, request, 0);
  if (unchanged) request.headers = { "if-none-match": first.headers.etag };
  const statuses = new Map();
  let next = 1;
  const send = async (count) => {
    statuses.clear();
    const end = next + count;
    const caller = async () => {
      while (next < end) {
        const { statusCode } = await ask(server.url, request, next++);
        statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT }, caller));
  };
  const count = Math.min(most, requests);
  if (!isCold) await send(Math.min(most, warm));
  const [before, began] = [cpuMs(server), performance.now()];
  await send(count);
  const each = (cpuMs(server) - before - idleShare * (performance.now() - began)) / count / units;
  return { each, detail: [...statuses].map(([status, times]) => `${times} × ${status}`).join(", ") };
}

const rows = [];
const bare = await startServer("-e", BARE);
try {
  const only = new RegExp(options.only);
  const servers = [box, bare, ecdsa, rsa];
  const idle = new Map(await Promise.all(servers.map(async (server) => [server, await idleShareOf(server)])));
  for (const [name, { server = box, ...kind }] of Object.entries(KINDS).filter(([name]) => only.test(name))) {
    const request = { path: name, ...kind };
    const { each, detail } = await measure(server, idle.get(server), request);
    rows.push(atMost(name, "", each, TARGET_MS, detail, " ms"));
    if (!(name in PEERS)) continue;
    const other = await measure(bare, idle.get(bare), request);
    rows.push(
      atMost(name, "bare Node server", each / other.each, PEERS[name], `${other.each.toFixed(2)} ms there`, "×"),
    );
  }
} finally {
  for (const server of [box, bare, ecdsa, rsa]) server.process.kill();
}
if (options.json) await printJson(rows);
else printTable(rows);
process.exit(0);
