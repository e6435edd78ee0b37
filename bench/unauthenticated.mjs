// CPU time of a box for each request that needs no token, over many requests of a kind. The model file is also
// requested from a bare Node server that writes one buffer: most of its cost is the kernel's copying. Linux.
//   npm run build && node bench/unauthenticated.mjs [--requests 1000] [--store FOLDER] [--json]
import { readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startBox, startServer } from "./box.mjs";
import { atMost } from "./measure.mjs";
import { printJson, printTable } from "./table.mjs";

const { values: options } = parseArgs({
  options: {
    requests: { type: "string", default: "1000" },
    store: { type: "string", default: "memory" },
    json: { type: "boolean", default: false },
  },
});
const requests = Number(options.requests);
const CONCURRENT = 8;
const TARGET_MS = 1;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const box = await startBox(options.store, 'trustProxy=["127.0.0.1"]');
const { url, application } = box;
const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENT });

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_TYPE = { "content-type": "application/json" };
const basic = (id, secret) => ({
  ...FORM,
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${secret}`).toString("base64")}`,
});
const grant = "grant_type=client_credentials&scope=bio";
const forged = `${Buffer.from('{"alg":"RS256","kid":"x"}').toString("base64url")}.${Buffer.from(JSON.stringify({ iss: url, aud: "x" })).toString("base64url")}.${"A".repeat(342)}`;
/** A gRPC message whose only field, of that number, is a text. */
const framed = (field, text) => {
  const message = Buffer.concat([Buffer.from([(field << 3) | 2, text.length]), Buffer.from(text)]);
  return Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
};
const GRPC = { "content-type": "application/grpc", te: "trailers" };
const model = readdirSync(here("../dist/page/models"))[0];
const script = readdirSync(here("../dist/page/assets"), { recursive: true }).find((name) => name.endsWith(".js"));

const WHOLE_MODEL = "a model, 9 MB";
const elsewhere = (i) => ({ "x-forwarded-for": `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}` });

/** Path, what else is sent, and how many at most: a model is 9 MB, and hashing a password is meant to be slow. */
const KINDS = {
  "/healthz": {},
  "/readyz": {},
  "/metrics": {},
  "/openapi.json": {},
  "/": {},
  "a script of the page": { path: `/assets/${script}` },
  "HEAD of a model": { path: `/models/${model}`, method: "HEAD" },
  "a model, not changed": { path: `/models/${model}`, unchanged: true },
  [WHOLE_MODEL]: { path: `/models/${model}`, most: 200 },
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
  "an operation without a token": { path: "/v1/sessions/start", headers: JSON_TYPE, body: "{}" },
  "an operation with a forged token": {
    path: "/v1/sessions/start",
    headers: { ...JSON_TYPE, authorization: `Bearer ${forged}` },
    body: "{}",
  },
  "/management/v1 without a token": { path: "/management/v1/applications" },
  "/engagementAPI/v2 without a token": { path: "/engagementAPI/v2/customer/agentAvailability", method: "POST" },
  "/oauth2/token, unknown client": { path: "/oauth2/token", headers: basic("nobody", "x"), body: grant },
  "/oauth2/token, wrong secret": { path: "/oauth2/token", headers: basic(application.clientId, "x"), body: grant },
  "/oauth2/token, other unknown clients": {
    path: "/oauth2/token",
    headers: (i) => basic(`nobody-${i}`, "x"),
    body: grant,
  },
  "/oauth2/token, unknown clients, each from another address": {
    path: "/oauth2/token",
    headers: (i) => ({ ...basic(`nobody-${i}`, "x"), ...elsewhere(i) }),
    body: grant,
  },
  "/oauth2/token, wrong secret, each from another address": {
    path: "/oauth2/token",
    headers: (i) => ({ ...basic(application.clientId, "x"), ...elsewhere(i) }),
    body: grant,
  },
};

/** One buffer, written at once. */
const BARE = `
  const bytes = require("node:fs").readFileSync(${JSON.stringify(here(`../dist/page/models/${model}`))});
  const server = require("node:http").createServer((_, response) => response.end(bytes));
  server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: "http://127.0.0.1:" + server.address().port })));
`;

let session;
function askGrpc(from, { path, headers, body }) {
  session ??= http2.connect(from);
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    let status;
    const seen = (given) => {
      status = given["grpc-status"] ?? status;
    };
    stream.on("response", seen);
    stream.on("trailers", seen);
    stream.once("error", reject);
    stream.once("close", () => resolve({ statusCode: `grpc-status ${status}` }));
    stream.resume();
    stream.end(body);
  });
}

function ask(from, request, i) {
  const { path, method, headers = {}, body } = request;
  if (headers === GRPC) return askGrpc(from, request);
  return new Promise((resolve, reject) => {
    const given = typeof headers === "function" ? headers(i) : headers;
    const request = http.request(
      `${from}${path}`,
      { agent, method: method ?? (body === undefined ? "GET" : "POST"), headers: given },
      (answer) => {
        answer.resume();
        answer.once("end", () => resolve(answer));
      },
    );
    request.once("error", reject);
    request.end(body);
  });
}

/** Milliseconds of CPU of a process, threads and kernel included; the kernel counts in hundredths of a second. */
function cpuMs({ process: { pid } }) {
  const [, user, system] = /\) \S+(?: \S+){10} (\d+) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"));
  return 10 * (Number(user) + Number(system));
}

/** Milliseconds of CPU for each request, after as many that are not measured: compiling is not part of the cost. */
async function measure(server, { most = requests, unchanged = false, ...request }) {
  const first = await ask(server.url, request, 0);
  if (unchanged) request.headers = { "if-none-match": first.headers.etag };
  const count = Math.min(most, requests);
  const statuses = new Map();
  let before = 0;
  for (const round of [0, 1]) {
    before = cpuMs(server);
    statuses.clear();
    let next = 0;
    const caller = async () => {
      while (next < count) {
        const { statusCode } = await ask(server.url, request, 1 + round * count + next++);
        statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT }, caller));
  }
  const each = (cpuMs(server) - before) / count;
  return { each, detail: [...statuses].map(([status, times]) => `${times} × ${status}`).join(", ") };
}

const rows = [];
const bare = await startServer("-e", BARE);
try {
  for (const [name, kind] of Object.entries(KINDS)) {
    const request = { path: name, ...kind };
    const { each, detail } = await measure(box, request);
    rows.push(atMost(name, "", each, TARGET_MS, detail, " ms"));
    if (name !== WHOLE_MODEL) continue;
    const other = await measure(bare, request);
    rows.push(atMost(name, "bare Node server", each / other.each, 2, `${other.each.toFixed(2)} ms there`, "×"));
  }
} finally {
  box.process.kill();
  bare.process.kill();
}
if (options.json) await printJson(rows);
else printTable(rows);
process.exit(0);
