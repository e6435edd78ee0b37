/**
 * The same AES-256-GCM through node:crypto, on the calling thread. Loading a gallery opens two small messages for each print, and WebCrypto
 * takes several times longer to hand each to a thread than to open it.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomFillSync,
} from "node:crypto";
import { type Aead, checkKeyBytes, NONCE_BYTES, TAG_BYTES } from "./aead.js";

export const nodeAead: Aead = {
  importKey(raw) {
    checkKeyBytes(raw);
    return createSecretKey(raw);
  },

  seal(key, plain, context) {
    const sealed = new Uint8Array(NONCE_BYTES + plain.length + TAG_BYTES);
    const nonce = randomFillSync(sealed.subarray(0, NONCE_BYTES));
    const cipher = createCipheriv("aes-256-gcm", key as KeyObject, nonce);
    cipher.setAAD(context);
    sealed.set(cipher.update(plain), NONCE_BYTES);
    cipher.final();
    sealed.set(cipher.getAuthTag(), NONCE_BYTES + plain.length);
    return sealed;
  },

  open(key, sealed, context) {
    if (sealed.length < NONCE_BYTES + TAG_BYTES) return null;
    const nonce = sealed.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", key as KeyObject, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(context);
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    const plain = decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES));
    try {
      decipher.final();
    } catch {
      return null;
    }
    return new Uint8Array(plain.buffer, plain.byteOffset, plain.byteLength);
  },

  derive: (secret, salt, info, count) => new Uint8Array(hkdfSync("sha256", secret, salt, info, count)),
};
