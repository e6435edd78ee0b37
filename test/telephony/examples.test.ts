/** Runs the applications of examples/ unchanged against a box: their answers connect a call, and the box decides it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import twilio from "twilio";
import { afterAll, afterEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { mulaw } from "../../src/audio/g711.js";
import { bytesOf, pieces, scope, startLiveBox, stopLiveBoxes } from "../live/live-box.js";
import { rateHz, take } from "../processor/fixture-engine.js";

const running: ChildProcess[] = [];
afterEach(() => {
  for (const child of running.splice(0)) child.kill();
});
afterAll(stopLiveBoxes);

const line = { scope, configset: "ivr-text-dependent" };

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Resolves when it listens; `lines` collects its output. */
async function started(app: string, port: number, env: Record<string, string>) {
  const child = spawn(process.execPath, [`examples/${app}/app.mjs`], {
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.push(child);
  const lines = createInterface({ input: child.stdout! });
  await once(lines, "line");
  return lines;
}

it("jambonz: the verbs connect the call to the box", async () => {
  const basic = { user: "pbx", password: "a long password" };
  const live = await startLiveBox({ telephony: [{ ...line, name: "jambonz", dialect: "jambonz", ...basic }] });
  await live.enroll("+4930", 100);
  const port = await freePort();
  const box = `${live.box.url.replace("http", "ws")}/telephony/jambonz`;
  await started("jambonz", port, { BOX: box, BOX_USER: basic.user, BOX_PASSWORD: basic.password });
  const verbs = (await (await fetch(`http://127.0.0.1:${port}/`, { method: "POST" })).json()) as {
    verb: string;
    listen?: { url: string; wsAuth: { username: string; password: string }; sampleRate: number; mixType: string };
  }[];
  const { url, wsAuth, sampleRate, mixType } = verbs.find(({ verb }) => verb === "config")!.listen!;
  const authorization = `Basic ${Buffer.from(`${wsAuth.username}:${wsAuth.password}`).toString("base64")}`;
  const socket = new WebSocket(url, ["audio.jambonz.org"], { headers: { authorization } });
  await once(socket, "open");
  socket.send(JSON.stringify({ callSid: "jb1", from: "+4930", sampleRate, mixType }));
  const messages: { data: { type: string; decision: string } }[] = [];
  const decided = new Promise<void>((resolve) =>
    socket.on("message", (data) => {
      messages.push(JSON.parse(String(data)));
      if (messages.at(-1)!.data.type === "result") resolve();
    }),
  );
  for (const piece of pieces(bytesOf(take(100, 3)), 320)) socket.send(piece);
  await decided;
  expect(messages.at(-1)!.data.decision).toBe("AUTHENTIC");
  socket.close();
});

it("Twilio: the TwiML connects the call, and the webhook is read", async () => {
  const authToken = "12345678901234567890123456789012";
  const secret = "a webhook's secret";
  const port = await freePort();
  const webhook = { url: `http://127.0.0.1:${port}/decided`, secret };
  const live = await startLiveBox({ telephony: [{ ...line, name: "support", dialect: "twilio", authToken, webhook }] });
  const code = mulaw.findIndex((value) => value > 0.1 && value < 0.9 && (value * 1000) % 1 < 0.15);
  await live.enroll("+4930", Math.floor(mulaw[code]! * 1000));
  const stream = `${live.box.url.replace("http", "ws")}/telephony/support`;
  const lines = await started("twilio", port, { TWILIO_STREAM: stream, WEBHOOK_SECRET: secret });
  const printed = once(lines, "line");
  const answer = await fetch(`http://127.0.0.1:${port}/voice`, {
    method: "POST",
    body: new URLSearchParams({ From: "+4930" }),
  });
  const twiml = await answer.text();
  const [, url] = /<Stream url="([^"]+)">/.exec(twiml)!;
  const [, name, value] = /<Parameter name="([^"]+)" value="([^"]+)"\/>/.exec(twiml)!;
  const socket = new WebSocket(url!, {
    headers: { "x-twilio-signature": twilio.getExpectedTwilioSignature(authToken, url!, {}) },
  });
  await once(socket, "open");
  const send = (message: object) => socket.send(JSON.stringify(message));
  const mediaFormat = { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 };
  send({ event: "start", start: { callSid: "CA1", mediaFormat, customParameters: { [name!]: value } } });
  for (const [i, piece] of pieces(new Uint8Array(3 * rateHz).fill(code), 160).entries())
    send({
      event: "media",
      media: { track: "inbound", chunk: String(i + 1), payload: Buffer.from(piece).toString("base64") },
    });
  expect((await printed)[0]).toBe("call CA1 of +4930: AUTHENTIC");
  socket.close();
  const forged = await fetch(webhook.url, {
    method: "POST",
    body: "{}",
    headers: { "x-vivavoce-signature": "t=1,v1=0" },
  });
  expect(forged.status).toBe(404);
});
