/** A PostgreSQL that stops answering without closing its connections: stopped, overloaded, or cut off. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { Database } from "../../src/store/sql/database.js";
import { openPostgresDatabase } from "../../src/store/sql/database-pg.js";
import { startOwn } from "./postgres-server.js";

let server: Awaited<ReturnType<typeof startOwn>>;
let frozen: number[] = [];
const open: Database[] = [];

const HOUR = 3_600_000;
const unlimited = { connectMs: HOUR, statementMs: HOUR, answerMs: HOUR, silenceMs: HOUR };
const unavailable = { code: "unavailable", message: "the database does not answer" };

beforeAll(async () => {
  server = await startOwn();
}, 120_000);

afterEach(async () => {
  resume();
  for (const database of open.splice(0)) await database.close();
});

afterAll(async () => {
  await server?.stop();
});

async function opened(limits: Partial<typeof unlimited>): Promise<Database> {
  const database = await openPostgresDatabase(server.url, { ...unlimited, ...limits });
  open.push(database);
  return database;
}

function freeze(): void {
  const children = execFileSync("pgrep", ["-P", String(server.pid)], { encoding: "utf8" });
  frozen = [server.pid, ...children.trim().split("\n").map(Number)];
  for (const pid of frozen) process.kill(pid, "SIGSTOP");
}

/** The parent last: children that have ended are there until it notices. */
function resume(): void {
  for (const pid of frozen.splice(0).reverse()) process.kill(pid, "SIGCONT");
}

const openTransactions = (database: Database) =>
  database.query("SELECT 1 FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()");

test("fails queries and transactions, and works again when it answers", async () => {
  const database = await opened({ connectMs: 1000, answerMs: 1000 });
  await database.query("CREATE TABLE written (id integer)");
  let between: () => void = () => {};
  const isOpen = new Promise<void>((resolve) => {
    between = resolve;
  });
  const transaction = database.transaction(async (tx) => {
    await tx.query("INSERT INTO written VALUES (1)");
    freeze();
    between();
    await tx.query("INSERT INTO written VALUES (2)");
  });
  const interrupted = expect(transaction).rejects.toMatchObject(unavailable);
  await isOpen;
  // More callers than connections: the others wait for a free one, or open a new one.
  const queries = Array.from({ length: 12 }, () => database.query("SELECT 1"));
  await Promise.all(queries.map((query) => expect(query).rejects.toMatchObject(unavailable)));
  await expect(database.transaction((tx) => tx.query("SELECT 1"))).rejects.toMatchObject(unavailable);
  await interrupted;
  resume();
  const patient = await opened({});
  expect(await database.query("SELECT id FROM written")).toEqual([]);
  await expect.poll(() => openTransactions(patient)).toEqual([]);
  await database.transaction((tx) => tx.query("INSERT INTO written VALUES (3)"));
  expect(await database.query("SELECT id FROM written")).toEqual([{ id: 3 }]);
});

test("cancels a statement that takes too long, unless its transaction is a slow one", async () => {
  const database = await opened({ statementMs: 200 });
  await expect(database.query("SELECT pg_sleep(60)")).rejects.toMatchObject(unavailable);
  await expect(database.transaction((tx) => tx.query("SELECT pg_sleep(60)"))).rejects.toMatchObject(unavailable);
  await database.transaction((tx) => tx.query("SELECT pg_sleep(0.5)"), { slow: true });
  await expect(database.query("SELECT pg_sleep(60)")).rejects.toMatchObject(unavailable);
});

test("fails a slow transaction too, but not one that takes long while the server answers", async () => {
  const database = await opened({ connectMs: 500, answerMs: 500 });
  await database.transaction((tx) => tx.query("SELECT pg_sleep(2)"), { slow: true });
  const transaction = database.transaction(
    async (tx) => {
      await tx.query("SELECT 1");
      freeze();
      await tx.query("SELECT 1");
    },
    { slow: true },
  );
  await expect(transaction).rejects.toMatchObject(unavailable);
  resume();
  const patient = await opened({});
  await expect.poll(() => openTransactions(patient)).toEqual([]);
  expect(await database.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("a server that refuses connections still answers: a slow transaction goes on", async () => {
  await (await opened({})).query("CREATE ROLE guest LOGIN CONNECTION LIMIT 1");
  const limits = { ...unlimited, connectMs: 500, answerMs: 500 };
  const database = await openPostgresDatabase(Object.assign(new URL(server.url), { username: "guest" }).href, limits);
  open.push(database);
  await database.transaction((tx) => tx.query("SELECT pg_sleep(2)"), { slow: true });
});

test("ends a transaction whose client has fallen silent, and frees its locks", async () => {
  const [silent, other] = [await opened({ silenceMs: 200 }), await opened({})];
  await other.query("CREATE TABLE locked ()");
  let noticed: unknown;
  const transaction = silent.transaction(async (tx) => {
    await tx.query("LOCK TABLE locked");
    // Waits for the lock, which only the server can take away.
    noticed = await other.query("SELECT FROM locked").then(() => "unlocked");
    await tx.query("SELECT 1");
  });
  await expect(transaction).rejects.toMatchObject(unavailable);
  expect(noticed).toBe("unlocked");
  expect(await silent.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

/** A way to the server that can be closed, as while it restarts: then connections are refused. */
function relay() {
  const sockets = new Set<Socket>();
  const listener = net.createServer((socket) => {
    const { hostname, port } = new URL(server.url);
    for (const one of [socket, net.connect(Number(port), hostname)]) {
      sockets.add(one);
      one.on("error", () => {});
    }
    const [near, far] = [...sockets].slice(-2) as [Socket, Socket];
    near.pipe(far).pipe(near);
  });
  let port = 0;
  return {
    async open(): Promise<string> {
      listener.listen(port, "127.0.0.1");
      await once(listener, "listening");
      ({ port } = listener.address() as AddressInfo);
      return Object.assign(new URL(server.url), { port: String(port) }).href;
    },
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      sockets.clear();
      listener.close();
      await once(listener, "close");
      // Until the other side has noticed.
      await wait(100);
    },
  };
}

async function openedThrough(way: ReturnType<typeof relay>, limits: Partial<typeof unlimited>): Promise<Database> {
  const database = await openPostgresDatabase(await way.open(), { ...unlimited, ...limits });
  open.push(database);
  return database;
}

test("a restart is bridged: what the server refused is sent again", async () => {
  const way = relay();
  const database = await openedThrough(way, {});
  await way.close();
  const answers = Promise.all([
    database.query("SELECT 1 AS one"),
    database.foreign("SELECT 2 AS two"),
    database.transaction((tx) => tx.query("SELECT 3 AS three")),
  ]);
  await wait(300);
  await way.open();
  expect(await answers).toEqual([[{ one: 1 }], [{ two: 2 }], [{ three: 3 }]]);
  await database.close();
  await way.close();
});

/** Runs a statement that waits for a lock, ends its connection, and frees the lock. */
async function interrupted(database: Database, statement: string) {
  const other = await opened({});
  const waiting = "FROM pg_stat_activity WHERE wait_event = 'advisory'";
  let answer!: Promise<unknown>;
  await other.transaction(async (tx) => {
    await tx.query("SELECT pg_advisory_xact_lock(7)");
    answer = database.query(statement);
    answer.catch(() => {});
    await expect.poll(() => tx.query(`SELECT 1 ${waiting}`)).toHaveLength(1);
    await tx.query(`SELECT pg_terminate_backend(pid) ${waiting}`);
  });
  return answer;
}

test("a read that is lost with its connection is sent once more, a write is not", async () => {
  const database = await opened({});
  await database.query("CREATE TABLE counted (id integer)");
  const locked = "FROM pg_advisory_xact_lock(7)";
  expect(await interrupted(database, `SELECT 1 AS one ${locked}`)).toEqual([{ one: 1 }]);
  const write = interrupted(database, `INSERT INTO counted SELECT 1 ${locked}`);
  await expect(write).rejects.toMatchObject(unavailable);
  expect(await database.query("SELECT id FROM counted")).toEqual([]);
});

test("a server that has become a standby is unavailable for writes, and the next connection may write again", async () => {
  const owner = await opened({});
  await owner.query("CREATE TABLE moved (id integer)");
  const database = await opened({});
  const write = () => database.query("INSERT INTO moved VALUES (1)");
  await write();
  // For connections that are made from now on.
  await owner.query("ALTER ROLE postgres SET default_transaction_read_only = on");
  await database.query("SELECT pg_terminate_backend(pg_backend_pid())").catch(() => {});
  const standby = { code: "unavailable", message: "the database accepts no writes; is it a standby?" };
  await expect(write()).rejects.toMatchObject(standby);
  await expect(database.transaction((tx) => tx.query("INSERT INTO moved VALUES (2)"))).rejects.toMatchObject(standby);
  await owner.query("ALTER ROLE postgres RESET default_transaction_read_only");
  await write();
  await database.transaction((tx) => tx.query("INSERT INTO moved VALUES (3)"));
  expect(await database.query("SELECT id FROM moved")).toEqual([{ id: 1 }, { id: 1 }, { id: 3 }]);
});

test("the second of two outages is bridged too, even if nobody asked between them", async () => {
  const way = relay();
  const database = await openedThrough(way, { connectMs: 60_000 });
  await way.close();
  const real = performance.now.bind(performance);
  let later = 0;
  vi.spyOn(performance, "now").mockImplementation(() => real() + later);
  try {
    const first = database.query("SELECT 1");
    first.catch(() => {});
    for (const seconds of [30, 30]) {
      await wait(300);
      later += seconds * 1000;
    }
    await expect(first).rejects.toMatchObject(unavailable);
    later += HOUR;
    const second = database.query("SELECT 2 AS two");
    await wait(300);
    await way.open();
    expect(await second).toEqual([{ two: 2 }]);
  } finally {
    vi.restoreAllMocks();
  }
  await database.close();
  await way.close();
});

test("a server that stays away is not waited for again with each query", async () => {
  const way = relay();
  const database = await openedThrough(way, { connectMs: 1000 });
  await way.close();
  // If each waited for a second, this would take longer than a test may.
  for (let i = 0; i < 100; i++) await expect(database.query("SELECT 1")).rejects.toMatchObject(unavailable);
  await way.open();
  expect(await database.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  await database.close();
  await way.close();
});
