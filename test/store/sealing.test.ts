import "fake-indexeddb/auto";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open as openFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, type MockInstance, test, vi } from "vitest";
import { openStore, parseMasterKey } from "../../src/store/open.js";
import { type Aead, webAead } from "../../src/store/seal/aead.js";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import { fromHex, KeyRing, type KeyShelf } from "../../src/store/seal/key-ring.js";
import { openFolderShelf } from "../../src/store/seal/shelf-folder.js";
import { openIndexedDbShelf } from "../../src/store/seal/shelf-indexeddb.js";
import { type Place, Vault } from "../../src/store/seal/vault.js";
import { newId } from "./fixtures.js";

const root = mkdtempSync(join(tmpdir(), "vivavoce-sealing-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe.each([
  ["WebCrypto", webAead, nodeAead],
  ["node:crypto", nodeAead, webAead],
])("AES-256-GCM through %s", (_name, aead: Aead, other: Aead) => {
  test("opens the published vector (McGrew and Viega, test case 16)", async () => {
    const key = await aead.importKey(fromHex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"));
    const sealed = fromHex(
      "cafebabefacedbaddecaf888" +
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa" +
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" +
        "76fc6ece0f4e1768cddf8853bb2d551b",
    );
    const context = fromHex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    const plain = fromHex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" +
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    );
    expect(await aead.open(key, sealed, context)).toEqual(plain);
    for (const bytes of [0, 11, 12, 27, 28])
      expect(await aead.open(key, sealed.subarray(0, bytes), context)).toBeNull();
    expect(await aead.open(key, sealed, context.subarray(1))).toBeNull();
  });

  test.each([0, 16, 31, 33])("refuses a key of %i bytes", async (bytes) => {
    await expect((async () => aead.importKey(new Uint8Array(bytes)))()).rejects.toThrow(
      `a key must have 32 bytes, got ${bytes}`,
    );
  });

  test("seals what the other opens, never the same twice", async () => {
    const bytes = fc.uint8Array({ maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 32, maxLength: 32 }), bytes, bytes, async (raw, plain, context) => {
        const sealed = await aead.seal(await aead.importKey(raw), plain, context);
        const again = await aead.seal(await aead.importKey(raw), plain, context);
        expect(sealed).not.toEqual(again);
        expect(await other.open(await other.importKey(raw), sealed, context)).toEqual(plain);
      }),
      { numRuns: 30 },
    );
  });
});

const shelves: [string, () => Promise<KeyShelf>, Aead][] = [
  ["a folder", () => openFolderShelf(join(root, newId("keys")), nodeAead), nodeAead],
  [
    "a folder under a master key",
    () => openFolderShelf(join(root, newId("keys")), nodeAead, { masterKey: new Uint8Array(32).fill(9) }),
    nodeAead,
  ],
  ["IndexedDB", () => openIndexedDbShelf(newId("keys")), webAead],
];

describe.each(shelves)("a key ring in %s", (_name, openShelf, aead) => {
  const place: Place = { scopeId: "scope", kind: "media", subjectId: "alice", recordId: "alice" };
  const plain = Uint8Array.of(1, 2, 3);

  async function withVault(work: (vault: Vault, ring: KeyRing) => Promise<void>): Promise<void> {
    const ring = new KeyRing(await openShelf(), aead);
    await work(new Vault(ring), ring);
    await ring.close();
  }

  test("opens what it sealed, only in its place", () =>
    withVault(async (vault, ring) => {
      const sealed = await vault.seal(await ring.create("scope", "profile"), place, plain);
      expect(await vault.open(place, sealed)).toEqual(plain);
      const elsewhere: Place[] = [
        { ...place, kind: "document" },
        { ...place, subjectId: "bob" },
        { ...place, recordId: "bob" },
      ];
      for (const other of elsewhere) {
        await expect(vault.open(other, sealed)).rejects.toMatchObject({ name: "SealError", code: "damaged" });
      }
      // Another scope has other keys.
      expect(await vault.open({ ...place, scopeId: "other" }, sealed)).toBeNull();
    }));

  test("has keys for scopes of any name", () =>
    withVault(async (vault, ring) => {
      const scopes = ["__proto__", "constructor", "", "\0", "../..", "x".repeat(5_000)];
      for (const scopeId of scopes) {
        const sealed = await vault.seal(await ring.create(scopeId, "profile"), { ...place, scopeId }, plain);
        const fresh = new Vault(new KeyRing(ring.shelf, aead));
        expect(await fresh.open({ ...place, scopeId }, sealed)).toEqual(plain);
      }
      expect((await ring.shelf.scopes()).sort()).toEqual(scopes.sort());
      expect(await ring.rotateAll()).toBe(scopes.length);
    }));

  test("detects any changed bit", () =>
    withVault(async (vault, ring) => {
      const sealed = await vault.seal(await ring.create("scope", "profile"), place, plain);
      await fc.assert(
        fc.asyncProperty(fc.nat(sealed.length * 8 - 1), async (bit) => {
          const changed = sealed.slice();
          changed[bit >> 3]! ^= 1 << (bit & 7);
          // A changed key id names no key; any other change is damage.
          const opened = await vault.open(place, changed).catch((error) => error.code);
          expect(opened).toBe(bit >> 3 >= 1 && bit >> 3 < 17 ? null : "damaged");
        }),
      );
      for (const length of [0, 1, 16, 17, 20, sealed.length - 1]) {
        await expect(vault.open(place, sealed.subarray(0, length))).rejects.toMatchObject({ code: "damaged" });
      }
    }));

  test("does not open a key under another id", () =>
    withVault(async (_vault, ring) => {
      const [alice, bob] = [await ring.create("scope", "profile"), await ring.create("scope", "profile")];
      const found = await ring.shelf.find("scope", [alice.id, bob.id]);
      await ring.shelf.rewrap("scope", [{ ...found.get(alice.id)!, wrapped: found.get(bob.id)!.wrapped }]);
      const fresh = new KeyRing(ring.shelf, aead);
      await expect(fresh.open("scope", [alice.id])).rejects.toMatchObject({ name: "SealError", code: "wrong-key" });
      expect((await fresh.open("scope", [bob.id])).size).toBe(1);
    }));

  test("destroys a key, records that it was a profile's, and keeps the others", () =>
    withVault(async (vault, ring) => {
      const [alice, bob] = [await ring.create("scope", "profile"), await ring.create("scope", "profile")];
      const call = await ring.create("scope", "session");
      const sealed = [];
      for (const key of [alice, bob, call]) sealed.push(await vault.seal(key, place, plain));
      await ring.destroy("scope", [alice.id, call.id, "00".repeat(16)]);
      expect(await vault.open(place, sealed[0]!)).toBeNull();
      expect(await vault.open(place, sealed[1]!)).toEqual(plain);
      expect(await vault.open(place, sealed[2]!)).toBeNull();
      expect(await vault.key("scope", alice.id)).toBeNull();
      const all = [alice.id, bob.id, call.id];
      expect(await ring.shelf.destroyedOf("scope", all)).toEqual(new Set([alice.id]));
    }));

  test("rotates: everything opens, new and old, and one scope key remains", () =>
    withVault(async (vault, ring) => {
      const keys = [];
      for (let i = 0; i < 20; i++) keys.push(await ring.create("scope", i % 2 ? "profile" : "session"));
      const sealed = await Promise.all(keys.map((key) => vault.seal(key, place, plain)));
      await ring.destroy("scope", [keys[0]!.id]);
      for (let round = 0; round < 3; round++) {
        // Keys are created and destroyed during the rotation.
        const [made] = await Promise.all([ring.create("scope", "profile"), ring.rotate("scope")]);
        const fresh = new KeyRing(ring.shelf, aead);
        expect((await fresh.open("scope", [made.id])).size).toBe(1);
        const opened = await new Vault(fresh).openAll(
          "scope",
          sealed.map((bytes) => ({ place, bytes })),
        );
        expect(opened).toEqual([null, ...Array(19).fill(plain)]);
        expect(await ring.shelf.scopeKeys("scope")).toHaveLength(1);
      }
      expect(await ring.rotate("a scope without keys")).toBe(false);
    }));

  test("holds keys that were created or opened alone; those of a batch would evict them", () =>
    withVault(async (_vault, ring) => {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push((await ring.create("scope", "profile")).id);
      const reads = vi.spyOn(ring.shelf, "find");
      await ring.open("scope", ids);
      expect(reads).not.toHaveBeenCalled();
      const fresh = new KeyRing(ring.shelf, aead);
      for (const wanted of [ids, ids, [ids[0]!], [ids[0]!], ids.slice(0, 2)]) await fresh.open("scope", wanted);
      expect(reads.mock.calls.map(([, wanted]) => wanted)).toEqual([ids, ids, [ids[0]], [ids[1]]]);
      reads.mockRestore();
    }));

  test("rotates twice at once: everything opens", () =>
    withVault(async (vault, ring) => {
      const sealed: Uint8Array[] = [];
      for (let i = 0; i < 20; i++) sealed.push(await vault.seal(await ring.create("scope", "profile"), place, plain));
      for (let round = 0; round < 5; round++) {
        const rotations = [0, 1, 2, 3].map(async (steps) => {
          for (let step = 0; step < steps * (round + 1); step++) await new Promise((wake) => setImmediate(wake));
          return ring.rotate("scope");
        });
        expect(await Promise.all(rotations)).toEqual([true, true, true, true]);
        const opened = await new Vault(new KeyRing(ring.shelf, aead)).openAll(
          "scope",
          sealed.map((bytes) => ({ place, bytes })),
        );
        expect(opened).toEqual(sealed.map(() => plain));
        expect(await ring.shelf.scopeKeys("scope")).toHaveLength(1);
      }
    }));

  test("wraps nothing again with a scope key that a later rotation removed", () =>
    withVault(async (_vault, ring) => {
      const { id } = await ring.create("scope", "profile");
      const [before] = (await ring.shelf.find("scope", [id])).values();
      await ring.rotate("scope");
      await ring.shelf.rewrap("scope", [before!]);
      expect((await new KeyRing(ring.shelf, aead).open("scope", [id])).size).toBe(1);
    }));

  test("adds no key that was wrapped with a scope key which a rotation has removed since", () =>
    withVault(async (_vault, ring) => {
      const { id } = await ring.create("scope", "profile");
      const [before] = (await ring.shelf.find("scope", [id])).values();
      await ring.rotate("scope");
      const late = { ...before!, id: "0".repeat(32) };
      expect(await ring.shelf.add("scope", late)).toBe(false);
      expect((await ring.shelf.find("scope", [late.id])).size).toBe(0);
    }));

  test("opens keys that a rotation wraps again, or that are destroyed, while they are being opened", () =>
    withVault(async (_vault, ring) => {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push((await ring.create("scope", "profile")).id);
      const find = vi.spyOn(ring.shelf, "find").mockImplementationOnce(async (scopeId, wanted) => {
        const found = await ring.shelf.find(scopeId, wanted);
        await ring.destroy("scope", [ids[0]!]);
        await ring.rotate("scope");
        await ring.rotate("scope");
        return found;
      });
      const opened = await new KeyRing(ring.shelf, aead).open("scope", ids);
      expect([...opened.keys()].sort()).toEqual(ids.slice(1).sort());
      find.mockRestore();
    }));

  test("overwrites the raw bytes of keys as soon as they are imported or wrapped", async () => {
    const raws: Uint8Array[] = [];
    const watched: Aead = {
      ...aead,
      importKey(raw) {
        raws.push(raw);
        return aead.importKey(raw);
      },
      seal(key, raw, context) {
        raws.push(raw);
        return aead.seal(key, raw, context);
      },
    };
    const ring = new KeyRing(await openShelf(), watched);
    const { id } = await ring.create("scope", "profile");
    await new KeyRing(ring.shelf, watched).open("scope", [id]);
    await ring.rotate("scope");
    // Created: imported and wrapped. Opened: imported. Rotated: wrapped.
    expect(raws.map((raw) => Buffer.from(raw).toString("hex"))).toEqual(Array(4).fill("00".repeat(32)));
    await ring.close();
  });

  test("does not open a destroyed key, also if it was being opened at that moment", () =>
    withVault(async (_vault, ring) => {
      const { id } = await new KeyRing(ring.shelf, aead).create("scope", "profile");
      await Promise.all([ring.open("scope", [id]), ring.destroy("scope", [id])]);
      expect((await ring.open("scope", [id])).size).toBe(0);
    }));

  test("tells an erased profile from a lost key", () =>
    withVault(async (vault, ring) => {
      const { id } = await ring.create("scope", "profile");
      await ring.destroy("scope", [id]);
      await vault.assertDestroyed("scope", "alice", id);
      const lost = vault.assertDestroyed("scope", "bob", "00".repeat(16));
      const message = /key of profile bob is missing.*restore the keys from a backup, or delete the profile/s;
      await expect(lost).rejects.toMatchObject({ code: "key-lost", message: expect.stringMatching(message) });
    }));

  test("keeps a scope key for as long as it wraps a key", () =>
    withVault(async (_vault, ring) => {
      const { id } = await ring.create("scope", "profile");
      await ring.shelf.addScopeKey("scope", 2);
      expect(await ring.shelf.removeScopeKey("scope", 1)).toBe(false);
      expect((await new KeyRing(ring.shelf, aead).open("scope", [id])).size).toBe(1);
      await ring.destroy("scope", [id]);
      expect(await ring.shelf.removeScopeKey("scope", 1)).toBe(true);
      expect((await ring.shelf.scopeKeys("scope")).map(({ generation }) => generation)).toEqual([2]);
    }));

  test("finishes an interrupted rotation", () =>
    withVault(async (vault, ring) => {
      const old = await ring.create("scope", "profile");
      const sealed = await vault.seal(old, place, plain);
      // As after a crash following the first step: two scope keys, nothing wrapped again.
      await ring.shelf.addScopeKey("scope", 2);
      const next = new KeyRing(ring.shelf, aead);
      const made = await next.create("scope", "profile");
      expect(await new Vault(next).open(place, sealed)).toEqual(plain);
      await next.rotate("scope");
      expect(await new Vault(next).open(place, sealed)).toEqual(plain);
      expect((await new KeyRing(next.shelf, aead).open("scope", [made.id])).size).toBe(1);
      expect(await next.shelf.scopeKeys("scope")).toHaveLength(1);
    }));
});

describe("the slots of a key folder", () => {
  const open = (folder: string) => openFolderShelf(folder, nodeAead);
  const keyFile = (folder: string) => join(folder, readdirSync(folder).find((name) => name.endsWith(".keys"))!);

  test("survive closing, and a torn last write loses only that key", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const keys = await Promise.all(Array.from({ length: 10 }, () => ring.create("scope", "profile")));
    const ids = keys.map(({ id }) => id);
    await ring.close();
    appendFileSync(keyFile(folder), new Uint8Array(50).fill(1));
    const again = new KeyRing(await open(folder), nodeAead);
    expect([...(await again.open("scope", ids)).keys()].sort()).toEqual([...ids].sort());
    // The torn slot is used for the next key.
    const next = await again.create("scope", "profile");
    await again.close();
    const last = new KeyRing(await open(folder), nodeAead);
    expect((await last.open("scope", [...ids, next.id])).size).toBe(11);
    await last.close();
    truncateSync(keyFile(folder), 10 * 128 + 64);
    const torn = new KeyRing(await open(folder), nodeAead);
    expect((await torn.open("scope", [...ids, next.id])).size).toBe(10);
    await torn.close();
  });

  test("are marked on disk as 1 while they hold a key, as 2 when a profile's was destroyed", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const { id } = await ring.create("scope", "profile");
    expect(readFileSync(keyFile(folder))[0]).toBe(1);
    await ring.destroy("scope", [id]);
    expect(readFileSync(keyFile(folder))[0]).toBe(2);
    await ring.close();
  });

  test("of session keys are reused", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    for (let i = 0; i < 20; i++) await ring.destroy("scope", [(await ring.create("scope", "session")).id]);
    await ring.close();
    expect(statSync(keyFile(folder)).size).toBe(128);
    const again = new KeyRing(await open(folder), nodeAead);
    await again.create("scope", "session");
    await again.close();
    expect(statSync(keyFile(folder)).size).toBe(128);
  });

  test("open with the new scope key after a rotation and a restart", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const ids = [];
    for (let i = 0; i < 5; i++) ids.push((await ring.create("scope", i % 2 ? "profile" : "session")).id);
    await ring.rotate("scope");
    await ring.close();
    const again = new KeyRing(await open(folder), nodeAead);
    expect([...(await again.open("scope", ids)).keys()].sort()).toEqual([...ids].sort());
    await again.close();
  });

  test("are not written after another process took the folder over", async () => {
    const folder = join(root, newId("keys"));
    vi.useFakeTimers({ toFake: ["setInterval"] });
    const shelf = await open(folder);
    const ring = new KeyRing(shelf, nodeAead);
    const { id } = await ring.create("scope", "profile");
    const keys = [...(await shelf.find("scope", [id])).values()];
    const path = join(folder, "ring.lock");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), nonce: "another process" }));
    vi.advanceTimersByTime(5_000);
    vi.useRealTimers();
    const refused = { code: "locked", message: expect.stringMatching(/taken over by another process/) };
    const attempt = () => ring.create("scope", "profile").catch((error) => error);
    await expect.poll(attempt, { timeout: 30_000 }).toMatchObject(refused);
    const before = readFileSync(keyFile(folder));
    await expect(shelf.addScopeKey("scope", 2)).rejects.toMatchObject(refused);
    await expect(shelf.rewrap("scope", keys)).rejects.toMatchObject(refused);
    await expect(ring.destroy("scope", [id])).rejects.toMatchObject(refused);
    expect(readFileSync(keyFile(folder))).toEqual(before);
    expect(await shelf.find("scope", [id])).toEqual(new Map(keys.map((key) => [key.id, key])));
    await ring.close();
  });

  test("lose no new key and restore no destroyed key while the file is replaced", async () => {
    const folder = join(root, newId("keys"));
    const shelf = await open(folder);
    const ring = new KeyRing(shelf, nodeAead);
    const kept = await ring.create("scope", "profile");
    for (let round = 0; round < 20; round++) {
      const doomed = await ring.create("scope", "profile");
      const [wrapped] = (await shelf.find("scope", [kept.id])).values();
      // All in one step: the writes wait together with the replacement.
      const [made] = await Promise.all([
        ring.create("scope", "profile"),
        ring.destroy("scope", [doomed.id]),
        shelf.rewrap("scope", [wrapped!]),
        shelf.rewrap("scope", [wrapped!]),
      ]);
      expect(stateOf(folder, made.id)).toBe("live");
      expect(stateOf(folder, doomed.id)).toBe("destroyed");
    }
    await ring.close();
  });

  test("keep a key that could not be overwritten, until it can be", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const [profile, session] = [await ring.create("scope", "profile"), await ring.create("scope", "session")];
    const ids = [profile.id, session.id];
    const probe = await openFile(join(folder, "ring.json"));
    const handle: FileHandle = Object.getPrototypeOf(probe);
    await probe.close();
    const full = vi.spyOn(handle, "datasync").mockRejectedValueOnce(new Error("the disk is full"));
    const write = vi.spyOn(handle, "write").mockRejectedValueOnce(new Error("the disk is full"));
    try {
      await expect(ring.destroy("scope", ids)).rejects.toThrow("full");
    } finally {
      write.mockRestore();
    }
    await expect(ring.destroy("scope", ids)).rejects.toThrow("full");
    full.mockRestore();
    await ring.destroy("scope", ids);
    expect(stateOf(folder, profile.id)).toBe("destroyed");
    expect(stateOf(folder, session.id)).toBe("missing");
    await ring.close();
  });

  test.each([
    ["fails", (write: MockInstance<FileHandle["write"]>) => write.mockRejectedValueOnce(new Error("not written"))],
    [
      "is cut short",
      (write: MockInstance<FileHandle["write"]>) =>
        write.mockResolvedValueOnce({ bytesWritten: 100, buffer: new Uint8Array() } as never),
    ],
  ])("hold a scope's secret before it is used, also if its first write %s", async (_, fail) => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const probe = await openFile(join(folder, "ring.json"));
    const write = vi.spyOn(Object.getPrototypeOf(probe) as FileHandle, "write");
    await probe.close();
    fail(write);
    try {
      await expect(ring.secret("scope")).rejects.toThrow("not written");
    } finally {
      write.mockRestore();
    }
    const secret = await ring.secret("scope");
    await ring.close();
    const again = new KeyRing(await open(folder), nodeAead);
    again.expectSecret("scope");
    expect(await again.secret("scope")).toEqual(secret);
    await again.close();
  });

  test("are not changed by a rotation after the ring is closed", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    for (const scope of ["a", "b", "c"]) await ring.create(scope, "profile");
    const contents = () => readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "hex")]);
    const rotated = ring.rotateAll();
    const settled = rotated.catch(() => {});
    await ring.close();
    const closed = contents();
    await settled;
    expect(contents()).toEqual(closed);
    await expect(rotated).rejects.toMatchObject({ code: "closed" });
  });

  test("know after a restart whether a key was a profile's or a session's", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const [profile, session] = [await ring.create("scope", "profile"), await ring.create("scope", "session")];
    await ring.close();
    const again = new KeyRing(await open(folder), nodeAead);
    await again.destroy("scope", [profile.id, session.id]);
    const ids = [profile.id, session.id];
    expect(await again.shelf.destroyedOf("scope", ids)).toEqual(new Set([profile.id]));
    await again.close();
  });

  test("know after a restart that a profile's key was destroyed", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const { id } = await ring.create("scope", "profile");
    await ring.destroy("scope", [id]);
    await ring.close();
    const again = new KeyRing(await open(folder), nodeAead);
    await new Vault(again).assertDestroyed("scope", "alice", id);
    await again.close();
  });

  test("take a damaged key for a lost one, not for one that was destroyed", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const { id } = await ring.create("scope", "profile");
    await ring.close();
    const bytes = readFileSync(keyFile(folder));
    bytes[0] = 2;
    writeFileSync(keyFile(folder), bytes);
    const again = new KeyRing(await open(folder), nodeAead);
    await expect(new Vault(again).assertDestroyed("scope", "alice", id)).rejects.toMatchObject({ code: "key-lost" });
    await again.close();
  });

  test("are never replaced by new ones because their file cannot be read", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const { id } = await ring.create("scope", "profile");
    await ring.close();
    const path = join(folder, "ring.json");
    const kept = readFileSync(path);
    rmSync(path);
    symlinkSync("ring.json", path);
    await expect(open(folder)).rejects.toMatchObject({ code: "ELOOP" });
    rmSync(path);
    writeFileSync(path, kept);
    const again = new KeyRing(await open(folder), nodeAead);
    expect((await again.open("scope", [id])).size).toBe(1);
    await again.close();
  });

  test("leave no copy when a replacement fails", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const { id } = await ring.create("scope", "profile");
    const before = readdirSync(folder).sort();
    const probe = await openFile(join(folder, "ring.json"));
    const full = vi.spyOn(Object.getPrototypeOf(probe), "sync").mockRejectedValueOnce(new Error("the disk is full"));
    await probe.close();
    await expect(ring.rotate("scope")).rejects.toThrow("full");
    full.mockRestore();
    expect(readdirSync(folder).sort()).toEqual(before);
    expect((await new KeyRing(ring.shelf, nodeAead).open("scope", [id])).size).toBe(1);
    await ring.close();
  });

  test("leave no copy after an interrupted replacement", async () => {
    const folder = join(root, newId("keys"));
    const ring = new KeyRing(await open(folder), nodeAead);
    const { id } = await ring.create("scope", "profile");
    await ring.close();
    // As after a crash: the new files are written but not yet renamed.
    const names = [keyFile(folder), join(folder, "ring.json")];
    for (const name of names) writeFileSync(`${name}.0123456789abcdef`, readFileSync(name));
    const again = new KeyRing(await open(folder), nodeAead);
    expect((await again.open("scope", [id])).size).toBe(1);
    await again.close();
    expect(readdirSync(folder).sort()).toEqual(names.map((name) => basename(name)).sort());
  });

  test("can be opened later when they could not be at first", async () => {
    const folder = join(root, newId("keys"));
    const shelf = await open(folder);
    const ring = new KeyRing(shelf, nodeAead);
    const { id } = await ring.create("scope", "profile");
    await ring.close();
    const path = keyFile(folder);
    const bytes = readFileSync(path);
    rmSync(path);
    mkdirSync(path);
    const again = new KeyRing(await open(folder), nodeAead);
    await expect(again.open("scope", [id])).rejects.toMatchObject({ code: "EISDIR" });
    rmdirSync(path);
    writeFileSync(path, bytes);
    expect((await again.open("scope", [id])).size).toBe(1);
    await again.close();
  });

  function stateOf(folder: string, id: string): "live" | "destroyed" | "missing" {
    const bytes = readFileSync(keyFile(folder));
    const at = bytes.indexOf(fromHex(id));
    if (at < 0) return "missing";
    return bytes[at - 8] === 1 ? "live" : "destroyed";
  }
});

test("a key folder opens only with the master key that wrapped it, or with none if none did", async () => {
  const [one, other] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const open = (folder: string, masterKey?: Uint8Array, previousMasterKey?: Uint8Array) =>
    openFolderShelf(folder, nodeAead, {
      ...(masterKey ? { masterKey } : {}),
      ...(previousMasterKey ? { previousMasterKey } : {}),
    });
  const folder = join(root, newId("keys"));
  const shelf = await open(folder);
  const { id } = await new KeyRing(shelf, nodeAead).create("scope", "profile");
  await shelf.close();
  const opens = async (...keys: Uint8Array[]) => {
    const ring = new KeyRing(await open(folder, ...keys), nodeAead);
    expect((await ring.open("scope", [id])).size).toBe(1);
    await ring.close();
  };
  await opens();
  // The first master key wraps what nothing wrapped before.
  await opens(one);
  await opens(one);
  await expect(open(folder)).rejects.toMatchObject({
    code: "wrong-key",
    message: expect.stringMatching(/none was given/),
  });
  await expect(open(folder, other)).rejects.toMatchObject({
    code: "wrong-key",
    message: expect.stringMatching(/not the one that wrapped/),
  });
  await opens(other, one);
  await opens(other);
  await expect(open(folder, one)).rejects.toMatchObject({ code: "wrong-key" });
});

test.each([
  ["without a master key", {}],
  ["with a master key", { masterKey: new Uint8Array(32).fill(7) }],
])("a damaged key of one scope is named, and the others open, %s", async (_, master) => {
  const folder = join(root, newId("keys"));
  const ring = new KeyRing(await openFolderShelf(folder, nodeAead, master), nodeAead);
  const [damaged, whole] = [await ring.create("damaged", "profile"), await ring.create("whole", "profile")];
  await ring.close();
  const path = join(folder, "ring.json");
  const file = JSON.parse(readFileSync(path, "utf8"));
  const { key } = file.scopes.damaged[0];
  for (const text of [`!${key.slice(1)}`, key.slice(4)]) {
    file.scopes.damaged[0].key = text;
    writeFileSync(path, JSON.stringify(file));
    const again = new KeyRing(await openFolderShelf(folder, nodeAead, master), nodeAead);
    const opened = again.open("damaged", [damaged.id]);
    await expect(opened).rejects.toMatchObject({
      name: "SealError",
      message: expect.stringContaining("scope damaged"),
    });
    expect((await again.open("whole", [whole.id])).size).toBe(1);
    await again.close();
  }
});

test.each([
  ["nothing", () => ""],
  ["a list", () => "[]"],
  ["no identity", (text: string) => text.replace("identity", "identitx")],
  ["no scopes", (text: string) => text.replace("scopes", "scopec")],
  ["a scope without its key", (text: string) => text.replace('"key"', '"kex"')],
  ["a scope without a list of keys", (text: string) => text.replace(/"scope":\[.*?\]/, '"scope":7')],
])("a key folder whose file has %s is damaged, and stays as it is", async (_, change) => {
  const folder = join(root, newId("keys"));
  const ring = new KeyRing(await openFolderShelf(folder, nodeAead), nodeAead);
  await ring.create("scope", "profile");
  await ring.close();
  const path = join(folder, "ring.json");
  const changed = change(readFileSync(path, "utf8"));
  writeFileSync(path, changed);
  await expect(openFolderShelf(folder, nodeAead)).rejects.toMatchObject({
    code: "damaged",
    message: expect.stringContaining("restore it from a backup"),
  });
  expect(readFileSync(path, "utf8")).toBe(changed);
});

test("a master key is 32 bytes in hexadecimal or base64", () => {
  const key = Uint8Array.from({ length: 32 }, (_, i) => i * 8);
  expect(parseMasterKey(`${Buffer.from(key).toString("hex")}\n`)).toEqual(key);
  expect(parseMasterKey(Buffer.from(key).toString("base64"))).toEqual(key);
  expect(parseMasterKey(Buffer.from(key).toString("base64url"))).toEqual(key);
  // Base64 would make 32 bytes of its letters.
  const message = "error: this key service has refused that request now";
  expect(Buffer.from(message, "base64")).toHaveLength(32);
  for (const bad of ["", "secret", message, "00".repeat(31), Buffer.from(key.subarray(1)).toString("base64")]) {
    expect(() => parseMasterKey(bad)).toThrow(RangeError);
  }
});

test.each([
  ["", '""'],
  [undefined, "undefined"],
  [null, "null"],
  ["mysql://root:secret@db/voices", '"mysql://…"'],
])("%j is not the location of a store", async (location, shown) => {
  await expect(openStore(location as string)).rejects.toThrow(
    `a store must be "memory", a folder or postgres://…, got ${shown}`,
  );
});
