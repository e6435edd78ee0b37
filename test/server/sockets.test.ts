/** WebSockets: who may connect, which subprotocol is spoken, and how a live call is carried. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import net, { type AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { type ListenRequest, ListenResponseSchema, StatusCode } from "../../src/contract/index.js";
import type { Call, Dispatcher } from "../../src/server/dispatch.js";
import { jsonLog } from "../../src/server/log.js";
import { Refusal } from "../../src/server/refusal.js";
import { liveSocketRoute } from "../../src/server/websocket/live-socket.js";
import type { OpenSocket } from "../../src/server/websocket/open-socket.js";
import { Sockets } from "../../src/server/websocket/sockets.js";
import { rehearse } from "./rehearsal.js";

const own = "https://box.example";
const listed = "https://app.example";
/** What the last connection brought. */
let authorization: string | null = null;
let heard: ListenRequest["content"]["case"][] = [];
/** What a call ends with. */
let ending: Error | null = null;
let closed: Promise<unknown> | null = null;
beforeEach(() => {
  heard = [];
  ending = null;
  closed = null;
});

const logged: { readonly level: string; readonly message: string; readonly requestId: string }[] = [];
/** When somebody asks for /slow, and what admits them. */
let onSlow: (value?: unknown) => void = () => {};
let admit = () => {};
/** The box's side of the last connection to /any. */
/** Calls that were refused before they began. */
const counted: string[] = [];
let peer: OpenSocket;
let server: Server;
let sockets: Sockets;
let reason = "the token is not valid";
let url: string;
beforeAll(async () => {
  server = createServer();
  sockets = new Sockets({
    log: jsonLog("debug", (line) => logged.push(JSON.parse(line))),
    messageBytes: 100_000,
    addressOf: () => "peer",
    origins: [listed],
    publicUrl: () => own,
    localOnly: false,
  });
  const dispatcher = {
    refused({ protocol, address, requestId }: Call, refused: Refusal) {
      counted.push(`${protocol} ${address} ${StatusCode[refused.code]}`);
      refused.status.requestId = requestId;
      return refused;
    },
    async *live(messages: AsyncIterable<ListenRequest>, { ended }: { ended: AbortController }) {
      closed = once(ended.signal, "abort");
      for await (const { content } of messages) {
        heard.push(content.case);
        if (content.case === "end") break;
      }
      if (ending) throw ending;
      yield create(ListenResponseSchema, { party: "caller" });
    },
  } as unknown as Dispatcher;
  const guard = {
    async admit(given: string | null) {
      authorization = given;
      if (given === "Bearer wrong") throw new Refusal(StatusCode.NOT_AUTHORIZED, reason);
      return { id: "bank", mayTouch: () => true };
    },
  };
  sockets.route("/live", liveSocketRoute(dispatcher, guard));
  sockets.route("/any", {
    open: async () => (socket) => {
      peer = socket;
    },
  });
  sockets.route("/slow", {
    open: () => {
      onSlow();
      return new Promise((resolve) => {
        admit = () => resolve(() => {});
      });
    },
  });
  sockets.route("/broken", {
    async open() {
      throw new Error("no connection to the issuer");
    },
  });
  server.on("upgrade", sockets.upgrade);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  sockets.destroy();
  server.close();
});

/** The open socket, or the status that refused it. */
async function connect(path: string, protocols: string[] = [], headers: Record<string, string> = {}) {
  const socket = new WebSocket(`${url}${path}`, protocols, { headers });
  // A peer that offers protocols is disconnected by its own library if none is spoken.
  socket.on("error", () => {});
  return new Promise<WebSocket | number | undefined>((resolve) => {
    socket.on("open", () => resolve(socket));
    socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode));
    socket.on("close", () => resolve(undefined));
  });
}

async function protocolOf(path: string, offered: string[]): Promise<string | undefined> {
  const socket = await connect(path, offered);
  if (!(socket instanceof WebSocket)) return undefined;
  socket.terminate();
  return socket.protocol;
}

it("a route speaks its own subprotocol; one without takes the first that is offered", async () => {
  const live = "vivavoce.live.v1";
  expect(await protocolOf("/live", ["bearer.x", live])).toBe(live);
  expect(await protocolOf("/live", ["another"])).toBeUndefined();
  expect(await protocolOf("/any", ["one", "two"])).toBe("one");
  expect(await protocolOf("/any", [])).toBe("");
});

it("pages of this box and of listed origins may connect, others may not, nor anybody elsewhere", async () => {
  for (const origin of [own, listed]) expect(await connect("/any", [], { origin })).toBeInstanceOf(WebSocket);
  expect(await connect("/any", [], { origin: "https://elsewhere.example" })).toBe(403);
  const here = new URL(url).host;
  for (const host of [here, "localhost:8080", "[::1]"])
    expect(await connect("/any", [], { host, origin: `http://${host}` })).toBeInstanceOf(WebSocket);
  for (const [host, origin] of [
    [here, "http://localhost:8080"],
    ["elsewhere.example", "http://elsewhere.example"],
  ] as const)
    expect(await connect("/any", [], { host, origin })).toBe(403);
  expect(await connect("/none")).toBe(404);
});

it("an internal error is in the log, under the request id of the answer", async () => {
  const requestId = "01900000-0000-7000-8000-000000000001";
  expect(await connect("/broken", [], { "x-request-id": requestId })).toBe(500);
  expect(logged.filter(({ level }) => level === "error")).toMatchObject([
    { requestId, stack: expect.stringContaining("no connection to the issuer") },
  ]);
});

it("a refused connection is closed although the client leaves its side open", async () => {
  const { port } = new URL(url);
  const client = net.connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
  const [peer] = await once(server, "connection");
  client.write("GET /none HTTP/1.1\r\nHost: box\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  client.resume();
  await once(client, "end");
  await expect.poll(() => peer.destroyed).toBe(true);
  client.destroy();
});

it("a peer that is gone before it is admitted does no harm", async () => {
  const { port } = new URL(url);
  const client = net.connect({ port: Number(port), host: "127.0.0.1" });
  const [gone] = await once(server, "connection");
  const reached = new Promise((resolve) => {
    onSlow = resolve;
  });
  client.write("GET /slow HTTP/1.1\r\nHost: box\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  await reached;
  client.resetAndDestroy();
  await new Promise((resolve) => gone.once("close", resolve));
  admit();
  expect(await connect("/any")).toBeInstanceOf(WebSocket);
});

it("the token comes in the header, or as a subprotocol", async () => {
  await connect("/live", [], { authorization: "Bearer a" });
  expect(authorization).toBe("Bearer a");
  await connect("/live", ["vivavoce.live.v1", "bearer.b"]);
  expect(authorization).toBe("Bearer b");
  await connect("/live", ["vivavoce.live.v1"]);
  expect(authorization).toBeNull();
  expect(await connect("/live", [], { authorization: "Bearer wrong" })).toBe(401);
  expect(counted).toEqual(["websocket peer NOT_AUTHORIZED"]);
});

// A frame's head depends on the length of the message.
it.each([1, 30, 31, 32, 33, 34, 200, 5000])(
  "a peer that speaks the protocol is told why it is refused, in %i characters: a page cannot see it in the handshake",
  async (length) => {
    reason = "x".repeat(length);
    const headers = { "x-request-id": "r".repeat(36) };
    const socket = new WebSocket(`${url}/live`, ["vivavoce.live.v1", "bearer.wrong"], { headers });
    const [[message], [code]] = await Promise.all([once(socket, "message"), once(socket, "close")]);
    const status = { statusCode: "NOT_AUTHORIZED", message: reason, requestId: "r".repeat(36) };
    expect([JSON.parse(String(message)), code]).toEqual([{ status }, 1008]);
  },
);

it.each([
  ["no key", "Sec-WebSocket-Version: 13\r\n"],
  ["a key that is none", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"],
  ["another version", "Sec-WebSocket-Version: 12\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"],
])("a peer with %s in its handshake is refused over HTTP", async (_, lines) => {
  const client = net.connect({ port: Number(new URL(url).port), host: "127.0.0.1" });
  const head = "GET /live HTTP/1.1\r\nHost: box\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  client.write(`${head}${lines}Sec-WebSocket-Protocol: vivavoce.live.v1, bearer.wrong\r\n\r\n`);
  const answer = Buffer.concat(await client.toArray()).toString();
  expect(answer).toMatch(/^HTTP\/1\.1 401 .*NOT_AUTHORIZED/s);
});

it("a peer that is refused cannot hold the connection by leaving its side open", async () => {
  const client = net.connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
  const [peer] = await once(server, "connection");
  const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const head = "GET /live HTTP/1.1\r\nHost: box\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  client.write(`${head}${key}Sec-WebSocket-Protocol: vivavoce.live.v1, bearer.wrong\r\n\r\n`);
  client.resume();
  await expect.poll(() => peer.destroyed).toBe(true);
  client.destroy();
});

async function call(...frames: (string | Uint8Array)[]) {
  const socket = (await connect("/live")) as WebSocket;
  const answers: unknown[] = [];
  socket.on("message", (data) => answers.push(JSON.parse(String(data))));
  for (const frame of frames) socket.send(frame);
  const [code] = await once(socket, "close");
  return { code, answers };
}

it("text frames are requests, binary frames are audio, and the call ends when it is answered", async () => {
  const frames = ['{"dtmf":"5"}', new Uint8Array(40), '{"end":{}}'];
  expect(await call(...frames)).toEqual({ code: 1000, answers: [{ party: "caller" }] });
  expect(heard).toEqual(["dtmf", "audio", "end"]);
});

it.each([
  ["a frame that is not JSON", '{"dtmf"', null, 1008, "BAD_REQUEST"],
  ["a frame that is not an object", "[]", null, 1008, "BAD_REQUEST"],
  ["a frame with an unknown field", '{"x":1}', null, 1008, "BAD_REQUEST"],
  ["a frame with too many values", `{"x":${"[".repeat(30_000)}`, null, 1008, "BAD_REQUEST"],
  ["a refusal", '{"end":{}}', new Refusal(StatusCode.PERMISSION_DENIED, "no"), 1008, "PERMISSION_DENIED"],
  ["a busy box", '{"end":{}}', new Refusal(StatusCode.BUSY, "later"), 1013, "BUSY"],
  ["too many calls", '{"end":{}}', new Refusal(StatusCode.RATE_EXCEEDED, "later"), 1013, "RATE_EXCEEDED"],
  ["an error inside", '{"end":{}}', new Error("inside"), 1011, "INTERNAL_ERROR"],
])("%s is said before the socket closes, with a code that tells what to do", async (_, frame, error, code, status) => {
  ending = error;
  const { code: closedWith, answers } = await call(frame);
  expect(closedWith).toBe(code);
  expect(answers).toEqual([{ status: expect.objectContaining({ statusCode: expect.stringContaining(status) }) }]);
  if (frame.length > 25_000) expect(JSON.stringify(answers)).toContain("more than 25000 values");
});

it("a peer that goes away ends its call", async () => {
  const socket = (await connect("/live")) as WebSocket;
  await expect.poll(() => closed !== null, { timeout: 30_000 }).toBe(true);
  socket.terminate();
  await closed;
});

it("a message that is too large ends the connection, and the log has the reason", async () => {
  const socket = (await connect("/any")) as WebSocket;
  socket.send(Buffer.alloc(100_000));
  socket.send(Buffer.alloc(100_001));
  expect((await once(socket, "close"))[0]).toBe(1009);
  expect(logged.at(-1)).toMatchObject({
    level: "debug",
    message: "a WebSocket connection failed",
    reason: "Max payload size exceeded",
  });
});

it("when the box stops, connections are cut off", async () => {
  const socket = (await connect("/any")) as WebSocket;
  sockets.destroy();
  expect((await once(socket, "close"))[0]).toBe(1006);
});

describe("every 15 seconds", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("the peer is asked whether it is there", async () => {
    const socket = (await connect("/any")) as WebSocket;
    const asked = once(socket, "ping");
    vi.advanceTimersByTime(14_999);
    let isAsked = false;
    socket.on("ping", () => {
      isAsked = true;
    });
    socket.ping();
    await once(socket, "pong");
    expect(isAsked).toBe(false);
    vi.advanceTimersByTime(1);
    await asked;
    socket.terminate();
  });

  it("one that does not answer is cut off, unless the box itself does not read", async () => {
    const socket = new WebSocket(`${url}/any`, { autoPong: false });
    await once(socket, "open");
    peer.pause();
    for (let i = 0; i < 3; i++) vi.advanceTimersByTime(15_000);
    expect(peer.readyState).toBe(peer.OPEN);
    peer.resume();
    const cut = once(socket, "close");
    vi.advanceTimersByTime(15_000);
    expect((await cut)[0]).toBe(1006);
  });

  it("one that does not read what it is sent is cut off", async () => {
    const socket = (await connect("/any")) as WebSocket;
    socket.pause();
    peer.send(Buffer.alloc(64 << 20));
    vi.advanceTimersByTime(15_000);
    expect(peer.readyState).not.toBe(peer.OPEN);
    socket.terminate();
  });
});

it("a closed socket leaves no timer behind", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const socket = (await connect("/any")) as WebSocket;
    expect(vi.getTimerCount()).toBe(1);
    socket.close();
    await expect.poll(() => vi.getTimerCount(), { timeout: 30_000 }).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it("calls come from the address that a trusted proxy names", async () => {
  const addresses: string[] = [];
  const guard = {
    async admit(_: string | null, address: string) {
      addresses.push(address);
      throw new Refusal(StatusCode.NOT_AUTHORIZED, "no token");
    },
  };
  for (const trustProxy of [["127.0.0.1"], []]) {
    const { service } = rehearse({}, { trustProxy }, guard);
    await service.listen();
    for (const headers of [{ "x-forwarded-for": "203.0.113.7" }, {}]) {
      const socket = new WebSocket(`${service.url.replace("http", "ws")}/v1/live`, { headers });
      socket.on("error", () => {});
      await new Promise((resolve) => socket.once("close", resolve));
    }
    await service.stop();
  }
  expect(addresses).toEqual(["203.0.113.7", "127.0.0.1", "127.0.0.1", "127.0.0.1"]);
});
