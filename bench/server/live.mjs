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
/** So many silent calls send at a time. */
const GROUP = 20;

const pcm = (samples) =>
  Buffer.from(Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32768)))).buffer);
const voice = (speaker, seconds, seed) => pcm(speak({ speaker, seconds, rateHz: RATE, seed }));

async function openCall(url, token, start) {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/live`, ["vivavoce.live.v1", `bearer.${token}`], {
    perMessageDeflate: false,
  });
  await once(socket, "open");
  const started = once(socket, "message");
  socket.send(JSON.stringify({ start }));
  await started;
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
    let enrolled = null;
    socket.on("message", (data) => {
      enrolled = JSON.parse(data).result?.enroll ?? enrolled;
    });
    socket.send(voice(speaker, 16, 1));
    socket.send('{"end":{}}');
    await once(socket, "close");
    // A check against a print that was never trained decides nothing and costs less.
    if (enrolled?.training?.trainStatus !== "TRAIN_STATUS_TRAINED")
      throw new Error(`the bench's own voice ${speaker} was not enrolled: ${JSON.stringify(enrolled)}`);
    found.push({ speaker, gkVoiceprintProfileId });
  }
  return found;
}

export async function inRealTime({ url, token, http, ask, calls, seconds }) {
  const known = await people(url, token, http);
  const late = [];
  /** How many calls ended how. */
  const decisions = {};
  let [decided, undecided, dropped, heardSeconds] = [0, 0, 0, 0];
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
    const { decision, reason, audioDetails } = result.verify;
    const said = `${decision} (${reason})`.replaceAll(/DECISION_(REASON_)?/g, "");
    decisions[said] = (decisions[said] ?? 0) + 1;
    const gross = Number.parseFloat(audioDetails.grossAudio);
    heardSeconds += gross;
    // The packet with the last sample that was heard completes the speech.
    const packet = Math.ceil((gross * 1000) / PACKET_MS) - 1;
    late.push(result.at - sentAt[Math.min(packet, sentAt.length - 1)]);
  };
  const cpuBefore = await ask("cpuSeconds");
  await Promise.all(
    Array.from({ length: calls }, async (_, n) => {
      // Packets of different calls do not come in the same millisecond.
      await new Promise((wake) => setTimeout(wake, (n / calls) * 1000));
      return one(n);
    }),
  );
  const cpuSeconds = (await ask("cpuSeconds")) - cpuBefore;
  return {
    calls,
    decided,
    undecided,
    dropped,
    decisions,
    p50Ms: quantile(late, 0.5),
    p95Ms: quantile(late, 0.95),
    cpuSecondsPerCall: cpuSeconds / calls,
    /** Of the box, for a second of a call: independent of who else uses the machine. */
    cpuMsPerSecond: (1000 * cpuSeconds) / heardSeconds,
  };
}

export async function silent({ url, token, http, ask, calls, seconds }) {
  const [{ gkVoiceprintProfileId }] = await people(url, token, http);
  const context = await session(http);
  const parties = [{ name: "caller", verify: { gkVoiceprintProfileId } }];
  const before = await ask("memory");
  const liveBefore = await ask("liveMemory");
  const sockets = [];
  for (let n = 0; n < calls; n++)
    sockets.push(await openCall(url, token, { context, encoding: "mulaw", rate: RATE, parties }));
  const connected = await ask("memory");
  const cpuBefore = await ask("cpuSeconds");
  // Each sends a second and waits until the box has told its progress: what a machine too slow for all of them lets pile up is not measured here.
  const second = Buffer.alloc(RATE, 0xff);
  const memory = [];
  for (let s = 0; s < seconds; s++) {
    for (let n = 0; n < calls; n += GROUP) {
      const group = sockets.slice(n, n + GROUP);
      const told = group.map((socket) => once(socket, "message"));
      for (const socket of group) socket.send(second);
      await Promise.all(told);
    }
    memory.push(await ask("memory"));
  }
  const cpuSeconds = (await ask("cpuSeconds")) - cpuBefore;
  const live = await ask("liveMemory");
  const open = sockets.filter((socket) => socket.readyState === socket.OPEN).length;
  for (const socket of sockets) socket.terminate();
  const half = memory.slice(Math.floor(seconds / 2));
  const rss = half.map((sample) => sample.rss);
  const kbOf = (bytes) => bytes / 1024 / calls;
  return {
    calls,
    open,
    connectedKbEach: kbOf(connected.rss - before.rss),
    kbEach: kbOf(Math.max(...rss) - before.rss),
    liveKbEach: kbOf(live - liveBefore),
    growth: rss.at(-1) / rss[0],
    cpuMsPerSecond: (1000 * cpuSeconds) / (calls * seconds),
  };
}
