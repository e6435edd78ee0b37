/** The limits of live calls: speed, silence, length, a box that stops, lost peers. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { create, toJson } from "@bufbuild/protobuf";
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ContextSchema } from "../../src/contract/index.js";
import { ByteRate } from "../../src/server/limits/byte-rate.js";
import { jsonLog } from "../../src/server/log.js";
import { Sockets } from "../../src/server/websocket/sockets.js";
import { rateHz, silence, take } from "../processor/fixture-engine.js";
import { pcm16 } from "../processor/world.js";
import { bytesOf, type LiveBox, startLiveBox, stopLiveBoxes } from "./live-box.js";

afterAll(stopLiveBoxes);

type Message = Record<string, Record<string, Record<string, unknown>>>;

/** An open call, and the events it gets. */
async function opened(live: LiveBox, more: object = {}, partyNames = ["caller"]) {
  const profile = await live.enroll(`ada ${Math.random()}`, 100);
  const context = toJson(ContextSchema, create(ContextSchema, await live.openSession()));
  const socket = new WebSocket(`${live.box.url.replace("http", "ws")}/v1/live`, "vivavoce.live.v1");
  const messages: Message[] = [];
  socket.on("message", (data) => messages.push(JSON.parse(String(data))));
  await once(socket, "open");
  const parties = partyNames.map((name, i) => ({
    name,
    channelSelector: { channel: partyNames.length === 1 ? 0 : i + 1 },
    verify: { gkVoiceprintProfileId: profile },
  }));
  socket.send(JSON.stringify({ start: { context, encoding: "pcm16", rate: rateHz, parties, ...more } }));
  await once(socket, "message");
  return { socket, messages, closed: once(socket, "close") };
}

it("a sender that is too fast is slowed down to the limit; a short burst is not", () => {
  let now = 0;
  const rate = new ByteRate(1000, 5, () => now);
  expect(rate.take(5000)).toBe(0);
  expect(rate.take(500)).toBe(500);
  now = 3;
  expect(rate.take(2500)).toBe(0);
  expect(rate.take(1000)).toBe(1000);
  now = 1000;
  expect(rate.take(5001)).toBe(1);
});

describe("a call", () => {
  it("without speech is answered after the silence limit", async () => {
    const live = await startLiveBox({ limits: { liveSilenceSeconds: 2 } });
    const { socket, messages, closed } = await opened(live);
    socket.send(bytesOf(take(100, 1)));
    for (let i = 0; i < 6; i++) socket.send(bytesOf(silence(1)));
    expect((await closed)[0]).toBe(1000);
    expect(messages.at(-1)!.result!.verify).toMatchObject({ decision: expect.any(String) });
  });

  it("without speech is answered after the silence limit, however rarely it wants progress", async () => {
    const live = await startLiveBox({ limits: { liveSilenceSeconds: 2, liveIdleSeconds: 5 } });
    const { socket, messages, closed } = await opened(live, { progressInterval: "3600s" });
    socket.send(bytesOf(take(100, 1)));
    for (let i = 0; i < 6; i++) socket.send(bytesOf(silence(1)));
    expect((await closed)[0]).toBe(1000);
    expect(messages.some(({ progress }) => progress)).toBe(false);
    expect(messages.at(-1)!.result!.verify).toMatchObject({ decision: expect.any(String) });
  });

  it("of two people is answered after the silence limit when neither speaks", async () => {
    const live = await startLiveBox({ limits: { liveSilenceSeconds: 2, liveIdleSeconds: 5 } });
    const { socket, messages, closed } = await opened(live, { channels: 2 }, ["caller", "agent"]);
    // The caller speaks for longer than the agent.
    const [one, other] = [take(100, 1), silence(1)];
    other.set(take(101, 0.5));
    socket.send(pcm16([one, other]));
    for (let i = 0; i < 6; i++) socket.send(pcm16([silence(1), silence(1)]));
    expect((await closed)[0]).toBe(1000);
    expect(messages.filter(({ result }) => result)).toHaveLength(2);
  });

  it("gets BUSY if its scope has all its places", async () => {
    const live = await startLiveBox({ limits: { liveCallsPerScope: 1 } });
    const { socket } = await opened(live);
    const second = await opened(live);
    expect((await second.closed)[0]).toBe(1013);
    const message = "all 1 live calls of this scope are in use; try again later";
    expect(second.messages).toMatchObject([{ status: { message, retryAfter: "5s" } }]);
    socket.terminate();
  });

  it("that lasts too long is answered from the audio so far", async () => {
    const live = await startLiveBox({ limits: { liveCallSeconds: 1 } });
    const { socket, messages, closed } = await opened(live);
    socket.send(bytesOf(take(100, 1.5)));
    expect((await closed)[0]).toBe(1000);
    expect(messages.at(-1)!.result!.verify).toMatchObject({ decision: "DECISION_AUTHENTIC" });
  });

  it("continues while the box stops, and no new call is accepted", async () => {
    const live = await startLiveBox({ limits: { stopSeconds: 20 } });
    const { socket, messages, closed } = await opened(live);
    socket.send(bytesOf(take(100, 1)));
    const stopped = live.box.stop();
    await new Promise((wake) => setTimeout(wake, 200));
    const late = new WebSocket(`${live.box.url.replace("http", "ws")}/v1/live`, "vivavoce.live.v1");
    await once(late, "error");
    socket.send(bytesOf(take(100, 2)));
    expect((await closed)[0]).toBe(1000);
    expect(messages.at(-1)!.result!.verify).toMatchObject({ decision: "DECISION_AUTHENTIC" });
    expect(await stopped).toBe(true);
  });

  it("that would last longer than the stop is answered from the audio so far", async () => {
    const live = await startLiveBox({ limits: { stopSeconds: 2 } });
    const { socket, messages, closed } = await opened(live);
    socket.send(bytesOf(take(100, 1.5)));
    const stopped = live.box.stop();
    expect((await closed)[0]).toBe(1000);
    expect(messages.at(-1)!.result!.verify).toMatchObject({ decision: "DECISION_AUTHENTIC" });
    expect(await stopped).toBe(true);
  });

  it("whose peer sends nothing or is gone frees its place", async () => {
    const live = await startLiveBox({ limits: { liveCalls: 1, liveIdleSeconds: 1 } });
    const idle = await opened(live);
    expect((await idle.closed)[0]).toBe(1008);
    expect(idle.messages.at(-1)).toMatchObject({ status: { message: "nothing was received for 1 s" } });
    const gone = await opened(live);
    gone.socket.terminate();
    await gone.closed;
    for (let tries = 0; ; tries++) {
      const next = await opened(live).catch(() => null);
      if (next?.messages[0]?.started) break;
      if (tries > 20) throw new Error("a peer that is gone keeps its place");
    }
  });
});

it("a WebSocket peer that answers no pings is disconnected; one that does, or sends data, stays connected", async () => {
  const server = createServer();
  const sockets = new Sockets({
    log: jsonLog("silent"),
    messageBytes: 1000,
    addressOf: () => "peer",
    origins: [],
    publicUrl: () => "",
    localOnly: false,
    pingEveryMs: 50,
  });
  sockets.route("/", { open: async () => () => {} });
  server.on("upgrade", sockets.upgrade);
  server.listen(0);
  await once(server, "listening");
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const alive = new WebSocket(url);
  await once(alive, "open");
  // The answers to pings wait behind data that a slow line has not carried yet.
  const sending = new WebSocket(url, { autoPong: false });
  await once(sending, "open");
  const data = setInterval(() => sending.send("audio"), 10);
  const dead = new WebSocket(url, { autoPong: false });
  await once(dead, "open");
  expect((await once(dead, "close"))[0]).toBe(1006);
  await wait(200);
  expect([alive.readyState, sending.readyState]).toEqual([alive.OPEN, sending.OPEN]);
  clearInterval(data);
  await once(sending, "close");
  sockets.destroy();
  server.close();
});
