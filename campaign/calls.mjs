/**
 * Sends slightly damaged frames of every telephone dialect through real sockets to a running box. The box must keep answering, leave nothing
 * of a call behind, and refuse callers without credentials. `--only twilio,rtp` limits it to these dialects.
 */
import { createHmac, randomUUID } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import net from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { WebSocket } from "ws";
import { connect } from "../dist/client/index.js";
import { speak } from "../dist/demo/voice.js";
import { openEngine } from "../dist/engine/index.js";
import { configSchema } from "../dist/server/config.js";
import { jsonLog } from "../dist/server/log.js";
import { startBox } from "../dist/server/start.js";
import { audioSocketPacket, DIALECT_FRAMES, spoiledFrame } from "./parts/dialect-frames.mjs";
import { randomOf } from "./parts/random.mjs";
import {
  apiKey,
  audioHookHeaders,
  authToken,
  basic,
  basicHeader,
  clientSecret,
} from "./parts/telephone-credentials.mjs";

const RATE = 8000;
/** On one connection, unless it is closed earlier. */
const FRAMES_OF_CALL = 60;
/** After this many frames, answers are read, so that a refused call is noticed. */
const FRAMES_AT_ONCE = 8;
const CALLS_AT_ONCE = 4;
const GROWTH_MB = 32;
const PATIENCE_MS = 30_000;
/** One attempt without the right credentials for this many frames. */
const FRAMES_PER_STRANGER = 100;
const LIMITS = { liveCalls: 1000, liveIdleSeconds: 10, stopSeconds: 5, callsPerSecond: 0 };

const line = { scope: "default", configset: "ivr-text-dependent", claimedPerson: "ada" };
const telephony = [
  { ...line, name: "audiosocket", dialect: "audiosocket", port: 0 },
  // Short, so that an announced call that sends nothing has ended before its port is checked.
  { ...line, name: "rtp", dialect: "rtp", ports: [0, 0], format: "ulaw", announcedSeconds: 5 },
  { ...line, name: "asterisk-websocket", dialect: "asterisk-websocket", ...basic },
  { ...line, name: "twilio", dialect: "twilio", authToken },
  { ...line, name: "jambonz", dialect: "jambonz", ...basic },
  { ...line, name: "audiohook", dialect: "audiohook", apiKey, clientSecret },
];

export async function campaign({ count = 1000, seconds = Number.POSITIVE_INFINITY, seed, only, log, isStopped }) {
  const violations = [];
  const violate = (text) => violations.length < 1000 && violations.push(text);
  const uncaught = (error) => violate(`uncaught: ${error?.stack ?? error}`);
  process.on("uncaughtException", uncaught);
  const engine = await openEngine({ workers: 1 });
  const until = performance.now() + seconds * 1000;
  const names = Object.keys(DIALECT_FRAMES).filter((name) => !only || only.split(",").includes(name));
  const options = { names, count, seed, log, violate, isOver: () => isStopped() || performance.now() >= until };
  try {
    const frames = await withBox(engine, { auth: { required: false }, limits: LIMITS }, violate, (box) =>
      sendFrames(box, options),
    );
    const strangers = await withBox(engine, { auth: { required: true } }, violate, (box) =>
      askAsStrangers(box, options),
    );
    return { counts: { ...frames, strangers }, violations };
  } finally {
    await engine.close();
    process.off("uncaughtException", uncaught);
  }
}

async function withBox(engine, config, violate, use) {
  const box = await startBox(configSchema.parse({ port: 0, store: "memory", telephony, ...config }), {
    engine,
    log: jsonLog("error", (text) => violate(`the log says: ${text.slice(0, 700)}`)),
  });
  try {
    return await use(box);
  } finally {
    await box.stop();
  }
}

async function sendFrames(box, { names, count, seed, log, violate, isOver }) {
  const counts = { frames: 0, calls: 0, cut: 0 };
  await enroll(box);
  // Load and compile the code before memory is measured.
  for (const name of names) await converse(box, name, randomOf(seed), () => true);
  for (const name of names) {
    const before = { descriptors: descriptors(), mb: liveMb() };
    let left = count;
    const random = randomOf(seed);
    const take = () => !isOver() && left-- > 0;
    const sendCalls = async () => {
      while (left > 0 && !isOver()) {
        const { sent, wasCut } = await converse(box, name, random, take);
        counts.frames += sent;
        counts.calls++;
        if (wasCut) counts.cut++;
      }
    };
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, sendCalls)).catch((error) =>
      violate(`${name}: the box no longer takes calls: ${error.stack}`),
    );
    if (!(await eventually(() => descriptors() <= before.descriptors)))
      violate(`${name}: ${descriptors()} descriptors are open, ${before.descriptors} were before`);
    const mb = liveMb();
    if (mb > before.mb + GROWTH_MB) violate(`${name}: memory grew from ${before.mb} to ${mb} MB`);
    log(`${name}: ${JSON.stringify(counts)} ${Math.round(mb)} MB`);
  }
  if (!(await isDecided(box))) violate("a call after all these frames got another decision than before");
  return counts;
}

async function askAsStrangers(box, { names, count, seed, violate, isOver }) {
  const random = randomOf(seed);
  let strangers = 0;
  for (const name of names) {
    for (let i = 0; i < Math.max(10, count / FRAMES_PER_STRANGER) && !isOver(); i++, strangers++) {
      const answered = await strangerAnswered(box, name, i === 0, random);
      if (answered !== null) violate(`${name}: a caller without credentials got ${answered}`);
    }
  }
  return strangers;
}

/** One call; `take` says whether there is another frame to send. */
async function converse(box, name, random, take) {
  const connection = await (CONNECTIONS[name] ?? overWebSocket)(box, name);
  const right = DIALECT_FRAMES[name];
  const share = random.pick([0.95, 0.6]);
  let [sent, texts] = [0, 0];
  for (; sent < FRAMES_OF_CALL && connection.isOpen() && take(); sent++) {
    // The connection of an announced call names the call.
    const correct = right(name === "audiosocket" ? sent + 1 : sent, random, texts);
    const frame = random.chance(share) ? correct : spoiledFrame(correct, random);
    if (typeof frame === "string") texts++;
    connection.send(frame);
    if (sent % FRAMES_AT_ONCE === FRAMES_AT_ONCE - 1) await wait(1);
  }
  const wasCut = !connection.isOpen();
  await connection.close();
  return { sent, wasCut };
}

const CONNECTIONS = { audiosocket: overTcp, rtp: overUdp };

const socketUrl = (box, name) => `${box.url.replace("http", "ws")}/telephony/${name}`;

function headersOf(box, name) {
  if (name === "twilio")
    return { "x-twilio-signature": createHmac("sha1", authToken).update(socketUrl(box, name)).digest("base64") };
  if (name === "audiohook") return audioHookHeaders(new URL(box.url).host, randomUUID());
  return { authorization: basicHeader };
}

async function overWebSocket(box, name) {
  const socket = new WebSocket(socketUrl(box, name), { headers: headersOf(box, name) });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await once(socket, "open");
  socket.on("error", () => {});
  // AudioHook refuses a call with this message, and the caller closes the connection.
  let isDisconnected = false;
  socket.on("message", (data) => {
    isDisconnected ||= String(data).includes('"type":"disconnect"');
  });
  return {
    send: (frame) => socket.send(frame),
    isOpen: () => socket.readyState === WebSocket.OPEN && !isDisconnected,
    async close() {
      socket.close();
      await inTime(closed, "a WebSocket did not close");
    },
  };
}

async function announced(box, name) {
  const headers = { connection: "close" };
  const response = await fetch(`${box.url}/telephony/${name}/calls`, { method: "POST", headers, body: "{}" });
  if (response.status !== 200) throw new Error(`announcing a call was answered ${response.status}`);
  return response.json();
}

const bytesOf = (frame) => (typeof frame === "string" ? Buffer.from(frame, "latin1") : frame);

async function overTcp(box, name) {
  const { uuid, port } = await announced(box, name);
  const socket = net.connect(port, "127.0.0.1");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await once(socket, "connect");
  socket.on("error", () => {});
  socket.resume();
  socket.write(audioSocketPacket(0x01, Buffer.from(uuid.replaceAll("-", ""), "hex")));
  return {
    send: (frame) => socket.write(bytesOf(frame)),
    isOpen: () => !socket.destroyed && socket.writable,
    async close() {
      socket.end();
      await inTime(closed, "an AudioSocket did not close");
    },
  };
}

async function overUdp(box, name) {
  const { port } = await announced(box, name);
  const socket = createSocket("udp4");
  return {
    send: (frame) => socket.send(bytesOf(frame), port, "127.0.0.1"),
    isOpen: () => true,
    async close() {
      await wait(20);
      socket.close();
    },
  };
}

/** The answer to a caller whose credentials are missing or have one letter changed; `null` for a refusal. */
async function strangerAnswered(box, name, isWithout, random) {
  if (name in CONNECTIONS) {
    const headers = isWithout ? {} : { authorization: `Bearer ${Buffer.from(random.bytes(40)).toString("base64url")}` };
    const response = await fetch(`${box.url}/telephony/${name}/calls`, { method: "POST", headers, body: "{}" });
    await response.arrayBuffer();
    return response.status === 401 ? null : response.status;
  }
  const given = Object.entries(headersOf(box, name));
  const changed = random.below(given.length);
  const wrong = given.map(([key, value], i) => [key, i === changed ? oneChanged(value, random) : value]);
  const socket = new WebSocket(socketUrl(box, name), { headers: isWithout ? {} : Object.fromEntries(wrong) });
  socket.on("error", () => {});
  const answer = await Promise.race([
    once(socket, "unexpected-response").then(([, response]) => response.statusCode),
    once(socket, "open").then(() => "a connection"),
  ]);
  socket.terminate();
  return answer === 401 ? null : answer;
}

/** Changes one letter; not one of the last, because Base64 does not use all their bits. */
function oneChanged(text, random) {
  const at = random.below(text.length - 3);
  return text.slice(0, at) + (text[at] === "x" ? "y" : "x") + text.slice(at + 1);
}

const spoken = (seconds, take) =>
  Buffer.from(
    Int16Array.from(speak({ speaker: 1, seconds, rateHz: RATE, seed: take }), (x) =>
      Math.max(-32768, Math.min(32767, Math.round(x * 32768))),
    ).buffer,
  );

/** The print that the lines check, made by a live call. */
async function enroll(box) {
  // Synthesized first: meanwhile this thread is busy, and the box cannot answer.
  const voice = spoken(16, 1);
  const operations = connect({ url: box.url });
  const scope = { gkScopeId: { value: line.scope } };
  const { gkSessionId, gkEngagementId } = await operations.startSession({ context: scope });
  const context = {
    ...scope,
    gkSessionId: { value: gkSessionId.value },
    gkEngagementId: { value: gkEngagementId.value },
    configsetId: line.configset,
  };
  const owner = { case: "personId", value: line.claimedPerson };
  const { gkVoiceprintProfileId } = await operations.createVoiceprintProfile({ context, owner });
  const socket = new WebSocket(`${box.url.replace("http", "ws")}/v1/live`, "vivavoce.live.v1");
  await once(socket, "open");
  const parties = [{ name: "caller", enroll: { gkVoiceprintProfileId: { value: gkVoiceprintProfileId.value } } }];
  let told = "";
  socket.on("message", (data) => {
    told = String(data);
  });
  socket.send(JSON.stringify({ start: { context, encoding: "pcm16", rate: RATE, parties } }));
  socket.send(voice);
  socket.send('{"end":{}}');
  await once(socket, "close");
  if (!told.includes("TRAIN_STATUS_TRAINED")) throw new Error(`the campaign's own voice was not enrolled: ${told}`);
}

async function isDecided(box) {
  const voice = spoken(6, 2);
  const socket = new WebSocket(socketUrl(box, "jambonz"), { headers: { authorization: basicHeader } });
  let told = "";
  socket.on("message", (data) => {
    told += data;
  });
  await once(socket, "open");
  socket.send(JSON.stringify({ callSid: "last", from: "1", sampleRate: RATE, mixType: "mono" }));
  socket.send(voice);
  const isAuthentic = await eventually(() => told.includes("AUTHENTIC"));
  socket.terminate();
  return isAuthentic;
}

const descriptors = () => readdirSync("/proc/self/fd").length;

function liveMb() {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}

async function inTime(promise, text) {
  const ended = new AbortController();
  const late = wait(PATIENCE_MS, null, { signal: ended.signal }).then(
    () => {
      throw new Error(text);
    },
    () => {},
  );
  await Promise.race([promise, late]).finally(() => ended.abort());
}

async function eventually(holds) {
  for (const until = Date.now() + PATIENCE_MS; !holds() && Date.now() < until; ) await wait(100);
  return holds();
}
