/**
 * Live calls on a box in another process, from callers in a third: many at once in real time (8 kHz, packets of 20 ms, checkpoints at 2 and 5 s
 * of net speech, one person each), and many that are connected and silent. All are connected from the beginning and send from then on; each
 * begins to speak at a random moment, drawn evenly from the length of a call, like real callers.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { speak } from "../../dist/demo/voice.js";
import { quantile, random } from "../measure.mjs";
import { openCall } from "./live-callers.mjs";

const RATE = 8000;
const PACKET_MS = 20;
const PACKET_SAMPLES = (RATE * PACKET_MS) / 1000;
const PEOPLE = 10;
/** Number of silent calls that send at the same time. */
const GROUP = 20;

const pcm = (samples) =>
  Buffer.from(Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32768)))).buffer);
const voice = (speaker, seconds, seed) => pcm(speak({ speaker, seconds, rateHz: RATE, seed }));

async function session(http) {
  const scope = { gkScopeId: { value: "default" } };
  const { gkSessionId, gkEngagementId } = await http.call("startSession", { context: scope });
  return { ...scope, gkSessionId, gkEngagementId, configsetId: "ivr-text-dependent" };
}

/** People whose prints were enrolled by live calls. */
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
  const next = random(calls);
  const placed = [];
  for (let n = 0; n < calls; n++) {
    const recording = n % PEOPLE;
    const { gkVoiceprintProfileId } = known[recording];
    const parties = [{ name: "caller", verify: { gkVoiceprintProfileId } }];
    const start = { context: await session(http), encoding: "pcm16", rate: RATE, parties };
    placed.push({ start, recording, silentPackets: Math.floor((next() * seconds * 1000) / PACKET_MS) });
  }
  const recordings = known.map(({ speaker }) => voice(speaker, seconds, 2).toString("base64"));
  const callers = fork(fileURLToPath(new URL("./live-callers.mjs", import.meta.url)), {
    stdio: ["ignore", 2, 2, "ipc"],
  });
  const cpuBefore = await ask("cpuSeconds");
  callers.send({ url, token, packetBytes: 2 * PACKET_SAMPLES, recordings, calls: placed });
  const [found] = await once(callers, "message");
  const cpuSeconds = (await ask("cpuSeconds")) - cpuBefore;

  const results = found.calls.map(({ result }) => result?.verify).filter(Boolean);
  /** Number of calls by how they ended. */
  const decisions = {};
  let heardSeconds = 0;
  for (const { decision, reason, audioDetails } of results) {
    const said = `${decision} (${reason})`.replaceAll(/DECISION_(REASON_)?/g, "");
    decisions[said] = (decisions[said] ?? 0) + 1;
    heardSeconds += Number.parseFloat(audioDetails.grossAudio);
  }
  const late = found.calls.map(({ lateMs }) => lateMs).filter((ms) => ms !== null);
  return {
    calls,
    spreadSeconds: seconds,
    undecided: results.filter(({ decision }) => decision !== "DECISION_AUTHENTIC").length,
    dropped: calls - results.length,
    decisions,
    p50Ms: quantile(late, 0.5),
    p95Ms: quantile(late, 0.95),
    mostMs: Math.max(...late),
    cpuSecondsPerCall: cpuSeconds / calls,
    /** CPU time of the box per second of a call: independent of other users of the machine. */
    cpuMsPerSecond: (1000 * cpuSeconds) / heardSeconds,
    coresOfBox: cpuSeconds / found.seconds,
    coresOfCallers: found.cpuSeconds / found.seconds,
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
  // Each sends a second of packets and waits until the box has reported its progress: a backlog on a machine that is too slow is not
  // measured here.
  const packet = Buffer.alloc(PACKET_SAMPLES, 0xff);
  const memory = [];
  let liveInTheMiddle = 0;
  for (let s = 0; s < seconds; s++) {
    for (let n = 0; n < calls; n += GROUP) {
      const group = sockets.slice(n, n + GROUP);
      const told = group.map((socket) => once(socket, "message"));
      for (let ms = 0; ms < 1000; ms += PACKET_MS) {
        for (const socket of group) socket.send(packet);
        await new Promise(setImmediate);
      }
      await Promise.all(told);
    }
    memory.push(await ask("memory"));
    if (s === Math.floor(seconds / 2)) liveInTheMiddle = await ask("liveMemory");
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
    seconds,
    connectedKbEach: kbOf(connected.rss - before.rss),
    kbEach: kbOf(Math.max(...rss) - before.rss),
    liveKbEach: kbOf(live - liveBefore),
    growth: live / liveInTheMiddle,
    cpuMsPerSecond: (1000 * cpuSeconds) / (calls * seconds),
  };
}
