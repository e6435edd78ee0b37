/** Taking over a folder from a dead process, on a disk so slow that all contenders meet. */
import {
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import type * as FileSystem from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { type FolderLock, lockFolder } from "../../src/store/folder-lock.js";

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof FileSystem>();
  const slow =
    <Values extends unknown[], T>(operation: (...values: Values) => Promise<T>) =>
    async (...values: Values): Promise<T> => {
      const answer = await operation(...values);
      await new Promise((wake) => setTimeout(wake, Math.random() * 6));
      return answer;
    };
  const { readFile, rename, stat, unlink } = real;
  /** As for a process that may not write in the folder. */
  const writeFile = async (...values: Parameters<typeof real.writeFile>) => {
    if (!String(values[0]).endsWith("forbidden.lock")) return real.writeFile(...values);
    throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
  };
  return { ...real, writeFile, readFile: slow(readFile), rename: slow(rename), stat: slow(stat), unlink: slow(unlink) };
});

const root = mkdtempSync(join(tmpdir(), "vivavoce-lock-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A lock with this process's id from an earlier run, whose socket is gone. */
const DEAD = {
  pid: process.pid,
  host: hostname(),
  boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
  socket: "store.lock.dead.sock",
  nonce: "dead",
};
const FAST = { refreshMs: 100, deadMs: 1_500 };

function abandonedFolder(): string {
  const folder = mkdtempSync(join(root, "store-"));
  writeFileSync(join(folder, "store.lock"), JSON.stringify(DEAD));
  return folder;
}

test("only one takes over, however many try at once", async () => {
  for (let round = 0; round < 10; round++) {
    const folder = abandonedFolder();
    const tries = await Promise.allSettled(Array.from({ length: 12 }, () => lockFolder(folder, "store.lock")));
    const locks: FolderLock[] = [];
    for (const each of tries) {
      if (each.status === "fulfilled") locks.push(each.value);
      else expect(each.reason).toMatchObject({ code: "locked" });
    }
    expect(locks).toHaveLength(1);
    await locks[0]!.release();
    expect(readdirSync(folder)).toEqual([]);
  }
});

test("root is refused in a folder of another user, before it leaves a file there", async () => {
  const folder = mkdtempSync(join(root, "store-"));
  const owner = process.getuid!() || 65534;
  chownSync(folder, owner, process.getgid!());
  const asRoot = vi.spyOn(process, "getuid").mockReturnValue(0);
  try {
    await expect(lockFolder(folder, "store.lock")).rejects.toMatchObject({
      code: "not-owner",
      message: expect.stringContaining(`sudo -u '#${owner}'`),
    });
  } finally {
    asRoot.mockRestore();
  }
  expect(readdirSync(folder)).toEqual([]);
});

test("a folder in which this user may not write is said to be another's, not damaged", async () => {
  const folder = mkdtempSync(join(root, "store-"));
  const [owner, user] = [statSync(folder).uid, process.getuid!()];
  await expect(lockFolder(folder, "forbidden.lock")).rejects.toMatchObject({
    code: "unreadable",
    message: expect.stringContaining(
      `belongs to the user with id ${owner}, but this process runs as the user with id ${user}`,
    ),
  });
  expect(readdirSync(folder)).toEqual([]);
});

test("a process that died during a takeover locks nobody out", async () => {
  const folder = abandonedFolder();
  const takeover = join(folder, "store.lock.takeover");
  writeFileSync(takeover, "");
  const aMinuteAgo = Date.now() / 1000 - 60;
  utimesSync(takeover, aMinuteAgo, aMinuteAgo);
  await (await lockFolder(folder, "store.lock")).release();
  expect(readdirSync(folder)).toEqual([]);
});

test("a folder with a path too long for a socket is locked too", async () => {
  const folder = join(mkdtempSync(join(root, "store-")), "x".repeat(120));
  const lock = await lockFolder(folder, "store.lock");
  expect(readdirSync(folder).some((name) => name.endsWith(".sock"))).toBe(true);
  await expect(lockFolder(folder, "store.lock")).rejects.toMatchObject({ code: "locked" });
  await lock.release();
  expect(readdirSync(folder)).toEqual([]);
});

test("another machine's lock is valid while it is refreshed, whatever the clocks say, and is taken over afterwards", async () => {
  const folder = mkdtempSync(join(root, "store-"));
  const path = join(folder, "store.lock");
  writeFileSync(path, JSON.stringify({ ...DEAD, boot: "another kernel", host: "another machine" }));
  let turns = 0;
  const refreshing = setInterval(() => utimesSync(path, 1_000 + ++turns, 1_000 + turns), 50);
  await expect(lockFolder(folder, "store.lock", FAST)).rejects.toMatchObject({ code: "locked" });
  clearInterval(refreshing);
  await (await lockFolder(folder, "store.lock", FAST)).release();
  expect(readdirSync(folder)).toEqual([]);
});

test("a stalled holder that finds another name in the lock knows that it lost it", async () => {
  const folder = mkdtempSync(join(root, "store-"));
  const lock = await lockFolder(folder, "store.lock", FAST);
  writeFileSync(join(folder, "store.lock"), JSON.stringify({ ...DEAD, nonce: "another" }));
  await expect.poll(() => lock.lost.aborted).toBe(true);
  await lock.release();
  expect(readFileSync(join(folder, "store.lock"), "utf8")).toContain("another");
});
