/** Faults of the system, each tried once: the store must start, or say what a person must do, and nothing may be lost. */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openEmbeddedStore } from "../../dist/postgres.js";
import { filesIn } from "./files.mjs";
import { randomOf } from "./random.mjs";
import { profileOf, SCOPE, templateOf } from "./records.mjs";

const PROCESS = fileURLToPath(new URL("./crash-process.mjs", import.meta.url));
const [CLOCK_SHIFT, CLOCK_PROCESS] = ["./clock-shift.mjs", "./clock-process.mjs"].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);
const PEOPLE = 20;
const FLIPS = 12;
/** After this many lines a process has done enough work, and is ended. */
const LINES = 40;
const PATIENCE_MS = 60_000;

/** Returns how many faults were tried; a bit is flipped at most `flips` times. Full disks and other owners need root. */
export async function tryFaults({ root, withDatabase, flips = FLIPS, isStopped, violate, log }) {
  const made = await withDatabase(join(root, "made"));
  await withStore(made, fill);
  const isRoot = process.getuid?.() === 0 && process.platform === "linux";
  const faults = {
    bitFlips: (...given) => bitFlips(Math.min(FLIPS, flips), ...given),
    fewDescriptors,
    littleMemory,
    clocks,
    ...(isRoot ? { fullDisk, fullDiskAtFirst, anotherOwner, readOnly } : {}),
  };
  let tried = 0;
  for (const [name, fault] of Object.entries(faults)) {
    if (isStopped()) break;
    const folder = join(root, name);
    cpSync(made, folder, { recursive: true });
    try {
      await fault(folder, (text) => violate(`${name}: ${text}`), made);
    } catch (error) {
      violate(`${name}: ${error.stack ?? error}`);
    }
    tried++;
    log(`tried ${name}`);
  }
  return tried;
}

async function withStore(folder, work) {
  const store = await openEmbeddedStore(folder);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const said = (folder) =>
  openEmbeddedStore(folder).then(
    async (store) => {
      await store.close();
      return null;
    },
    (error) => error,
  );

async function fill(store) {
  for (let i = 0; i < PEOPLE; i++) {
    const template = templateOf(new Float32Array(256).fill(i));
    await store.profiles.create(profileOf(`profile-${i}`, `p${i}`, { template, status: 2, printVersion: 1 }));
  }
}

async function allThere(store, violate) {
  for (let i = 0; i < PEOPLE; i++) {
    const profile = await store.profiles.get(SCOPE, `profile-${i}`);
    if (profile?.template?.embedding[7] !== i) violate(`profile-${i} is not what was written`);
  }
}

async function fullDisk(folder, violate) {
  const bytes = filesIn(folder).reduce((sum, path) => sum + statSync(path).size, 0);
  const mount = `${folder}-mount`;
  mkdirSync(mount);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${Math.ceil(bytes / 2 ** 20) + 4}m`, "tmpfs", mount]);
  try {
    const store = join(mount, "store");
    cpSync(folder, store, { recursive: true });
    for (let piece = 2 ** 20; piece >= 4096; piece /= 2) {
      try {
        for (let i = 0; ; i++) writeFileSync(join(mount, `filler-${piece}-${i}`), new Uint8Array(piece));
      } catch {
        // Full.
      }
    }
    const error = await said(store);
    if (error && !/full|no space/i.test(error.message)) violate(`says ${error.message}`);
    for (const name of readdirSync(mount)) if (name.startsWith("filler")) rmSync(join(mount, name));
    execFileSync("mount", ["-o", "remount,size=400m", mount]);
    await withStore(store, (open) => allThere(open, violate));
  } finally {
    execFileSync("umount", [mount]);
  }
}

/** A new store on a disk that is too small must be reported as full, not as damaged, and be created once there is space. */
async function fullDiskAtFirst(folder, violate) {
  const mount = `${folder}-mount`;
  mkdirSync(mount);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=20m", "tmpfs", mount]);
  try {
    const error = await said(join(mount, "store"));
    if (!/full.*Free some space/s.test(error?.message ?? "")) violate(`says ${error?.message}`);
    execFileSync("mount", ["-o", "remount,size=400m", mount]);
    await withStore(join(mount, "store"), fill);
    await withStore(join(mount, "store"), (open) => allThere(open, violate));
  } finally {
    execFileSync("umount", [mount]);
  }
}

async function readOnly(folder, violate) {
  execFileSync("mount", ["--bind", folder, folder]);
  try {
    execFileSync("mount", ["-o", "remount,ro,bind", folder]);
    const error = await said(folder);
    if (!error || !/read-only|EROFS/i.test(`${error.message} ${error.code}`)) violate(`says ${error?.message}`);
  } finally {
    execFileSync("umount", [folder]);
  }
  await withStore(folder, (store) => allThere(store, violate));
}

async function anotherOwner(folder, violate) {
  const database = join(folder, "database");
  const everything = [database, ...readdirSync(database, { recursive: true }).map((name) => join(database, name))];
  for (const path of everything) chownSync(path, 12_345, 12_345);
  const error = await said(folder);
  if (!/belongs to the user with id 12345/.test(error?.message ?? "")) violate(`says ${error?.message}`);
  for (const path of everything) chownSync(path, 0, 0);
  await withStore(folder, (store) => allThere(store, violate));
}

/** It must be read back unchanged, or refused; never as another voice. */
async function bitFlips(flips, folder, violate, made) {
  const random = randomOf(5);
  for (let flip = 0; flip < flips; flip++) {
    rmSync(folder, { recursive: true });
    cpSync(made, folder, { recursive: true });
    const path = random.pick(filesIn(folder).filter((each) => statSync(each).size > 0));
    const bytes = readFileSync(path);
    bytes[random.below(bytes.length)] ^= 1 << random.below(8);
    writeFileSync(path, bytes);
    const store = await openEmbeddedStore(folder).catch((error) => {
      if (!error.message) violate(`${path}: no words`);
      return null;
    });
    for (let i = 0; store && i < PEOPLE; i++) {
      const profile = await store.profiles.get(SCOPE, `profile-${i}`).catch(() => null);
      if (profile && profile.template?.embedding[7] !== i) violate(`${path}: profile-${i} has another voice`);
    }
    await store?.close().catch(() => {});
  }
}

/** The output of a process with limits of the shell, until it ends or has printed enough; `wasEnded`: we ended it. */
async function worked(limits, folder, prefix) {
  const child = spawn("bash", ["-c", `${limits}; exec ${process.execPath} ${PROCESS} ${folder} - ${prefix} 1 1`], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = new Promise((resolve) => child.once("close", (status) => resolve(status)));
  let [errors, wasEnded] = ["", false];
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const end = () => {
    wasEnded = child.kill("SIGTERM") || wasEnded;
  };
  const late = setTimeout(end, PATIENCE_MS);
  const messages = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.endsWith("}")) messages.push(JSON.parse(line));
    if (messages.length === LINES) end();
  }
  clearTimeout(late);
  return { messages, errors, status: await closed, wasEnded };
}

async function fewDescriptors(folder, violate) {
  const { errors, wasEnded } = await worked("ulimit -n 24", folder, "x");
  if (!wasEnded && !/EMFILE|too many open files/i.test(errors)) violate(`says ${errors.slice(-300)}`);
  await withStore(folder, (store) => allThere(store, violate));
}

/** From far too little memory to nearly enough: the process must say so or end as if killed, and keep what it acknowledged. */
async function littleMemory(folder, violate) {
  const there = new Set();
  for (const [i, megabytes] of [100, 200, 350, 500].entries()) {
    const limits = `ulimit -c 0; ulimit -d ${megabytes * 1024}`;
    const { messages, errors, status, wasEnded } = await worked(limits, folder, `m${i}-`);
    if (!wasEnded && !/memory/i.test(errors))
      violate(`${megabytes} MB: ends with ${status}, says ${errors.slice(-300)}`);
    if (/from a backup/.test(errors)) violate(`${megabytes} MB: says ${errors.slice(0, 300)}`);
    for (const { begin, done, person } of messages) {
      if (done === "create") there.add(person);
      if (begin === "erase") there.delete(person);
    }
  }
  await withStore(folder, async (store) => {
    await allThere(store, violate);
    for (const person of there)
      if (!(await store.profiles.find(SCOPE, "person", person, ""))) violate(`${person} was acknowledged, and is lost`);
  });
}

/** Sets the clock forward and back by more than a year, and kills the process each time. */
async function clocks(folder, violate) {
  const people = [];
  let seen = null;
  for (const [i, days] of [0, 400, -400, 0].entries()) {
    const stage = `clock-${i}`;
    seen = await atDay(days, [folder, stage, ...(seen ? [JSON.stringify(seen)] : [])]);
    const ahead = (seen.at - Date.now()) / 86_400_000;
    if (Math.abs(ahead - days) > 1) violate(`${stage}: the clock is ${ahead} days ahead, not ${days}`);
    for (const person of people) if (!seen.people.includes(person)) violate(`${stage}: ${person} is lost`);
    if (seen.longestWaitSeconds > 900) violate(`${stage}: who guessed is told to wait ${seen.longestWaitSeconds} s`);
    if (i > 0 && seen.earlierToken !== "refused") violate(`${stage}: a token of another time is ${seen.earlierToken}`);
    people.push(stage);
  }
  await withStore(folder, (store) => allThere(store, violate));
}

/** The output of the process, which is then killed. */
function atDay(days, given) {
  const child = spawn(process.execPath, ["--import", CLOCK_SHIFT, CLOCK_PROCESS, ...given], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, CLOCK_SHIFT_DAYS: String(days) },
  });
  return new Promise((resolve, reject) => {
    let [said, errors] = ["", ""];
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.stdout.on("data", (chunk) => {
      said += chunk;
      if (said.endsWith("\n")) child.kill("SIGKILL");
    });
    child.once("close", () =>
      said.endsWith("\n") ? resolve(JSON.parse(said)) : reject(new Error(`${days} days: ${errors.slice(-500)}`)),
    );
  });
}
