/**
 * Frames that are nearly right, for every dialect: well-formed ones, those with one thing wrong, and noise. Whatever comes, a session either
 * reads it or throws a `DialectError`, holds little, and never starts a call twice. Seeded: the same frames in every run.
 *
 *   VIVAVOCE_FUZZ_FRAMES=100000 npx vitest run test/telephony/fuzz.test.ts
 */
import { AsteriskWebSocketSession } from "../../src/telephony/asterisk-websocket/asterisk-websocket.js";
import { AudioForkSession } from "../../src/telephony/audio-fork/audio-fork.js";
import { AudioHookSession } from "../../src/telephony/audiohook/audiohook.js";
import { AudioSocketSession, packet } from "../../src/telephony/audiosocket/audiosocket.js";
import type { DialectSession, Frame } from "../../src/telephony/port.js";
import { RtpSession } from "../../src/telephony/rtp/rtp.js";
import { TwilioSession } from "../../src/telephony/twilio/twilio.js";
import { random } from "../voice.js";

export interface Fuzzed {
  readonly create: () => DialectSession;
  /** The next frame of a call that is right. */
  readonly right: (n: number, next: () => number) => Frame;
}

const json = (value: object) => JSON.stringify(value);
const media = { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 };
const pick = <T>(next: () => number, list: readonly T[]): T => list[Math.floor(next() * list.length)]!;

export const dialects: Readonly<Record<string, Fuzzed>> = {
  audiosocket: {
    create: () => new AudioSocketSession(() => ({ from: "1" })),
    right: (n, next) =>
      n === 0
        ? packet(0x01, new Uint8Array(16).fill(7))
        : pick(next, [
            packet(0x10, new Uint8Array(320)),
            packet(0x03, new Uint8Array([0x31])),
            packet(0x10, new Uint8Array(2)),
          ]),
  },
  "asterisk-websocket": {
    create: () => new AsteriskWebSocketSession({}),
    right: (n, next) =>
      n === 0
        ? pick(next, [
            "MEDIA_START connection_id:a format:ulaw",
            json({ event: "MEDIA_START", channel_id: "1", format: "slin16" }),
          ])
        : pick<Frame>(next, [
            new Uint8Array(160),
            "DTMF_END digit:1",
            json({ event: "DTMF_END", digit: "5" }),
            "MEDIA_XON",
          ]),
  },
  twilio: {
    create: () => new TwilioSession(),
    right: (n, next) =>
      n === 0
        ? json({ event: "start", start: { callSid: "CA", mediaFormat: media, customParameters: { from: "1" } } })
        : pick(next, [
            json({ event: "media", media: { track: "inbound", chunk: String(n), payload: "////" } }),
            json({ event: "dtmf", dtmf: { digit: "1" } }),
            json({ event: "mark", mark: { name: "x" } }),
          ]),
  },
  jambonz: {
    create: () => new AudioForkSession({}, { rate: 8000, channels: 1 }),
    right: (n, next) =>
      n === 0
        ? json({ callSid: "a", from: "1", sampleRate: 8000, mixType: "mono" })
        : pick<Frame>(next, [new Uint8Array(320), json({ event: "dtmf", dtmf: "2" })]),
  },
  audiohook: {
    create: () => new AudioHookSession(),
    right: (n, next) =>
      n === 0
        ? json({
            version: "2",
            type: "open",
            id: "i",
            seq: 1,
            parameters: {
              conversationId: "c",
              participant: { ani: "1" },
              media: [{ type: "audio", format: "PCMU", channels: ["external"], rate: 8000 }],
            },
          })
        : pick<Frame>(next, [
            new Uint8Array(800),
            json({ version: "2", type: "ping", id: "i", seq: n + 1, parameters: {} }),
            json({ version: "2", type: "discarded", id: "i", seq: n + 1, parameters: { discarded: "PT1.5S" } }),
          ]),
  },
  rtp: {
    create: () => new RtpSession("ulaw", { callId: "c" }),
    right: (n, next) => {
      const bytes = new Uint8Array(172);
      const view = new DataView(bytes.buffer);
      bytes[0] = 0x80;
      bytes[1] = pick(next, [0, 0, 0, 101, 13]);
      view.setUint16(2, (n + Math.floor(next() * 5)) & 0xffff);
      view.setUint32(4, n * 160);
      return bytes;
    },
  },
};

/** One thing wrong with it, or everything. */
export function spoiled(frame: Frame, next: () => number): Frame {
  const choice = next();
  if (choice < 0.1)
    return typeof frame === "string" ? new Uint8Array(Buffer.from(frame)) : Buffer.from(frame).toString("latin1");
  if (typeof frame === "string") return spoiledText(frame, next);
  const bytes = frame.slice();
  if (choice < 0.4) return bytes.subarray(0, Math.floor(next() * bytes.length));
  for (let i = 0; i < 1 + next() * 8; i++)
    bytes[Math.floor(next() * Math.min(bytes.length, 24))] = Math.floor(next() * 256);
  return bytes;
}

const VALUES: readonly unknown[] = [
  null,
  -1,
  1e308,
  "",
  "\u0000",
  [],
  {},
  true,
  "9".repeat(5000),
  { a: { b: { c: { d: 1 } } } },
];

function spoiledText(text: string, next: () => number): string {
  const choice = next();
  if (choice < 0.3) {
    const at = Math.floor(next() * text.length);
    return text.slice(0, at) + String.fromCharCode(Math.floor(next() * 0x2fff)) + text.slice(at + 1);
  }
  if (choice < 0.5 || !text.startsWith("{")) return text.slice(0, Math.floor(next() * text.length));
  const value = JSON.parse(text) as Record<string, unknown>;
  let at = value;
  for (;;) {
    const key = pick(next, Object.keys(at));
    const inner = at[key];
    if (key === undefined || typeof inner !== "object" || inner === null || next() < 0.3) {
      if (key !== undefined) at[key] = pick(next, VALUES);
      return JSON.stringify(value);
    }
    at = inner as Record<string, unknown>;
  }
}

export interface FuzzReport {
  readonly frames: number;
  readonly refused: number;
  readonly calls: number;
}

/** Throws at the first frame that does more than it may. */
export function fuzz(
  { create, right }: Fuzzed,
  frames: number,
  seed: number,
  isExpected: (error: unknown) => boolean,
): FuzzReport {
  const next = random(seed);
  let [refused, calls] = [0, 0];
  let session = create();
  let starts = 0;
  for (let n = 0, i = 0; i < frames; i++, n++) {
    const frame = next() < 0.7 ? right(n, next) : spoiled(right(n, next), next);
    try {
      const { events, replies } = session.receive(frame);
      for (const event of events) {
        if (event.kind === "start") starts++;
        if (event.kind === "lost" && !(event.samples > 0 && event.samples < 2 ** 31))
          throw new Error(`lost ${event.samples}`);
      }
      if (starts > 1) throw new Error("a call started twice");
      // What goes out is no more than a few times what came in.
      const size = replies.reduce((sum, reply) => sum + reply.length, 0);
      if (size > 4096 + 2 * frame.length) throw new Error(`${size} bytes were answered to ${frame.length}`);
      if (n < 200) continue;
    } catch (error) {
      if (!isExpected(error)) throw new Error(`frame ${i} of seed ${seed}: ${JSON.stringify(frame)}`, { cause: error });
      refused++;
    }
    session = create();
    starts = 0;
    n = -1;
    calls++;
  }
  return { frames, refused, calls };
}
