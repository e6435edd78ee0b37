/**
 * Erased is erased: people are enrolled, checked and erased in an embedded store; copies of all files are taken before. Afterwards no
 * file holds a piece of their templates, embeddings, audio models, audio or names in the clear, and what the copies and the files still hold
 * sealed cannot be opened with the keys that are left. Those who stay can still be read.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEmbeddedStore } from "../dist/postgres.js";
import { randomOf } from "./parts/random.mjs";
import { mediaOf, processedOf, profileOf, SCOPE, startSession, templateOf } from "./parts/records.mjs";

const PIECE_BYTES = 48;

export async function campaign({ count = 40, seconds = Number.POSITIVE_INFINITY, seed, log }) {
  const random = randomOf(seed);
  const root = mkdtempSync(join(tmpdir(), "vivavoce-erase-"));
  const folder = join(root, "store");
  const violations = [];
  const violate = (text) => violations.length < 1000 && violations.push(text);
  const counts = { people: 0, erased: 0, stayed: 0, files: 0, pieces: 0, sealedRowsTried: 0 };
  const until = performance.now() + seconds * 1000;
  const people = [];
  let store = await openEmbeddedStore(folder);
  const session = await startSession(store, "session-1");
  for (; counts.people < count && performance.now() < until; counts.people++)
    people.push(await enroll(store, session, counts.people, random));
  await store.close();

  // What a backup of the database would hold; the keys are not in it.
  cpSync(join(folder, "database"), join(root, "backup"), { recursive: true });
  store = await openEmbeddedStore(folder);
  const [gone, kept] = [people.filter((_, i) => i % 2 === 0), people.filter((_, i) => i % 2 === 1)];
  for (const person of gone) await store.profiles.erase(SCOPE, person.id);
  counts.erased = gone.length;
  await looked(store, gone, kept, violate, counts);
  await store.close();
  log(`${gone.length} people erased, ${kept.length} stay`);

  const files = filesIn(root).map((path) => ({ path, bytes: readFileSync(path) }));
  counts.files = files.length;
  for (const person of people) {
    for (const [what, content] of Object.entries(person.secrets)) {
      for (const piece of piecesOf(content)) {
        counts.pieces++;
        for (const { path, bytes } of files)
          if (bytes.includes(piece)) violate(`${what} of ${person.id} lies in the clear in ${path}`);
      }
    }
  }
  // The backup, put back beside the keys that are left: who was erased is removed when it is opened, and cannot be read before.
  rmSync(join(folder, "database"), { recursive: true });
  cpSync(join(root, "backup"), join(folder, "database"), { recursive: true });
  const restored = await openEmbeddedStore(folder);
  await looked(restored, gone, kept, (text) => violate(`after a backup was put back: ${text}`), counts);
  await restored.close();
  rmSync(root, { recursive: true, force: true });
  return { counts, violations };
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
    if (!profile?.template) violate(`${person.id}, who stays, cannot be read`);
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

/** Long enough to know a voice by, short enough to lie within a page. */
function piecesOf(content) {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return [0.1, 0.5, 0.8].map((part) =>
    bytes.subarray(Math.floor(bytes.length * part), Math.floor(bytes.length * part) + PIECE_BYTES),
  );
}

function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
