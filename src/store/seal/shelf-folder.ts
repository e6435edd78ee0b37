/**
 * Keys in a separate folder (0700), for one process at a time:
 *
 *   ring.json       (0600) identity of this ring and the scopes' keys: unwrapped, or wrapped by a master key if one is given
 *   <scope>.keys    (0600) one slot of 128 bytes for each wrapped key of the scope
 *
 * Slots are written in place and synced, so adding a key is one small write whatever their number, and destroying a key overwrites it.
 * Whole files are always replaced: written to a temporary file, synced, renamed.
 *
 *   slot | state, u8 | purpose, u8 | zeros, 2 | generation, u32 | id, 16 bytes | wrapped key, 60 bytes | zeros | checksum, 4 bytes |
 */
import { createHash } from "node:crypto";
import { type FileHandle, open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SealError } from "../errors.js";
import { type FolderLock, lockFolder } from "../folder-lock.js";
import { makeFolders } from "../make-folders.js";
import { nullIfMissing } from "../null-if-missing.js";
import { type Aead, KEY_BYTES, NONCE_BYTES, randomBytes, TAG_BYTES } from "./aead.js";
import { fromHex, type KeyId, type KeyShelf, toHex, type WrappedKey } from "./key-ring.js";
import { createMasterSeal, type MasterKeys, type MasterSeal } from "./master-key.js";

interface WrappedScopeKey {
  readonly generation: number;
  readonly key: string;
}

interface RingFile {
  readonly format: 1;
  readonly identity: string;
  /** Verifies the master key; `null` without one. */
  readonly check: string | null;
  readonly scopes: Record<string, WrappedScopeKey[]>;
}

const SLOT_BYTES = 128;
const WRAPPED_BYTES = NONCE_BYTES + KEY_BYTES + TAG_BYTES;
const [FREE, LIVE, DESTROYED] = [0, 1, 2];

export async function openFolderShelf(folder: string, aead: Aead, options: MasterKeys = {}): Promise<KeyShelf> {
  const lock = await lockFolder(folder, "ring.lock");
  try {
    return await openLocked(folder, aead, options, lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function openLocked(folder: string, aead: Aead, options: MasterKeys, lock: FolderLock): Promise<KeyShelf> {
  const master = await createMasterSeal(aead, options);
  await removeUnfinished(folder);
  const ringPath = join(folder, "ring.json");
  let ring = await openRing(ringPath, master);

  const files = new Map<string, Promise<SlotFile>>();
  const fileOf = (scopeId: string): Promise<SlotFile> => {
    let file = files.get(scopeId);
    if (!file) {
      const name = createHash("sha256").update(scopeId).digest("hex").slice(0, 32);
      file = SlotFile.open(join(folder, `${name}.keys`));
      files.set(scopeId, file);
      // The cause may be temporary: the next caller tries again.
      file.catch(() => files.delete(scopeId));
    }
    return file;
  };
  /** Nothing is written after another process took the folder over. */
  const writableFileOf = async (scopeId: string): Promise<SlotFile> => {
    const file = await fileOf(scopeId);
    lock.lost.throwIfAborted();
    return file;
  };
  /** Generation and scope of the scope keys that are being removed. */
  const retiring = new Set<string>();
  const mayWrap = (scopeId: string, key: WrappedKey): boolean =>
    keysOf(ring, scopeId).some(({ generation }) => generation === key.generation) &&
    !retiring.has(`${key.generation} ${scopeId}`);
  // Serializes changes of ring.json.
  let writing: Promise<unknown> = Promise.resolve();
  const changeScope = <T>(change: (current: RingFile) => Promise<{ next: RingFile | null; answer: T }>): Promise<T> => {
    const done = writing.then(async () => {
      lock.lost.throwIfAborted();
      const { next, answer } = await change(ring);
      if (next) {
        await replaceFile(ringPath, JSON.stringify(next));
        ring = next;
      }
      return answer;
    });
    writing = done.catch(() => {});
    return done;
  };

  const unwrapScopeKey = (scopeId: string, { generation, key }: WrappedScopeKey) =>
    master.scopeKey(scopeId, generation, key);

  return {
    identity: ring.identity,
    async scopes() {
      return Object.keys(ring.scopes);
    },
    async scopeKeys(scopeId) {
      return Promise.all(keysOf(ring, scopeId).map((key) => unwrapScopeKey(scopeId, key)));
    },
    addScopeKey(scopeId, generation) {
      return changeScope(async (current) => {
        const known = keysOf(current, scopeId);
        const there = known.find((each) => each.generation === generation);
        if (there) return { next: null, answer: await unwrapScopeKey(scopeId, there) };
        const added = { generation, key: await master.wrap(scopeId, generation, randomBytes(KEY_BYTES)) };
        const next = { ...current, scopes: { ...current.scopes, [scopeId]: [...known, added] } };
        return { next, answer: await unwrapScopeKey(scopeId, added) };
      });
    },
    async removeScopeKey(scopeId, generation) {
      const file = await fileOf(scopeId);
      for (const key of file.live()) if (key.generation === generation) return false;
      // From here on, and while the file is being replaced, nothing is wrapped with it.
      const retired = `${generation} ${scopeId}`;
      retiring.add(retired);
      try {
        await changeScope(async (current) => {
          const left = keysOf(current, scopeId).filter((each) => each.generation !== generation);
          return { next: { ...current, scopes: { ...current.scopes, [scopeId]: left } }, answer: true };
        });
      } finally {
        retiring.delete(retired);
      }
      return true;
    },
    async add(scopeId, key) {
      const file = await writableFileOf(scopeId);
      if (!mayWrap(scopeId, key)) return false;
      if (!file.find(key.id)) await file.add(key);
      return true;
    },
    async rewrap(scopeId, keys) {
      const file = await writableFileOf(scopeId);
      await file.rewrap(keys.filter((key) => mayWrap(scopeId, key)));
    },
    async find(scopeId, ids) {
      const file = await fileOf(scopeId);
      const found = new Map<KeyId, WrappedKey>();
      for (const id of ids) {
        const key = file.find(id);
        if (key) found.set(id, key);
      }
      return found;
    },
    async *all(scopeId) {
      // One batch, because rewrapping replaces the whole file.
      yield [...(await fileOf(scopeId)).live()];
    },
    async destroy(scopeId, ids) {
      await (await writableFileOf(scopeId)).destroy(ids);
    },
    async destroyedOf(scopeId, ids) {
      const file = await fileOf(scopeId);
      return new Set(ids.filter((id) => file.wasDestroyed(id)));
    },
    async close() {
      await writing;
      try {
        for (const file of files.values()) await (await file).close();
        files.clear();
      } finally {
        await lock.release();
      }
    },
  };
}

/** A scope may have any name, even __proto__. */
function keysOf({ scopes }: RingFile, scopeId: string): readonly WrappedScopeKey[] {
  return Object.hasOwn(scopes, scopeId) ? scopes[scopeId]! : [];
}

async function openRing(path: string, master: MasterSeal): Promise<RingFile> {
  const found = await readRing(path);
  if (found && !(await master.isOutdated(found.identity, found.check))) return found;
  const identity = found?.identity ?? toHex(randomBytes(16));
  const scopes: [string, WrappedScopeKey[]][] = [];
  for (const [scopeId, keys] of Object.entries(found?.scopes ?? {})) {
    const rewrapped: WrappedScopeKey[] = [];
    for (const { generation, key } of keys) {
      const raw = await master.unwrapPrevious(scopeId, generation, key);
      rewrapped.push({ generation, key: await master.wrap(scopeId, generation, raw) });
    }
    scopes.push([scopeId, rewrapped]);
  }
  const ring: RingFile = {
    format: 1,
    identity,
    check: await master.check(identity),
    scopes: Object.fromEntries(scopes),
  };
  await replaceFile(path, JSON.stringify(ring));
  return ring;
}

async function readRing(path: string): Promise<RingFile | null> {
  const text = await readFile(path, "utf8").catch(nullIfMissing);
  if (text === null) return null;
  try {
    const ring: unknown = JSON.parse(text);
    if (isRing(ring)) return ring;
  } catch {
    // Reported below.
  }
  throw new SealError("damaged", `${path} is damaged, or is not a key file of this store; restore it from a backup`);
}

function isRing(value: unknown): value is RingFile {
  const { format, identity, scopes } = value as Partial<RingFile>;
  if (format !== 1 || typeof identity !== "string" || !scopes) return false;
  return Object.values(scopes).every((keys) =>
    keys.every(({ generation, key }) => Number.isInteger(generation) && typeof key === "string"),
  );
}

/** The file is either the old one or the new one, never partial, even after a crash. */
async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const file = await replaceWithOpenFile(path, content);
  try {
    await syncFolder(dirname(path));
  } finally {
    await file.close();
  }
}

/** The new file stays open, because no more files may be allowed to be opened. Its name is not durable yet. */
async function replaceWithOpenFile(path: string, content: string | Uint8Array): Promise<FileHandle> {
  const temporary = `${path}.${toHex(randomBytes(8))}`;
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
    await rename(temporary, path);
    return file;
  } catch (error) {
    await file.close();
    await unlink(temporary);
    throw error;
  }
}

const UNFINISHED = /^(ring\.json|[0-9a-f]{32}\.keys)\.[0-9a-f]{16}$/;

/** A temporary file left by a dead process: a copy of keys that would not be overwritten when they are destroyed. */
async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (UNFINISHED.test(name)) await unlink(join(folder, name));
}

/** Makes a new name durable. Windows cannot open folders and does not need this. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The wrapped keys of one scope, mirrored in memory. */
class SlotFile {
  readonly #path: string;
  readonly #keys = new Map<KeyId, { slot: number; key: WrappedKey }>();
  readonly #destroyed = new Set<KeyId>();
  readonly #free: number[] = [];
  #slots = 0;
  #file: FileHandle;
  #waiting: { slot: number; bytes: Uint8Array }[] = [];
  #flush: Promise<void> | null = null;
  /** Serializes writers to the file: batches of slots, and its replacement. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  static async open(path: string): Promise<SlotFile> {
    await makeFolders(dirname(path), 0o700);
    // "a" creates the file if it is missing; writing needs a handle that can seek.
    await (await open(path, "a", 0o600)).close();
    const file = await open(path, "r+");
    try {
      const slots = new SlotFile(path, file);
      slots.#load(new Uint8Array(await file.readFile()));
      await syncFolder(dirname(path));
      return slots;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  #load(bytes: Uint8Array): void {
    this.#slots = Math.ceil(bytes.length / SLOT_BYTES);
    for (let slot = 0; slot < this.#slots; slot++) {
      const part = bytes.subarray(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES);
      const read = readSlot(part);
      // A slot with a wrong checksum was torn by a power cut, or damaged. It is left unchanged, so that it can be repaired.
      if (read === null) {
        if (part.every((byte) => byte === 0)) this.#free.push(slot);
      } else if (read.state === DESTROYED) this.#destroyed.add(read.key.id);
      else this.#keys.set(read.key.id, { slot, key: read.key });
    }
  }

  find(id: KeyId): WrappedKey | undefined {
    return this.#keys.get(id)?.key;
  }

  wasDestroyed(id: KeyId): boolean {
    return this.#destroyed.has(id);
  }

  *live(): Iterable<WrappedKey> {
    for (const { key } of this.#keys.values()) yield key;
  }

  async add(key: WrappedKey): Promise<void> {
    const slot = this.#free.pop() ?? this.#slots++;
    this.#keys.set(key.id, { slot, key });
    try {
      await this.#write([{ slot, bytes: slotOf(LIVE, key) }]);
    } catch (error) {
      // It may not be on disk, and what is sealed with it would be lost at the next start.
      this.#keys.delete(key.id);
      this.#free.push(slot);
      throw error;
    }
  }

  /** A live key is never overwritten in place, because a write torn by a power cut would lose it. The file is replaced. */
  async rewrap(keys: readonly WrappedKey[]): Promise<void> {
    const changed = new Map(keys.map((key) => [key.id, key]));
    await this.#inTurn(async () => {
      const bytes = new Uint8Array(await readFile(this.#path));
      for (const { slot, key } of this.#keys.values()) {
        // Keys added since the last flush are beyond the end, and are written in their turn.
        if ((slot + 1) * SLOT_BYTES > bytes.length) continue;
        bytes.set(slotOf(LIVE, changed.get(key.id) ?? key), slot * SLOT_BYTES);
      }
      const replaced = this.#file;
      this.#file = await replaceWithOpenFile(this.#path, bytes);
      for (const key of keys) {
        const held = this.#keys.get(key.id);
        if (held) this.#keys.set(key.id, { slot: held.slot, key });
      }
      await replaced.close();
      await syncFolder(dirname(this.#path));
    });
  }

  async destroy(ids: readonly KeyId[]): Promise<void> {
    const doomed: { slot: number; key: WrappedKey }[] = [];
    for (const id of ids) {
      const held = this.#keys.get(id);
      if (!held) continue;
      this.#keys.delete(id);
      doomed.push(held);
    }
    try {
      await this.#write(
        doomed.map(({ slot, key }) => ({
          slot,
          bytes: key.purpose === "profile" ? slotOf(DESTROYED, key) : new Uint8Array(SLOT_BYTES),
        })),
      );
    } catch (error) {
      // They are still on disk: a retry must find them.
      for (const held of doomed) this.#keys.set(held.key.id, held);
      throw error;
    }
    for (const { slot, key } of doomed) {
      if (key.purpose === "profile") this.#destroyed.add(key.id);
      else this.#free.push(slot);
    }
  }

  async close(): Promise<void> {
    await this.#turn;
    await this.#file.close();
  }

  /** Writes that arrive during a sync share the next one. */
  #write(writes: { slot: number; bytes: Uint8Array }[]): Promise<void> {
    this.#waiting.push(...writes);
    this.#flush ??= this.#inTurn(() => {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#flush = null;
      return this.#writeAll(batch);
    });
    return this.#flush;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #writeAll(batch: { slot: number; bytes: Uint8Array }[]): Promise<void> {
    for (const { slot, bytes } of batch) {
      const { bytesWritten } = await this.#file.write(bytes, 0, SLOT_BYTES, slot * SLOT_BYTES);
      if (bytesWritten !== SLOT_BYTES) throw new Error(`${this.#path}: the key was not written completely`);
    }
    await this.#file.datasync();
  }
}

function slotOf(state: number, { id, purpose, generation, wrapped }: WrappedKey): Uint8Array {
  const bytes = new Uint8Array(SLOT_BYTES);
  bytes[0] = state;
  bytes[1] = purpose === "profile" ? 1 : 2;
  new DataView(bytes.buffer).setUint32(4, generation, true);
  bytes.set(fromHex(id), 8);
  if (state === LIVE) bytes.set(wrapped, 24);
  bytes.set(checksum(bytes), SLOT_BYTES - 4);
  return bytes;
}

function readSlot(bytes: Uint8Array): { state: number; key: WrappedKey } | null {
  const state = bytes[0]!;
  if (bytes.length < SLOT_BYTES || state === FREE) return null;
  if (checksum(bytes).some((byte, i) => byte !== bytes[SLOT_BYTES - 4 + i])) return null;
  const generation = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  const purpose = bytes[1] === 1 ? "profile" : "session";
  const wrapped = bytes.slice(24, 24 + WRAPPED_BYTES);
  return { state, key: { id: toHex(bytes.subarray(8, 24)), purpose, generation, wrapped } };
}

function checksum(slot: Uint8Array): Uint8Array {
  return createHash("sha256")
    .update(slot.subarray(0, SLOT_BYTES - 4))
    .digest()
    .subarray(0, 4);
}
