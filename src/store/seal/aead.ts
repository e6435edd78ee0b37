/**
 * Authenticated encryption (AES-256-GCM) and derived bytes (HKDF-SHA-256). A sealed message is nonce (12 bytes, random), ciphertext, tag (16 bytes).
 * WebCrypto is available everywhere; Node stores use aead-node.ts, which produces the same bytes without a thread hop for each small message.
 */
/** A `CryptoKey`, or the `KeyObject` of Node, whose type both is "secret". */
export interface AeadKey {
  readonly type: string;
}

export interface Aead {
  /** 32 bytes; the caller keeps them. */
  importKey(raw: Uint8Array): AeadKey | Promise<AeadKey>;
  seal(key: AeadKey, plain: Uint8Array, context: Uint8Array): Uint8Array | Promise<Uint8Array>;
  /** `null` when key, bytes and context do not match. */
  open(key: AeadKey, sealed: Uint8Array, context: Uint8Array): Uint8Array | null | Promise<Uint8Array | null>;
  /** `count` bytes that are indistinguishable from random without the secret. */
  derive(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, count: number): Uint8Array | Promise<Uint8Array>;
}

export const KEY_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

/** Cryptography libraries also take 16 bytes, for a weaker cipher. */
export function checkKeyBytes(raw: Uint8Array): void {
  if (raw.length !== KEY_BYTES) throw new RangeError(`a key must have ${KEY_BYTES} bytes, got ${raw.length}`);
}

/** The browser's `CryptoKey`, which Node has too, but not under a global name. */
type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

export function randomBytes(count: number): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(count));
}

export const webAead: Aead = {
  async importKey(raw) {
    checkKeyBytes(raw);
    return crypto.subtle.importKey("raw", bytes(raw), "AES-GCM", false, ["encrypt", "decrypt"]);
  },

  async seal(key, plain, context) {
    const nonce = randomBytes(NONCE_BYTES);
    const algorithm = { name: "AES-GCM", iv: nonce, additionalData: bytes(context) };
    const ciphertext = new Uint8Array(await crypto.subtle.encrypt(algorithm, key as CryptoKey, bytes(plain)));
    const sealed = new Uint8Array(NONCE_BYTES + ciphertext.length);
    sealed.set(nonce);
    sealed.set(ciphertext, NONCE_BYTES);
    return sealed;
  },

  async open(key, sealed, context) {
    const iv = bytes(sealed.subarray(0, NONCE_BYTES));
    const algorithm = { name: "AES-GCM", iv, additionalData: bytes(context) };
    try {
      return new Uint8Array(
        await crypto.subtle.decrypt(algorithm, key as CryptoKey, bytes(sealed.subarray(NONCE_BYTES))),
      );
    } catch {
      return null;
    }
  },

  async derive(secret, salt, info, count) {
    const key = await crypto.subtle.importKey("raw", bytes(secret), "HKDF", false, ["deriveBits"]);
    const algorithm = { name: "HKDF", hash: "SHA-256", salt: bytes(salt), info: bytes(info) };
    return new Uint8Array(await crypto.subtle.deriveBits(algorithm, key, 8 * count));
  },
};

/** WebCrypto's types require bytes that are not shared between threads. */
function bytes(view: Uint8Array): Uint8Array<ArrayBuffer> {
  return view.buffer instanceof ArrayBuffer ? (view as Uint8Array<ArrayBuffer>) : new Uint8Array(view);
}
