/**
 * A real PostgreSQL for the tests: the one that VIVAVOCE_TEST_POSTGRES names, or one started from the system's binaries in a temporary
 * folder. Without either, tests fail and say what to install.
 */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";

export interface PostgresServer {
  /** The URL of a new, empty database. */
  createDatabase(): Promise<string>;
  stop(): Promise<void>;
}

export async function startPostgres(): Promise<PostgresServer> {
  const given = process.env.VIVAVOCE_TEST_POSTGRES;
  if (given) return { createDatabase: () => createDatabase(given), stop: async () => {} };
  const { url, stop } = await startOwn();
  return { createDatabase: () => createDatabase(url), stop };
}

let databases = 0;

async function createDatabase(url: string): Promise<string> {
  const name = `vivavoce_test_${process.pid}_${Date.now()}_${++databases}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

/** A server that no other test uses, and the id of its process. */
export async function startOwn(): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const binaries = findBinaries();
  const user = userForPostgres();
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-postgres-"));
  if (user) chownSync(folder, user.uid, user.gid);
  const data = join(folder, "data");
  execFileSync(
    join(binaries, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
    {
      ...user,
      cwd: folder,
      stdio: "pipe",
    },
  );
  const port = await freePort();
  const settings = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: folder,
    fsync: "off",
    max_connections: "60",
  };
  const server = spawn(
    join(binaries, "postgres"),
    [
      "-D",
      data,
      "-p",
      String(port),
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
    { ...user, cwd: folder, stdio: "ignore" },
  );
  const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await untilReady(url);
  return {
    url,
    pid: server.pid!,
    async stop() {
      server.kill("SIGINT");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function findBinaries(): string {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((version) => join(root, version, "bin")).find((bin) => existsSync(join(bin, "initdb")));
  if (found) return found;
  throw new Error(
    "These tests need a PostgreSQL 15 or later: install the system's package (apt-get install postgresql) " +
      "or set VIVAVOCE_TEST_POSTGRES to the URL of a server on which databases may be created.",
  );
}

/** PostgreSQL refuses to run as root; its package creates a user. */
function userForPostgres(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

async function untilReady(url: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      await client.end().catch(() => {});
      if (tries === 150) throw error;
      await new Promise((wake) => setTimeout(wake, 100));
    }
  }
}
