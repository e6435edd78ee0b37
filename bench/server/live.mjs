/**
 * Live calls on a box in another process: so many at once in real time (8 kHz, checkpoints at 2 and 5 s of net speech, one person each), and
 * so many that are connected and silent. All are connected from the beginning; callers begin to speak one after the other, over as long as a call
 * lasts, as callers do.
 */
import { once } from "node:events";
import { WebSocket } from "ws";
import { speak } from "../../dist/demo/voice.js";
import { quantile } from "../measure.mjs";

const RATE = 8000;
const PACKET_MS = 20;
const PACKET_SAMPLES = (RATE * PACKET_MS) / 1000;
const PEOPLE = 10;

const pcm = (samples) =>
  Buffer.from(Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32768)))).buffer);
const voice = (speaker, seconds, seed) => pcm(speak({ speaker, seconds, rateHz: RATE, seed }));

async function openCall(url, token, start) {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/live`, ["vivavoce.live.v1", `bearer.${token}`], {
    perMessageDeflate: false,
  });
  await once(socket, "open");
  socket.send(JSON.stringify({ start }));
  return socket;
}

async function session(http) {
  const scope = { gkScopeId: { value: "default" } };
  const { gkSessionId, gkEngagementId } = await http.call("startSession", { context: scope });
  return { ...scope, gkSessionId, gkEngagementId, configsetId: "ivr-text-dependent" };
}

/** People whose prints were made by live calls of their own. */
async function people(url, token, http) {
  const found = [];
  for (let speaker = 1; speaker <= PEOPLE; speaker++) {
    const context = await session(http);
    const owner = { case: "personId", value: `live ${speaker} ${Math.random()}` };
    const { gkVoiceprintProfileId } = await http.call("createVoiceprintProfile", { context, owner });
    const parties = [{ name: "caller", enroll: { gkVoiceprintProfileId } }];
    const socket = await openCall(url, token, { context, encoding: "pcm16", rate: RATE, parties });
    socket.send(voice(speaker, 16, 1));
    socket.send('{"end":{}}');
    await once(socket, "close");
    found.push({ speaker, gkVoiceprintProfileId });
  }
  return found;
}

export async function inRealTime({ url, token, http, calls, seconds }) {
  const known = await people(url, token, http);
  const late = [];
  let [decided, undecided, dropped] = [0, 0, 0];
  const recordings = known.map(({ speaker }) => voice(speaker, seconds, 2));
  const one = async (n) => {
    const { gkVoiceprintProfileId } = known[n % PEOPLE];
    const waiting = Buffer.alloc(2 * PACKET_SAMPLES * Math.round((((n * seconds) / calls) * 1000) / PACKET_MS));
    const audio = Buffer.concat([waiting, recordings[n % PEOPLE]]);
    const context = await session(http);
    const parties = [{ name: "caller", verify: { gkVoiceprintProfileId } }];
    const socket = await openCall(url, token, { context, encoding: "pcm16", rate: RATE, parties });
    const sentAt = [];
    let result = null;
    socket.on("message", (data) => {
      const message = JSON.parse(data);
      if (message.result) result = { at: performance.now(), verify: message.result.verify };
    });
    const over = once(socket, "close");
    const startedAt = performance.now();
    for (let i = 0; i * PACKET_SAMPLES * 2 < audio.length && socket.readyState === socket.OPEN; i++) {
      socket.send(audio.subarray(i * PACKET_SAMPLES * 2, (i + 1) * PACKET_SAMPLES * 2));
      sentAt.push(performance.now());
      const due = startedAt + (i + 1) * PACKET_MS - performance.now();
      if (due > 0) await new Promise((wake) => setTimeout(wake, due));
    }
    if (socket.readyState === socket.OPEN) socket.send('{"end":{}}');
    await over;
    if (!result) dropped++;
    else if (result.verify.decision === "DECISION_AUTHENTIC") decided++;
    else undecided++;
    if (!result) return;
    // The packet with the last sample that was heard completes the speech.
    const packet = Math.ceil((Number.parseFloat(result.verify.audioDetails.grossAudio) * 1000) / PACKET_MS) - 1;
    late.push(result.at - sentAt[Math.min(packet, sentAt.length - 1)]);
  };
  await Promise.all(
    Array.from({ length: calls }, async (_, n) => {
      // Packets of different calls do not come in the same millisecond.
      await new Promise((wake) => setTimeout(wake, (n / calls) * 1000));
      return one(n);
    }),
  );
  return { calls, decided, undecided, dropped, p50Ms: quantile(late, 0.5), p95Ms: quantile(late, 0.95) };
}

export async function silent({ url, token, http, ask, calls, seconds }) {
  const [{ gkVoiceprintProfileId }] = await people(url, token, http);
  const context = await session(http);
  const parties = [{ name: "caller", verify: { gkVoiceprintProfileId } }];
  const before = await ask("memory");
  const sockets = [];
  for (let n = 0; n < calls; n++)
    sockets.push(await openCall(url, token, { context, encoding: "mulaw", rate: RATE, parties }));
  const second = Buffer.alloc(RATE, 0xff);
  const rss = [];
  for (let s = 0; s < seconds; s++) {
    for (const socket of sockets) socket.send(second);
    await new Promise((wake) => setTimeout(wake, 1000));
    rss.push((await ask("memory")).rss);
  }
  const open = sockets.filter((socket) => socket.readyState === socket.OPEN).length;
  for (const socket of sockets) socket.terminate();
  const half = rss.slice(Math.floor(seconds / 2));
  return { calls, open, kbEach: (Math.max(...half) - before.rss) / 1024 / calls, growth: half.at(-1) / half[0] };
}
