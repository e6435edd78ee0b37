/**
 * Seals biometric data and names of people before a store writes them. Sealed bytes name the key that opens them:
 *
 *   | format, u8 | key id, 16 bytes | nonce, 12 bytes | ciphertext | tag, 16 bytes |
 *
 * and are bound to their place (scope, kind, profile or session, record): they cannot be opened in another row.
 * Format 2: embeddings are turned by their scope's secret first (transform.ts). Format 1 is older, or holds no embeddings.
 */
import { ProfileKeyLostError, SealError } from "../errors.js";
import type { AeadKey } from "./aead.js";
import { type DataKey, fromHex, type KeyId, type KeyRing, keyLost, toHex } from "./key-ring.js";
import { turn, turnBack } from "./transform.js";

const encoder = new TextEncoder();

export type SealedKind = "template" | "segment" | "media" | "audio-model" | "document" | "name";

/** The place that sealed bytes are bound to. */
export interface Place {
  readonly scopeId: string;
  readonly kind: SealedKind;
  /** The profile or session whose key seals it. */
  readonly subjectId: string;
  readonly recordId: string;
}

/** Of what a profile has one of. */
export const profilePlace = (kind: "template" | "name", scopeId: string, profileId: string): Place => ({
  scopeId,
  kind,
  subjectId: profileId,
  recordId: profileId,
});

/** Of a segment that a profile was enrolled from. */
export const segmentPlace = (scopeId: string, profileId: string, audioModelId: string): Place => ({
  scopeId,
  kind: "segment",
  subjectId: profileId,
  recordId: audioModelId,
});

/** Of a recording or an audio model of a session. */
export const recordingPlace = (
  kind: "media" | "audio-model",
  { scopeId, sessionId, id }: { scopeId: string; sessionId: string; id: string },
): Place => ({ scopeId, kind, subjectId: sessionId, recordId: id });

/** Documents belong to no biometric scope; their key is wrapped under a name that cannot be a scope id. */
export const DOCUMENT_SCOPE = "\0documents";

export const documentPlace = (collection: string, id: string): Place => ({
  scopeId: DOCUMENT_SCOPE,
  kind: "document",
  subjectId: collection,
  recordId: id,
});

export interface Sealed {
  readonly place: Place;
  readonly bytes: Uint8Array;
}

const [PLAIN, TURNED] = [1, 2];
const WITH_EMBEDDINGS: ReadonlySet<SealedKind> = new Set(["template", "segment", "audio-model"]);
const KEY_ID_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES;

export class Vault {
  constructor(readonly ring: KeyRing) {}

  async seal(key: DataKey, place: Place, plain: Uint8Array): Promise<Uint8Array> {
    if (!WITH_EMBEDDINGS.has(place.kind)) return this.#sealWith(key, place, plain, PLAIN);
    const turned = await turn(this.ring.aead, await this.ring.secret(place.scopeId), plain);
    return this.#sealWith(key, place, turned, TURNED);
  }

  /** The same content with another key, which works without the scope's secret; `null` when the old key was destroyed. */
  async reseal(key: DataKey, place: Place, bytes: Uint8Array): Promise<Uint8Array | null> {
    const old = await this.key(place.scopeId, keyIdOf(bytes));
    return old && this.#sealWith(key, place, await this.#contentOf(old.key, place, bytes), bytes[0]!);
  }

  /** `null` when the key was destroyed. */
  async open(place: Place, bytes: Uint8Array): Promise<Uint8Array | null> {
    const [plain] = await this.openAll(place.scopeId, [{ place, bytes }]);
    return plain ?? null;
  }

  /** Opens several of one scope, with one lookup of their keys; `null` where the key was destroyed. */
  async openAll(scopeId: string, sealed: readonly Sealed[]): Promise<(Uint8Array | null)[]> {
    const keyIds = sealed.map(({ bytes }) => keyIdOf(bytes));
    const keys = await this.ring.open(scopeId, keyIds);
    const opened: (Uint8Array | null)[] = [];
    for (const [i, { place, bytes }] of sealed.entries()) {
      const key = keys.get(keyIds[i]!);
      opened.push(key ? await this.#openWith(key, place, bytes) : null);
    }
    return opened;
  }

  /** The key with this id, to seal more with it; `null` when it was destroyed. */
  async key(scopeId: string, id: KeyId): Promise<DataKey | null> {
    const key = (await this.ring.open(scopeId, [id])).get(id);
    return key ? { id, key } : null;
  }

  /** Tells an erased profile (its key was destroyed) from a lost key, which must not be mistaken for an erasure. */
  async assertDestroyed(scopeId: string, profileId: string, keyId: KeyId): Promise<void> {
    if (!(await this.ring.shelf.destroyedOf(scopeId, [keyId])).has(keyId)) throw new ProfileKeyLostError(profileId);
  }

  async #sealWith({ id, key }: DataKey, place: Place, content: Uint8Array, format: number): Promise<Uint8Array> {
    const message = await this.ring.aead.seal(key, content, context(place));
    const bytes = new Uint8Array(HEADER_BYTES + message.length);
    bytes[0] = format;
    bytes.set(fromHex(id), 1);
    bytes.set(message, HEADER_BYTES);
    return bytes;
  }

  async #contentOf(key: AeadKey, place: Place, bytes: Uint8Array): Promise<Uint8Array> {
    const content = await this.ring.aead.open(key, bytes.subarray(HEADER_BYTES), context(place));
    if (content) return content;
    throw new SealError(
      "damaged",
      `the sealed ${place.kind} ${place.recordId} was altered or moved; restore it from a backup`,
    );
  }

  async #openWith(key: AeadKey, place: Place, bytes: Uint8Array): Promise<Uint8Array> {
    const plain = await this.#contentOf(key, place, bytes);
    if (bytes[0] === PLAIN) return plain;
    const turnedBack = await turnBack(this.ring.aead, await this.ring.secret(place.scopeId), plain);
    if (!turnedBack) throw keyLost(`the secret that turns the embeddings of scope ${place.scopeId} is missing`);
    return turnedBack;
  }
}

/** As `reseal`, for an erasure: lost keys and damaged records must not keep anybody from being erased. `onUnopened` is told their ids. */
export async function resealIfOpened(
  vault: Pick<Vault, "reseal">,
  key: DataKey,
  place: Place,
  bytes: Uint8Array,
  onUnopened: (recordId: string) => void,
): Promise<{ readonly resealed: Uint8Array | null; readonly isKeyLost: boolean }> {
  try {
    const resealed = await vault.reseal(key, place, bytes);
    if (!resealed) onUnopened(place.recordId);
    return { resealed, isKeyLost: false };
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    onUnopened(place.recordId);
    return { resealed: null, isKeyLost: error.code !== "damaged" };
  }
}

export function keyIdOf(bytes: Uint8Array): KeyId {
  if (bytes.length < HEADER_BYTES || (bytes[0] !== PLAIN && bytes[0] !== TURNED))
    throw new SealError("damaged", "the bytes were not sealed by this store");
  return toHex(bytes.subarray(1, HEADER_BYTES));
}

function context({ scopeId, kind, subjectId, recordId }: Place): Uint8Array {
  return encoder.encode(JSON.stringify(["vivavoce sealed", scopeId, kind, subjectId, recordId]));
}
