/**
 * Frames that are nearly right, for every dialect: well-formed ones, those with one thing wrong, and noise. Whatever comes, a session either
 * reads it or throws a `DialectError`, holds little, and never starts a call twice. Seeded: the same frames in every run.
 *
 *   VIVAVOCE_FUZZ_FRAMES=100000 npx vitest run test/telephony/fuzz.test.ts
 */
import { DIALECT_FRAMES, spoiledFrame } from "../../campaign/parts/dialect-frames.mjs";
import { randomOf } from "../../campaign/parts/random.mjs";
import { AsteriskWebSocketSession } from "../../src/telephony/asterisk-websocket/asterisk-websocket.js";
import { AudioForkSession } from "../../src/telephony/audio-fork/audio-fork.js";
import { AudioHookSession } from "../../src/telephony/audiohook/audiohook.js";
import { AudioSocketSession } from "../../src/telephony/audiosocket/audiosocket.js";
import type { DialectSession, Frame } from "../../src/telephony/port.js";
import { RtpSession } from "../../src/telephony/rtp/rtp.js";
import { TwilioSession } from "../../src/telephony/twilio/twilio.js";

export const dialects: Readonly<Record<string, () => DialectSession>> = {
  audiosocket: () => new AudioSocketSession(() => ({ from: "1" })),
  "asterisk-websocket": () => new AsteriskWebSocketSession({}),
  twilio: () => new TwilioSession(),
  jambonz: () => new AudioForkSession({}, { rate: 8000, channels: 1 }),
  audiohook: () => new AudioHookSession(),
  rtp: () => new RtpSession("ulaw", { callId: "c" }),
};

const rightFrames: Readonly<Record<string, (n: number, random: Random, texts: number) => Frame>> = DIALECT_FRAMES;
type Random = ReturnType<typeof randomOf>;

export interface FuzzReport {
  readonly frames: number;
  readonly refused: number;
  readonly calls: number;
}

/** Throws at the first frame that breaks a rule. `share` of the frames are not damaged. */
export function fuzz(
  name: string,
  frames: number,
  seed: number,
  isExpected: (error: unknown) => boolean,
  share = 0.7,
): FuzzReport {
  const random = randomOf(seed);
  const create = dialects[name]!;
  const right = rightFrames[name]!;
  let [refused, calls] = [0, 0];
  let session = create();
  let [starts, texts] = [0, 0];
  for (let n = 0, i = 0; i < frames; i++, n++) {
    const isRight = random.chance(share);
    const correct = right(n, random, texts);
    const frame: Frame = isRight ? correct : spoiledFrame(correct, random);
    if (typeof frame === "string") texts++;
    try {
      const { events, replies } = session.receive(frame);
      for (const event of events) {
        if (event.kind === "start") starts++;
        if (event.kind === "lost" && !(event.samples > 0 && event.samples < 2 ** 31))
          throw new Error(`lost ${event.samples}`);
      }
      if (starts > 1) throw new Error("a call started twice");
      // The output is at most a few times as large as the input.
      const size = replies.reduce((sum, reply) => sum + reply.length, 0);
      if (size > 4096 + 2 * frame.length) throw new Error(`${size} bytes were answered to ${frame.length}`);
      if (n < 200) continue;
    } catch (error) {
      if (!isExpected(error)) throw new Error(`frame ${i} of seed ${seed}: ${JSON.stringify(frame)}`, { cause: error });
      refused++;
    }
    session = create();
    [starts, texts] = [0, 0];
    n = -1;
    calls++;
  }
  return { frames, refused, calls };
}
