// A process that works on a store until it is killed. Reports on stdout, one JSON value per line, what it finds, what it begins and what is
// done; nothing is reported as done before it is.
//   node crash-process.mjs <folder or postgres url> <keys url or -> <prefix of its people> <first number> <seed>
import { openEmbeddedStore, openPostgresStore } from "../../dist/postgres.js";
import { addSegment, idOf, train, voiceOf } from "./crash-people.mjs";
import { randomOf } from "./random.mjs";
import { profileOf, SCOPE, startSession } from "./records.mjs";

const [location, keys, prefix, first, seed] = process.argv.slice(2);
const random = randomOf(Number(seed));
const MOST_PEOPLE = 20;
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

const same = (one, other) => Buffer.from(one.buffer, one.byteOffset, one.byteLength).equals(Buffer.from(other.buffer));

const store = location.startsWith("postgres:")
  ? await openPostgresStore(location, { keys, masterKey: new Uint8Array(32).fill(7), deadReplicaSeconds: 4 })
  : await openEmbeddedStore(location);

const sessionId = `session-${prefix}`;

async function stock() {
  const found = {};
  for (let after = null; ; ) {
    const page = await store.profiles.list(SCOPE, after, 500);
    for (const profile of page) {
      const person = profile.owner.externalId;
      if (!person.startsWith(prefix)) continue;
      const segments = await store.profiles.segments(SCOPE, profile.id);
      found[person] = {
        segments: segments.length,
        printVersion: profile.printVersion,
        whole:
          segments.every(({ processed }) =>
            same(processed.voice.embedding, voiceOf(person, processed.mediaSegmentId.split("/")[1])),
          ) &&
          (profile.template === null) === (profile.printVersion === 0) &&
          (profile.template === null ||
            same(profile.template.embedding, voiceOf(person, `template-${profile.printVersion}`))),
      };
    }
    if (page.length < 500) break;
    after = page.at(-1).id;
  }
  // The recordings of erased people must be gone too.
  const left = {};
  for (const [person, segments] of JSON.parse(process.env.ERASED ?? "[]")) {
    for (let segment = 1; segment <= segments; segment++) {
      if (await store.media.get(SCOPE, `media-${person}/${segment}`)) left[person] = "media";
      if (await store.processed.get(SCOPE, `processed-${person}/${segment}`)) left[person] = "audio model";
    }
  }
  return { found, left };
}

const operations = {
  create: (person) => store.profiles.create(profileOf(idOf(person), person)),
  enroll: (person) => addSegment(store, person, 1, sessionId),
  enrollAgain: (person) => addSegment(store, person, 2, sessionId),
  train: (person) => train(store, person, false),
  retrain: (person) => train(store, person, true),
  erase: (person) => store.profiles.erase(SCOPE, idOf(person)),
};

async function run(name, person) {
  say({ begin: name, person });
  await operations[name](person);
  say({ done: name, person });
}

async function work(person) {
  for (const name of ["create", "enroll", "train"]) await run(name, person);
  if (random.chance(0.4)) await run("enrollAgain", person);
  if (random.chance(0.4)) await run("retrain", person);
  if (random.chance(0.1)) {
    say({ begin: "rotate" });
    await store.keys.rotate(SCOPE);
    say({ done: "rotate" });
  }
  if (random.chance(0.3)) await check();
  if (random.chance(0.7)) await run("erase", person);
}

let checks = 0;
async function check() {
  const id = `check-${prefix}-${first}-${++checks}`;
  await store.sessions.addCheck({
    id,
    scopeId: SCOPE,
    sessionId,
    operation: "Verify",
    at: checks,
    decision: 1,
    reason: 1,
    risk: null,
    evidence: {},
    profileId: null,
    processedAudioId: null,
  });
  say({ check: id });
}

const { found, left } = await stock();
say({ stock: { found, left } });
/** Erases some of the people from before, so that the store stays small. */
const leaving = Object.keys(found).slice(0, -MOST_PEOPLE);
for (let number = Number(first); ; number++) {
  try {
    await startSession(store, sessionId);
    await work(`${prefix}${number}`);
    const [oldest] = leaving.splice(0, 1);
    if (oldest) await run("erase", oldest);
  } catch (error) {
    // The database was lost during an operation, which may have been executed or not, as after a kill.
    say({ failed: String(error.message ?? error).slice(0, 200), code: error.code });
    await new Promise((wake) => setTimeout(wake, 200));
  }
}
