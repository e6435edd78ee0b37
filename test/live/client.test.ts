/** The client's live calls: events as they happen, clear errors, and reconnecting after a lost connection with the same result. */
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { LiveCall, type WebSocketClass } from "../../src/client/index.js";
import { Decision, type ListenResponse } from "../../src/contract/index.js";
import { rateHz, take } from "../processor/fixture-engine.js";
import { bytesOf, type LiveBox, pieces, startLiveBox, stopLiveBoxes } from "./live-box.js";

let live: LiveBox;
let ada: { value: string };
beforeAll(async () => {
  live = await startLiveBox();
  ada = await live.enroll("ada", 100);
});
afterAll(stopLiveBoxes);

async function called(
  url: string,
  encoding = "pcm16",
  beforeAudio = async () => {},
  Socket: WebSocketClass = WebSocket,
) {
  const events: ListenResponse[] = [];
  const parties = [{ name: "caller", task: { case: "verify", value: { gkVoiceprintProfileId: ada } } as const }];
  const start = { context: await live.openSession(), encoding, rate: rateHz, parties };
  const call = new LiveCall({
    url,
    start,
    onEvent: (event) => events.push(event),
    WebSocket: Socket,
  });
  const [first, ...rest] = pieces(bytesOf(take(200, 4)), 3200);
  call.push(first!);
  await beforeAudio();
  for (const piece of rest) call.push(piece);
  call.end();
  return { call, events };
}

it("reports events and resolves with the results", async () => {
  const { call, events } = await called(live.box.url);
  await call.done;
  expect(events[0]!.event.case).toBe("started");
  expect(events.at(-1)!.event).toMatchObject({
    case: "result",
    value: { result: { value: { decision: Decision.NO_MATCH } } },
  });
  call.push(new Uint8Array(2));
});

it("rejects with the status that the box sent", async () => {
  const { call } = await called(live.box.url, "opus");
  await expect(call.done).rejects.toThrow(/got "opus"/);
  expect(() => call.push([1] as never)).toThrow(/must be a Uint8Array, got object/);
});

it("reconnects after a lost connection, and gets the same result", async () => {
  const sockets: Socket[] = [];
  const port = Number(new URL(live.box.url).port);
  const proxy = createServer((near) => {
    const far = connectTcp(port, "127.0.0.1");
    sockets.push(near, far);
    near.on("error", () => far.destroy()).pipe(far);
    far.on("error", () => near.destroy()).pipe(near);
  });
  await new Promise<void>((resolve) => proxy.listen(0, resolve));
  try {
    const { call, events } = await called(
      `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      "pcm16",
      async () => {
        await new Promise((wake) => setTimeout(wake, 300));
        for (const socket of sockets) socket.destroy();
      },
    );
    await call.done;
    expect(events.filter(({ event }) => event.case === "started")).toHaveLength(2);
    expect(events.at(-1)!.event).toMatchObject({ value: { result: { value: { decision: Decision.NO_MATCH } } } });
  } finally {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  }
});

it("reports that the box cannot be reached", async () => {
  const call = new LiveCall({
    url: "http://127.0.0.1:9",
    start: { encoding: "pcm16", rate: 8000 },
    onEvent: () => {},
    reconnects: 0,
    WebSocket,
  });
  await expect(call.done).rejects.toMatchObject({ message: expect.stringContaining("127.0.0.1:9") });
});

it("reports a token that cannot be used", async () => {
  const call = new LiveCall({
    url: "http://127.0.0.1:9",
    token: "b3BhcXVl/token==",
    start: { encoding: "pcm16", rate: 8000 },
    onEvent: () => {},
    WebSocket,
  });
  await expect(call.done).rejects.toThrow("the token has characters that a WebSocket cannot send");
});

it.each(["http://127.0.0.1:9", new URL("http://127.0.0.1:9/"), "HTTP://127.0.0.1:9"])(
  "takes %o as an address",
  async (url) => {
    const start = { encoding: "pcm16", rate: 8000 };
    const call = new LiveCall({ url, start, onEvent: () => {}, reconnects: 0, WebSocket });
    await expect(call.done).rejects.toThrow("the connection to ws://127.0.0.1:9/v1/live was lost");
  },
);

it.each([
  [undefined, "options must be an object, got undefined"],
  [
    { url: "voice.example.com" },
    "url must be an address such as https://voice.example.com:8080, got voice.example.com",
  ],
  [{ onevent: () => {} }, "unknown option onevent (did you mean onEvent?)"],
  [{ onEvent: undefined }, "onEvent must be a function, got undefined"],
  [{ start: undefined }, "start must be a ListenStart, got undefined"],
])("tells a caller without a type checker what is wrong with %j", (wrong, message) => {
  const fine = { url: "http://127.0.0.1:9", start: { encoding: "pcm16", rate: 8000 }, onEvent: () => {}, WebSocket };
  expect(() => new LiveCall((wrong && { ...fine, ...wrong }) as never)).toThrow(message);
});

it("a call that is closed while it connects leaves no connection behind", async () => {
  const opened: WebSocket[] = [];
  class Watched extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols);
      opened.push(this);
    }
  }
  const { call } = await called(live.box.url, "pcm16", async () => {}, Watched);
  call.close();
  await expect(call.done).rejects.toMatchObject({ message: expect.stringContaining("closed by this program") });
  await vi.waitFor(() => expect(opened.map(({ readyState }) => readyState)).toEqual([WebSocket.CLOSED]));
});

/** A socket that the test opens. */
class SlowSocket {
  static made: SlowSocket[] = [];
  binaryType = "";
  bufferedAmount = 0;
  onopen: (() => void) | null = null;
  onmessage = null;
  onclose: ((event: { code: number }) => void) | null = null;
  onerror = null;
  readonly sent: (string | Uint8Array)[] = [];
  isClosed = false;

  constructor() {
    SlowSocket.made.push(this);
  }
  send(message: string | Uint8Array) {
    this.sent.push(message);
  }
  close() {
    this.isClosed = true;
    this.onclose?.({ code: 1006 });
  }
}

async function slowCall(keptBytes: number) {
  SlowSocket.made = [];
  const start = { encoding: "pcm16", rate: 8000 };
  const call = new LiveCall({
    url: "http://box",
    start,
    onEvent: () => {},
    keptBytes,
    WebSocket: SlowSocket,
  });
  await expect.poll(() => SlowSocket.made).toHaveLength(1);
  return { call, socket: SlowSocket.made[0]! };
}

it("sends everything that was pushed before the connection was open, even beyond the size of the buffer", async () => {
  const { call, socket } = await slowCall(10);
  for (let i = 0; i < 4; i++) call.push(new Uint8Array(8).fill(i));
  socket.onopen!();
  expect(socket.sent).toHaveLength(5);
  expect(socket.sent[0]).toContain("start");
  call.push(new Uint8Array(8));
  expect(socket.sent).toHaveLength(6);
  socket.onclose!({ code: 1006 });
  await expect(call.done).rejects.toThrow(/connection .* was lost/);
});

it("does not leave a connection open that was still being opened when the call was closed", async () => {
  const { call, socket } = await slowCall(1000);
  call.close();
  await expect(call.done).rejects.toThrow(/closed by this program/);
  expect(socket.isClosed).toBe(true);
  expect(SlowSocket.made).toHaveLength(1);
});
