import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StatusCode, StatusSchema } from "../../src/contract/index.js";
import type { Guard } from "../../src/server/guard.js";
import { Refusal } from "../../src/server/refusal.js";
import { type Rehearsal, rehearse } from "./rehearsal.js";

const PATH = "/vendor.biosec.v1.VoiceprintsProcessor/Verify";
/** A length-delimited field that announces more bytes than follow. */
const BROKEN = Uint8Array.of(0x0a, 0x7f, 0x01);

let rehearsal: Rehearsal;
let url: string;
let session: http2.ClientHttp2Session;
beforeAll(async () => {
  rehearsal = rehearse({}, { limits: { messageBytes: 1000, callsPerSecond: 0 } });
  await rehearsal.service.listen();
  url = rehearsal.service.url;
  session = http2.connect(url);
});
afterAll(async () => {
  session.close();
  await rehearsal.service.stop();
});

interface Refused {
  /** gRPC's number or Connect's name. */
  readonly code: string;
  readonly details: string;
  readonly requestId: string;
}

/** In a gRPC frame; `length` may be wrong. */
function framed(bytes: Uint8Array, length = bytes.length): Buffer<ArrayBuffer> {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

function overGrpc(body: Uint8Array, headers: Record<string, string> = {}, over = session): Promise<Refused> {
  return new Promise((resolve, reject) => {
    const stream = over.request({
      ":method": "POST",
      ":path": PATH,
      "content-type": "application/grpc+proto",
      te: "trailers",
      ...headers,
    });
    let seen: http2.IncomingHttpHeaders = {};
    const note = (more: http2.IncomingHttpHeaders) => {
      seen = { ...seen, ...more };
    };
    stream.on("response", note);
    stream.on("trailers", note);
    stream.on("error", reject);
    stream.on("close", () => {
      expect(seen).toMatchObject({ ":status": 200, "content-type": expect.stringMatching(/^application\/grpc/) });
      resolve({
        code: String(seen["grpc-status"]),
        details: String(seen["grpc-status-details-bin"] ?? ""),
        requestId: String(seen["x-request-id"] ?? ""),
      });
    });
    stream.resume();
    stream.end(body);
  });
}

async function overGrpcWeb(body: Uint8Array): Promise<Refused> {
  const response = await fetch(url + PATH, {
    method: "POST",
    body: body as BodyInit,
    headers: { "content-type": "application/grpc-web+proto" },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const trailers = new Headers(response.headers);
  for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
    if ((bytes[at]! & 0x80) === 0) continue;
    const text = bytes.subarray(at + 5, at + 5 + bytes.readUInt32BE(at + 1)).toString();
    for (const line of text.split("\r\n").filter(Boolean)) {
      const colon = line.indexOf(":");
      trailers.set(line.slice(0, colon), line.slice(colon + 1).trim());
    }
  }
  return {
    code: trailers.get("grpc-status") ?? "none",
    details: trailers.get("grpc-status-details-bin") ?? "",
    requestId: trailers.get("x-request-id") ?? "",
  };
}

const overConnect = (type: string) => async (body: Uint8Array) => {
  const response = await fetch(url + PATH, {
    method: "POST",
    body: body as BodyInit,
    headers: { "content-type": type },
  });
  if (response.ok) return { code: "ok", details: "", requestId: "" };
  const { code, details } = (await response.json()) as { code: string; details: { type: string; value: string }[] };
  expect(details.map(({ type: name }) => name)).toEqual(["vendor.rpc.Status"]);
  return {
    code,
    details: details[0]!.value,
    requestId: response.headers.get("x-request-id") ?? "",
  };
};

/** gRPC wraps it in google.rpc.Status: field 3 is an Any, and its field 2 is our status. */
function statusOf(details: string, wrapped: boolean) {
  const bytes = Buffer.from(details, "base64");
  return fromBinary(StatusSchema, wrapped ? lengthDelimited(lengthDelimited(bytes, 3), 2) : bytes);
}

function lengthDelimited(bytes: Uint8Array, field: number): Uint8Array {
  let at = 0;
  const varint = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const length = varint();
    if ((tag & 7) !== 2) continue;
    if (tag >> 3 === field) return bytes.subarray(at, at + length);
    at += length;
  }
  throw new Error(`no field ${field}`);
}

const bytesOf = (text: string) => new TextEncoder().encode(text);
const LARGE = new Uint8Array(2000);

describe("a malformed message is refused with the contract's status in the details", () => {
  it.each<[string, (body: Uint8Array) => Promise<Refused>, Uint8Array, string, string]>([
    ["gRPC, broken protobuf", overGrpc, framed(BROKEN), "BAD_REQUEST", "3"],
    ["gRPC, a frame cut short", overGrpc, framed(BROKEN, 100), "BAD_REQUEST", "3"],
    ["gRPC, no message", overGrpc, Buffer.alloc(0), "BAD_REQUEST", "3"],
    ["gRPC, a message without fields is one", overGrpc, framed(new Uint8Array(0), 0), "OK", "0"],
    [
      "gRPC, two messages",
      overGrpc,
      Buffer.concat([framed(new Uint8Array(0)), framed(new Uint8Array(0))]),
      "BAD_REQUEST",
      "3",
    ],
    ["gRPC, too large", overGrpc, framed(LARGE), "TOO_LARGE", "8"],
    ["gRPC-Web, broken protobuf", overGrpcWeb, framed(BROKEN), "BAD_REQUEST", "3"],
    [
      "gRPC-Web, two messages",
      overGrpcWeb,
      Buffer.concat([framed(new Uint8Array(0)), framed(new Uint8Array(0))]),
      "BAD_REQUEST",
      "3",
    ],
    ["gRPC-Web, too large", overGrpcWeb, framed(LARGE), "TOO_LARGE", "8"],
    ["gRPC-Web, no message", overGrpcWeb, Buffer.alloc(0), "BAD_REQUEST", "3"],
    ["Connect, broken protobuf", overConnect("application/proto"), BROKEN, "BAD_REQUEST", "invalid_argument"],
    ["Connect, broken JSON", overConnect("application/json"), bytesOf("{"), "BAD_REQUEST", "invalid_argument"],
    [
      "Connect, an unknown field",
      overConnect("application/json"),
      bytesOf('{"nonsense":1}'),
      "BAD_REQUEST",
      "invalid_argument",
    ],
    ["Connect, too large", overConnect("application/proto"), LARGE, "TOO_LARGE", "resource_exhausted"],
  ])("%s", async (_, send, body, statusCode, code) => {
    const refused = await send(body);
    expect(refused.code).toBe(code);
    if (statusCode === "OK") return;
    const status = statusOf(refused.details, /^\d+$/.test(code));
    expect(StatusCode[status.statusCode]).toBe(statusCode);
    expect(status.message).not.toBe("");
    expect(status.requestId).toBe(refused.requestId);
    expect(status.requestId).not.toBe("");
    expect(rehearsal.logged).toContainEqual(
      expect.objectContaining({
        requestId: status.requestId,
        operation: "Verify",
        status: statusCode,
        client: "127.0.0.1",
      }),
    );
  });

  it.each([
    [
      "a compressed message without its encoding",
      Buffer.from([1, 0, 0, 0, 0]),
      "a gRPC message without a grpc-encoding header must begin with the byte 0, got 1",
    ],
    ["less than the head of a message", Buffer.from([0, 0, 0]), "the message is incomplete"],
    ["half a message", framed(new Uint8Array(3), 4), "the message is incomplete"],
    ["more than a message", framed(new Uint8Array(3), 2), "expected one message, got several"],
    ["nothing", Buffer.alloc(0), "expected one message, got none"],
  ])("gRPC, %s: the message says so", async (_, body, message) => {
    const refused = await overGrpc(body);
    expect(refused.code).toBe("3");
    expect(statusOf(refused.details, true)).toMatchObject({ statusCode: StatusCode.BAD_REQUEST, message });
  });

  it.each([1000, 1001])("gRPC, %d bytes with a limit of 1000", async (bytes) => {
    // An unknown field with a text.
    const message = Buffer.concat([
      Buffer.from([0xfa, 0x01, ((bytes - 4) & 127) | 128, (bytes - 4) >> 7]),
      Buffer.alloc(bytes - 4),
    ]);
    expect((await overGrpc(framed(message))).code).toBe(bytes > 1000 ? "8" : "0");
  });

  it.each(["99999999n", "99999u", "99m", "0S", "0M", "0H"])("a deadline of %s passes", async (timeout) => {
    const { service } = rehearse({ verify: () => new Promise(() => {}) });
    await service.listen();
    const other = http2.connect(service.url);
    try {
      const refused = await overGrpc(framed(new Uint8Array(0)), { "grpc-timeout": timeout }, other);
      expect(refused.code).toBe("4");
      expect(statusOf(refused.details, true).message).toBe("the caller's deadline passed");
    } finally {
      other.destroy();
      await service.stop();
    }
  });

  const grpc = { te: "trailers", "grpc-timeout": "100m" };
  it.each<[string, string, Record<string, string>, RegExp]>([
    ["gRPC", PATH, { ...grpc, "content-type": "application/grpc" }, /^4 /],
    ["compressed gRPC", PATH, { ...grpc, "content-type": "application/grpc", "grpc-encoding": "gzip" }, /^4 /],
    ["gRPC-Web", PATH, { ...grpc, "content-type": "application/grpc-web" }, /grpc-status: 4/],
    ["health", "/grpc.health.v1.Health/Check", { ...grpc, "content-type": "application/grpc" }, /^4 /],
    ["Connect", PATH, { "connect-timeout-ms": "100", "content-type": "application/json" }, /"deadline_exceeded"/],
  ])("a deadline over %s passes while the end of the message does not come", async (_, path, headers, answer) => {
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    let answered = "";
    stream.on("data", (bytes) => {
      answered += bytes;
    });
    stream.on("trailers", (trailers) => {
      answered += `${trailers["grpc-status"]} ${trailers["grpc-message"]}`;
    });
    stream.write(framed(new Uint8Array(0)));
    await once(stream, "end");
    stream.destroy();
    expect(answered).toMatch(answer);
    expect(answered).toContain("the caller's deadline passed");
  });

  it.each(["1X", "m", "123456789m", "-1S", "1 S"])("a deadline of %s is refused", async (timeout) => {
    const refused = await overGrpc(framed(new Uint8Array(0)), { "grpc-timeout": timeout });
    expect(refused.code).toBe("3");
    expect(statusOf(refused.details, true).message).toBe(
      `the grpc-timeout header must be 1 to 8 digits and a unit (H, M, S, m, u or n), got "${timeout}"`,
    );
  });

  it.each(["1H", "99999999H", "60M", "60S"])("a deadline of %s has not passed", async (timeout) => {
    expect((await overGrpc(framed(new Uint8Array(0)), { "grpc-timeout": timeout })).code).toBe("0");
  });

  it.each([
    ["2147483647", 200],
    ["2147483648", 400],
    ["9999999999", 400],
  ])("a deadline of %s ms over Connect: a timer cannot be longer than 2^31 - 1", async (timeout, status) => {
    const headers = { "content-type": "application/json", "connect-timeout-ms": timeout };
    expect((await fetch(url + PATH, { method: "POST", body: "{}", headers })).status).toBe(status);
  });

  it("gRPC is answered over HTTP/1.1 too, and needs POST", async () => {
    const headers = { "content-type": "application/grpc" };
    const answer = await fetch(url + PATH, { method: "POST", body: framed(new Uint8Array(0)) as BodyInit, headers });
    expect([answer.status, (await answer.arrayBuffer()).byteLength > 5]).toEqual([200, true]);
    const stream = session.request({ ":method": "GET", ":path": PATH, ...headers });
    stream.resume();
    const [answered] = await once(stream, "response");
    expect(answered[":status"]).toBe(405);
    expect(rehearsal.logged.filter(({ level }) => level === "error")).toEqual([]);
  });

  it.each([
    ["a host that is none", `POST ${PATH}`, "host: a<b\r\n", "application/json"],
    ["a host that is none, an unknown method", "POST /nothing/Here", "host: a<b\r\n", "application/grpc"],
    ["no host", `POST ${PATH}`, "", "application/grpc-web+json"],
    ["a path that is none", "POST //", "host: box\r\n", "application/grpc"],
  ])("%s gets 400, and the next call is answered", async (_, start, host, type) => {
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    socket.end(`${start} HTTP/1.0\r\n${host}content-type: ${type}\r\ncontent-length: 2\r\n\r\n{}`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 /);
    expect((await overGrpc(framed(new Uint8Array(0)))).code).toBe("0");
  });

  it.each(["/healthz", "/readyz", "/metrics"])("GET %s needs no host over HTTP/1.0", async (path) => {
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    socket.end(`GET ${path} HTTP/1.0\r\n\r\n`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("a path that is none gets 400 over HTTP/2 too", async () => {
    const stream = session.request({ ":method": "POST", ":path": "//", "content-type": "application/grpc" });
    stream.end();
    const [answered] = await once(stream, "response");
    expect(answered[":status"]).toBe(400);
    stream.close();
  });

  it("repeats no more than 200 characters of a path that does not exist", async () => {
    const path = `/vendor.nothing/${"x".repeat(300)}`;
    const headers = { "content-type": "application/grpc-web+proto", "x-request-id": "lost" };
    const refused = await fetch(url + path, { method: "POST", body: framed(new Uint8Array(0)) as BodyInit, headers });
    expect(refused.headers.get("grpc-message")).toBe(`there is no method ${path.slice(0, 200)}`);
    expect(statusOf(refused.headers.get("grpc-status-details-bin")!, true).requestId).toBe("lost");
  });

  it("an unknown encoding gets UNIMPLEMENTED and the list of known ones", async () => {
    const refused = await overGrpc(framed(BROKEN), { "grpc-encoding": "snappy" });
    expect(refused.code).toBe("12");
    expect(statusOf(refused.details, true).statusCode).toBe(StatusCode.NOT_IMPLEMENTED);
  });

  it("any input gets an answer or INVALID_ARGUMENT with the status, and is logged and counted", async () => {
    const logged = rehearsal.logged.length;
    const anything = fc.uint8Array({ maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(
        anything,
        fc.boolean(),
        fc.constantFrom("gRPC", "web", "proto", "json"),
        async (raw, frame, way) => {
          const body = frame && way !== "json" && way !== "proto" ? framed(raw) : raw;
          const refused = await (way === "gRPC"
            ? overGrpc(body)
            : way === "web"
              ? overGrpcWeb(body)
              : overConnect(`application/${way}`)(body));
          if (refused.code === "0" || refused.code === "ok") return;
          const wrapped = way === "gRPC" || way === "web";
          expect(statusOf(refused.details, wrapped).statusCode).toBeOneOf([
            StatusCode.BAD_REQUEST,
            StatusCode.TOO_LARGE,
          ]);
          expect(refused.code).toBeOneOf(["3", "8", "invalid_argument", "resource_exhausted"]);
        },
      ),
      { numRuns: 300 },
    );
    expect(rehearsal.logged.length).toBeGreaterThan(logged);
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(
      /vivavoce_call_seconds_count\{operation="Verify",protocol="grpc",status="BAD_REQUEST"\} \d+/,
    );
  });
});

describe("the message of a refused caller is not read", () => {
  it.each([
    ["HTTP", "/v1/voiceprints/p/verification", "application/json", 401, /NOT_AUTHORIZED/],
    ["gRPC-Web", PATH, "application/grpc-web+proto", 200, /grpc-status:? ?,?16/],
    ["Connect, JSON", PATH, "application/json", 401, /"unauthenticated"/],
    ["Connect, protobuf", PATH, "application/proto", 401, /"unauthenticated"/],
  ])("over %s", async (_, path, type, status, answer) => {
    let asked = 0;
    const closed: Guard = {
      async admit() {
        asked++;
        throw new Refusal(StatusCode.NOT_AUTHORIZED, "no token");
      },
    };
    const { service } = rehearse({}, {}, closed);
    await service.listen();
    try {
      const response = await fetch(service.url + path, {
        method: "POST",
        body: "{ neither JSON nor protobuf",
        headers: { "content-type": type },
      });
      expect(response.status).toBe(status);
      const text = await response.text();
      expect(text + [...response.headers].join()).toMatch(answer);
      expect(asked).toBe(1);
    } finally {
      await service.stop();
    }
  });

  it.each(["application/json", "application/proto"])("a token is verified once over Connect: %s", async (type) => {
    const authorizations: (string | null)[] = [];
    const counting: Guard = {
      async admit(authorization) {
        authorizations.push(authorization);
        return { id: "a", mayTouch: () => true };
      },
    };
    const { service, seen } = rehearse({}, {}, counting);
    await service.listen();
    try {
      const headers = { "content-type": type, authorization: "Bearer a" };
      const body = type === "application/json" ? "{}" : "";
      expect((await fetch(service.url + PATH, { method: "POST", body, headers })).status).toBe(200);
      expect(authorizations).toEqual(["Bearer a"]);
      expect(seen).toHaveLength(1);
    } finally {
      await service.stop();
    }
  });
});
