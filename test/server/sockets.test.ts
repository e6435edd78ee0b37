/** WebSockets: who may connect, which subprotocol is spoken, and how a live call is carried. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import net, { type AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { type ListenRequest, ListenResponseSchema, StatusCode } from "../../src/contract/index.js";
import type { Dispatcher } from "../../src/server/dispatch.js";
import { jsonLog } from "../../src/server/log.js";
import { Refusal } from "../../src/server/refusal.js";
import { liveSocketRoute } from "../../src/server/websocket/live-socket.js";
import { Sockets } from "../../src/server/websocket/sockets.js";

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

const logged: { readonly requestId: string; readonly stack: string }[] = [];
let server: Server;
let sockets: Sockets;
let url: string;
beforeAll(async () => {
  server = createServer();
  sockets = new Sockets({
    log: jsonLog("error", (line) => logged.push(JSON.parse(line))),
    messageBytes: 100_000,
    addressOf: () => "peer",
    origins: [listed],
    publicUrl: () => own,
  });
  const dispatcher = {
    async *live(_: unknown, messages: AsyncIterable<ListenRequest>, { ended }: { ended: AbortController }) {
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
      if (given === "Bearer wrong") throw new Refusal(StatusCode.NOT_AUTHORIZED, "the token is not valid");
      return { id: "bank", mayTouch: () => true };
    },
  };
  sockets.route("/live", liveSocketRoute(dispatcher, guard));
  sockets.route("/any", { open: async () => () => {} });
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
  expect(await connect("/none")).toBe(404);
});

it("an internal error is in the log, under the request id of the answer", async () => {
  const requestId = "01900000-0000-7000-8000-000000000001";
  expect(await connect("/broken", [], { "x-request-id": requestId })).toBe(500);
  expect(logged).toMatchObject([{ requestId, stack: expect.stringContaining("no connection to the issuer") }]);
});

it("a refused connection is closed although the client leaves its side open", async () => {
  const { port } = new URL(url);
  const client = net.connect({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true });
  const [peer] = await once(server, "connection");
  client.write("GET /none HTTP/1.1\r\nHost: box\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  client.resume();
  await once(client, "end");
  await vi.waitFor(() => expect(peer.destroyed).toBe(true));
  client.destroy();
});

it("the token comes in the header, or as a subprotocol", async () => {
  await connect("/live", [], { authorization: "Bearer a" });
  expect(authorization).toBe("Bearer a");
  await connect("/live", ["vivavoce.live.v1", "bearer.b"]);
  expect(authorization).toBe("Bearer b");
  await connect("/live", ["vivavoce.live.v1"]);
  expect(authorization).toBeNull();
  expect(await connect("/live", ["vivavoce.live.v1", "bearer.wrong"])).toBe(401);
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
