/**
 * The operator's key that wraps the scopes' keys; passed in, never stored. Without one, scope keys are stored unwrapped and only the
 * permissions of their place protect them.
 */
import { SealError } from "../errors.js";
import { type Aead, type AeadKey, KEY_BYTES } from "./aead.js";
import { inWords, type ScopeKey } from "./key-ring.js";

export interface MasterKeys {
  readonly masterKey?: Uint8Array;
  /** While a master key is being replaced: what the old one wrapped is wrapped again. */
  readonly previousMasterKey?: Uint8Array;
}

export type MasterSeal = Awaited<ReturnType<typeof createMasterSeal>>;

export async function createMasterSeal(aead: Aead, keys: MasterKeys) {
  const current = await importMaster(aead, keys.masterKey);
  const previous = await importMaster(aead, keys.previousMasterKey);

  async function seal(key: AeadKey | null, plain: Uint8Array, context: Uint8Array): Promise<string> {
    return Buffer.from(key ? await aead.seal(key, plain, context) : plain).toString("base64");
  }
  async function open(key: AeadKey | null, text: string, context: Uint8Array): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(Buffer.from(text, "base64"));
    return key ? aead.open(key, bytes, context) : bytes;
  }
  async function opensCheck(key: AeadKey | null, identity: string, check: string | null): Promise<boolean> {
    if (key === null || check === null) return key === null && check === null;
    return (await open(key, check, contextOf("identity", identity))) !== null;
  }
  async function unwrapWith(key: AeadKey | null, scopeId: string, generation: number, text: string) {
    const raw = await open(key, text, contextOf("scope key", scopeId, generation));
    if (raw?.length === KEY_BYTES) return raw;
    throw new SealError(
      "wrong-key",
      key
        ? `the master key cannot unwrap the key of ${inWords(scopeId)}: it is not the key that wrapped it, or the key files are damaged`
        : `the key of ${inWords(scopeId)} is damaged; restore the key files from a backup`,
    );
  }

  return {
    /** Stored beside the keys, to check later that the same master key is given. `null` without one. */
    async check(identity: string): Promise<string | null> {
      return current && seal(current, new Uint8Array(0), contextOf("identity", identity));
    },
    /** Whether the stored keys were wrapped by the previous master key. Throws "wrong-key" when neither matches. */
    async isOutdated(identity: string, check: string | null): Promise<boolean> {
      if (await opensCheck(current, identity, check)) return false;
      if (await opensCheck(previous, identity, check)) return true;
      throw new SealError(
        "wrong-key",
        current
          ? "the master key is not the one that wrapped these keys"
          : "these keys are wrapped by a master key, but none was given",
      );
    },
    wrap: (scopeId: string, generation: number, raw: Uint8Array) =>
      seal(current, raw, contextOf("scope key", scopeId, generation)),
    async scopeKey(scopeId: string, generation: number, text: string): Promise<ScopeKey> {
      const raw = await unwrapWith(current, scopeId, generation, text);
      const key = await aead.importKey(raw);
      raw.fill(0);
      return { generation, key };
    },
    unwrapPrevious: (scopeId: string, generation: number, text: string) =>
      unwrapWith(previous, scopeId, generation, text),
  };
}

async function importMaster(aead: Aead, raw: Uint8Array | undefined): Promise<AeadKey | null> {
  if (!raw) return null;
  if (raw.length !== KEY_BYTES)
    throw new SealError("wrong-key", `the master key must have ${KEY_BYTES} bytes, got ${raw.length}`);
  return aead.importKey(raw);
}

function contextOf(...parts: (string | number)[]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(["vivavoce master", ...parts]));
}
