/** Our own PostgreSQL, which syncs every commit to disk. */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";

/** Needs the programs of PostgreSQL. `settings` are those of its command line. */
export async function startPostgres(settings = []) {
  const versions = "/usr/lib/postgresql";
  const version = existsSync(versions) ? readdirSync(versions).sort((a, b) => b - a)[0] : null;
  if (!version)
    throw new Error("this campaign needs PostgreSQL 15 or later (apt-get install postgresql), or --store folder");
  const bin = (name) => join(versions, version, "bin", name);
  const id = (flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  const user = process.getuid?.() === 0 ? { uid: id("-u"), gid: id("-g") } : {};
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-crash-postgres-"));
  if (user.uid) chownSync(folder, user.uid, user.gid);
  const data = join(folder, "data");
  execFileSync(bin("initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"], {
    ...user,
    cwd: folder,
    stdio: "pipe",
  });
  const port = await new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = probe.address();
      probe.close(() => resolve(free));
    });
  });
  const url = (name) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  let server = null;
  const start = async () => {
    server = spawn(
      bin("postgres"),
      [
        ...["-D", data, "-p", String(port)],
        ...["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`, ...settings].flatMap((each) => [
          "-c",
          each,
        ]),
      ],
      { ...user, cwd: folder, stdio: "ignore" },
    );
    for (let tries = 0; tries < 600; tries++) {
      const client = new pg.Client({ connectionString: url("postgres") });
      client.on("error", () => {});
      try {
        await client.connect();
        await client.end();
        return;
      } catch {
        await new Promise((wake) => setTimeout(wake, 100));
      }
    }
    throw new Error("PostgreSQL did not start again");
  };
  const kill = (signal = "SIGKILL") =>
    new Promise((resolve) => {
      server.once("exit", resolve);
      server.kill(signal);
    });
  await start();
  return {
    /** The folder of everything that it writes. */
    folder,
    start,
    /** An orderly shutdown, which writes what is in memory. */
    end: () => kill("SIGINT"),
    async kill() {
      await kill();
      // Its children notice that it is gone and end; a new server does not start before.
      await new Promise((wake) => setTimeout(wake, 1_000));
    },
    /** `template`: the database to copy; nobody may be connected to it. */
    async createDatabase(name, template = "template1") {
      const client = new pg.Client({ connectionString: url("postgres") });
      await client.connect();
      await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
      await client.end();
      return url(name);
    },
    async stop() {
      if (server.exitCode === null && server.signalCode === null) await kill();
      await new Promise((wake) => setTimeout(wake, 500));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
