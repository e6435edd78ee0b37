// What each call of a store costs: in memory, embedded in a folder, and in a PostgreSQL.
//   npm run build && node bench/store.mjs [--sessions 1000] [--only memory,embedded] [--postgres postgres://… of an empty database for voices and keys]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openStore } from "../dist/store/open.js";
import { median, random } from "./measure.mjs";

const { values } = parseArgs({
  options: { sessions: { type: "string" }, only: { type: "string" }, postgres: { type: "string" } },
});
const SESSIONS = Number(values.sessions ?? 1000);
/** Calls that are timed together, and a median of these. */
const BATCH = Math.max(1, Math.round(SESSIONS / 40));
const SCOPE = "bench";
const next = random(1);
const idOf = (what, i) => `${what}-${String(i).padStart(8, "0")}`;
const embedding = () => Float32Array.from({ length: 256 }, () => next() - 0.5);
const window = { embedding: embedding(), speechSeconds: 3, startSeconds: 0, endSeconds: 3 };
const template = {
  embedding: embedding(),
  netSpeechSeconds: 30,
  snrDb: 21.25,
  bandwidthHz: 3400,
  revision: "5e".repeat(32),
};
const audio = Uint8Array.from({ length: 48_000 }, () => next() * 256);

const sessionOf = (i) => ({
  id: idOf("session", i),
  scopeId: SCOPE,
  engagementId: "engagement",
  type: 2,
  externalId: "leg",
  claimedPersonId: "alice",
  startedAt: 1000 + i,
  stoppedAt: null,
});
const mediaOf = (i) => ({
  id: idOf("media", i),
  scopeId: SCOPE,
  sessionId: idOf("session", i),
  partOf: null,
  rateHz: 8000,
  channels: 1,
  encoding: "pcm16",
  createdAt: 1000,
  audio,
});
const modelOf = (i) => ({
  id: idOf("model", i),
  scopeId: SCOPE,
  sessionId: idOf("session", i),
  mediaSegmentId: idOf("media", i),
  channel: null,
  mediaChannels: 1,
  mediaRateHz: 8000,
  printType: "text-independent",
  source: "process-audio",
  validity: 1,
  measures: {
    rateHz: 8000,
    grossSeconds: 3,
    netSpeechSeconds: 3,
    speechLevelDb: -26.5,
    snrDb: null,
    saturatedPerMinute: 0,
    saturationRatio: 0,
    bandwidthHz: 3400,
  },
  speakers: 1,
  voiceClass: 42.5,
  revision: template.revision,
  createdAt: 1000,
  voice: { windows: [window, window], embedding: embedding() },
});
const profileOf = (i) => ({
  id: idOf("profile", i),
  scopeId: SCOPE,
  owner: { id: idOf("owner", i), scopeId: SCOPE, kind: "person", externalId: idOf("person", i) },
  tag: "default",
  printType: "text-independent",
  printVersion: 0,
  template: null,
  status: 1,
  createdAt: 1000,
});
const checkOf = (i) => ({
  id: idOf("check", i),
  scopeId: SCOPE,
  sessionId: idOf("session", i),
  operation: "Verify",
  at: 1000 + i,
  decision: 1,
  reason: 9,
  risk: 12,
  reliability: null,
  evidence: { match: 7.25 },
  profileId: idOf("profile", i),
});

/** Each is called once per session, in this order. */
const calls = {
  "sessions.create": (store, i) => store.sessions.create(sessionOf(i)),
  "sessions.get": (store, i) => store.sessions.get(SCOPE, idOf("session", i)),
  "media.add (3 s)": (store, i) => store.media.add(mediaOf(i)),
  "media.get": (store, i) => store.media.get(SCOPE, idOf("media", i)),
  "processed.add": (store, i) => store.processed.add(modelOf(i)),
  "processed.get": (store, i) => store.processed.get(SCOPE, idOf("model", i)),
  "profiles.create": (store, i) => store.profiles.create(profileOf(i)),
  "profiles.addSegment": (store, i) => {
    const [profileId, processed] = [idOf("profile", i), modelOf(i)];
    return store.profiles.addSegment(SCOPE, profileId, 0, { profileId, processed, addedAt: 2000 });
  },
  "profiles.train": (store, i) =>
    store.profiles.train(SCOPE, idOf("profile", i), 1, { template, status: 3, printVersion: 1 }),
  "profiles.get": (store, i) => store.profiles.get(SCOPE, idOf("profile", i)),
  "profiles.find": (store, i) => store.profiles.find(SCOPE, "person", idOf("person", i), "default"),
  "sessions.addCheck": (store, i) => store.sessions.addCheck(checkOf(i)),
  "sessions.checks": (store, i) => store.sessions.checks(SCOPE, idOf("session", i)),
  "documents.put": (store, i) => store.documents.put("tokens", idOf("token", i), { clientId: "c", uses: i }, 1e15),
  "documents.get": (store, i) => store.documents.get("tokens", idOf("token", i)),
  "documents.update": (store, i) =>
    store.documents.update("tokens", idOf("token", i), (document) => ({ ...document, uses: document.uses + 1 })),
  "sessions.stop": (store, i) => store.sessions.stop(SCOPE, idOf("session", i), 5000 + i),
};

/** Each is called once, over everything. */
const sweeps = {
  "profiles.prints": async (store) => {
    for await (const _ of store.profiles.prints(SCOPE, "person"));
  },
  "media.expire, none": (store) => store.media.expire(null, 0),
  "media.expire, all": (store) => store.media.expire(null, 1e12),
  "processed.expire, all": (store) => store.processed.expire(null, 1e12),
  "profiles.erase, 20 of them": async (store) => {
    for (let i = 0; i < 20; i++) await store.profiles.erase(SCOPE, idOf("profile", i));
  },
};

/** Microseconds of each call, and milliseconds of each sweep. */
async function measure(store) {
  await store.engagements.create({
    id: "engagement",
    scopeId: SCOPE,
    externalId: "call",
    customData: "{}",
    startedAt: 1000,
    stoppedAt: null,
  });
  const figures = {};
  for (const [name, call] of Object.entries(calls)) {
    const times = [];
    for (let i = 0; i < SESSIONS; ) {
      const start = performance.now();
      const end = Math.min(SESSIONS, i + BATCH);
      const calledFrom = i;
      for (; i < end; i++) await call(store, i);
      times.push(((performance.now() - start) * 1000) / (end - calledFrom));
    }
    figures[name] = median(times);
  }
  for (const [name, sweep] of Object.entries(sweeps)) {
    const start = performance.now();
    await sweep(store);
    figures[name] = performance.now() - start;
  }
  return figures;
}

const folder = mkdtempSync(join(tmpdir(), "vivavoce-store-"));
const stores = {
  memory: () => openStore("memory"),
  embedded: () => openStore(join(folder, "store")),
  ...(values.postgres && { PostgreSQL: () => openStore(values.postgres, { keys: join(folder, "keys") }) }),
};
const chosen = values.only?.split(",") ?? Object.keys(stores);
try {
  const measured = {};
  for (const name of chosen) {
    const store = await stores[name]();
    measured[name] = await measure(store);
    await store.close();
  }
  const shown = (figure) => (figure >= 100 ? figure.toFixed(0) : figure.toPrecision(2)).padStart(11);
  const print = (title, names) => {
    console.log(title.padEnd(28), ...chosen.map((name) => name.padStart(11)));
    for (const name of names) console.log(name.padEnd(28), ...chosen.map((store) => shown(measured[store][name])));
  };
  print(`µs a call, ${SESSIONS} calls`, Object.keys(calls));
  print(`ms for all ${SESSIONS}`, Object.keys(sweeps));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
