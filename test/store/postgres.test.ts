import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPostgresStore } from "../../src/postgres.js";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import { KeyRing } from "../../src/store/seal/key-ring.js";
import { openPostgresShelf } from "../../src/store/seal/shelf-postgres.js";
import { openPostgresDatabase } from "../../src/store/sql/database-pg.js";
import { startEnrolling } from "./child-process.js";
import { describeStoreContract } from "./contract.js";
import {
  enrollPerson,
  mediaOf,
  newId,
  processedOf,
  profileOf,
  segmentOf,
  startSession,
  templateOf,
} from "./fixtures.js";
import { type PostgresServer, startPostgres } from "./postgres-server.js";

const masterKey = new Uint8Array(32).fill(7);
let server: PostgresServer;
let keys: string;
let shared: string;

beforeAll(async () => {
  server = await startPostgres();
  keys = await server.createDatabase();
  shared = await server.createDatabase();
});
afterAll(() => server?.stop());

describeStoreContract("PostgreSQL", {
  // Every store of the suite is another replica of the same database.
  open: (options) => openPostgresStore(shared, { keys, masterKey, ...options }),
});

describe("replicas", () => {
  test("that start at the same time on an empty database all start", async () => {
    const [url, keysUrl] = [await server.createDatabase(), await server.createDatabase()];
    const stores = await Promise.all(
      Array.from({ length: 4 }, () => openPostgresStore(url, { keys: keysUrl, masterKey })),
    );
    const scope = newId("scope");
    const alice = await enrollPerson(stores[0]!, scope, "alice", 1);
    for (const store of stores) expect(await store.profiles.get(scope, alice.profile.id)).toEqual(alice.profile);
    await Promise.all(stores.map((store) => store.close()));
  });

  test("share jobs: each runs once", async () => {
    // A new database: jobs that other tests left would be worked on before these, one each second.
    const [url, keysUrl] = [await server.createDatabase(), await server.createDatabase()];
    const stores = await Promise.all([1, 2].map(() => openPostgresStore(url, { keys: keysUrl, masterKey })));
    const scope = newId("scope");
    const done: string[] = [];
    for (const store of stores) {
      await store.jobs.work(async (job) => {
        if (job.scopeId === scope) done.push(job.id);
      });
    }
    const ids = Array.from({ length: 10 }, () => newId("job"));
    for (const id of ids) {
      const job = {
        id,
        scopeId: scope,
        kind: "retrain",
        state: 1,
        request: null,
        result: null,
        progress: 0,
        createdAt: 1,
      } as const;
      await stores[0]!.jobs.create(job);
    }
    await expect.poll(() => done.length, { timeout: 30_000 }).toBe(ids.length);
    expect([...done].sort()).toEqual([...ids].sort());
    await Promise.all(stores.map((store) => store.close()));
  });

  test("that die during a job lose it to another within the set time; a live one keeps it", async () => {
    const [url, keysUrl] = [await server.createDatabase(), await server.createDatabase()];
    const child = startEnrolling("postgres-job", url, keysUrl);
    for await (const message of child.messages) if (message.started) break;
    const store = await openPostgresStore(url, { keys: keysUrl, masterKey, deadReplicaSeconds: 4 });
    const worked: number[] = [];
    await store.jobs.work(async (job) => {
      worked.push(job.progress);
    });
    // Longer than the limit for a silent replica: the job is not taken from one that works on it.
    await new Promise((wake) => setTimeout(wake, 6_000));
    expect(worked).toEqual([]);
    child.process.kill("SIGKILL");
    await child.ended;
    // Passed on once, in the state in which the dead replica left it.
    await expect.poll(() => worked, { timeout: 30_000 }).toEqual([0.5]);
    await new Promise((wake) => setTimeout(wake, 3_000));
    expect(worked).toEqual([0.5]);
    expect((await store.jobs.get("scope", "job"))?.state).toBe(2);
    await store.close();
  }, 90_000);

  test("see a rotated scope key, an erased profile and a changed print of each other", async () => {
    const [one, two] = await Promise.all([1, 2].map(() => openPostgresStore(shared, { keys, masterKey })));
    const scope = newId("scope");
    const alice = await enrollPerson(one!, scope, "alice", 1);
    expect(await two!.profiles.get(scope, alice.profile.id)).toEqual(alice.profile);
    const version = await two!.profiles.printsVersion(scope);
    // Both create keys while one rotates.
    const made = [];
    const rotating = one!.keys.rotate(scope);
    for (let i = 0; i < 10; i++)
      made.push((await two!.profiles.create(profileOf(scope, `person ${i}`, { template: templateOf(i) })))!);
    await rotating;
    await two!.keys.rotate(scope);
    for (const { id, template } of made) {
      expect((await one!.profiles.get(scope, id))!.template).toEqual(template);
      expect((await two!.profiles.get(scope, id))!.template).toEqual(template);
    }
    await one!.profiles.erase(scope, alice.profile.id);
    expect(await two!.profiles.get(scope, alice.profile.id)).toBeNull();
    expect((await two!.profiles.printsChangedSince(scope, version)).ids).toContain(alice.profile.id);
    await Promise.all([one!.close(), two!.close()]);
  });
});

describe("locks are taken in one order, so that there is no deadlock", () => {
  /** Another process in a transaction: `work` waits for what it holds, and it must then get what it asks for. */
  async function whileHeld(
    url: string,
    held: [string, string[]],
    work: () => Promise<void>,
    asked: [string, string[]],
  ) {
    const [client, watch] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
    await Promise.all([client.connect(), watch.connect()]);
    await client.query("BEGIN; SET LOCAL lock_timeout = '500ms'");
    expect((await client.query(...held)).rowCount).toBe(1);
    const working = work();
    const waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    await expect.poll(async () => (await watch.query(waiting)).rowCount, { timeout: 30_000 }).toBe(1);
    const answer = await client.query(...asked).then(
      ({ rowCount }) => rowCount,
      (error) => error.message,
    );
    await client.query("ROLLBACK");
    await working;
    await Promise.all([client.end(), watch.end()]);
    expect(answer).toBe(1);
  }

  test("by erasing a profile and expiring recordings", async () => {
    const [url, keysUrl] = [await server.createDatabase(), await server.createDatabase()];
    const store = await openPostgresStore(url, { keys: keysUrl, masterKey });
    const { profile, media } = await enrollPerson(store, "scope", "alice", 1);
    await whileHeld(
      url,
      ["SELECT 1 FROM vivavoce.sessions WHERE id = $1 FOR UPDATE", [media.sessionId]],
      async () => expect(await store.profiles.erase("scope", profile.id)).toBe(true),
      ["DELETE FROM vivavoce.media WHERE session = $1", [media.sessionId]],
    );
    expect(await store.media.get("scope", media.id)).toBeNull();
    await store.close();
  });

  test("by destroying keys and wrapping them again", async () => {
    const url = await server.createDatabase();
    const shelf = await openPostgresShelf(await openPostgresDatabase(url), nodeAead, { masterKey });
    const { generation } = await shelf.addScopeKey("scope", 1);
    // In the order of the rows in the table, reversed.
    const ids = ["bb".repeat(16), "aa".repeat(16)];
    const wrapped = new Uint8Array(60);
    for (const id of ids) await shelf.add("scope", { id, purpose: "session", generation, wrapped });
    const lock = "SELECT 1 FROM vivavoce_keys.data_keys WHERE id = $1 FOR UPDATE";
    await whileHeld(url, [lock, [ids[1]!]], () => shelf.destroy("scope", ids), [lock, [ids[0]!]]);
    expect((await shelf.find("scope", ids)).size).toBe(0);
    await shelf.close();
  });
});

test("a connection that breaks between two statements of a transaction fails only the transaction", async () => {
  const url = await server.createDatabase();
  const database = await openPostgresDatabase(url);
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  // Nothing listens to an idle connection in a transaction: an error at that point would end the process.
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on("uncaughtException", note);
  const transaction = database.transaction(async (tx) => {
    const [{ pid } = {}] = await tx.query("SELECT pg_backend_pid() AS pid");
    await other.query("SELECT pg_terminate_backend($1)", [pid]);
    await expect
      .poll(async () => (await other.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [pid])).rowCount, {
        timeout: 30_000,
      })
      .toBe(0);
    await new Promise((wake) => setTimeout(wake, 50));
    await tx.query("SELECT 1");
  });
  await expect(transaction).rejects.toThrow();
  expect(await database.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  process.off("uncaughtException", note);
  expect(uncaught).toEqual([]);
  await other.end();
  await database.close();
});

test("a database that closes answers the calls that wait for a connection first", async () => {
  const database = await openPostgresDatabase(await server.createDatabase());
  const calls = Array.from({ length: 20 }, () => database.query("SELECT 1 AS one, pg_sleep(0.1)"));
  await database.close();
  for (const [row] of await Promise.all(calls)) expect(row).toMatchObject({ one: 1 });
  await database.close();
});

test("two processes that enroll and train the same profile lose no segment", async () => {
  const [url, keysUrl] = [await server.createDatabase(), await server.createDatabase()];
  const store = await openPostgresStore(url, { keys: keysUrl, masterKey });
  const { id } = (await store.profiles.create(profileOf("scope", "alice")))!;
  const segmentsEach = 40;
  const children = [0, 1].map((i) =>
    startEnrolling("postgres", url, keysUrl, id, i * segmentsEach + 1, (i + 1) * segmentsEach),
  );
  for (const { code, errors } of await Promise.all(children.map(({ ended }) => ended))) {
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
  }
  const segments = await store.profiles.segments("scope", id);
  const expected = Array.from({ length: 2 * segmentsEach }, (_, i) => `processed-${i + 1}`);
  expect(segments.map(({ processed }) => processed.id).sort()).toEqual(expected.sort());
  // Every training counted, none overwrote another's.
  const profile = (await store.profiles.get("scope", id))!;
  expect(profile.printVersion).toBe(2 * segmentsEach);
  expect(profile.generation).toBe(4 * segmentsEach);
  expect(await store.profiles.printsVersion("scope")).toBe(2 * segmentsEach);
  await store.close();
});

describe("keys", () => {
  const openWith = (url: string, keysUrl: string, key: Uint8Array, previousMasterKey?: Uint8Array) =>
    openPostgresStore(url, { keys: keysUrl, masterKey: key, ...(previousMasterKey ? { previousMasterKey } : {}) });

  test("are refused with another master key, and wrapped again when the old one is given too", async () => {
    const [url, keysUrl] = [await server.createDatabase(), await server.createDatabase()];
    const scope = newId("scope");
    const store = await openWith(url, keysUrl, masterKey);
    const { profile } = await enrollPerson(store, scope, "alice", 1);
    await store.close();
    const next = new Uint8Array(32).fill(8);
    await expect(openWith(url, keysUrl, next)).rejects.toMatchObject({ name: "SealError", code: "wrong-key" });
    const moved = await openWith(url, keysUrl, next, masterKey);
    expect(await moved.profiles.get(scope, profile.id)).toEqual(profile);
    await moved.close();
    const later = await openWith(url, keysUrl, next);
    expect(await later.profiles.get(scope, profile.id)).toEqual(profile);
    await later.close();
    await expect(openWith(url, keysUrl, masterKey)).rejects.toMatchObject({ code: "wrong-key" });
  });

  test("are not created by a replica with a replaced master key", async () => {
    const [url, keysUrl] = [await server.createDatabase(), await server.createDatabase()];
    const [known, unknown] = [newId("scope"), newId("scope")];
    const before = await openWith(url, keysUrl, masterKey);
    await enrollPerson(before, known, "alice", 1);
    const next = new Uint8Array(32).fill(8);
    const after = await openWith(url, keysUrl, next, masterKey);
    // A scope that is already open continues to work; no other replica could open a key created for a new scope.
    const bob = (await before.profiles.create(profileOf(known, "bob", { template: templateOf(2) })))!;
    expect(await after.profiles.get(known, bob.id)).toEqual(bob);
    await expect(before.profiles.create(profileOf(unknown, "carol"))).rejects.toMatchObject({ code: "wrong-key" });
    const carol = (await after.profiles.create(profileOf(unknown, "carol", { template: templateOf(3) })))!;
    await Promise.all([before.close(), after.close()]);
    const later = await openWith(url, keysUrl, next);
    expect(await later.profiles.get(unknown, carol.id)).toEqual(carol);
    await later.close();
  });

  test("are not wrapped with a scope key that a later rotation removed", async () => {
    const shelf = await openPostgresShelf(await openPostgresDatabase(await server.createDatabase()), nodeAead, {
      masterKey,
    });
    const ring = new KeyRing(shelf, nodeAead);
    const { id } = await ring.create("scope", "profile");
    const [before] = (await shelf.find("scope", [id])).values();
    await Promise.all([ring.rotate("scope"), new KeyRing(shelf, nodeAead).rotate("scope")]);
    await shelf.rewrap("scope", [before!]);
    expect((await new KeyRing(shelf, nodeAead).open("scope", [id])).size).toBe(1);
    await shelf.close();
  });

  test("are listed completely, without the destroyed ones", async () => {
    const database = await openPostgresDatabase(await server.createDatabase());
    const shelf = await openPostgresShelf(database, nodeAead, { masterKey });
    const ring = new KeyRing(shelf, nodeAead);
    const made = [];
    for (let i = 0; i < 5; i++) made.push((await ring.create("scope", "profile")).id);
    await ring.destroy("scope", made.slice(0, 3));
    const live: string[] = [];
    for await (const keys of shelf.all("scope")) live.push(...keys.map(({ id }) => id));
    expect(live).toEqual(made.slice(3).sort());
    expect(await shelf.destroyedOf("scope", made)).toEqual(new Set(made.slice(0, 3)));
    await ring.close();
  });

  test("of another store are refused, and a key database without a master key", async () => {
    const [url, foreignKeys] = [await server.createDatabase(), await server.createDatabase()];
    await (await openWith(url, keys, masterKey)).close();
    await expect(openWith(url, foreignKeys, masterKey)).rejects.toMatchObject({ code: "wrong-key" });
    await expect(openPostgresStore(url, { keys })).rejects.toMatchObject({ code: "wrong-key" });
    await (await openWith(url, keys, masterKey)).close();
  });

  test("may be in a folder for a single process", async () => {
    const url = await server.createDatabase();
    const folder = mkdtempSync(join(tmpdir(), "vivavoce-keys-"));
    const scope = newId("scope");
    const store = await openPostgresStore(url, { keys: folder });
    const { profile } = await enrollPerson(store, scope, "alice", 1);
    await expect(openPostgresStore(url, { keys: folder })).rejects.toMatchObject({ code: "locked" });
    await store.close();
    const again = await openPostgresStore(url, { keys: folder });
    expect(await again.profiles.get(scope, profile.id)).toEqual(profile);
    await again.close();
    rmSync(folder, { recursive: true });
  });
});

describe("migrations", () => {
  test("refuse a store that a newer version wrote, and touch nothing", async () => {
    const url = await server.createDatabase();
    await (await openPostgresStore(url, { keys, masterKey })).close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("INSERT INTO vivavoce.migrations (version) VALUES (999)");
    await expect(openPostgresStore(url, { keys, masterKey })).rejects.toMatchObject({ code: "newer-schema" });
    await client.query("DELETE FROM vivavoce.migrations WHERE version = 999");
    await client.end();
    await (await openPostgresStore(url, { keys, masterKey })).close();
  });

  test("tell audio models and segments of an earlier version which recording they are a part of", async () => {
    const url = await server.createDatabase();
    const before = await openPostgresStore(url, { keys, masterKey });
    const { id: sessionId } = await startSession(before, "scope");
    const whole = mediaOf("scope", sessionId);
    const part = mediaOf("scope", sessionId, { partOf: whole.id });
    for (const media of [whole, part]) await before.media.add(media);
    const models = [part, part, whole].map(({ id }, i) => processedOf("scope", sessionId, i, { mediaSegmentId: id }));
    for (const model of models) await before.processed.add(model);
    const alice = (await before.profiles.create(profileOf("scope", "alice")))!;
    await before.profiles.addSegment("scope", alice.id, 0, segmentOf(alice.id, models[0]!));
    await before.close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const table of ["audio_models", "segments"])
      await client.query(`ALTER TABLE vivavoce.${table} DROP COLUMN part_of`);
    await client.query("DELETE FROM vivavoce.migrations WHERE version >= 10");
    const store = await openPostgresStore(url, { keys, masterKey });
    for (const table of ["audio_models", "segments"]) {
      const { rows } = await client.query(`SELECT DISTINCT media, part_of FROM vivavoce.${table} ORDER BY part_of`);
      expect(rows[0], table).toEqual({ media: part.id, part_of: whole.id });
    }
    await client.end();
    // Enrolled now, from an audio model of then.
    const bob = (await store.profiles.create(profileOf("scope", "bob")))!;
    await store.profiles.addSegment("scope", bob.id, 0, segmentOf(bob.id, models[1]!));
    await store.sessions.stop("scope", sessionId, 2_000);
    expect(await store.media.expire("scope", 3_000)).toBe(2);
    await store.profiles.erase("scope", bob.id);
    const isThere = async ({ id }: { id: string }) => (await store.processed.get("scope", id)) !== null;
    expect(await Promise.all(models.map(isThere))).toEqual([true, false, false]);
    await store.close();
  });

  test("report a server that cannot be reached", async () => {
    const nobody = "postgres://postgres@127.0.0.1:1/nothing";
    await expect(openPostgresStore(nobody, { keys, masterKey })).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});
