/**
 * Enrolls, checks and erases people, after copying all files. Afterwards no file may contain an unencrypted piece of their templates, embeddings,
 * audio models, audio or names, and sealed data in the files and copies must not open with the remaining keys. People who were not erased must
 * still be readable. Runs on an embedded store, on a PostgreSQL with its pages, log and archive, and in the memory of a box.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { openEmbeddedStore, openPostgresStore } from "../dist/postgres.js";
import { filesIn } from "./parts/files.mjs";
import { lookInMemory } from "./parts/memory.mjs";
import { startPostgres } from "./parts/postgres.mjs";
import { randomOf } from "./parts/random.mjs";
import { mediaOf, processedOf, profileOf, SCOPE, startSession, templateOf } from "./parts/records.mjs";

const PIECE_BYTES = 48;

export async function campaign({
  count = 40,
  seconds = Number.POSITIVE_INFINITY,
  seed,
  store = "both",
  log,
  isStopped = () => false,
}) {
  const violations = [];
  const counts = { people: 0, erased: 0, stayed: 0, files: 0, pieces: 0, sealedRowsTried: 0 };
  const until = performance.now() + seconds * 1000;
  const given = {
    count,
    isOver: () => isStopped() || performance.now() >= until,
    random: randomOf(seed),
    root: mkdtempSync(join(tmpdir(), "vivavoce-erase-")),
    counts,
    violate: (text) => violations.length < 1000 && violations.push(text),
    log,
  };
  try {
    await inFolder(given);
    if (store !== "folder") await inPostgres(given);
    if (process.platform === "linux") counts.memory = await lookInMemory(given);
  } finally {
    rmSync(given.root, { recursive: true, force: true });
  }
  return { counts, violations };
}

async function inFolder({ root, violate, counts, log, ...given }) {
  const folder = join(root, "store");
  let store = await openEmbeddedStore(folder);
  const people = await enrollAll(store, counts, given);
  await store.close();

  // A backup of the database, without the keys.
  cpSync(join(folder, "database"), join(root, "backup"), { recursive: true });
  store = await openEmbeddedStore(folder);
  const [gone, kept] = await eraseHalf(store, people, counts);
  await looked(store, gone, kept, violate, counts);
  await store.close();
  log(`embedded: ${gone.length} people erased, ${kept.length} kept`);
  seek(root, people, counts, violate);

  // Restores the backup with the remaining keys: erased people are removed when it is opened, and cannot be read before.
  rmSync(join(folder, "database"), { recursive: true });
  cpSync(join(root, "backup"), join(folder, "database"), { recursive: true });
  const restored = await openEmbeddedStore(folder);
  await looked(restored, gone, kept, (text) => violate(`after a backup was restored: ${text}`), counts);
  await restored.close();
}

/** Its pages, its write-ahead log, and the log archive. The keys are stored elsewhere, as docs/storing.md says. */
async function inPostgres({ root, violate, counts, log, ...given }) {
  const archiving = ["archive_mode=on", "archive_command=mkdir -p ../archive && cp %p ../archive/%f"];
  const server = await startPostgres(archiving);
  try {
    const url = await server.createDatabase("store");
    const store = await openPostgresStore(url, { keys: join(root, "keys") });
    const people = await enrollAll(store, counts, given);
    await toDisk(url);
    const [gone, kept] = await eraseHalf(store, people, counts);
    await looked(store, gone, kept, violate, counts);
    await toDisk(url);
    await store.close();
    await server.end();
    log(`PostgreSQL: ${gone.length} people erased, ${kept.length} kept`);
    seek(server.folder, people, counts, violate);
  } finally {
    await server.stop();
  }
}

/** Pages, statistics and a finished part of the log. */
async function toDisk(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const statement of ["ANALYZE", "CHECKPOINT", "SELECT pg_switch_wal()"]) await client.query(statement);
  await client.end();
}

async function enrollAll(store, counts, { count, isOver, random }) {
  const session = await startSession(store, "session-1");
  const people = [];
  while (people.length < count && (people.length < 2 || !isOver()))
    people.push(await enroll(store, session, people.length, random));
  counts.people += people.length;
  return people;
}

async function eraseHalf(store, people, counts) {
  const [gone, kept] = [people.filter((_, i) => i % 2 === 0), people.filter((_, i) => i % 2 === 1)];
  for (const person of gone) await store.profiles.erase(SCOPE, person.id);
  counts.erased += gone.length;
  return [gone, kept];
}

function seek(folder, people, counts, violate) {
  const files = filesIn(folder);
  counts.files += files.length;
  const pieces = people.flatMap(({ id, secrets }) =>
    Object.entries(secrets).flatMap(([what, content]) => piecesOf(content).map((piece) => ({ id, what, piece }))),
  );
  counts.pieces += pieces.length;
  for (const path of files) {
    const bytes = readFileSync(path);
    for (const { id, what, piece } of pieces)
      if (bytes.includes(piece)) violate(`${what} of ${id} is unencrypted in ${path}`);
  }
}

async function looked(store, gone, kept, violate, counts) {
  for (const person of gone) {
    const found = {
      profile: await store.profiles.get(SCOPE, person.id),
      segments: (await store.profiles.segments(SCOPE, person.id))[0],
      media: await store.media.get(SCOPE, `media-${person.id}`),
      "audio model": await store.processed.get(SCOPE, `processed-${person.id}`),
      print: (await store.profiles.printsOf(SCOPE, [person.id]))[0],
    };
    counts.sealedRowsTried += Object.keys(found).length;
    for (const [what, value] of Object.entries(found)) if (value) violate(`${what} of ${person.id} can be read`);
  }
  for (const person of kept) {
    const profile = await store.profiles.get(SCOPE, person.id);
    if (!profile?.template) violate(`${person.id}, who was not erased, cannot be read`);
    else counts.stayed++;
  }
}

async function enroll(store, sessionId, number, random) {
  const id = `profile-${number}`;
  const name = `the-name-that-somebody-is-known-by-${number}-${random.below(1e9)}`;
  const embedding = Float32Array.from({ length: 256 }, () => random.next() - 0.5);
  const window = Float32Array.from({ length: 256 }, () => random.next() - 0.5);
  const template = Float32Array.from({ length: 256 }, () => random.next() - 0.5);
  const audio = random.bytes(4_000);
  await store.media.add(mediaOf({ id: `media-${id}`, sessionId, audio }));
  const processed = processedOf({
    id: `processed-${id}`,
    sessionId,
    mediaSegmentId: `media-${id}`,
    voice: { windows: [{ embedding: window, speechSeconds: 1, startSeconds: 0, endSeconds: 1 }], embedding },
  });
  await store.processed.add(processed);
  await store.profiles.create(profileOf(id, name));
  await store.profiles.addSegment(SCOPE, id, 0, { profileId: id, processed, addedAt: 1 });
  await store.profiles.train(SCOPE, id, 1, { template: templateOf(template), status: 2, printVersion: 1 });
  return { id, secrets: { embedding, window, template, audio, name: Buffer.from(name) } };
}

/** Long enough to identify a voice, short enough to fit into a page. */
function piecesOf(content) {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return [0.1, 0.5, 0.8].map((part) =>
    bytes.subarray(Math.floor(bytes.length * part), Math.floor(bytes.length * part) + PIECE_BYTES),
  );
}
