/** A box with telephone lines stops: calls end with a result, which reaches the webhook, and connections close. */
import { once } from "node:events";
import { createServer } from "node:http";
import net, { type AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { Engine } from "../../src/engine/port.js";
import { bytesOf, type LiveBox, pieces, scope, startLiveBox } from "../live/live-box.js";
import { fixtureEngine, take } from "../processor/fixture-engine.js";
import { basic, basicHeader } from "./credentials.js";

const heard: { readonly call: { readonly callId: string }; readonly type: string }[] = [];
/** A receiver that is not the fastest. */
const hook = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  await wait(300);
  if (!response.destroyed) heard.push(JSON.parse(body));
  response.end();
});
beforeAll(async () => {
  hook.listen(0);
  await once(hook, "listening");
});
afterAll(() => {
  hook.close();
});

const secret = "a webhook's secret";
async function lineOf(stopSeconds: number, engine?: Engine): Promise<LiveBox> {
  const webhook = { url: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`, secret };
  const telephony = [
    { name: "jambonz", dialect: "jambonz", scope, configset: "ivr-text-dependent", ...basic, webhook } as const,
  ];
  const live = await startLiveBox({ limits: { stopSeconds }, telephony }, engine);
  await live.enroll("+4930", 500);
  return live;
}
async function call(live: LiveBox, callSid: string, seconds: number) {
  const url = `${live.box.url.replace("http", "ws")}/telephony/jambonz`;
  const socket = new WebSocket(url, { headers: { authorization: basicHeader } });
  await once(socket, "open");
  const messages: string[] = [];
  socket.on("message", (data) => messages.push(String(data)));
  socket.send(JSON.stringify({ callSid, from: "+4930", sampleRate: 8000, mixType: "mono" }));
  for (const piece of pieces(bytesOf(take(500, seconds)), 320)) socket.send(piece);
  return { socket, messages };
}

it("a call that stays after its result does not delay a stop", async () => {
  // Longer than the test may take.
  const live = await lineOf(600);
  const { socket, messages } = await call(live, "decided", 4);
  while (!messages.some((text) => text.includes('"result"'))) await wait(20);
  const closed = once(socket, "close");
  expect(await live.box.stop()).toBe(true);
  await closed;
  expect(messages.at(-1)).toBe('{"type":"disconnect"}');
});

it("a call that is cut short by a stop gets its result, and the webhook hears of it", async () => {
  const live = await lineOf(4);
  const { socket, messages } = await call(live, "short", 1);
  await wait(300);
  expect(await live.box.stop()).toBe(true);
  expect(heard.find(({ call: { callId } }) => callId === "short")).toMatchObject({ type: "result" });
  expect(messages.some((text) => text.includes('"result"'))).toBe(true);
  socket.terminate();
});

it("a stop does not wait for the result of a call that an overloaded engine never gives", async () => {
  let isAsked = false;
  const score = () => {
    isAsked = true;
    return new Promise<never>(() => {});
  };
  const live = await lineOf(1, { ...fixtureEngine(), score });
  const { socket } = await call(live, "late", 4);
  while (!isAsked) await wait(20);
  expect(await live.box.stop()).toBe(false);
  socket.terminate();
});

it("a start that fails leaves no line open", async () => {
  const free = net.createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const { port } = free.address() as AddressInfo;
  free.close();
  const line = { dialect: "audiosocket", scope, port } as const;
  await expect(
    startLiveBox({
      telephony: [
        { ...line, name: "one" },
        { ...line, name: "two" },
      ],
    }),
  ).rejects.toThrow("EADDRINUSE");
  const caller = net.connect(port, "127.0.0.1");
  await expect(once(caller, "connect")).rejects.toThrow("ECONNREFUSED");
});
