/** Who takes over a folder from a process that is gone, on a disk so slow that everybody meets everybody else in between. */
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
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
  return { ...real, readFile: slow(readFile), rename: slow(rename), stat: slow(stat), unlink: slow(unlink) };
});

const root = mkdtempSync(join(tmpdir(), "vivavoce-lock-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A lock of this process's number from a former life. */
const DEAD = { pid: process.pid, host: hostname(), processStartedAt: null, nonce: "dead" };

function abandonedFolder(): string {
  const folder = mkdtempSync(join(root, "store-"));
  writeFileSync(join(folder, "store.lock"), JSON.stringify(DEAD));
  return folder;
}

test("one alone takes over, however many try at once", async () => {
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

test("a process that died as it took over keeps nobody out", async () => {
  const folder = abandonedFolder();
  const takeover = join(folder, "store.lock.takeover");
  writeFileSync(takeover, "");
  const aMinuteAgo = Date.now() / 1000 - 60;
  utimesSync(takeover, aMinuteAgo, aMinuteAgo);
  await (await lockFolder(folder, "store.lock")).release();
  expect(readdirSync(folder)).toEqual([]);
});
