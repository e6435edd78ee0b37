/**
 * Kills with kill -9 at random moments: a process on an embedded store; a whole box, driven over HTTP; two processes on a PostgreSQL, which is killed
 * too; a process that migrates an older store (`--only migration` does only this); with `--only models`, a command that moves prints to another
 * model; and with `--only commands`, commands that enroll, erase, list and rotate keys. Every start must succeed; after it, acknowledged writes must be
 * there and erased data must not.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { makeDatabase } from "../dist/store/sql/new-database.js";
import { boxLane } from "./parts/crash-box.mjs";
import { commandsLane } from "./parts/crash-commands.mjs";
import { migrationLane, oldDatabases, oldFolders } from "./parts/crash-migration.mjs";
import { databasesOfOldModel, foldersOfOldModel, modelsLane, peopleFor } from "./parts/crash-models.mjs";
import { tryFaults } from "./parts/faults.mjs";
import { startPostgres } from "./parts/postgres.mjs";
import { randomOf } from "./parts/random.mjs";

const PROCESS = fileURLToPath(new URL("./parts/crash-process.mjs", import.meta.url));
/** A process that takes more processor time, or more time, counts as hung. On a busy machine, minutes may pass. */
const START_CPU_MS = 60_000;
const START_MS = 1_800_000;
/** Errors of a process that starts while PostgreSQL is being killed. */
const DATABASE_AWAY = /ECONNREFUSED|57P|starting up|shutting down|Connection terminated|ECONNRESET|is not queryable/;
/** After a start, the recordings of this many erased people are searched for. */
const SOUGHT = 20;
/** After this many kills a lane gets an empty store, so that first starts are killed too and stores stay small. */
const KILLS_PER_STORE = 60;
/** Starts of an embedded store cost three times as much processor time as those on PostgreSQL, starts of a whole box ten times. */
const KILLS_PER_FOLDER = 4;
const KILLS_PER_BOX = 20;
const KILLS_PER_MIGRATION = 10;
const KINDS = ["migration", "models", "commands"];

export async function campaign({
  count = 100,
  seconds = Number.POSITIVE_INFINITY,
  seed,
  store = "both",
  only,
  log,
  isStopped = () => false,
}) {
  if (only && !KINDS.includes(only)) throw new Error(`--only must be one of ${KINDS.join(", ")}, got ${only}`);
  const violations = [];
  // Ctrl-C also ends the processes of a campaign; that is not a violation.
  const violate = (text) => !isStopped() && violations.length < 1000 && violations.push(text);
  const counts = {
    kills: 0,
    killsAtStart: 0,
    killsOfPostgres: 0,
    killsOfBox: 0,
    killsOfFolder: 0,
    killsAtMigration: 0,
    migrated: 0,
    ...(only === "commands" && { killsAtCommands: 0 }),
    ...(only === "models" && { killsAtModels: 0, killsBetweenPrints: 0, modelMigrations: 0 }),
    starts: 0,
    acknowledged: 0,
    readBack: 0,
    erasedSought: 0,
    faults: 0,
  };
  let startedAt = performance.now();
  const root = mkdtempSync(join(tmpdir(), "vivavoce-crash-"));
  const telling = setInterval(() => log(JSON.stringify(counts)), 60_000);
  const isLate = () => performance.now() - startedAt >= seconds * 1000;
  const isOver = () => isStopped() || counts.kills >= count || isLate() || violations.length > 50;
  /** If there are other lanes, keeps the expensive ones from taking all the time. */
  const isTurnOf = (done, share) => store === "folder" || done() * share <= counts.kills;
  /** Copies an empty database, because creating one takes seconds. First starts that create one are killed in the lane of the folder. */
  const withDatabase = async (folder) => {
    const empty = join(root, "empty");
    await makeDatabase(empty);
    mkdirSync(folder, { mode: 0o700 });
    cpSync(empty, join(folder, "database"), { recursive: true });
    return folder;
  };
  try {
    const lanes = [];
    if (only === "commands") {
      await commandsLane({ root, random: randomOf(seed + 50), isOver, counts, violate });
      return { counts, violations };
    }
    if (only === "models") {
      const people = peopleFor(count);
      const models = (name, stores, random) => modelsLane({ name, stores, people, random, isOver, counts, violate });
      if (store !== "postgres")
        lanes.push(models("a folder", await foldersOfOldModel(join(root, "prints"), people), randomOf(seed + 40)));
      if (store !== "folder") {
        const server = await startPostgres();
        lanes.push(
          models("PostgreSQL", await databasesOfOldModel(server, people), randomOf(seed + 41)).finally(() =>
            server.stop(),
          ),
        );
      }
      await Promise.all(lanes);
      return { counts, violations };
    }
    const migration = (name, nextOld, random) =>
      migrationLane({
        name,
        nextOld,
        random,
        isOver,
        isTurn: () => isOver() || only === "migration" || isTurnOf(() => counts.killsAtMigration, KILLS_PER_MIGRATION),
        compare,
        counts,
        violate,
      });
    // Before the lanes, which would otherwise use up the kills of a short run.
    if (only !== "migration") {
      counts.faults = await tryFaults({ root, withDatabase, flips: count, isStopped, violate, log });
      // The time is that of the kills.
      startedAt = performance.now();
    }
    if (store !== "postgres")
      lanes.push(migration("a folder", await oldFolders(join(root, "old"), withDatabase), randomOf(seed + 30)));
    if (only === "migration") {
      if (store !== "folder") {
        const server = await startPostgres();
        lanes.push(
          migration("PostgreSQL", await oldDatabases(server), randomOf(seed + 31)).finally(() => server.stop()),
        );
      }
      await Promise.all(lanes);
      return { counts, violations };
    }
    if (store !== "postgres") {
      const random = randomOf(seed + 20);
      const location = await withDatabase(join(root, "box"));
      const isTurn = () => isOver() || isTurnOf(() => counts.killsOfBox, KILLS_PER_BOX);
      lanes.push(boxLane({ location, random, isOver, isTurn, counts, violate }));
    }
    if (store !== "postgres")
      lanes.push(
        lane({
          location: join(root, "store"),
          keys: "-",
          prefix: "f",
          random: randomOf(seed),
          isOver,
          isTurn: () => isOver() || isTurnOf(() => counts.killsOfFolder, KILLS_PER_FOLDER),
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
    if (counts.kills === 0) violate("nothing was killed in this time; give more --seconds");
  } finally {
    clearInterval(telling);
    rmSync(root, { recursive: true, force: true });
  }
  return { counts, violations };
}

/** One process after the other on the same store, each killed. */
async function lane({ location, keys, prefix, random, isOver, isTurn = () => true, counts, violate }) {
  const people = new Map();
  let next = 1;
  let folder = location;
  for (let round = 0; !isOver(); round++) {
    while (!isTurn()) await new Promise((wake) => setTimeout(wake, 500));
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
      violate(`${prefix}: did not end within ${START_CPU_MS} ms of processor time or ${START_MS} ms`);
      kill();
    }, 5_000);
    let started = false;
    // Killed a moment after this many lines, however slow the machine is.
    let linesLeft = random.below(24);
    if (early) setTimeout(kill, random.below(2_000));
    for await (const line of createInterface({ input: child.stdout })) {
      // The last line of a killed process may be cut off; it does not count.
      if (!line.endsWith("}")) continue;
      const message = JSON.parse(line);
      if (message.stock) {
        started = true;
        compare(message.stock, people, counts, (text) => violate(`${prefix}: ${text}`));
        // The next round starts from what is there now.
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
      if (keys === "-") counts.killsOfFolder++;
      if (!started) counts.killsAtStart++;
    } else if (!started && DATABASE_AWAY.test(errors)) {
      // The database server was not available.
      await new Promise((wake) => setTimeout(wake, 300));
    } else violate(`${prefix}: ended by itself (${code}): ${errors.slice(0, 700)}`);
  }
}

/** The CPU time of the process so far; 0 if the system does not report it. */
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

/** The store must hold what was acknowledged, with or without the one operation that was in progress. */
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
    if (!is.whole) violate(`${person} is incomplete: ${JSON.stringify(is)}`);
    const fits = allowed.some(
      ({ segments, printVersion }) => segments === is.segments && printVersion === is.printVersion,
    );
    if (!fits) violate(`${person} is ${JSON.stringify(is)}, not ${JSON.stringify(allowed)}`);
  }
  for (const person of Object.keys(found)) if (!people.has(person)) violate(`${person} was never enrolled`);
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
