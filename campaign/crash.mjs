/**
 * kill -9 at random moments: of a process on an embedded store; of a whole box, driven over HTTP; of two on a PostgreSQL, which is killed as well. After every start what
 * was acknowledged is read back and what was erased is sought in vain; and it always starts again.
 */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { boxLane } from "./parts/crash-box.mjs";
import { tryFaults } from "./parts/faults.mjs";
import { randomOf } from "./parts/random.mjs";

const PROCESS = fileURLToPath(new URL("./parts/crash-process.mjs", import.meta.url));
/** A process hangs that takes more processor time, or waits for so long: on a machine that is busy with other things minutes may pass. */
const START_CPU_MS = 60_000;
const START_MS = 1_800_000;
/** Of erased people whose recordings are sought again after a start. */
const SOUGHT = 20;
/** After how many kills a lane begins with an empty store again: first starts are killed as well, and stocks stay small. */
const KILLS_PER_STORE = 60;
/** A whole box costs as much processor time to start as ten processes on a store. */
const KILLS_PER_BOX = 10;

export async function campaign({ count = 100, seconds = Number.POSITIVE_INFINITY, seed, store = "both", log }) {
  const violations = [];
  const violate = (text) => violations.length < 1000 && violations.push(text);
  const counts = {
    kills: 0,
    killsAtStart: 0,
    killsOfPostgres: 0,
    killsOfBox: 0,
    starts: 0,
    acknowledged: 0,
    readBack: 0,
    erasedSought: 0,
    faults: 0,
  };
  const until = performance.now() + seconds * 1000;
  const root = mkdtempSync(join(tmpdir(), "vivavoce-crash-"));
  const telling = setInterval(() => log(JSON.stringify(counts)), 60_000);
  const isOver = () => counts.kills >= count || performance.now() >= until || violations.length > 50;
  try {
    counts.faults = await tryFaults({ root, violate, log });
    const lanes = [];
    if (store !== "postgres") {
      const random = randomOf(seed + 20);
      const isTooEarly = () => !isOver() && counts.killsOfBox * KILLS_PER_BOX > counts.kills;
      lanes.push(boxLane({ location: join(root, "box"), random, isOver, isTooEarly, counts, violate }));
    }
    if (store !== "postgres")
      lanes.push(
        lane({
          location: join(root, "store"),
          keys: "-",
          prefix: "f",
          random: randomOf(seed),
          isOver,
          counts,
          violate,
        }),
      );
    if (store !== "folder") {
      const server = await startPostgres();
      const shared = {
        location: await server.createDatabase("store"),
        keys: await server.createDatabase("keys"),
        isOver,
        counts,
        violate,
      };
      const replicas = ["a", "b"].map((prefix, i) => lane({ ...shared, prefix, random: randomOf(seed + 1 + i) }));
      lanes.push(
        Promise.all([...replicas, killing(server, randomOf(seed + 9), isOver, counts)]).finally(() => server.stop()),
      );
    }
    await Promise.all(lanes);
  } finally {
    clearInterval(telling);
    rmSync(root, { recursive: true, force: true });
  }
  return { counts, violations };
}

/** One process after the other on the same store, each killed. */
async function lane({ location, keys, prefix, random, isOver, counts, violate }) {
  const people = new Map();
  let next = 1;
  let folder = location;
  for (let round = 0; !isOver(); round++) {
    if (keys === "-" && round % KILLS_PER_STORE === 0) {
      rmSync(folder, { recursive: true, force: true });
      folder = `${location}-${round}`;
      people.clear();
    }
    const erased = [...people].filter(([, { gone }]) => gone).map(([person, { segments = 0 }]) => [person, segments]);
    const sought = Array.from({ length: Math.min(SOUGHT, erased.length) }, () => random.pick(erased));
    const child = spawn(
      process.execPath,
      ["--liftoff-only", PROCESS, folder, keys, prefix, String(next), String(random.below(2 ** 31))],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, ERASED: JSON.stringify(sought) },
      },
    );
    counts.starts++;
    let errors = "";
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
    const kill = () => child.kill("SIGKILL");
    const early = random.chance(0.15);
    const startedAt = performance.now();
    const hung = setInterval(() => {
      if (cpuMs(child.pid) < START_CPU_MS && performance.now() - startedAt < START_MS) return;
      violate(`${prefix}: no end within ${START_CPU_MS} ms of processor time or ${START_MS} ms`);
      kill();
    }, 5_000);
    let started = false;
    // After so many lines, however slow the machine is, and a moment.
    let linesLeft = random.below(40);
    if (early) setTimeout(kill, random.below(2_000));
    for await (const line of createInterface({ input: child.stdout })) {
      // The last line of a killed process may be cut: it was never said.
      if (!line.endsWith("}")) continue;
      const message = JSON.parse(line);
      if (message.stock) {
        started = true;
        compare(message.stock, people, counts, (text) => violate(`${prefix}: ${text}`));
        // What is there now is what the next round starts from.
        for (const person of people.keys())
          if (!message.stock.found[person]) people.set(person, { ...people.get(person), gone: true });
        for (const [person, found] of Object.entries(message.stock.found))
          people.set(person, { ...found, pending: null });
      }
      if (started && linesLeft-- === 0) setTimeout(kill, random.below(20));
      if (message.begin && message.person) {
        people.set(message.person, { ...people.get(message.person), pending: message.begin });
        next = Math.max(next, Number(message.person.slice(prefix.length)) + 1);
      }
      if (message.done && message.person) {
        counts.acknowledged++;
        people.set(message.person, acknowledged(people.get(message.person), message.done));
      }
    }
    clearInterval(hung);
    const { code, signal } = await ended;
    if (signal === "SIGKILL") {
      counts.kills++;
      if (!started) counts.killsAtStart++;
    } else if (!started && /ECONNREFUSED|57P|starting up|shutting down|Connection terminated|ECONNRESET/.test(errors)) {
      // The database server was away.
      await new Promise((wake) => setTimeout(wake, 300));
    } else violate(`${prefix}: ended by itself (${code}): ${errors.slice(-500)}`);
  }
}

/** What the process has used so far; 0 where the system does not say. */
function cpuMs(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return 0;
  }
}

function acknowledged(state, operation) {
  const { segments = 0, printVersion = 0 } = state ?? {};
  switch (operation) {
    case "create":
      return { segments: 0, printVersion: 0, pending: null };
    case "enroll":
    case "enrollAgain":
      return { segments: segments + 1, printVersion, pending: null };
    case "train":
    case "retrain":
      return { segments, printVersion: printVersion + 1, pending: null };
    case "erase":
      return { gone: true, segments };
    default:
      return state;
  }
}

/** What is there is what was acknowledged, or that and the one operation that was under way. */
function compare({ found, left }, people, counts, violate) {
  for (const [person, kind] of Object.entries(left)) violate(`${kind} of ${person} is there after the erasure`);
  for (const [person, state] of people) {
    const is = found[person];
    if (state.gone) {
      counts.erasedSought++;
      if (is) violate(`${person} is back: ${JSON.stringify(is)}`);
      continue;
    }
    counts.readBack++;
    const allowed = [state, ...(state.pending ? [acknowledged(state, state.pending)] : [])];
    const absent = allowed.some(({ gone, segments }) => gone || segments === undefined);
    if (!is) {
      if (!absent) violate(`${person} is lost: ${JSON.stringify(state)}`);
      continue;
    }
    if (!is.whole) violate(`${person} is not whole: ${JSON.stringify(is)}`);
    const fits = allowed.some(
      ({ segments, printVersion }) => segments === is.segments && printVersion === is.printVersion,
    );
    if (!fits) violate(`${person} is ${JSON.stringify(is)}, not ${JSON.stringify(allowed)}`);
  }
  for (const person of Object.keys(found)) if (!people.has(person)) violate(`${person} was never begun`);
}

async function killing(server, random, isOver, counts) {
  while (!isOver()) {
    for (let waited = 0; waited < 20_000 + random.below(40_000) && !isOver(); waited += 500)
      await new Promise((wake) => setTimeout(wake, 500));
    if (isOver()) return;
    await server.kill();
    counts.killsOfPostgres++;
    await server.start();
  }
}

/** A PostgreSQL of our own, which writes every commit to the disk. */
async function startPostgres() {
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
      ["-D", data, "-p", String(port), "-c", "listen_addresses=127.0.0.1", "-c", `unix_socket_directories=${folder}`],
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
  const kill = () =>
    new Promise((resolve) => {
      server.once("exit", resolve);
      server.kill("SIGKILL");
    });
  await start();
  return {
    start,
    async kill() {
      await kill();
      // Its children see that it is gone, and end; a new one does not start before.
      await new Promise((wake) => setTimeout(wake, 1_000));
    },
    async createDatabase(name) {
      const client = new pg.Client({ connectionString: url("postgres") });
      await client.connect();
      await client.query(`CREATE DATABASE ${name}`);
      await client.end();
      return url(name);
    },
    async stop() {
      await kill();
      await new Promise((wake) => setTimeout(wake, 500));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
