// Time of a box's main thread for the most expensive messages it decodes: up to 25,000 values and 4 MiB, with a token,
// over every encoding. While it decodes one, it answers nobody else. Linux.
//   npm run build && node bench/largest-message.mjs [--messages 20] [--json]
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { startBox } from "./box.mjs";
import { atMost } from "./measure.mjs";
import { printJson, printTable } from "./table.mjs";

const { values: options } = parseArgs({
  options: { messages: { type: "string", default: "20" }, json: { type: "boolean", default: false } },
});
const messages = Number(options.messages);
const TARGET_MS = 50;
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_VALUES = 25_000;
const IDS = MOST_VALUES / 2 - 10;
const LONGEST_LIST = 10_000;

const { process: box, url, application } = await startBox("memory", "limits.callsPerSecond=0");
const granted = await fetch(`${url}/oauth2/token`, {
  method: "POST",
  body: new URLSearchParams({
    grant_type: "client_credentials",
    scope: "bio",
    client_id: application.clientId,
    client_secret: application.clientSecret,
  }),
});
const authorization = `Bearer ${(await granted.json()).access_token}`;

const RPC = "/vendor.biosec.v1.VoiceprintsProcessor/CheckWatchlistConsistency";
const HTTP = "/v1/voiceprints/watchlist:check-consistency";
const many = (count, one) => Array.from({ length: count }, (_, i) => one(i));
const fill = (count) => "x".repeat(Math.floor(MOST_BYTES / count) - 40);

const uuid = (i) => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`;
const listed = (ids) => ({
  context: {
    gk_engagement_id: { value: uuid(0) },
    gk_session_id: { value: uuid(0) },
    gk_scope_id: { value: application.scope },
    configset_id: "text-independent",
  },
  gk_voiceprint_profile_ids: { unique_ids: ids },
});
const JSON_MESSAGES = {
  "the longest list allowed": listed(many(LONGEST_LIST, (i) => ({ value: uuid(i) }))),
  "most values": listed(many(IDS, (i) => ({ value: `${i}` }))),
  "most values, 4 MiB": listed(many(IDS, (i) => ({ value: `${i}${fill(IDS)}` }))),
  "most values, the last one wrong": listed([...many(IDS, (i) => ({ value: `${i}` })), { value: 1 }]),
  "one value of 4 MiB": listed([{ value: "x".repeat(MOST_BYTES - 300) }]),
  "unknown fields": { ...listed([]), ...Object.fromEntries(many(IDS, (i) => [`unknown_${i}`, i])) },
  "lists in lists": `{"context":${"[".repeat(MOST_VALUES - 10)}${"]".repeat(MOST_VALUES - 10)}}`,
};

function field(number, content) {
  const bytes = Buffer.from(content);
  const head = [];
  for (let part of [number * 8 + 2, bytes.length]) {
    for (; part > 127; part >>>= 7) head.push((part & 127) | 128);
    head.push(part);
  }
  return Buffer.concat([Buffer.from(head), bytes]);
}
const id = (number, value) => field(number, field(1, value));
const context = field(
  1,
  Buffer.concat([id(1, uuid(0)), id(2, uuid(0)), id(3, application.scope), field(4, "text-independent")]),
);
const binary = (ids) => Buffer.concat([context, field(2, Buffer.concat(ids.map((value) => id(1, value))))]);
const BINARY_MESSAGES = {
  "the longest list allowed": binary(many(LONGEST_LIST, uuid)),
  "most values": binary(many(IDS, (i) => `${i}`)),
  "most values, 4 MiB": binary(many(IDS, (i) => `${i}${fill(IDS)}`)),
  "one value of 4 MiB": binary(["x".repeat(MOST_BYTES - 300)]),
  "unknown fields": Buffer.concat(many(MOST_VALUES - 10, () => field(900, ""))),
  "unknown fields, 4 MiB": Buffer.concat(many(MOST_VALUES - 10, () => field(900, fill(MOST_VALUES)))),
  "the same field again and again": Buffer.concat(many(MOST_VALUES / 2 - 10, () => field(1, field(1, "")))),
};

function framed(bytes) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}
const written = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const texts = Object.entries(JSON_MESSAGES).map(([name, value]) => [name, written(value)]);
const packed = Object.entries(BINARY_MESSAGES);
const WAYS = [
  ["HTTP", HTTP, texts, (bytes) => bytes, { "content-type": "application/json" }],
  ["Connect, JSON", RPC, texts, (bytes) => bytes, { "content-type": "application/json" }],
  [
    "Connect, JSON, gzip",
    RPC,
    texts,
    (bytes) => gzipSync(bytes),
    { "content-type": "application/json", "content-encoding": "gzip" },
  ],
  ["Connect, binary", RPC, packed, (bytes) => bytes, { "content-type": "application/proto" }],
  ["gRPC", RPC, packed, framed, { "content-type": "application/grpc", te: "trailers" }],
];

const session = http2.connect(url);
/** The answer's status: of HTTP, or of gRPC. */
function ask(path, headers, body) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": "POST", ":path": path, authorization, ...headers });
    let status = "";
    const seen = (answer) => {
      status = `${answer["grpc-status"] === undefined ? answer[":status"] : `gRPC ${answer["grpc-status"]}`}`;
    };
    stream.on("response", seen);
    stream.on("trailers", seen);
    stream.on("error", reject);
    stream.on("close", () => resolve(status));
    stream.resume();
    stream.end(body);
  });
}

/** Milliseconds that the main thread has run. */
const mainThreadMs = () =>
  Number(readFileSync(`/proc/${box.pid}/task/${box.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;

const rows = [];
try {
  for (const [way, path, kinds, encode, headers] of WAYS) {
    for (const [name, bytes] of kinds) {
      const body = encode(bytes);
      for (let i = 0; i < messages / 4; i++) await ask(path, headers, body);
      const before = mainThreadMs();
      let status = "";
      for (let i = 0; i < messages; i++) status = await ask(path, headers, body);
      const each = (mainThreadMs() - before) / messages;
      rows.push(atMost(`${way}: ${name}`, "", each, TARGET_MS, `answer ${status}`, " ms"));
    }
  }
} finally {
  session.close();
  box.kill();
}
if (options.json) await printJson(rows);
else printTable(rows);
process.exit(0);
