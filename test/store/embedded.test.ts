/** The store in a folder: who may open it, what its files contain, what remains after erasing. */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openEmbeddedStore, openStore } from "../../src/postgres.js";
import { whyItDoesNotStart } from "../../src/store/embedded-folder.js";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import { KeyRing } from "../../src/store/seal/key-ring.js";
import { openFolderShelf } from "../../src/store/seal/shelf-folder.js";
import { keyIdOf, Vault } from "../../src/store/seal/vault.js";
import { openEmbeddedDatabase } from "../../src/store/sql/database-pglite.js";
import type { HousekeepingLimits } from "../../src/store/sql/housekeeping.js";
import { createSqlStore } from "../../src/store/sql/store.js";
import { OWN_PROCESS_NUMBERS, startEnrolling, startEnrollingIn } from "./child-process.js";
import { withEmptyDatabase } from "./empty-database.js";
import { filesIn, filesWith, fragmentsOf } from "./files.js";
import { enrollPerson, mediaOf, newId, startSession, templateOf } from "./fixtures.js";

/** Each test opens a store several times, which takes a second on an idle machine. */
vi.setConfig({ testTimeout: 180_000 });

let root: string;
/** A store that is created once, because that takes seconds. */
let pristine: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "vivavoce-embedded-"));
  pristine = join(root, "pristine");
  await (await openEmbeddedStore(pristine)).close();
}, 300_000);
afterAll(() => rmSync(root, { recursive: true, force: true }), 300_000);

function newFolder(): string {
  const folder = join(root, newId("store"));
  cpSync(pristine, folder, { recursive: true });
  return folder;
}

describe("a folder", () => {
  test("keeps its data when it is opened again", async () => {
    const folder = newFolder();
    const store = await openStore(folder);
    const { profile, media, processed, segment } = await enrollPerson(store, "scope", "alice", 1);
    await store.documents.put("clients", "one", { secret: "hash" });
    await store.close();
    const again = await openStore(folder);
    expect(await again.profiles.find("scope", "person", "alice", "default")).toEqual(profile);
    expect(await again.profiles.segments("scope", profile.id)).toEqual([segment]);
    expect(await again.media.get("scope", media.id)).toEqual(media);
    expect(await again.processed.get("scope", processed.id)).toEqual(processed);
    expect(await again.documents.get("clients", "one")).toEqual({ secret: "hash" });
    await again.close();
  });

  test("whose database does not start is reported as damaged, and stays unlocked", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "database", "PG_VERSION"), "1\n");
    for (const _ of [1, 2])
      await expect(openEmbeddedStore(folder)).rejects.toMatchObject({
        name: "StoreError",
        code: "damaged",
        message: expect.stringContaining(join(folder, "database")),
      });
    writeFileSync(join(folder, "database", "PG_VERSION"), readFileSync(join(pristine, "database", "PG_VERSION")));
    await (await openEmbeddedStore(folder)).close();
  });

  test("is private to its owner, whatever its parent allows", async () => {
    const folder = newFolder();
    chmodSync(folder, 0o755);
    chmodSync(join(folder, "database"), 0o755);
    await (await openEmbeddedStore(folder)).close();
    expect(statSync(join(folder, "database")).mode & 0o777).toBe(0o700);
  });

  test("whose database has too little memory is not reported as damaged", async () => {
    const error = new RangeError("WebAssembly.Memory(): could not allocate memory");
    expect(await whyItDoesNotStart(pristine, error)).toMatchObject({
      code: "no-memory",
      message: expect.stringMatching(/not enough memory/),
    });
  });

  test("whose disk is full is not reported as damaged, at the first start or later", async () => {
    const error = new Error("the engine stopped");
    const free = (megabytes: number) => async () => megabytes * 2 ** 20;
    const fresh = join(root, newId("store"), "database");
    const full = { code: "disk-full", message: expect.stringMatching(/is full: 20 MB are free .* Free some space/) };
    expect(await whyItDoesNotStart(join(pristine, "database"), error, free(20))).toMatchObject(full);
    expect(await whyItDoesNotStart(fresh, error, free(20))).toMatchObject(full);
    // The files of a new database need more.
    expect(await whyItDoesNotStart(fresh, error, free(50))).toMatchObject({ code: "disk-full" });
    expect(await whyItDoesNotStart(join(pristine, "database"), error, free(50))).toMatchObject({ code: "damaged" });
    expect(await whyItDoesNotStart(fresh, error, free(500))).toMatchObject({
      code: "not-created",
      message: expect.stringMatching(/the engine stopped.*nothing was stored yet/),
    });
  });

  test("with files of another owner is not reported as damaged", async () => {
    const database = join(newFolder(), "database");
    const isRoot = process.getuid!() === 0;
    // Root reads every file, so for root the folder itself counts; another user is kept out by permissions.
    if (isRoot) chownSync(database, 12_345, 12_345);
    else chmodSync(join(database, "PG_VERSION"), 0o000);
    await expect(openEmbeddedStore(join(database, ".."))).rejects.toMatchObject({
      code: isRoot ? "not-owner" : "unreadable",
      message: expect.stringMatching(isRoot ? /user with id 12345/ : /PG_VERSION cannot be read and written/),
    });
    if (isRoot) chownSync(database, 0, 0);
    else chmodSync(join(database, "PG_VERSION"), 0o600);
    await (await openEmbeddedStore(join(database, ".."))).close();
  });

  test("whose first start was interrupted starts again", async () => {
    const folder = join(root, newId("store"));
    mkdirSync(join(folder, "database.new"), { recursive: true });
    writeFileSync(join(folder, "database.new", "PG_VERSION"), "incomplete");
    await (await openEmbeddedStore(folder)).close();
    expect(existsSync(join(folder, "database.new"))).toBe(false);
  });

  test("opens after a process was killed while its database created its own lock", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "database", "postmaster.pid"), "");
    await (await openEmbeddedStore(folder)).close();
  });

  test("opens for one process at a time", async () => {
    const folder = newFolder();
    const store = await openEmbeddedStore(folder);
    await expect(openEmbeddedStore(folder)).rejects.toMatchObject({ name: "StoreError", code: "locked" });
    const child = startEnrolling("folder", folder, 1, 1, 0);
    const { code, errors } = await child.ended;
    expect(code).not.toBe(0);
    expect(errors).toContain(`is open in process ${process.pid}`);
    await store.close();
    await (await openEmbeddedStore(folder)).close();
  });

  test.runIf(process.platform === "linux")(
    "stays closed to a process that cannot see the holder's process id: another container on the same machine",
    async () => {
      const folder = newFolder();
      const store = await openEmbeddedStore(folder);
      const child = startEnrollingIn(OWN_PROCESS_NUMBERS, "folder", folder, 1, 1, 0);
      const { code, errors } = await child.ended;
      expect(errors).toContain(`is open in process ${process.pid}`);
      expect(code).not.toBe(0);
      await store.close();
      await (await openEmbeddedStore(folder)).close();
    },
  );

  test.runIf(process.platform === "linux")("can be taken over from a killed container", async () => {
    const folder = newFolder();
    const child = startEnrollingIn(OWN_PROCESS_NUMBERS, "folder", folder, 1, 1, 1_000);
    let locked: Error | null = null;
    for await (const message of child.messages) {
      if (!("enrolled" in message)) continue;
      locked = await openEmbeddedStore(folder).then(
        () => null,
        (error: Error) => error,
      );
      child.process.kill("SIGKILL");
      break;
    }
    expect(locked).toMatchObject({ code: "locked" });
    await child.ended;
    await vi.waitFor(async () => (await openEmbeddedStore(folder)).close(), { timeout: 60_000, interval: 500 });
  });

  test("frees space: expired uploads do not stay on disk", async () => {
    const folder = newFolder();
    const sizeMb = () => filesIn(folder).reduce((sum, path) => sum + statSync(path).size, 0) / 2 ** 20;
    const before = sizeMb();
    const store = await openEmbeddedStore(folder);
    let most = 0;
    for (let round = 0; round < 12; round++) {
      const session = await startSession(store, "space");
      for (let i = 0; i < 16; i++) await store.media.add(mediaOf("space", session.id, { audio: randomBytes(2 ** 20) }));
      await store.sessions.stop("space", session.id, 5_000);
      await store.media.expire("space", 6_000);
      most = Math.max(most, sizeMb() - before);
    }
    await store.close();
    // 192 MB were written. At any time the disk holds the live data, what was removed since the last housekeeping, and its log.
    expect(most).toBeLessThan(200);
    expect(sizeMb() - before).toBeLessThan(120);
  });

  /** A store with its own limits of housekeeping, and 24 MB of recordings that were just removed. */
  async function withRemovedUploads(limits: HousekeepingLimits) {
    const folder = join(newFolder(), "database");
    const sizeMb = () => filesIn(folder).reduce((sum, path) => sum + statSync(path).size, 0) / 2 ** 20;
    const before = sizeMb();
    const shelf = await openFolderShelf(join(folder, "..", "keys"), nodeAead);
    const store = await createSqlStore(await openEmbeddedDatabase(folder, limits), shelf);
    await store.jobs.work(async () => {});
    const session = await startSession(store, "space");
    for (let i = 0; i < 24; i++) await store.media.add(mediaOf("space", session.id, { audio: randomBytes(2 ** 20) }));
    await store.sessions.stop("space", session.id, 5_000);
    await store.media.expire("space", 6_000);
    return { store, grownMb: () => sizeMb() - before };
  }

  test("frees space when nobody uses it, although it looks for jobs every second", async () => {
    const { store, grownMb } = await withRemovedUploads({ writtenBytes: 2 ** 40, idleMs: 2_500 });
    try {
      expect(grownMb()).toBeGreaterThan(40);
      await vi.waitFor(() => expect(grownMb()).toBeLessThan(10), { timeout: 60_000, interval: 250 });
    } finally {
      await store.close();
    }
  });

  test("frees the space of a large removal although others keep writing", async () => {
    const { store, grownMb } = await withRemovedUploads({ writtenBytes: 16 * 2 ** 20, idleMs: 1_000 });
    let open = true;
    const writing = (async () => {
      for (let i = 0; open; i++) {
        await store.documents.put("test", "counter", { i });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    try {
      // The log alone grows by 16 MB at a time.
      await vi.waitFor(() => expect(grownMb()).toBeLessThan(34), { timeout: 60_000, interval: 50 });
    } finally {
      open = false;
      await writing;
      await store.close();
    }
  });

  test("opened by many at once opens for one", async () => {
    const folder = newFolder();
    const opened = await Promise.allSettled(Array.from({ length: 6 }, () => openEmbeddedStore(folder)));
    const stores = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    expect(stores).toHaveLength(1);
    await stores[0]!.close();
  });
});

test("a job in progress when its process was killed runs again", async () => {
  const folder = newFolder();
  const child = startEnrolling("job", folder);
  for await (const message of child.messages) if (message.started) child.process.kill("SIGKILL");
  expect((await child.ended).signal).toBe("SIGKILL");
  const store = await openEmbeddedStore(folder);
  expect(await store.jobs.get("scope", "job")).toMatchObject({ state: 2, progress: 0.5 });
  await store.jobs.work(async (job) => {
    await store.jobs.update("scope", job.id, { state: 3, progress: 1, result: job.request });
  });
  await expect.poll(async () => (await store.jobs.get("scope", "job"))?.state, { timeout: 30_000 }).toBe(3);
  expect((await store.jobs.get("scope", "job"))?.result).toEqual({ of: "all" });
  await store.close();
});

test("stops that interrupt a job are not counted among its attempts", async () => {
  const folder = newFolder();
  const store = await openEmbeddedStore(folder);
  const job = { id: "job", scopeId: "scope", kind: "retrain", state: 1, request: null, result: null } as const;
  await store.jobs.create({ ...job, progress: 0, createdAt: 1 });
  await store.close();
  for (let stop = 0; stop < 4; stop++) {
    const stopping = await openEmbeddedStore(folder);
    const interrupt = await new Promise<(reason: Error) => void>((started) => {
      void stopping.jobs.work(() => new Promise((_, reject) => started(reject)));
    });
    const closed = stopping.close();
    interrupt(new Error("interrupted"));
    await closed;
  }
  const last = await openEmbeddedStore(folder);
  await last.jobs.work(async ({ id }) => void (await last.jobs.update("scope", id, { state: 3 })));
  await expect.poll(async () => (await last.jobs.get("scope", "job"))?.state, { timeout: 30_000 }).toBe(3);
  await last.close();
});

describe("keys of a folder", () => {
  test("are private to their owner", async () => {
    const folder = newFolder();
    const store = await openEmbeddedStore(folder);
    await enrollPerson(store, "scope", "alice", 1);
    await store.close();
    const keys = filesIn(join(folder, "keys"));
    expect(keys.length).toBeGreaterThanOrEqual(2);
    for (const path of keys) expect(statSync(path).mode & 0o777, path).toBe(0o600);
    expect(statSync(join(folder, "keys")).mode & 0o777).toBe(0o700);
  });

  test("of another store, or missing ones, are refused", async () => {
    const folder = newFolder();
    const store = await openEmbeddedStore(folder);
    const { profile } = await enrollPerson(store, "scope", "alice", 1);
    await store.close();
    const wrong = { name: "SealError", code: "wrong-key" };
    const nowhere = join(root, newId("keys"));
    // Twice: the first attempt begins new keys there.
    for (const _ of [1, 2])
      await expect(openEmbeddedStore(folder, { keys: nowhere })).rejects.toMatchObject({
        ...wrong,
        message: expect.stringMatching(/^the keys of this store are missing/),
      });
    const other = await withEmptyDatabase(join(root, newId("store")));
    const another = await openEmbeddedStore(other);
    await enrollPerson(another, "scope", "bob", 2);
    await another.close();
    await expect(openEmbeddedStore(folder, { keys: join(other, "keys") })).rejects.toMatchObject({
      ...wrong,
      message: expect.stringMatching(/^these keys belong to another store/),
    });
    await expect(openEmbeddedStore(folder, { masterKey: new Uint8Array(31) })).rejects.toMatchObject(wrong);
    // The refusals changed nothing.
    const again = await openEmbeddedStore(folder);
    expect(await again.profiles.get("scope", profile.id)).toEqual(profile);
    await again.close();
  });

  test("can be wrapped by a master key, and then need it", async () => {
    const folder = newFolder();
    const masterKey = new Uint8Array(32).fill(1);
    const store = await openEmbeddedStore(folder);
    const { profile } = await enrollPerson(store, "scope", "alice", 1);
    await store.close();
    await (await openEmbeddedStore(folder, { masterKey })).close();
    await expect(openEmbeddedStore(folder)).rejects.toMatchObject({ code: "wrong-key" });
    await expect(openEmbeddedStore(folder, { masterKey: new Uint8Array(32) })).rejects.toMatchObject({
      code: "wrong-key",
    });
    const again = await openEmbeddedStore(folder, { masterKey });
    expect(await again.profiles.get("scope", profile.id)).toEqual(profile);
    await again.close();
  });

  test("rotate while the store is in use, and the old scope key opens nothing afterwards", async () => {
    const folder = newFolder();
    const store = await openEmbeddedStore(folder);
    const people = [];
    for (const name of ["a", "b", "c"]) people.push((await enrollPerson(store, "scope", name, people.length)).profile);
    await store.profiles.erase("scope", people[2]!.id);
    const ringPath = join(folder, "keys", "ring.json");
    const scopeKeyOf = (text: string) => JSON.parse(text).scopes.scope.map(({ key }: { key: string }) => key);
    const before = scopeKeyOf(readFileSync(ringPath, "utf8"));
    await store.keys.rotate("scope");
    const after = scopeKeyOf(readFileSync(ringPath, "utf8"));
    expect(before).toHaveLength(1);
    expect(after).toHaveLength(1);
    expect(after).not.toEqual(before);
    for (const profile of people.slice(0, 2)) expect(await store.profiles.get("scope", profile.id)).toEqual(profile);
    await enrollPerson(store, "scope", "d", 9);
    await store.close();
    const again = await openEmbeddedStore(folder);
    for (const profile of people.slice(0, 2)) expect(await again.profiles.get("scope", profile.id)).toEqual(profile);
    await again.keys.rotate("scope");
    for (const profile of people.slice(0, 2)) expect(await again.profiles.get("scope", profile.id)).toEqual(profile);
    expect(await again.profiles.get("scope", people[2]!.id)).toBeNull();
    await again.documents.put("clients", "one", "sealed before");
    // The scope, and the documents.
    expect(await again.keys.rotateAll()).toBe(2);
    expect(await again.documents.get("clients", "one")).toBe("sealed before");
    for (const profile of people.slice(0, 2)) expect(await again.profiles.get("scope", profile.id)).toEqual(profile);
    await again.close();
  });
});

describe("the contents of the files", () => {
  test("is sealed, and unreadable for good once a profile is erased", async () => {
    const folder = newFolder();
    const database = join(folder, "database");
    const store = await openEmbeddedStore(folder);
    const { profile, media, processed } = await enrollPerson(store, "scope", "alice-whom-a-thief-would-know", 1);
    const bystander = await enrollPerson(store, "scope", "bob", 2);
    await store.documents.put("keys", "signing", { private: "a-private-signing-key" });
    await store.close();

    const secrets = [
      ...fragmentsOf(media.audio),
      ...fragmentsOf(processed.voice.embedding!),
      ...processed.voice.windows.flatMap(({ embedding }) => fragmentsOf(embedding)),
      ...fragmentsOf(templateOf(1).embedding),
      new TextEncoder().encode("a-private-signing-key"),
      new TextEncoder().encode("alice-whom-a-thief-would-know"),
    ];
    const expectNoneIn = (place: string) => {
      for (const secret of secrets) expect(filesWith(place, secret)).toEqual([]);
    };
    // Proves that the search works: an id is not personal, and is stored as it is.
    expect(filesWith(folder, new TextEncoder().encode(profile.id))).not.toEqual([]);
    expectNoneIn(folder);

    // A thief, or a backup, copies the database now, and the sealed template from it.
    const stolen = join(root, newId("stolen"));
    cpSync(folder, stolen, { recursive: true });
    const rows = new PGlite(`file://${join(stolen, "database")}`);
    const { rows: templates } = await rows.query<{ template: Uint8Array }>(
      "SELECT template FROM vivavoce.profiles WHERE id = $1",
      [profile.id],
    );
    await rows.close();
    const sealed = templates[0]!.template;
    const slot = readFileSync(filesWith(join(folder, "keys"), Buffer.from(keyIdOf(sealed), "hex"))[0]!);
    const wrappedAt = slot.indexOf(Buffer.from(keyIdOf(sealed), "hex")) + 16;
    const wrapped = Uint8Array.from(slot.subarray(wrappedAt, wrappedAt + 60));
    const place = { scopeId: "scope", kind: "template", subjectId: profile.id, recordId: profile.id } as const;
    const openWithKeysOf = async (keys: string) => {
      const ring = new KeyRing(await openFolderShelf(keys, nodeAead), nodeAead);
      try {
        return await new Vault(ring).open(place, sealed);
      } finally {
        await ring.close();
      }
    };
    expect(await openWithKeysOf(join(folder, "keys"))).not.toBeNull();

    const again = await openEmbeddedStore(folder);
    expect(await again.profiles.erase("scope", profile.id)).toBe(true);
    await again.close();
    expectNoneIn(folder);
    // The write-ahead log still contains the sealed template …
    expect(filesWith(join(database, "pg_wal"), sealed)).not.toEqual([]);
    // … but its key has been overwritten in the ring, and nothing opens it.
    expect(filesWith(join(folder, "keys"), wrapped)).toEqual([]);
    expect(await openWithKeysOf(join(folder, "keys"))).toBeNull();

    // Restoring that backup does not bring the person back; the others are unchanged.
    rmSync(database, { recursive: true });
    cpSync(join(stolen, "database"), database, { recursive: true });
    const restored = await openEmbeddedStore(folder);
    expect(await restored.profiles.get("scope", profile.id)).toBeNull();
    expect(await restored.profiles.find("scope", "person", "alice-whom-a-thief-would-know", "default")).toBeNull();
    expect(await restored.media.get("scope", media.id)).toBeNull();
    expect(await restored.processed.get("scope", processed.id)).toBeNull();
    expect(await restored.profiles.get("scope", bystander.profile.id)).toEqual(bystander.profile);
    expect(await restored.media.get("scope", bystander.media.id)).toEqual(bystander.media);
    await restored.close();
  });

  test("expired audio cannot be opened from a copy either", async () => {
    const folder = newFolder();
    const store = await openEmbeddedStore(folder);
    const { media, session } = await enrollPerson(store, "scope", "alice", 1);
    await store.close();
    const backup = join(root, newId("backup"));
    cpSync(join(folder, "database"), backup, { recursive: true });
    const again = await openEmbeddedStore(folder);
    await again.sessions.stop("scope", session.id, 2_000);
    expect(await again.media.expire("scope", 3_000)).toBe(1);
    await again.close();
    rmSync(join(folder, "database"), { recursive: true });
    cpSync(backup, join(folder, "database"), { recursive: true });
    const restored = await openEmbeddedStore(folder);
    expect(await restored.media.get("scope", media.id)).toBeNull();
    await restored.close();
  });

  test("a row moved to another profile, or changed, does not open", async () => {
    const folder = newFolder();
    const store = await openEmbeddedStore(folder);
    const alice = await enrollPerson(store, "scope", "alice", 1);
    const bob = await enrollPerson(store, "scope", "bob", 2);
    await store.close();
    const rows = new PGlite(`file://${join(folder, "database")}`);
    await rows.query(
      "UPDATE vivavoce.profiles SET template = (SELECT template FROM vivavoce.profiles WHERE id = $1) WHERE id = $2",
      [alice.profile.id, bob.profile.id],
    );
    await rows.query("UPDATE vivavoce.media SET audio = set_byte(audio, 40, get_byte(audio, 40) # 1) WHERE id = $1", [
      bob.media.id,
    ]);
    await rows.close();
    const again = await openEmbeddedStore(folder);
    const damaged = { name: "SealError", code: "damaged" };
    await expect(again.profiles.get("scope", bob.profile.id)).rejects.toMatchObject(damaged);
    await expect(again.media.get("scope", bob.media.id)).rejects.toMatchObject(damaged);
    expect(await again.profiles.get("scope", alice.profile.id)).toEqual(alice.profile);
    await again.close();
  });
});
