/**
 * Frames that are nearly right, through real sockets into a running box, in every dialect: it goes on answering, nothing of a call is left, and
 * nobody is answered who does not say who they are.
 *
 *   VIVAVOCE_FUZZ_FRAMES=5000 npx vitest run test/telephony/box-fuzz.test.ts
 */
import { randomUUID } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import net from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { ServerConfigInput } from "../../src/server/config.js";
import { packet } from "../../src/telephony/audiosocket/audiosocket.js";
import type { Frame } from "../../src/telephony/port.js";
import { bytesOf, type LiveBox, pieces, scope, startLiveBox, stopLiveBoxes } from "../live/live-box.js";
import { rateHz, take } from "../processor/fixture-engine.js";
import { random } from "../voice.js";
import { apiKey, audioHookHeaders, authToken, basic, basicHeader, clientSecret, twilioHeaders } from "./credentials.js";
import { dialects, spoiled } from "./fuzz.js";

const frames = Number(process.env.VIVAVOCE_FUZZ_FRAMES ?? 300);
/** Of one connection, unless it is closed before. */
const framesOfCall = 60;
const speaker = 100;
const growthMb = 32;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const line = { scope, configset: "ivr-text-dependent", claimedPerson: "ada" };
const telephony: ServerConfigInput["telephony"] = [
  { ...line, name: "audiosocket", dialect: "audiosocket", port: 0 },
  { ...line, name: "rtp", dialect: "rtp", ports: [0, 0], format: "ulaw" },
  { ...line, name: "asterisk-websocket", dialect: "asterisk-websocket", ...basic },
  { ...line, name: "twilio", dialect: "twilio", authToken },
  { ...line, name: "jambonz", dialect: "jambonz", ...basic },
  { ...line, name: "audiohook", dialect: "audiohook", apiKey, clientSecret },
];

let live: LiveBox;
beforeAll(async () => {
  live = await startLiveBox({
    limits: { liveCalls: 8, liveIdleSeconds: 2, stopSeconds: 5 },
    telephony,
  });
  await live.enroll("ada", speaker);
});
afterAll(stopLiveBoxes);

interface Connection {
  send(frame: Frame): void;
  readonly isOpen: () => boolean;
  close(): Promise<void>;
}

const wsUrl = (box: LiveBox, name: string) => `${box.box.url.replace("http", "ws")}/telephony/${name}`;

function headersOf(box: LiveBox, name: string): Record<string, string> {
  if (name === "twilio") return twilioHeaders(wsUrl(box, name));
  if (name === "audiohook") return audioHookHeaders(new URL(box.box.url).host, randomUUID());
  return { authorization: basicHeader };
}

async function announced(name: string): Promise<{ uuid: string; port: number }> {
  const response = await fetch(`${live.box.url}/telephony/${name}/calls`, { method: "POST", body: "{}" });
  expect(response.status).toBe(200);
  return response.json() as Promise<{ uuid: string; port: number }>;
}

async function overWebSocket(name: string): Promise<Connection> {
  const socket = new WebSocket(wsUrl(live, name), { headers: headersOf(live, name) });
  socket.on("error", () => {});
  await once(socket, "open");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  return {
    send: (frame) => socket.send(frame),
    isOpen: () => socket.readyState === WebSocket.OPEN,
    async close() {
      socket.close();
      await closed;
    },
  };
}

async function overTcp(): Promise<Connection> {
  const { uuid, port } = await announced("audiosocket");
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.resume();
  socket.write(packet(0x01, Buffer.from(uuid.replaceAll("-", ""), "hex")));
  return {
    send: (frame) => socket.write(typeof frame === "string" ? Buffer.from(frame, "latin1") : frame),
    isOpen: () => !socket.destroyed,
    async close() {
      socket.end();
      await closed;
    },
  };
}

async function overUdp(): Promise<Connection> {
  const { port } = await announced("rtp");
  const socket = createSocket("udp4");
  return {
    send: (frame) => socket.send(typeof frame === "string" ? Buffer.from(frame, "latin1") : frame, port, "127.0.0.1"),
    isOpen: () => true,
    async close() {
      await wait(50);
      socket.close();
    },
  };
}

const connections: Readonly<Record<string, () => Promise<Connection>>> = { audiosocket: overTcp, rtp: overUdp };

const descriptors = () => readdirSync("/proc/self/fd").length;
function liveMb(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 2 ** 20;
}

/** As long as it takes until this holds, within a limit. */
async function eventually(holds: () => boolean, seconds: number): Promise<boolean> {
  for (const until = Date.now() + seconds * 1000; !holds() && Date.now() < until; ) await wait(100);
  return holds();
}

describe.each(Object.keys(dialects))("%s", (name) => {
  it("leaves nothing behind", { timeout: 600_000 }, async () => {
    const { right } = dialects[name]!;
    const next = random(23);
    const connect = connections[name] ?? (() => overWebSocket(name));
    const before = { descriptors: descriptors(), mb: liveMb() };
    let sent = 0;
    for (let calls = 0; sent < frames; calls++) {
      const connection = await connect();
      const rightOnes = calls % 2 === 0 ? 0.95 : 0.6;
      for (let n = 0; n < framesOfCall && sent < frames && connection.isOpen(); n++, sent++) {
        const frame = right(n, next);
        connection.send(next() < rightOnes ? frame : spoiled(frame, next));
        // Answers are read in between: a call that was refused is noticed.
        if (n % 8 === 7) await wait(1);
      }
      await connection.close();
    }
    expect(await eventually(() => descriptors() <= before.descriptors, 10)).toBe(true);
    expect(liveMb()).toBeLessThan(before.mb + growthMb);
    expect(live.logged.filter(({ level }) => level === "error")).toEqual([]);
  });
});

it("after all of it a call is decided as ever", { timeout: 60_000 }, async () => {
  const socket = new WebSocket(wsUrl(live, "jambonz"), { headers: { authorization: basicHeader } });
  const told: string[] = [];
  socket.on("message", (data) => told.push(String(data)));
  await once(socket, "open");
  socket.send(JSON.stringify({ callSid: "last", from: "1", sampleRate: rateHz, mixType: "mono" }));
  for (const piece of pieces(bytesOf(take(speaker, 4)), 320)) socket.send(piece);
  expect(await eventually(() => told.some((text) => text.includes("AUTHENTIC")), 20)).toBe(true);
  socket.terminate();
});

it("nobody is answered who does not say who they are", { timeout: 120_000 }, async () => {
  const guarded = await startLiveBox({ auth: { required: true }, telephony });
  const next = random(29);
  for (const name of Object.keys(dialects)) {
    for (let i = 0; i < 20; i++) {
      if (name === "audiosocket" || name === "rtp") {
        const authorization =
          i % 2 === 0 ? {} : { authorization: `Bearer ${spoiled("a.b.c", next)}`.replace(/[^ -~]/g, "") };
        const response = await fetch(`${guarded.box.url}/telephony/${name}/calls`, {
          method: "POST",
          headers: authorization as Record<string, string>,
          body: "{}",
        });
        expect([400, 401]).toContain(response.status);
        continue;
      }
      const given = Object.entries(headersOf(guarded, name));
      const at = Math.floor(next() * given.length);
      const wrong = i === 0 ? [] : given.map(([key, value], k) => [key, k === at ? oneChanged(value, next) : value]);
      const socket = new WebSocket(wsUrl(guarded, name), { headers: Object.fromEntries(wrong) });
      socket.on("error", () => {});
      const [, response] = await once(socket, "unexpected-response");
      expect(response.statusCode).toBe(401);
      socket.terminate();
    }
  }
});

/** One letter is another one. */
function oneChanged(text: string, next: () => number): string {
  const at = Math.floor(next() * text.length);
  const letter = text[at] === "x" ? "y" : "x";
  return text.slice(0, at) + letter + text.slice(at + 1);
}
