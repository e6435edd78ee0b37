/**
 * One process at a time in a folder. A lock file names its holder; when that process is gone (kill -9, power cut) the next one takes over.
 * On the same host the process table tells; for a holder on another host (a shared volume) the lock's age does, refreshed while it is held.
 */
import { readFileSync } from "node:fs";
import { mkdir, open, readFile, stat, unlink, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { StoreError } from "./errors.js";

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Tells a process from a later one with the same number; `null` where the system does not say. */
  readonly processStartedAt: string | null;
  readonly nonce: string;
}

export interface FolderLock {
  release(): Promise<void>;
}

const REFRESH_MS = 5_000;
const OTHER_HOST_STALE_MS = 30_000;
/** A holder writes its name right after making the file; an older empty file was left by one that died in between. */
const UNSIGNED_STALE_MS = 2_000;
/** Removing a dead holder's lock takes a few file operations. */
const TAKEOVER_STALE_MS = 10_000;
const TAKEOVER_WAIT_MS = 100;
const TRIES = 200;

/** Nonces of the locks this process holds: a lock with our process id but none of these is from a former life (containers reuse ids). */
const heldHere = new Set<string>();

export async function lockFolder(folder: string, name: string): Promise<FolderLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(resolve(folder), name);
  const holder: Holder = {
    pid: process.pid,
    host: hostname(),
    processStartedAt: processStart(process.pid),
    nonce: crypto.randomUUID(),
  };
  for (let tries = 0; tries < TRIES; tries++) {
    if (await take(path, holder)) return hold(path, holder);
    const found = await readHolder(path);
    if (found === "gone") continue;
    if (found === "unsigned") {
      await new Promise((wake) => setTimeout(wake, UNSIGNED_STALE_MS / 10));
      continue;
    }
    if (found !== "unsigned-stale" && (await isAlive(path, found))) {
      throw new StoreError("locked", `${folder} is open in process ${found.pid} on ${found.host}`);
    }
    await removeStale(path, found === "unsigned-stale" ? null : found.nonce);
  }
  throw new StoreError("locked", `${folder} is being opened by other processes`);
}

async function take(path: string, holder: Holder): Promise<boolean> {
  try {
    const file = await open(path, "wx", 0o600);
    heldHere.add(holder.nonce);
    try {
      await file.writeFile(JSON.stringify(holder));
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function hold(path: string, { nonce }: Holder): FolderLock {
  const refresh = setInterval(() => utimes(path, new Date(), new Date()).catch(() => {}), REFRESH_MS);
  refresh.unref();
  return {
    async release() {
      clearInterval(refresh);
      if (!heldHere.delete(nonce)) return;
      const found = await readHolder(path);
      if (typeof found === "object" && found.nonce === nonce) await unlink(path);
    },
  };
}

async function readHolder(path: string): Promise<Holder | "gone" | "unsigned" | "unsigned-stale"> {
  try {
    const text = await readFile(path, "utf8");
    try {
      return JSON.parse(text);
    } catch {
      const { mtimeMs } = await stat(path);
      return Date.now() - mtimeMs > UNSIGNED_STALE_MS ? "unsigned-stale" : "unsigned";
    }
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "gone";
    throw error;
  }
}

async function isAlive(path: string, holder: Holder): Promise<boolean> {
  if (holder.host !== hostname()) {
    const age = Date.now() - (await stat(path).catch(() => ({ mtimeMs: 0 }))).mtimeMs;
    return age < OTHER_HOST_STALE_MS;
  }
  if (holder.pid === process.pid) return heldHere.has(holder.nonce);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (codeOf(error) === "ESRCH") return false;
  }
  return holder.processStartedAt === null || holder.processStartedAt === processStart(holder.pid);
}

/** One at a time, and only after another look: who was faster may have put a lock of its own there. */
async function removeStale(path: string, nonce: string | null): Promise<void> {
  const takeover = `${path}.takeover`;
  if (!(await createEmpty(takeover))) {
    // Somebody is at it; or died in it.
    const { mtimeMs } = await stat(takeover).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > TAKEOVER_STALE_MS) await unlinkIfThere(takeover);
    else await new Promise((wake) => setTimeout(wake, TAKEOVER_WAIT_MS));
    return;
  }
  try {
    const found = await readHolder(path);
    const same = typeof found === "object" ? found.nonce === nonce : found === "unsigned-stale" && nonce === null;
    if (same) await unlinkIfThere(path);
  } finally {
    await unlinkIfThere(takeover);
  }
}

async function createEmpty(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx", 0o600)).close();
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function unlinkIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/**
 * Linux counts the clock ticks from boot to a process's start; other systems are asked nothing. A process that ended and that its parent
 * has not asked about yet (in containers nobody may ever) still has its number, but holds nothing any more: not before its last thread
 * has ended, which may be in the middle of a write when the first is gone.
 */
function processStart(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state, threads, startedAt] = [fields[0], Number(fields[17]), fields[19]];
    return state === "Z" && threads <= 1 ? null : (startedAt ?? null);
  } catch {
    return null;
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
