/** Creating folders where a user asks for them. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeFolders } from "../../src/store/make-folders.js";

const folder = mkdtempSync(join(tmpdir(), "vivavoce-folders-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("all that are missing are created, private if asked", async () => {
  const deep = join(folder, "a", "b", "c");
  await Promise.all([makeFolders(deep, 0o700), makeFolders(deep, 0o700)]);
  await makeFolders(deep);
  for (const path of [deep, join(folder, "a")]) expect(statSync(path).mode & 0o777).toBe(0o700);
});

test("a file in the way is an error", async () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  await expect(makeFolders(file)).rejects.toMatchObject({ code: "EEXIST" });
  await expect(makeFolders(join(file, "below"))).rejects.toMatchObject({ code: "EEXIST" });
});

test("so is a file system that takes no folders", async () => {
  for (const path of ["/proc/vivavoce", "/proc/vivavoce/store"])
    await expect(makeFolders(path)).rejects.toMatchObject({ code: "EPERM" });
});
