/**
 * Allows one process at a time in a folder. A lock file names its holder, and a socket beside it shows that the holder is alive: the kernel closes
 * it when the last thread of the process ends, and processes in other containers can connect to it. Process ids would not work:
 * containers that share a folder see the same ids.
 *
 * Processes on another kernel (a network volume) or on a file system without sockets cannot use the socket. There a holder counts as
 * alive while it refreshes the lock's time. A holder that was stalled for longer and finds another name in the lock has lost it.
 */
import { once } from "node:events";
import { closeSync, openSync, readFileSync, type Stats } from "node:fs";
import { readdir, readFile, stat, unlink, utimes, writeFile } from "node:fs/promises";
import net from "node:net";
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { assertFilesStayReadable, permissionError } from "./embedded-folder.js";
import { StoreError } from "./errors.js";
import { makeFolders } from "./make-folders.js";
import { nullIfMissing } from "./null-if-missing.js";

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Id of the kernel's current boot, where the socket exists; `null` if the system does not provide one. */
  readonly boot: string | null;
  /** File name of the socket; `null` if none could be created. */
  readonly socket: string | null;
  readonly nonce: string;
}

export interface FolderLock {
  /** Aborted when another process took the lock: nothing may be written after that. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

export interface LockTimes {
  readonly refreshMs: number;
  /** A lock not refreshed for this long, as observed by a waiting process, belongs to a dead process. */
  readonly deadMs: number;
}

const TIMES: LockTimes = { refreshMs: 5_000, deadMs: 30_000 };
/** A holder signs the file right after creating it; an older empty file was left by a process that died in between. */
const UNSIGNED_STALE_MS = 2_000;
/** Removing a dead holder's lock takes a few file operations. */
const TAKEOVER_STALE_MS = 10_000;
const TAKEOVER_WAIT_MS = 100;
const TRIES = 200;
const CONNECT_MS = 5_000;
/** For sockets left by a process that died before it signed a lock. Signing never takes this long. */
const SOCKET_STALE_MS = 3_600_000;
/** Longer socket addresses are silently truncated. */
const LONGEST_SOCKET_PATH = 100;

/** Refuses a folder in which this process, or its owner afterwards, could not read and write. */
export async function lockFolder(folder: string, name: string, times: LockTimes = TIMES): Promise<FolderLock> {
  await assertFilesStayReadable(folder);
  try {
    return await lock(folder, name, times);
  } catch (error) {
    throw codeOf(error) === "EACCES" ? await permissionError(folder, error as Error) : error;
  }
}

async function lock(folder: string, name: string, times: LockTimes): Promise<FolderLock> {
  await makeFolders(folder, 0o700);
  const path = join(resolve(folder), name);
  const nonce = crypto.randomUUID();
  const socket = await openSocket(join(dirname(path), `${name}.${nonce.slice(0, 8)}.sock`));
  const holder: Holder = {
    pid: process.pid,
    host: hostname(),
    boot: bootId(),
    socket: socket && basename(socket.path),
    nonce,
  };
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      if (await createNew(path, JSON.stringify(holder))) {
        await removeOldSockets(path, holder.socket);
        return hold(path, holder, socket, times);
      }
      const found = await readHolder(path);
      if (found === "gone") continue;
      if (found === "unsigned") {
        await wait(UNSIGNED_STALE_MS / 10);
        continue;
      }
      if (found !== "unsigned-stale" && (await isAlive(path, found, times)))
        throw new StoreError("locked", `${folder} is open in process ${found.pid} on ${found.host}`);
      await removeStale(path, found === "unsigned-stale" ? null : found);
    }
    throw new StoreError("locked", `${folder} is being opened by other processes; try again`);
  } catch (error) {
    await socket?.close();
    throw error;
  }
}

function hold(path: string, { nonce }: Holder, socket: LifeSocket | null, { refreshMs }: LockTimes): FolderLock {
  const lost = new AbortController();
  const isOurs = async () => {
    const found = await readHolder(path);
    return typeof found === "object" && found.nonce === nonce;
  };
  const refresh = setInterval(async () => {
    try {
      if (await isOurs()) await utimes(path, new Date(), new Date());
      else lost.abort(new StoreError("locked", `${dirname(path)} was taken over by another process`));
    } catch {
      // If the disk does not respond now, try again at the next refresh.
    }
  }, refreshMs);
  refresh.unref();
  return {
    lost: lost.signal,
    async release() {
      clearInterval(refresh);
      if (await isOurs()) await unlinkIfThere(path);
      await socket?.close();
    },
  };
}

async function readHolder(path: string): Promise<Holder | "gone" | "unsigned" | "unsigned-stale"> {
  const text = await readFile(path, "utf8").catch(nullIfMissing);
  if (text === null) return "gone";
  try {
    return JSON.parse(text);
  } catch {
    const made = await statIfThere(path);
    if (made === null) return "gone";
    return Date.now() - made.mtimeMs > UNSIGNED_STALE_MS ? "unsigned-stale" : "unsigned";
  }
}

async function isAlive(path: string, holder: Holder, times: LockTimes): Promise<boolean> {
  const sameKernel = holder.boot !== null && holder.boot === bootId();
  if (sameKernel && holder.socket) return answers(join(dirname(path), holder.socket));
  return isRefreshed(path, times);
}

/**
 * Whether the lock's time changes while we watch. The clocks of both machines may be wrong, so they decide only how long to watch: a lock that
 * looks old either has a dead holder or is refreshed at the holder's next turn.
 */
async function isRefreshed(path: string, { refreshMs, deadMs }: LockTimes): Promise<boolean> {
  const first = await statIfThere(path);
  const looksOld = first !== null && Date.now() - first.mtimeMs > deadMs;
  const watchMs = looksOld ? 2 * refreshMs : deadMs;
  for (let waited = 0; waited < watchMs; waited += refreshMs / 2) {
    await wait(refreshMs / 2);
    const now = await statIfThere(path);
    if (now?.mtimeMs !== first?.mtimeMs) return now !== null;
  }
  return false;
}

interface LifeSocket {
  readonly path: string;
  close(): Promise<void>;
}

/** No data is sent over it. `null` if the file system or the platform does not support sockets. */
async function openSocket(path: string): Promise<LifeSocket | null> {
  const server = net.createServer((connection) => connection.destroy());
  server.unref();
  // Such as a process without free descriptors, which cannot accept: without a listener the error would end it.
  server.on("error", () => {});
  try {
    await withShortPath(path, (address) => once(server.listen(address), "listening"));
  } catch (error) {
    if (codeOf(error) === "EACCES" || codeOf(error) === "EROFS" || codeOf(error) === "ENOSPC") throw error;
    return null;
  }
  return {
    path,
    async close() {
      await new Promise<void>((closed) => server.close(() => closed()));
      await unlinkIfThere(path);
    },
  };
}

/** The kernel accepts for a process that is stopped or busy, and refuses for one that has ended. */
async function answers(path: string): Promise<boolean> {
  try {
    await withShortPath(path, async (address) => {
      const connection = net.connect(address);
      connection.setTimeout(CONNECT_MS, () => connection.destroy(new Error("no answer")));
      await once(connection, "connect");
      connection.destroy();
    });
    return true;
  } catch (error) {
    const code = codeOf(error);
    return code !== "ECONNREFUSED" && code !== "ENOENT";
  }
}

/** For a folder with a long path, Linux offers a short path through an open descriptor. */
async function withShortPath<T>(path: string, use: (address: string) => Promise<T>): Promise<T> {
  if (process.platform === "win32") return use(`\\\\.\\pipe\\vivavoce-${basename(path)}`);
  if (Buffer.byteLength(path) <= LONGEST_SOCKET_PATH) return use(path);
  if (process.platform !== "linux")
    throw new RangeError(`${path}: must have at most ${LONGEST_SOCKET_PATH} bytes here; choose a shorter path`);
  const folder = openSync(dirname(path), "r");
  try {
    return await use(`/proc/self/fd/${folder}/${basename(path)}`);
  } finally {
    closeSync(folder);
  }
}

async function removeOldSockets(path: string, own: string | null): Promise<void> {
  const [folder, name] = [dirname(path), basename(path)];
  for (const each of await readdir(folder)) {
    if (!each.startsWith(`${name}.`) || !each.endsWith(".sock") || each === own) continue;
    const left = await statIfThere(join(folder, each));
    if (left && Date.now() - left.mtimeMs > SOCKET_STALE_MS) await unlinkIfThere(join(folder, each));
  }
}

/** One process at a time, and only after checking again: a faster process may have put its own lock there. */
async function removeStale(path: string, dead: Holder | null): Promise<void> {
  const takeover = `${path}.takeover`;
  if (!(await createNew(takeover, ""))) {
    // Another process is doing this, or died while doing it.
    const made = await statIfThere(takeover);
    if (made && Date.now() - made.mtimeMs > TAKEOVER_STALE_MS) await unlinkIfThere(takeover);
    else await wait(TAKEOVER_WAIT_MS);
    return;
  }
  try {
    const found = await readHolder(path);
    const same = typeof found === "object" ? found.nonce === dead?.nonce : found === "unsigned-stale" && dead === null;
    if (!same) return;
    await unlinkIfThere(path);
    if (dead?.socket) await unlinkIfThere(join(dirname(path), basename(dead.socket)));
  } finally {
    await unlinkIfThere(takeover);
  }
}

/** False if the file exists. */
async function createNew(path: string, content: string): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function unlinkIfThere(path: string): Promise<void> {
  await unlink(path).catch(nullIfMissing);
}

const statIfThere = (path: string): Promise<Stats | null> => stat(path).catch(nullIfMissing);

/** The same in every container of a machine; changes at a reboot. */
function bootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return process.platform === "linux" ? null : `${process.platform} ${hostname()}`;
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
