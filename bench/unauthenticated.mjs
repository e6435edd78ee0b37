// CPU time of a box for each request that needs no token, over many requests of a kind. Linux.
//   npm run build && node bench/unauthenticated.mjs [--requests 1000] [--json]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { atMost } from "./measure.mjs";
import { printJson, printTable } from "./table.mjs";

const { values: options } = parseArgs({
  options: { requests: { type: "string", default: "1000" }, json: { type: "boolean", default: false } },
});
const requests = Number(options.requests);
const CONCURRENT = 8;
const TARGET_MS = 1;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const flags = ["--store", "memory", "--port", "0", "--json", "--log-level", "error"];
const box = spawn(process.execPath, [here("../dist/cli/main.js"), "serve", ...flags], {
  stdio: ["ignore", "pipe", "inherit"],
});
const { url, application } = JSON.parse((await once(box.stdout, "data"))[0]);
const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENT });

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_TYPE = { "content-type": "application/json" };
const basic = (id, secret) => ({
  ...FORM,
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${secret}`).toString("base64")}`,
});
const grant = "grant_type=client_credentials&scope=bio";
const forged = `${Buffer.from('{"alg":"RS256","kid":"x"}').toString("base64url")}.${Buffer.from(JSON.stringify({ iss: url, aud: "x" })).toString("base64url")}.${"A".repeat(342)}`;
const model = readdirSync(here("../dist/page/models"))[0];
const script = readdirSync(here("../dist/page/assets"), { recursive: true }).find((name) => name.endsWith(".js"));

/** Path, what else is sent, and how many at most: a model is 8 MB, and hashing a password is meant to be slow. */
const KINDS = {
  "/healthz": {},
  "/readyz": {},
  "/metrics": {},
  "/openapi.json": {},
  "/": {},
  "a script of the page": { path: `/assets/${script}` },
  "HEAD of a model": { path: `/models/${model}`, method: "HEAD" },
  "a model, not changed": { path: `/models/${model}`, unchanged: true },
  "a model, 8 MB": { path: `/models/${model}`, most: 100 },
  "/operator/": {},
  "/sign-in": {},
  "/oauth2/jwks": {},
  "/.well-known/oauth-authorization-server": {},
  "/oauth2/authorize without a client": { path: "/oauth2/authorize?response_type=code" },
  "a path that does not exist": { path: "/nothing" },
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
};

function ask({ path, method, headers = {}, body }, i) {
  return new Promise((resolve, reject) => {
    const given = typeof headers === "function" ? headers(i) : headers;
    const request = http.request(
      `${url}${path}`,
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

/** Milliseconds of CPU of the box's process, threads and kernel included; the kernel counts in hundredths of a second. */
function cpuMs() {
  const [, user, system] = /\) \S+(?: \S+){10} (\d+) (\d+)/.exec(readFileSync(`/proc/${box.pid}/stat`, "utf8"));
  return 10 * (Number(user) + Number(system));
}

async function measure(name, { most = requests, unchanged = false, ...kind }) {
  const request = { path: name, ...kind };
  const first = await ask(request, 0);
  if (unchanged) request.headers = { "if-none-match": first.headers.etag };
  const count = Math.min(most, requests);
  for (let i = 0; i < count / 10; i++) await ask(request, i);
  const before = cpuMs();
  const statuses = new Map();
  let next = 0;
  const caller = async () => {
    while (next < count) {
      const { statusCode } = await ask(request, next++);
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, caller));
  const each = (cpuMs() - before) / count;
  const detail = [...statuses].map(([status, times]) => `${times} × ${status}`).join(", ");
  return atMost(name, "", each, TARGET_MS, detail, " ms");
}

const rows = [];
try {
  for (const [name, kind] of Object.entries(KINDS)) rows.push(await measure(name, kind));
} finally {
  box.kill();
}
if (options.json) await printJson(rows);
else printTable(rows);
process.exit(0);
