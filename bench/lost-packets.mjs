// The cost of packet loss: every tested recording goes through the box's RTP reader, with 5 % of its 20 ms packets lost at random. The EER of the
// concealed audio, as in a live call, is compared with that of the same recordings and coding without loss.
//   npm run bench:accuracy -- --lost-packets --corpora DIR [--sets wuw-dev]
import { createHash } from "node:crypto";
import { join } from "node:path";
import { readRecording } from "../dist/audio/index.js";
import { openEngine } from "../dist/engine/index.js";
import { seededRandom } from "../dist/evaluate/bootstrap.js";
import { evaluate } from "../dist/evaluate/evaluate.js";
import { readTrialSet } from "../dist/evaluate/trials.js";
import { LostAudio } from "../dist/processor/live/lost-audio.js";
import { RtpSession } from "../dist/telephony/rtp/rtp.js";
import { g711 } from "./conditions.mjs";
import { openVoiceCache } from "./voice-cache.mjs";

const lostShare = 0.05;
const packetSamples = 160;
const mostPoints = 0.01;
const rateHz = 8000;

/** A telephone call of the recording, with lost packets; always the same ones for the same file. */
const lossy = {
  name: `${100 * lostShare} % of packets lost`,
  async apply(pcm, file) {
    const { samples } = await g711("mulaw").apply(pcm, file);
    const seed = createHash("sha256").update(file.split("/").slice(-3).join("/")).digest().readUInt32LE(0);
    const random = seededRandom(seed);
    const session = new RtpSession("slin", {});
    const lost = new LostAudio(rateHz);
    const heard = [];
    const hear = (events) => {
      for (const event of events) {
        if (event.kind === "lost") heard.push(lost.fill(event.samples));
        if (event.kind !== "audio") continue;
        const [arrived] = [...readRecording(event.bytes, { encoding: "l16", rateHz, channels: 1 }).read(1)];
        lost.keep(arrived);
        heard.push(arrived);
      }
    };
    for (let n = 0; n * packetSamples < samples.length; n++) {
      // The first packet starts the call, so it is never lost.
      if (n > 0 && random() < lostShare) continue;
      hear(session.receive(packet(n, samples.subarray(n * packetSamples, (n + 1) * packetSamples))).events);
    }
    // Packets that still wait for a lost one when the call ends.
    hear(session.hungUp());
    const whole = new Float32Array(heard.reduce((length, part) => length + part.length, 0));
    heard.reduce((at, part) => {
      whole.set(part, at);
      return at + part.length;
    }, 0);
    return { samples: whole, rateHz };
  },
};

function packet(n, samples) {
  const bytes = new Uint8Array(12 + 2 * samples.length);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 0x8076);
  view.setUint16(2, n & 0xffff);
  view.setUint32(4, n * packetSamples);
  for (const [i, x] of samples.entries()) view.setInt16(12 + 2 * i, Math.round(x * 32_768));
  return bytes;
}

export async function lostPackets({ corpora, sets, model, workers, resamples }) {
  const engine = await openEngine({ workers, ...(model ? { model } : {}) });
  const cache = await openVoiceCache(engine);
  const rows = [];
  for (const set of sets) {
    const trials = await readTrialSet(join(corpora, `${set}.trials.txt`));
    const rateWith = async (condition) => {
      const parts = { engine, decode: (bytes) => readRecording(bytes), cache };
      const { summary } = await evaluate(trials, parts, { condition, concurrency: 2 * workers, resamples });
      console.error(`${set}, ${condition.name}: EER ${(100 * summary.equalErrorRate.value).toFixed(2)} %`);
      return summary.equalErrorRate;
    };
    const [without, withLoss] = [await rateWith(g711("mulaw")), await rateWith(lossy)];
    const points = withLoss.value - without.value;
    rows.push({ set, without, withLoss, points, met: points <= mostPoints });
  }
  await engine.close();
  return rows;
}
