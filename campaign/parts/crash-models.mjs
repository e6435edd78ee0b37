/**
 * Kills `vivavoce model migrate`, which moves prints to another model. Each start finds a copy of a store whose prints are all of the older model, or
 * what the last kill left of it. After every kill each person is verified with a new recording, by the model of their print; some people
 * are erased. When a migration completes, all prints must be of the new model; the next one gets a new copy.
 */
import { cpSync, rmSync } from "node:fs";
import { readRecording } from "../../dist/audio/index.js";
import { pcm16Wav } from "../../dist/audio/wav-writer.js";
import { speak } from "../../dist/demo/voice.js";
import { openEmbeddedStore, openPostgresStore } from "../../dist/postgres.js";
import { VoiceprintsProcessor } from "../../dist/processor/voiceprints-processor.js";
import { OpenModels } from "../../dist/server/open-models.js";
import { Voiceprints } from "../../dist/voiceprints.js";
import { runCommand } from "./killed-command.mjs";

const [OLD, NEW] = ["vivavoce-2", "vivavoce-2-accurate"];
const SCOPE = "default";
const MASTER_KEY = "07".repeat(32);
const KEPT_SECONDS = 86_400;
const ENROLLED_FROM = 3;
const MOST_PEOPLE = 12;
/** Two people for every kill, so that a short run enrolls fewer. */
export const peopleFor = (kills) =>
  Array.from({ length: Math.min(MOST_PEOPLE, 2 * kills) }, (_, i) => ({ name: `p${i + 1}`, speaker: i + 1 }));
const recordingOf = (speaker, take) => pcm16Wav(speak({ speaker, seconds: 4, rateHz: 8000, seed: take }), 8000);
/** A recording that nobody is enrolled from. */
const CALL = 99;
/** Prints learn nothing from checks with it: no call has as much speech as an enrollment needs. */
const CHECKS_ONLY = { only: { minNetAudioForEnroll: 60, maxNetAudioForEnroll: 120 } };
/** After this many kills of one store, the migration may finish. */
const KILLS_PER_STORE = 6;

const openStore = ({ location, keys }) =>
  keys ? openPostgresStore(location, { keys, masterKey: Buffer.from(MASTER_KEY, "hex") }) : openEmbeddedStore(location);

/** Runs `work` on the voices of a store; `models` stay open. */
async function withVoices(place, models, configset, work) {
  const store = await openStore(place);
  const processor = new VoiceprintsProcessor({
    engine: models.engine,
    models,
    store,
    readRecording,
    configurationSets: CHECKS_ONLY,
    retention: { audioSeconds: KEPT_SECONDS },
  });
  try {
    return await work(new Voiceprints(processor, { scope: SCOPE, configset }), store);
  } finally {
    await processor.close();
    await store.close();
  }
}

/** Enrolls everybody with the older model; returns its revision. */
async function enrollAll(place, people) {
  const models = await OpenModels.open({ model: OLD, scopeModels: {}, olderModels: [] }, { workers: 1 });
  try {
    await withVoices(place, models, "ivr-text-dependent", async (voices) => {
      for (const { name, speaker } of people) {
        const takes = Array.from({ length: ENROLLED_FROM }, (_, i) => recordingOf(speaker, i + 1));
        const { trained, reason } = await voices.enroll(name, takes);
        if (!trained) throw new Error(`${name} could not be enrolled: ${reason}`);
      }
    });
    return models.engine.model.revision;
  } finally {
    await models.close();
  }
}

/** The requested number of stores with prints of the older model. */
export async function foldersOfOldModel(root, people) {
  const original = `${root}-original`;
  const oldRevision = await enrollAll({ location: original }, people);
  let last = null;
  let made = 0;
  const next = async () => {
    if (last) rmSync(last, { recursive: true, force: true });
    last = `${root}-${++made}`;
    cpSync(original, last, { recursive: true });
    return { location: last };
  };
  return { oldRevision, next };
}

export async function databasesOfOldModel(server, people) {
  const original = {
    location: await server.createDatabase("old_prints"),
    keys: await server.createDatabase("old_print_keys"),
  };
  const oldRevision = await enrollAll(original, people);
  let made = 0;
  const next = async () => {
    made++;
    return {
      location: await server.createDatabase(`prints_${made}`, "old_prints"),
      keys: await server.createDatabase(`print_keys_${made}`, "old_print_keys"),
    };
  };
  return { oldRevision, next };
}

export async function modelsLane({ name, stores, people, random, isOver, counts, violate: tell }) {
  const violate = (text) => tell(`model migration of ${name}: ${text}`);
  const models = await OpenModels.open({ model: NEW, scopeModels: {}, olderModels: [] }, { workers: 1 });
  const revisions = { old: stores.oldRevision, new: models.engine.model.revision };
  try {
    let place = await stores.next();
    let erased = new Set();
    let kills = 0;
    /** How long a whole migration takes; the first one is not killed. */
    let wholeMs = null;
    while (!isOver()) {
      counts.starts++;
      const isKilled = wholeMs !== null && kills < KILLS_PER_STORE;
      const { ended, tookMs, ...migrated } = await migrate(place, isKilled ? random.next() * 1.1 * wholeMs : null);
      if (ended.signal === "SIGKILL") {
        kills++;
        counts.kills++;
        counts.killsAtModels++;
        const moved = await check(place, models, revisions, { people, erased }, { counts, violate });
        if (moved > 0 && moved < people.length - erased.size) counts.killsBetweenPrints++;
        if (random.chance(0.3)) await erase(place, models, random, { people, erased }, counts);
        continue;
      }
      // A migration that finds some prints moved already takes less time.
      if (kills === 0) wholeMs = tookMs;
      if (ended.code !== 0) violate(`ended by itself (${ended.code}): ${migrated.errors.slice(0, 700)}`);
      else {
        const report = JSON.parse(migrated.said);
        const expected = people.length - erased.size;
        if (report.moved + report.already !== expected) violate(`of ${expected} prints: ${migrated.said}`);
        const moved = await check(place, models, revisions, { people, erased }, { counts, violate });
        if (moved !== expected) violate(`says that it got through, and moved ${moved} of ${expected}`);
        counts.modelMigrations++;
      }
      place = await stores.next();
      erased = new Set();
      kills = 0;
    }
  } finally {
    await models.close();
  }
}

/** Killed after `killMs` unless that is null. */
const migrate = ({ location, keys }, killMs) =>
  runCommand(
    ["model", "migrate", "--json"],
    {
      VIVAVOCE_STORE: location,
      VIVAVOCE_MODEL: NEW,
      VIVAVOCE_MEDIA_RETENTION_SECONDS: String(KEPT_SECONDS),
      ...(keys && { VIVAVOCE_SEAL_KEYS: keys, VIVAVOCE_MASTER_KEY: MASTER_KEY }),
    },
    killMs,
  );

/** Returns how many prints are of the new model. */
async function check(place, models, revisions, { people, erased }, { counts, violate }) {
  let moved = 0;
  await withVoices(place, models, "only", async (voices, store) => {
    for (const { name, speaker } of people) {
      const profile = await store.profiles.find(SCOPE, "person", name, "");
      if (erased.has(name)) {
        counts.erasedSought++;
        if (profile) violate(`${name} is back`);
        continue;
      }
      counts.readBack++;
      if (!profile?.template) {
        violate(`${name} is lost`);
        continue;
      }
      const { revision } = profile.template;
      const printVersion = revision === revisions.new ? 2 : 1;
      if (revision === revisions.new) moved++;
      else if (revision !== revisions.old) violate(`${name} is of an unknown model, ${revision}`);
      const segments = await store.profiles.segments(SCOPE, profile.id);
      const isWhole =
        profile.printVersion === printVersion &&
        segments.length === ENROLLED_FROM &&
        segments.every(({ processed }) => processed.revision === revision);
      if (!isWhole)
        violate(`${name} is not whole: version ${profile.printVersion} of ${revision}, ${segments.length} segments`);
      const { decision, reason } = await voices.verify(name, recordingOf(speaker, CALL));
      if (decision !== "AUTHENTIC") violate(`${name} is ${decision} (${reason}), print ${profile.printVersion}`);
    }
  });
  return moved;
}

async function erase(place, models, random, { people, erased }, counts) {
  const { name } = random.pick(people);
  if (erased.has(name)) return;
  await withVoices(place, models, "only", (voices) => voices.erase(name));
  erased.add(name);
  counts.acknowledged++;
}
