/** The client's live calls: events as they happen, clear errors, and reconnecting after a lost connection with the same result. */
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { LiveCall, type LiveCallOptions, type WebSocketClass } from "../../src/client/index.js";
import { Decision, type ListenResponse, StatusCode, StatusError } from "../../src/contract/index.js";
import { joined, rateHz, silence, take } from "../processor/fixture-engine.js";
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

/** An address that leads to the box until the connection is cut. */
async function throughProxy() {
  const sockets: Socket[] = [];
  const port = Number(new URL(live.box.url).port);
  const proxy = createServer((near) => {
    const far = connectTcp(port, "127.0.0.1");
    sockets.push(near, far);
    near.on("error", () => far.destroy()).pipe(far);
    far.on("error", () => near.destroy()).pipe(near);
  });
  await new Promise<void>((resolve) => proxy.listen(0, resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const close = () => {
    cut();
    proxy.close();
  };
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cut, close };
}

it("reconnects after a lost connection, and gets the same result", async () => {
  const { url, cut, close } = await throughProxy();
  try {
    const { call, events } = await called(url, "pcm16", async () => {
      await new Promise((wake) => setTimeout(wake, 300));
      cut();
    });
    await call.done;
    expect(events.filter(({ event }) => event.case === "started")).toHaveLength(2);
    expect(events.at(-1)!.event).toMatchObject({ value: { result: { value: { decision: Decision.NO_MATCH } } } });
  } finally {
    close();
  }
});

it("who speaks after the result is not compared; listening again in the session tells", async () => {
  const context = await live.openSession();
  const parties = [{ name: "caller", task: { case: "verify", value: { gkVoiceprintProfileId: ada } } as const }];
  const decided = async (...voices: Float32Array[]) => {
    const decisions: unknown[] = [];
    const onEvent = ({ event }: ListenResponse) => {
      if (event.case === "result" && event.value.result.case === "verify")
        decisions.push(event.value.result.value.decision);
    };
    const start = { context, encoding: "pcm16", rate: rateHz, parties };
    const call = new LiveCall({ url: live.box.url, start, onEvent, WebSocket });
    for (const piece of pieces(bytesOf(joined(...voices)), 3200)) call.push(piece);
    call.end();
    await call.done;
    const { result } = await live.operations.getSessionDecision({ context });
    return [...decisions, result!.decision];
  };
  const [other, hold] = [take(200, 6), silence(60)];
  expect(await decided(take(100, 6), hold, other)).toEqual([Decision.AUTHENTIC, Decision.AUTHENTIC]);
  expect(await decided(other)).toEqual([Decision.NO_MATCH, Decision.NO_MATCH]);
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
  await expect.poll(() => opened.map(({ readyState }) => readyState)).toEqual([WebSocket.CLOSED]);
});

it("enrolls through a lost connection, and counts every segment once", async () => {
  const bea = await live.enroll("bea", 500, false);
  const { url, cut, close } = await throughProxy();
  try {
    const events: ListenResponse[] = [];
    const parties = [{ name: "caller", task: { case: "enroll", value: { gkVoiceprintProfileId: bea } } as const }];
    const start = { context: await live.openSession(), encoding: "pcm16", rate: rateHz, parties };
    const call = new LiveCall({ url, start, onEvent: (event) => events.push(event), WebSocket });
    const speech = joined(take(500, 3), silence(1), take(500, 3), silence(1), take(500, 4));
    const all = pieces(bytesOf(speech), 320);
    for (const piece of all.slice(0, 250)) call.push(piece);
    await expect.poll(() => events.map(({ event }) => event.case)).toContain("segment");
    cut();
    for (const piece of all.slice(250)) call.push(piece);
    call.end();
    await call.done;
    expect(events.filter(({ event }) => event.case === "started")).toHaveLength(2);
    expect(events.at(-1)!.event).toMatchObject({
      case: "result",
      value: { result: { value: { enrolledSegments: 3, training: { totalSegments: 3 } } } },
    });
  } finally {
    close();
  }
});

/** A socket that the test opens. */
class SlowSocket {
  static made: SlowSocket[] = [];
  binaryType = "";
  bufferedAmount = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
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

async function slowCall(keptBytes: number, more: Partial<LiveCallOptions> = {}) {
  SlowSocket.made = [];
  const start = { encoding: "pcm16", rate: 8000, parties: [{ name: "caller" }] };
  const call = new LiveCall({
    url: "http://box",
    start,
    onEvent: () => {},
    keptBytes,
    WebSocket: SlowSocket,
    ...more,
  });
  await expect.poll(() => SlowSocket.made).toHaveLength(1);
  return { call, socket: SlowSocket.made[0]! };
}

/** The connection after this many. */
async function nextSocket(made: number): Promise<SlowSocket> {
  await expect.poll(() => SlowSocket.made).toHaveLength(made + 1);
  return SlowSocket.made[made]!;
}

it("reports a key once, however often it connects", async () => {
  const keys: string[] = [];
  const onEvent = ({ event }: ListenResponse) => event.case === "dtmf" && keys.push(event.value.digit);
  const { socket } = await slowCall(1000, { onEvent });
  const press = (to: SlowSocket, digit: string) =>
    to.onmessage!({ data: JSON.stringify({ party: "caller", dtmf: { digit, at: "1s" } }) });
  for (const digit of "11") press(socket, digit);
  socket.onclose!({ code: 1006 });
  const second = await nextSocket(1);
  press(second, "1");
  second.onclose!({ code: 1006 });
  const third = await nextSocket(2);
  for (const digit of "112") press(third, digit);
  expect(keys).toEqual(["1", "1", "2"]);
});

it("a call that has all its results is over, even if the connection is lost before it is closed", async () => {
  const { call, socket } = await slowCall(1000);
  socket.onmessage!({ data: JSON.stringify({ party: "caller", result: {} }) });
  socket.onclose!({ code: 1006 });
  await call.done;
});

it("gets another token if the box refuses one, once", async () => {
  const asked: (string | undefined)[] = [];
  const token = async (refused?: string) => `token${asked.push(refused)}`;
  const { call, socket } = await slowCall(1000, { token });
  const refuse = (to: SlowSocket) => {
    to.onmessage!({
      data: JSON.stringify({ status: { statusCode: "NOT_AUTHORIZED", message: "the token was revoked" } }),
    });
    to.onclose!({ code: 1008 });
  };
  refuse(socket);
  refuse(await nextSocket(1));
  await expect(call.done).rejects.toMatchObject({ code: StatusCode.NOT_AUTHORIZED, message: "the token was revoked" });
  expect(asked).toEqual([undefined, "token1"]);
});

it("does not try again if it cannot get a token because its credentials are wrong", async () => {
  const refused = new StatusError({ statusCode: StatusCode.NOT_AUTHORIZED, message: "the client's secret is wrong" });
  const token = () => Promise.reject(refused);
  const start = { encoding: "pcm16", rate: 8000 };
  const call = new LiveCall({ url: "http://box", start, onEvent: () => {}, WebSocket: SlowSocket, token });
  await expect(call.done).rejects.toBe(refused);
});

it("waits as long as a busy box asks, and reports its last answer", async () => {
  const { call, socket } = await slowCall(1000, { reconnects: 1 });
  const refuse = (to: SlowSocket) => {
    const status = { statusCode: "BUSY", message: "all 200 live calls are in use", retryAfter: "2s", requestId: "r" };
    to.onmessage!({ data: JSON.stringify({ status }) });
    to.onclose!({ code: 1013 });
  };
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  try {
    refuse(socket);
    await vi.advanceTimersByTimeAsync(1999);
    expect(SlowSocket.made).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(SlowSocket.made).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
  refuse(SlowSocket.made[1]!);
  await expect(call.done).rejects.toMatchObject({ code: StatusCode.BUSY, status: { requestId: "r" } });
});

it("does not wait for a box that asks for more than half a minute", async () => {
  const { call, socket } = await slowCall(1000);
  const status = { statusCode: "BUSY", message: "closed for maintenance", retryAfter: "3600s" };
  socket.onmessage!({ data: JSON.stringify({ status }) });
  socket.onclose!({ code: 1013 });
  await expect(call.done).rejects.toMatchObject({ code: StatusCode.BUSY, message: "closed for maintenance" });
});

it("never waits longer than half a minute between two attempts, however many there were", async () => {
  const { call, socket } = await slowCall(1000, { reconnects: 10 });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    socket.onclose!({ code: 1006 });
    for (let made = 2; made <= 11; made++) {
      await vi.advanceTimersByTimeAsync(30_000);
      expect(SlowSocket.made).toHaveLength(made);
      SlowSocket.made.at(-1)!.onclose!({ code: 1006 });
    }
  } finally {
    vi.useRealTimers();
  }
  await expect(call.done).rejects.toMatchObject({ code: StatusCode.BUSY });
});

it.each([
  ["that the box has answered bridges a restart of half a minute", true, 31.5],
  ["that the box never answered gives up after a few seconds", false, 3.5],
])("a call %s", async (_, isAnswered, seconds) => {
  const { call, socket } = await slowCall(1000);
  if (isAnswered) socket.onmessage!({ data: JSON.stringify({ started: {} }) });
  let isOver = false;
  call.done.catch(() => {
    isOver = true;
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    socket.onclose!({ code: 1006 });
    for (let waited = 0; waited < seconds; waited += 0.5) {
      expect(isOver).toBe(false);
      const made = SlowSocket.made.length;
      await vi.advanceTimersByTimeAsync(500);
      if (SlowSocket.made.length > made) SlowSocket.made.at(-1)!.onclose!({ code: 1006 });
    }
  } finally {
    vi.useRealTimers();
  }
  await expect(call.done).rejects.toMatchObject({ code: StatusCode.BUSY });
});

it("does not connect again with the token that the box refused", async () => {
  const { call, socket } = await slowCall(1000, { token: async () => "always-the-same" });
  const status = { statusCode: "NOT_AUTHORIZED", message: "the token was revoked" };
  socket.onmessage!({ data: JSON.stringify({ status }) });
  socket.onclose!({ code: 1008 });
  await expect(call.done).rejects.toMatchObject({ code: StatusCode.NOT_AUTHORIZED, message: "the token was revoked" });
  expect(SlowSocket.made).toHaveLength(1);
});

it("waits as long as the token endpoint asks", async () => {
  const retryAfter = { seconds: 2n, nanos: 0 };
  const refused = new StatusError({ statusCode: StatusCode.RATE_EXCEEDED, message: "too many requests", retryAfter });
  const token = vi.fn(() => Promise.reject(refused));
  const start = { encoding: "pcm16", rate: 8000 };
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const call = new LiveCall({ url: "http://box", start, onEvent: () => {}, WebSocket: SlowSocket, token });
    await vi.advanceTimersByTimeAsync(1999);
    expect(token).toHaveBeenCalledOnce();
    await vi.advanceTimersByTimeAsync(2 * 2000 + 2001);
    await expect(call.done).rejects.toBe(refused);
    expect(token).toHaveBeenCalledTimes(4);
  } finally {
    vi.useRealTimers();
  }
});

it("a call that is closed while it waits for its next attempt makes none, and does not keep a program running", async () => {
  const token = vi.fn(async () => "token");
  const { call, socket } = await slowCall(1000, { token });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    socket.onclose!({ code: 1006 });
    expect(vi.getTimerCount()).toBe(1);
    call.close();
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
  await expect(call.done).rejects.toThrow(/closed by this program/);
  expect(token).toHaveBeenCalledOnce();
});

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
