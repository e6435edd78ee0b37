/** A message of a few megabytes may have millions of values. It is refused before it is decoded, over every transport. */
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CheckWatchlistConsistencyRequestSchema } from "../../src/contract/index.js";
import { boundBinary, boundJson } from "../../src/server/message-values.js";
import { type Rehearsal, rehearse } from "./rehearsal.js";

const PATH = "/vendor.biosec.v1.VoiceprintsProcessor/CheckWatchlistConsistency";
const REST = "/v1/voiceprints/watchlist:check-consistency";
const schema = CheckWatchlistConsistencyRequestSchema;

const asked = (ids: number) =>
  create(schema, {
    context: { gkScopeId: { value: "s" } },
    target: {
      case: "gkVoiceprintProfileIds",
      value: { uniqueIds: Array.from({ length: ids }, (_, i) => ({ value: `id, [${i}] "{"` })) },
    },
  });
const json = (ids: number) => Buffer.from(toJsonString(schema, asked(ids)));
const binary = (ids: number) => Buffer.from(toBinary(schema, asked(ids)));

let rehearsal: Rehearsal;
let url: string;
let session: http2.ClientHttp2Session;
beforeAll(async () => {
  rehearsal = rehearse({}, { limits: { callsPerSecond: 0 } });
  await rehearsal.service.listen();
  url = rehearsal.service.url;
  session = http2.connect(url);
});
afterAll(async () => {
  session.close();
  await rehearsal.service.stop();
});

function framed(bytes: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Everything that was answered, as text. */
async function posted(path: string, type: string, body: Uint8Array, headers: Record<string, string> = {}) {
  const init = { method: "POST", body: body as BodyInit, headers: { "content-type": type, ...headers } };
  const response = await fetch(url + path, init);
  return `${response.status} ${[...response.headers].join("\n")} ${await response.text()}`.replaceAll("%20", " ");
}

function overGrpc(body: Uint8Array, headers: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const common = { ":method": "POST", ":path": PATH, "content-type": "application/grpc+proto", te: "trailers" };
    const stream = session.request({ ...common, ...headers });
    const seen: string[] = [];
    stream.on("response", (more) => seen.push(JSON.stringify(more)));
    stream.on("trailers", (more) => seen.push(JSON.stringify(more)));
    stream.on("error", reject);
    stream.on("close", () => resolve(seen.join()));
    stream.resume();
    stream.end(body);
  });
}

const GZIP = 1;
const WAYS: [string, (ids: number) => Promise<string>][] = [
  ["HTTP", (ids) => posted(REST, "application/json", json(ids))],
  ["gRPC", (ids) => overGrpc(framed(binary(ids)))],
  ["compressed gRPC", (ids) => overGrpc(framed(gzipSync(binary(ids)), GZIP), { "grpc-encoding": "gzip" })],
  ["gRPC, its type in capitals", (ids) => overGrpc(framed(binary(ids)), { "content-type": "Application/gRPC" })],
  ["gRPC-Web", (ids) => posted(PATH, "application/grpc-web+proto", framed(binary(ids)))],
  ["Connect with JSON", (ids) => posted(PATH, "application/json", json(ids))],
  ["Connect", (ids) => posted(PATH, "application/proto", binary(ids))],
  [
    "compressed Connect",
    (ids) => posted(PATH, "application/json", gzipSync(json(ids)), { "content-encoding": "gzip" }),
  ],
];

describe("over every transport", () => {
  it.each(WAYS)("10,000 ids are read, 13,000 are refused in words: %s", async (_, ask) => {
    const before = rehearsal.seen.length;
    expect(await ask(10_000)).not.toMatch(/values/);
    expect(rehearsal.seen).toHaveLength(before + 1);
    expect(rehearsal.seen.at(-1)!.request).toMatchObject({ target: { value: { uniqueIds: { length: 10_000 } } } });
    expect(await ask(13_000)).toMatch(/the message has more than 25000 values/);
    expect(rehearsal.seen).toHaveLength(before + 1);
  });

  it.each(["application/connect+proto", "Application/Connect+proto"])("messages of a recording, %s", async (type) => {
    const contexts = Buffer.alloc(60_000, Buffer.from([0x0a, 0x00]));
    const compressed = { "connect-content-encoding": "gzip" };
    const upload = "/vendor.biosec.v1.MediaProcessor/AddMediaSegment";
    expect(await posted(upload, type, framed(contexts))).toMatch(/more than 25000 values/);
    expect(await posted(upload, type, framed(gzipSync(contexts), GZIP), compressed)).toMatch(/more than 25000 values/);
  });
});

it.each(["[", "{}, ", '"a",', '"\\"",'])("JSON that repeats %j and never ends is refused", async (repeated) => {
  const body = Buffer.from(`{"context":[${repeated.repeat(30_000)}`);
  expect(await posted(REST, "application/json", body)).toMatch(/^400 .*BAD_REQUEST.*more than 25000 values/s);
});

it("values are counted whatever the texts between them have", () => {
  const text = fc
    .array(fc.constantFrom('"', "\\", ",", "[{", "x", "x".repeat(63), "x".repeat(64), "x".repeat(200)))
    .map((all) => all.join(""));
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 24_996, max: 25_002 }),
      (texts, values) => {
        const list = Array.from({ length: values - 1 }, (_, i) =>
          i % 500 === 0 ? texts[(i / 500) % texts.length] : 0,
        );
        const counted = () => boundJson(Buffer.from(JSON.stringify(list)));
        // The list and each of its texts and numbers is one value.
        if (values > 25_000) expect(counted).toThrow(/more than 25000 values/);
        else expect(counted).not.toThrow();
      },
    ),
    { numRuns: 60 },
  );
});

it("a binary message has at most 25,000 values, wherever they are", () => {
  // An unknown number, and the number of another message inside an id.
  const [number, inside] = [Buffer.from([0x78, 0x00]), Buffer.from([0x0a, 0x02, 0x78, 0x00])];
  for (const [value, values] of [
    [number, 1],
    [inside, 2],
  ] as const) {
    const full = Buffer.alloc((25_000 / values) * value.length, value);
    expect(() => boundBinary(schema, full)).not.toThrow();
    expect(() => boundBinary(schema, Buffer.concat([full, number]))).toThrow(/more than 25000 values/);
  }
});

it("a binary message that is cut off is left to the decoder", () => {
  const whole = binary(3);
  for (let bytes = 0; bytes <= whole.length; bytes++)
    expect(() => boundBinary(schema, whole.subarray(0, bytes))).not.toThrow();
});

it("a text that never ends is left to the parser", () => {
  for (const open of ['"', '"x', `"${"x".repeat(100)}`, `"${"x".repeat(100)}\\`, `"${"x".repeat(100)}\\"`])
    expect(() => boundJson(Buffer.from(`[${open}`))).not.toThrow();
});

it.each([
  ["at the top", '{"context":{"gkScopeId":{"value":"s"}},"context":{"gkScopeId":{"value":"t"}}}', "context"],
  ["with other escapes", '{"context":{"gkScopeId":{"value":"s","\\u0076alue":"t"}}}', "value"],
  ["in a list", '{"gk_voiceprint_profile_ids":{"unique_ids":[{"value":"a"},{"value":"b","value":"c"}]}}', "value"],
])("a field that is named twice is refused: %s", async (_, body, field) => {
  const refused = `${field}: given twice`;
  expect(await posted(REST, "application/json", Buffer.from(body))).toMatch(/^400 .*BAD_REQUEST/s);
  expect(await posted(REST, "application/json", Buffer.from(body))).toContain(refused);
  expect(await posted(PATH, "application/json", Buffer.from(body))).toContain(refused);
});

it("values may repeat, and names in different objects", () => {
  fc.assert(fc.property(fc.json(), (text) => boundJson(Buffer.from(text))));
  for (const text of [
    '{"a":"b","b":"a","c":"a"}',
    '[{"a":{"a":"a:"}},{"a":1}]',
    '{"a"::1,"b"::1}',
    '"a":1,"a":2',
    "}{",
  ])
    expect(() => boundJson(Buffer.from(text)), text).not.toThrow();
});

it("a text with half a character is refused", async () => {
  const body = Buffer.from('{"context":{"gkScopeId":{"value":"\\ud800"}}}');
  expect(await posted(REST, "application/json", body)).toMatch(/^400 .*BAD_REQUEST/s);
});

describe("a tag that hides how the decoder reads a field", () => {
  const list = Buffer.concat([Buffer.from([0x0a, 0x00]), Buffer.alloc(60_000, Buffer.from([0x0a, 0x00]))]);
  const ids = schema.field.gkVoiceprintProfileIds.number;

  it.each([
    ["a fixed size", (ids << 3) | 1],
    ["a number", ids << 3],
    ["a group", (ids << 3) | 3],
    ["a group of an unknown field", (15 << 3) | 3],
  ])("is refused: %s", (_, tag) => {
    expect(() => boundBinary(schema, Buffer.concat([Buffer.from([tag]), list]))).toThrow(/wrong wire type/);
  });
});
