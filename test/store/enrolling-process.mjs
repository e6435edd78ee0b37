// A separate process, to be killed: opens a store, reports its contents, then enrolls until it is told to stop or dies.
// One JSON value per line on stdout; nothing is reported before it is true.
//   node enrolling-process.mjs folder <folder> <seen> <first> <last>
//     report the persons from number <seen> on, then enroll persons number <first>..<last>
//   node enrolling-process.mjs job <folder>
//   node enrolling-process.mjs postgres-job <url> <keys url>
//     start a job and never finish it
//   node enrolling-process.mjs postgres <url> <keys url> <profile id> <first> <last>
//     add segments to one profile, training after each
import * as records from "../../campaign/parts/records.mjs";
import { openEmbeddedStore, openPostgresStore } from "../../dist/postgres.js";

const { SCOPE } = records;

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

function embeddingOf(number) {
  return Float32Array.from({ length: 256 }, (_, i) => Math.fround(Math.sin(number * 256 + i)));
}

const templateOf = (number) => ({ ...records.templateOf(embeddingOf(number)), netSpeechSeconds: number });

const processedOf = (number) =>
  records.processedOf({
    id: `processed-${number}`,
    mediaSegmentId: `media-${number}`,
    createdAt: number,
    voice: { windows: [], embedding: embeddingOf(number) },
  });

const same = (one, other) => one.length === other.length && one.every((value, i) => value === other[i]);

/**
 * Every profile from `first` on, with all parts that could be incomplete, and the total number: a wrong value fails the test in the parent.
 */
async function takeStock(store, first) {
  const found = {};
  const ids = [];
  let after = null;
  for (;;) {
    const page = await store.profiles.list(SCOPE, after, 500);
    if (page.length === 0) return { count: ids.length, found };
    for (const profile of page) {
      ids.push(profile.id);
      const number = Number(profile.owner.externalId);
      if (number < first) continue;
      const segments = await store.profiles.segments(SCOPE, profile.id);
      found[number] = {
        segments: segments.length,
        trained: profile.template !== null,
        printVersion: profile.printVersion,
        generation: profile.generation,
        whole:
          segments.every(({ processed }) => same(processed.voice.embedding, embeddingOf(number))) &&
          (profile.template === null || same(profile.template.embedding, embeddingOf(number))),
      };
    }
    after = page.at(-1).id;
  }
}

async function enroll(store, number) {
  const id = `profile-${String(number).padStart(6, "0")}`;
  const plain = records.profileOf(id, String(number));
  // It may exist already: started by the previous process, but never acknowledged.
  const profile = (await store.profiles.create(plain)) ?? (await store.profiles.get(SCOPE, id));
  const added = await store.profiles.addSegment(SCOPE, id, profile.generation, {
    profileId: id,
    processed: processedOf(number),
    addedAt: number,
  });
  const { generation } = await store.profiles.get(SCOPE, id);
  await store.profiles.train(SCOPE, id, generation, {
    template: templateOf(number),
    status: 2,
    printVersion: profile.printVersion + 1,
  });
  say({ enrolled: number, added });
}

/** Like the processor: read, write based on that, start over if another writer was first. */
async function addAndTrain(store, id, number) {
  for (let done = false; !done; ) {
    const { generation } = await store.profiles.get(SCOPE, id);
    const segment = { profileId: id, processed: processedOf(number), addedAt: number };
    done = (await store.profiles.addSegment(SCOPE, id, generation, segment)) !== "moved";
  }
  for (let done = false; !done; ) {
    const { generation, printVersion } = await store.profiles.get(SCOPE, id);
    const trained = { template: templateOf(number), status: 2, printVersion: printVersion + 1 };
    done = await store.profiles.train(SCOPE, id, generation, trained);
  }
  say({ trained: number });
}

const [mode, location, ...rest] = process.argv.slice(2);
if (mode === "folder") {
  const [seenBefore, first, last] = rest.map(Number);
  const store = await openEmbeddedStore(location);
  say({ stock: await takeStock(store, seenBefore) });
  for (let number = first; number <= last; number++) await enroll(store, number);
  await store.close();
} else if (mode === "job" || mode === "postgres-job") {
  const store =
    mode === "job"
      ? await openEmbeddedStore(location)
      : await openPostgresStore(location, {
          keys: rest[0],
          masterKey: new Uint8Array(32).fill(7),
          deadReplicaSeconds: 4,
        });
  const job = {
    id: "job",
    scopeId: SCOPE,
    kind: "retrain",
    state: 1,
    request: { of: "all" },
    result: null,
    progress: 0,
    createdAt: 1,
  };
  await store.jobs.create(job);
  await store.jobs.work(async () => {
    await store.jobs.update(SCOPE, "job", { state: 2, progress: 0.5 });
    say({ started: true });
    await new Promise(() => {});
  });
  await new Promise(() => {});
} else {
  const [keys, id, first, last] = rest;
  const store = await openPostgresStore(location, { keys, masterKey: new Uint8Array(32).fill(7) });
  say({ ready: true });
  for (let number = Number(first); number <= Number(last); number++) await addAndTrain(store, id, number);
  await store.close();
}
say({ finished: true });
