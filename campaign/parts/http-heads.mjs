/** Odd heads of requests: hosts, paths, `Expect`, upgrades, versions and forms of HTTP/1, pseudo-headers of HTTP/2. */
import { mutated } from "./mutate.mjs";

const METHODS = ["GET", "GET", "GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT", "TRACE", "PRI", "BREW"];
const TARGETS = [
  "/healthz",
  "/healthz",
  "/readyz",
  "/metrics",
  "/v1/live",
  "/v1/engagements",
  "/grpc.health.v1.Health/Check",
  "/",
  "//",
  "/%",
  "/%00",
  "/..%2f",
  "?x",
  "*",
  "box:80",
  "http://box/healthz",
  "http://[/",
];
const HOSTS = ["127.0.0.1", "127.0.0.1", "localhost:80", "[::1]", "box", "a b", "", "x".repeat(100)];
const TYPES = ["application/json", "application/grpc", "application/proto", "x"];

/** One connection's bytes: a few requests, of which most are undamaged. */
export function httpHeads(random) {
  const count = 1 + random.below(3);
  const bytes = random.chance(0.5)
    ? Buffer.concat(Array.from({ length: count }, () => http1Request(random)))
    : Buffer.concat([PREFACE, ...Array.from({ length: count }, (_, i) => http2Request(random, 1 + 2 * i))]);
  return random.chance(0.7) ? bytes : Buffer.from(mutated(bytes, random));
}

function http1Request(random) {
  const version = random.pick(["1.1", "1.1", "1.1", "1.0", "0.9", "2.0"]);
  const lines = [`${random.pick(METHODS)} ${random.pick(TARGETS)} HTTP/${version}`];
  for (let hosts = random.pick([1, 1, 1, 1, 0, 2]); hosts > 0; hosts--) lines.push(`Host: ${random.pick(HOSTS)}`);
  const sometimes = (share, name, values) => random.chance(share) && lines.push(`${name}: ${random.pick(values)}`);
  sometimes(0.2, "Expect", ["100-continue", "100-Continue", "x", ""]);
  sometimes(0.2, "Upgrade", ["h2c", "websocket", "h2c, websocket", "TLS/1.0", ""]);
  sometimes(0.4, "Connection", ["Upgrade", "Upgrade, HTTP2-Settings", "close", "keep-alive", "Upgrade, close"]);
  sometimes(0.2, "Content-Type", TYPES);
  const body = random.chance(0.3) ? "{}" : "";
  if (body) sometimes(0.9, "Content-Length", [2, 2, 2, 5, 0, -1, "1e3"]);
  sometimes(0.1, "Transfer-Encoding", ["chunked", "gzip, chunked", "x"]);
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`, "latin1");
}

const frame = (type, flags, stream, content) => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
};
const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, Buffer.alloc(0))]);
/** A literal, without a table and without Huffman's code (RFC 7541 §6.2.2). */
const field = ([name, value]) =>
  Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);

function http2Request(random, stream) {
  const fields = [
    [":method", random.pick(METHODS)],
    [":scheme", random.pick(["http", "http", "https", "x"])],
    [":path", random.pick(TARGETS)],
    [":authority", random.pick(HOSTS)],
  ].filter(() => random.chance(0.97));
  const sometimes = (share, name, values) => random.chance(share) && fields.push([name, random.pick(values)]);
  sometimes(0.05, ":status", ["200"]);
  sometimes(0.05, ":protocol", ["websocket"]);
  sometimes(0.05, ":path", TARGETS);
  sometimes(0.1, "host", HOSTS);
  sometimes(0.2, "expect", ["100-continue", "x"]);
  sometimes(0.05, "connection", ["upgrade", "close"]);
  sometimes(0.1, "content-length", ["0", "5", "-1"]);
  sometimes(0.3, "content-type", TYPES);
  if (random.chance(0.05)) fields.reverse();
  const frames = [frame(1, random.chance(0.7) ? 5 : 4, stream, Buffer.concat(fields.map(field)))];
  if (random.chance(0.2)) frames.push(frame(0, random.below(2), stream, Buffer.alloc(random.below(30))));
  if (random.chance(0.1)) frames.push(frame(3, 0, stream, Buffer.from([0, 0, 0, 8])));
  return Buffer.concat(frames);
}

/** The status codes in what a server sent. Of HTTP/2 only those with an index in HPACK's table: 200, 204, 206, 304, 400, 404, 500. */
export function statusesOf(sent) {
  const text = sent.toString("latin1");
  if (text.startsWith("HTTP/")) return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  const statuses = [];
  for (let at = 0; at + 9 < sent.length; at += 9 + sent.readUIntBE(at, 3))
    if (sent[at + 3] === 1) statuses.push([200, 204, 206, 304, 400, 404, 500][sent[at + 9] - 0x88]);
  return statuses.filter((status) => status !== undefined);
}
