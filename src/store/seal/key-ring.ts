/**
 * Keys, stored apart from what they seal. A scope's key wraps one key for each profile and each session; rows are sealed with those.
 * Destroying a wrapped key makes everything it ever sealed unreadable, in every copy: this is what erasing means here.
 * Rotating a scope's key wraps the same keys again, so no row is rewritten. The secret that turns a scope's embeddings is wrapped by a separate
 * key: having a scope's key does not give access to it.
 *
 * `KeyRing` is the cryptography; a `KeyShelf` stores the wrapped keys (a folder, another PostgreSQL, a browser database, memory).
 */
import { untilUncontended } from "../contention.js";
import { SealError, StoreError } from "../errors.js";
import { type Aead, type AeadKey, KEY_BYTES, randomBytes } from "./aead.js";

const encoder = new TextEncoder();

export type KeyId = string;

/** What a key seals. Destroyed profile keys are recorded, so that a restored backup does not bring a person back. */
export type KeyPurpose = "profile" | "session";

export interface ScopeKey {
  /** 1, 2, …: incremented by rotation. */
  readonly generation: number;
  readonly key: AeadKey;
}

export interface WrappedKey {
  readonly id: KeyId;
  readonly purpose: KeyPurpose;
  /** Generation of the scope key that wraps it. */
  readonly generation: number;
  readonly wrapped: Uint8Array;
}

export interface KeyShelf {
  /** Constant for the lifetime of the shelf: a store records which shelf holds its keys. */
  readonly identity: string;
  /** Every scope that has keys. */
  scopes(): Promise<string[]>;
  /** Oldest first; empty if the scope has none. */
  scopeKeys(scopeId: string): Promise<ScopeKey[]>;
  /** Creates the key of this generation durably; returns the existing one if another process was first. */
  addScopeKey(scopeId: string, generation: number): Promise<ScopeKey>;
  /** `false` while keys wrapped with it remain. */
  removeScopeKey(scopeId: string, generation: number): Promise<boolean>;
  /**
   * Durable when it resolves; an existing key with this id stays. `false` when the scope's key of that generation is gone: wrap again
   * with the current one.
   */
  add(scopeId: string, key: WrappedKey): Promise<boolean>;
  /** Replaces the wrapped bytes of existing keys, except where the scope key is gone because a later rotation was faster. */
  rewrap(scopeId: string, keys: readonly WrappedKey[]): Promise<void>;
  find(scopeId: string, ids: readonly KeyId[]): Promise<Map<KeyId, WrappedKey>>;
  /** A scope's keys, in batches. */
  all(scopeId: string): AsyncIterable<WrappedKey[]>;
  /** Destroyed for good when it resolves. Unknown ids are skipped. */
  destroy(scopeId: string, ids: readonly KeyId[]): Promise<void>;
  /** Those of these ids that are destroyed profile keys. */
  destroyedOf(scopeId: string, ids: readonly KeyId[]): Promise<Set<KeyId>>;
  close(): Promise<void>;
}

export interface DataKey {
  readonly id: KeyId;
  readonly key: AeadKey;
}

/** A key to destroy after the transaction that removes what it sealed. */
export interface DoomedKey {
  readonly scopeId: string;
  readonly keyId: KeyId;
}

/** Each scope's keys together. A scope whose keys cannot be destroyed now does not stop the others; its error is thrown at the end. */
export async function destroyByScope(
  ring: Pick<KeyRing, "destroy">,
  keys: readonly DoomedKey[],
  /** Called with the destroyed keys of each scope. */
  forget: (keyIds: readonly KeyId[]) => Promise<void>,
): Promise<void> {
  const scopes = new Map(keys.map(({ scopeId }) => [scopeId, new Set<KeyId>()]));
  for (const { scopeId, keyId } of keys) scopes.get(scopeId)!.add(keyId);
  const errors: unknown[] = [];
  for (const [scopeId, ids] of scopes) {
    const keyIds = [...ids];
    try {
      await ring.destroy(scopeId, keyIds);
      await forget(keyIds);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Number of unwrapped keys cached for the profiles and sessions in use. */
const KEYS_HELD = 4096;
/** A name that cannot be a scope id: the scopes' secrets are wrapped by a separate key. */
const SECRETS = "\0secrets";

export class KeyRing {
  readonly #scopeKeys = new Map<string, ScopeKey[]>();
  readonly #held = new Map<string, AeadKey>();
  /** How many times keys were destroyed. */
  #destructions = 0;
  readonly #secrets = new Map<string, Promise<Uint8Array>>();
  /** Scopes that have a secret: another one would not open what was written with it. */
  readonly #withSecret = new Set<string>();
  /** Rotations in this process run one after the other. */
  #rotating: Promise<unknown> = Promise.resolve();

  constructor(
    readonly shelf: KeyShelf,
    readonly aead: Aead,
  ) {}

  async create(scopeId: string, purpose: KeyPurpose): Promise<DataKey> {
    const id = toHex(randomBytes(16));
    const raw = randomBytes(KEY_BYTES);
    try {
      const key = await this.aead.importKey(raw);
      return await untilUncontended(`the key of scope ${scopeId}`, async () => {
        const { generation, key: scopeKey } = await this.#current(scopeId);
        const wrapped = await this.aead.seal(scopeKey, raw, wrapContext(scopeId, id));
        if (await this.shelf.add(scopeId, { id, purpose, generation, wrapped })) {
          this.#hold(scopeId, id, key);
          return { id, key };
        }
        this.#scopeKeys.delete(scopeId);
      });
    } finally {
      raw.fill(0);
    }
  }

  /** Keys by id, without the destroyed ones. Throws "wrong-key" when the scope's key does not open one. */
  async open(scopeId: string, ids: readonly KeyId[]): Promise<Map<KeyId, AeadKey>> {
    const keys = new Map<KeyId, AeadKey>();
    const wanted: KeyId[] = [];
    for (const id of new Set(ids)) {
      const held = this.#held.get(heldAs(scopeId, id));
      if (held) keys.set(id, held);
      else wanted.push(id);
    }
    if (wanted.length === 0) return keys;
    const before = this.#destructions;
    for (const wrapped of (await this.shelf.find(scopeId, wanted)).values()) {
      const raw = await this.#unwrapRaw(scopeId, wrapped);
      if (!raw) continue;
      const key = await this.aead.importKey(raw);
      raw.fill(0);
      keys.set(wrapped.id, key);
      // A batch means a gallery is being loaded: each key is used once, and caching it would evict keys in use.
      // One that may be destroyed by now is not cached either.
      if (wanted.length === 1 && this.#destructions === before) this.#hold(scopeId, wrapped.id, key);
    }
    return keys;
  }

  /** 32 bytes that turn the scope's embeddings, created on first use. Constant as long as the keys exist. */
  secret(scopeId: string): Promise<Uint8Array> {
    let secret = this.#secrets.get(scopeId);
    if (!secret) {
      secret = this.#readSecret(scopeId);
      this.#secrets.set(scopeId, secret);
      secret.catch(() => this.#secrets.delete(scopeId));
    }
    return secret;
  }

  /** Whether there is a secret of this name already. */
  async hasSecret(scopeId: string): Promise<boolean> {
    const id = await secretId(scopeId);
    return (await this.shelf.find(SECRETS, [id])).has(id);
  }

  /** From now on the scope's secret is never created: if it is missing, it was lost. */
  expectSecret(scopeId: string): void {
    this.#withSecret.add(scopeId);
  }

  async #readSecret(scopeId: string): Promise<Uint8Array> {
    const id = await secretId(scopeId);
    return untilUncontended(`the secret of scope ${scopeId}`, async () => {
      const wrapped = (await this.shelf.find(SECRETS, [id])).get(id);
      if (wrapped) return (await this.#unwrapRaw(SECRETS, wrapped)) ?? undefined;
      if (this.#withSecret.has(scopeId)) throw keyLost(`the secret of scope ${scopeId} is missing`);
      const { generation, key } = await this.#current(SECRETS);
      const made = await this.aead.seal(key, randomBytes(KEY_BYTES), wrapContext(SECRETS, id));
      // Read again: another process may have been first.
      if (!(await this.shelf.add(SECRETS, { id, purpose: "session", generation, wrapped: made })))
        this.#scopeKeys.delete(SECRETS);
    });
  }

  async destroy(scopeId: string, ids: readonly KeyId[]): Promise<void> {
    await this.shelf.destroy(scopeId, ids);
    // Afterwards, because they may have been opened meanwhile.
    this.#destructions++;
    for (const id of ids) this.#held.delete(heldAs(scopeId, id));
  }

  /**
   * Creates a new scope key, wraps every key of the scope again, then drops the old scope key. Safe to repeat after a crash.
   * `false` if the scope has no keys.
   */
  rotate(scopeId: string): Promise<boolean> {
    const rotated = this.#rotating.then(() => this.#rotate(scopeId));
    this.#rotating = rotated.catch(() => {});
    return rotated;
  }

  async #rotate(scopeId: string): Promise<boolean> {
    const before = await this.shelf.scopeKeys(scopeId);
    if (before.length === 0) return false;
    const { generation, key } = await this.shelf.addScopeKey(scopeId, before.at(-1)!.generation + 1);
    this.#scopeKeys.delete(scopeId);
    for (const old of before) {
      // Other processes may wrap with the old key until it is gone, so repeat until none is left.
      do {
        for await (const batch of this.shelf.all(scopeId)) {
          const rewrapped: WrappedKey[] = [];
          for (const wrapped of batch.filter((each) => each.generation < generation)) {
            const raw = await this.#unwrapRaw(scopeId, wrapped);
            if (!raw) continue;
            const sealed = await this.aead.seal(key, raw, wrapContext(scopeId, wrapped.id));
            raw.fill(0);
            rewrapped.push({ ...wrapped, generation, wrapped: sealed });
          }
          if (rewrapped.length > 0) await this.shelf.rewrap(scopeId, rewrapped);
        }
      } while (!(await this.shelf.removeScopeKey(scopeId, old.generation)));
    }
    this.#scopeKeys.delete(scopeId);
    return true;
  }

  /** Returns the number of scopes; the key that wraps their secrets is not counted. */
  async rotateAll(): Promise<number> {
    const scopes = await this.shelf.scopes();
    for (const scopeId of scopes) await this.rotate(scopeId);
    return scopes.filter((scopeId) => scopeId !== SECRETS).length;
  }

  /** Waits for the current rotation; later ones are refused. Another process may use the shelf afterwards. */
  async close(): Promise<void> {
    const last = this.#rotating;
    this.#rotating = Promise.reject(new StoreError("closed", "the store is closed"));
    this.#rotating.catch(() => {});
    await last.catch(() => {});
    this.#held.clear();
    this.#scopeKeys.clear();
    this.#secrets.clear();
    await this.shelf.close();
  }

  async #current(scopeId: string): Promise<ScopeKey> {
    const keys = await this.#keysOf(scopeId);
    if (keys.length === 0) keys.push(await this.shelf.addScopeKey(scopeId, 1));
    return keys.at(-1)!;
  }

  async #keysOf(scopeId: string): Promise<ScopeKey[]> {
    let keys = this.#scopeKeys.get(scopeId);
    if (!keys) {
      keys = await this.shelf.scopeKeys(scopeId);
      this.#scopeKeys.set(scopeId, keys);
    }
    return keys;
  }

  /** `null` when the key was destroyed since it was read. */
  async #unwrapRaw(scopeId: string, { id, generation, wrapped }: WrappedKey): Promise<Uint8Array | null> {
    const scopeKey = await this.#scopeKeyOf(scopeId, generation);
    if (!scopeKey) {
      // A rotation has ended since it was read: it is wrapped by a later key now.
      const again = (await this.shelf.find(scopeId, [id])).get(id);
      if (!again) return null;
      if (again.generation > generation) return this.#unwrapRaw(scopeId, again);
    }
    const raw = scopeKey && (await this.aead.open(scopeKey.key, wrapped, wrapContext(scopeId, id)));
    if (!raw)
      throw new SealError(
        "wrong-key",
        `a key of ${inWords(scopeId)} cannot be unwrapped with the key of its scope: the key files are damaged or mixed; restore them from a backup`,
      );
    return raw;
  }

  async #scopeKeyOf(scopeId: string, generation: number): Promise<ScopeKey | undefined> {
    const isWanted = (key: ScopeKey) => key.generation === generation;
    const known = (await this.#keysOf(scopeId)).find(isWanted);
    if (known) return known;
    // Another process has rotated since these were read.
    this.#scopeKeys.delete(scopeId);
    return (await this.#keysOf(scopeId)).find(isWanted);
  }

  #hold(scopeId: string, id: KeyId, key: AeadKey): void {
    this.#held.set(heldAs(scopeId, id), key);
    if (this.#held.size > KEYS_HELD) this.#held.delete(this.#held.keys().next().value!);
  }
}

async function secretId(scopeId: string): Promise<KeyId> {
  const named = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(scopeId)));
  return toHex(named.subarray(0, 16));
}

/** The names of our own scopes begin with a NUL. */
export const inWords = (scopeId: string): string =>
  scopeId.startsWith("\0") ? `the store's ${scopeId.slice(1)}` : `scope ${scopeId}`;

/** For the operator: what is missing, why, and what to do. */
export const keyLost = (what: string): SealError =>
  new SealError(
    "key-lost",
    `${what} (the key files are damaged, or older than the database): restore the keys from a backup`,
  );

/** Unambiguous because ids have a fixed length. */
function heldAs(scopeId: string, id: KeyId): string {
  return `${id} ${scopeId}`;
}

/** Binds a wrapped key to its scope and id, so that keys cannot be swapped. */
function wrapContext(scopeId: string, id: KeyId): Uint8Array {
  return encoder.encode(JSON.stringify(["vivavoce key", scopeId, id]));
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i]!]!;
  return text;
}

export function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}
