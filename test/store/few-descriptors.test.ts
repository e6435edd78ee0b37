/** Keys in a folder while the process may open no more files. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import type * as Files from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import { KeyRing } from "../../src/store/seal/key-ring.js";
import { openFolderShelf } from "../../src/store/seal/shelf-folder.js";

let mayOpen: (path: string) => boolean = () => true;

vi.mock("node:fs/promises", async (original) => {
  const files = await original<typeof Files>();
  const open: typeof files.open = async (path, ...how) => {
    if (!mayOpen(String(path))) throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
    return files.open(path, ...how);
  };
  return { ...files, open };
});

test.each([
  ["nothing can be opened", () => false],
  ["only the new file can be opened", (path: string) => /\.[0-9a-f]{16}$/.test(path)],
])("a rotation while %s loses no key, and the shelf can be used afterwards", async (_, allowed) => {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-keys-"));
  try {
    const ring = new KeyRing(await openFolderShelf(folder, nodeAead), nodeAead);
    const before = await ring.create("scope", "profile");
    mayOpen = allowed;
    await expect(ring.rotate("scope")).rejects.toMatchObject({ code: "EMFILE" });
    mayOpen = () => true;
    const between = await ring.create("scope", "profile");
    expect(await ring.rotate("scope")).toBe(true);
    const after = await ring.create("scope", "profile");
    await ring.close();
    const again = new KeyRing(await openFolderShelf(folder, nodeAead), nodeAead);
    expect((await again.open("scope", [before.id, between.id, after.id])).size).toBe(3);
    await again.close();
  } finally {
    mayOpen = () => true;
    rmSync(folder, { recursive: true });
  }
});

test("the file of keys can be written after it was replaced and nothing else could be opened", async () => {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-keys-"));
  const shelf = await openFolderShelf(folder, nodeAead);
  try {
    const ring = new KeyRing(shelf, nodeAead);
    const key = await ring.create("scope", "profile");
    const wrapped = (await shelf.find("scope", [key.id])).get(key.id)!;
    mayOpen = (path) => /\.keys\.[0-9a-f]{16}$/.test(path);
    await expect(shelf.rewrap("scope", [wrapped])).rejects.toMatchObject({ code: "EMFILE" });
    mayOpen = () => true;
    const next = await ring.create("scope", "profile");
    await ring.close();
    const again = new KeyRing(await openFolderShelf(folder, nodeAead), nodeAead);
    expect((await again.open("scope", [key.id, next.id])).size).toBe(2);
    await again.close();
  } finally {
    mayOpen = () => true;
    rmSync(folder, { recursive: true });
  }
});

test("a file of keys that cannot be used yet does not stay open", async () => {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-keys-"));
  const shelf = await openFolderShelf(folder, nodeAead);
  try {
    mayOpen = (path) => path.endsWith(".keys");
    await expect(shelf.find("scope", ["0".repeat(32)])).rejects.toMatchObject({ code: "EMFILE" });
    expect(openFiles().filter((path) => path.startsWith(folder) && path.endsWith(".keys"))).toEqual([]);
  } finally {
    mayOpen = () => true;
    await shelf.close();
    rmSync(folder, { recursive: true });
  }
});

function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)];
    } catch {
      // The descriptor of this listing itself.
      return [];
    }
  });
}
