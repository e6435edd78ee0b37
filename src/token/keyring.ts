import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWK,
} from "jose";
import type { Clock } from "./clock.js";
import { collection, type Documents } from "./documents.js";

/** The algorithm that signs tokens. */
export type SigningAlgorithm = "ES256" | "RS256" | "EdDSA";

interface StoredKey {
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  readonly publicJwk: JWK;
  /** A store that writes to disk seals its documents. */
  readonly privateJwk: JWK;
  readonly createdAt: number;
  /** A key is published before it signs, so that clients which cache our JWKS know it in time. */
  readonly signsFrom: number;
  /** When the last token signed with it expires; `null` until there is a successor. */
  readonly publishedUntil: number | null;
}

interface Ring {
  readonly keys: readonly StoredKey[];
  /** The ids of keys that were removed because they leaked. */
  readonly revoked?: readonly string[];
}

/** The keys that sign tokens, and their public parts. */
export interface Keyring {
  signer(): Promise<{ kid: string; algorithm: SigningAlgorithm; key: CryptoKey }>;
  /** Every public key that a valid token may be signed with. `fresh` reads the store again. */
  jwks(fresh?: boolean): Promise<JSONWebKeySet>;
  /** The private keys, for the authorization code flow. */
  privateJwks(): Promise<{ keys: JWK[] }>;
  /**
   * Creates the next signing key. Tokens already issued stay valid until they expire. With `revoke` (the old key leaked), the old key
   * is removed at once, and every token it signed becomes invalid.
   */
  rotate(options?: { revoke?: boolean }): Promise<{ kid: string; signsFrom: number }>;
  /** Whether `rotate` with `revoke` removed this key. A key that was replaced is removed too, when its tokens have expired. */
  isRevoked(kid: string): Promise<boolean>;
  list(): Promise<Omit<StoredKey, "publicJwk" | "privateJwk">[]>;
}

/** Options of the keys that sign tokens. */
export interface KeyringOptions {
  readonly documents: Documents;
  readonly clock: Clock;
  readonly algorithm?: SigningAlgorithm;
  /** The longest lifetime of a token, clock skew included. */
  readonly longestTokenMs: number;
  /** Time between publishing a key and signing with it. */
  readonly leadMs?: number;
  readonly rotateAfterMs?: number;
  readonly generateKey?: (algorithm: SigningAlgorithm) => Promise<{ publicKey: CryptoKey; privateKey: CryptoKey }>;
}

const REFRESH_MS = 5_000;
const LEAD_MS = 60_000;
const ROTATE_AFTER_MS = 90 * 24 * 3_600_000;
const RING_ID = "current";

export function createKeyring(options: KeyringOptions): Keyring {
  const { clock, longestTokenMs } = options;
  // A token is signed once and verified with every call, and RSA verifies three times as fast as an elliptic curve.
  const algorithm = options.algorithm ?? "RS256";
  const leadMs = options.leadMs ?? LEAD_MS;
  const rotateAfterMs = options.rotateAfterMs ?? ROTATE_AFTER_MS;
  const generateKey = options.generateKey ?? ((alg) => generateKeyPair(alg, { extractable: true }));
  const rings = collection<Ring>(options.documents, "token.keyring");

  const imported = new Map<string, CryptoKey>();
  let cached: { ring: Ring; readAt: number } | null = null;
  let replacing: Promise<unknown> | null = null;

  async function newKey(signsFrom: number): Promise<StoredKey> {
    const pair = await generateKey(algorithm);
    const publicJwk = await exportJWK(pair.publicKey);
    const kid = await calculateJwkThumbprint(publicJwk);
    const privateJwk = await exportJWK(pair.privateKey);
    return { kid, algorithm, publicJwk, privateJwk, createdAt: clock.now(), signsFrom, publishedUntil: null };
  }

  /** Reads the keys at most every few seconds, and creates the first key if there is none. */
  async function load(fresh = false): Promise<Ring> {
    const now = clock.now();
    if (!fresh && cached && now - cached.readAt < REFRESH_MS && now >= cached.readAt) return cached.ring;
    let ring = await rings.get(RING_ID);
    if (!ring) {
      // Several replicas may start at once: all use the first key that was stored.
      await rings.insert(RING_ID, { keys: [await newKey(now)] });
      ring = (await rings.get(RING_ID)) as Ring;
    }
    cached = { ring, readAt: now };
    return ring;
  }

  /** The newest key whose time has come. Keys are in the order in which they were made: their times are not, once the clock was set back. */
  const signing = (ring: Ring, now: number): StoredKey =>
    ring.keys.findLast((key) => key.signsFrom <= now) ?? (ring.keys[0] as StoredKey);

  /** `add` gives the ring with the key; nothing is stored where it gives none. */
  async function addKey(leadMs: number, add: (ring: Ring | null, next: StoredKey, now: number) => Ring | undefined) {
    const now = clock.now();
    const next = await newKey(now + leadMs);
    await rings.update(RING_ID, (ring) => add(ring, next, now));
    cached = null;
    return { kid: next.kid, signsFrom: next.signsFrom };
  }

  /** Those that are still published, and the next one. */
  const withKey = (ring: Ring | null, next: StoredKey, now: number): Ring => ({
    ...ring,
    keys: [
      ...(ring?.keys ?? [])
        .filter((key) => key.publishedUntil === null || key.publishedUntil > now)
        .map((key) => ({ ...key, publishedUntil: key.publishedUntil ?? next.signsFrom + longestTokenMs })),
      next,
    ],
  });

  const only = (ring: Ring | null, next: StoredKey): Ring => ({
    keys: [next],
    revoked: [...(ring?.revoked ?? []), ...(ring?.keys ?? []).map(({ kid }) => kid)],
  });

  /** Adds a key unless another replica has. All callers wait for the same one: each key takes a while to make. */
  function replaceOld({ kid }: StoredKey): Promise<unknown> {
    const unlessReplaced = (ring: Ring | null, next: StoredKey, now: number) =>
      ring?.keys.at(-1)?.kid === kid ? withKey(ring, next, now) : undefined;
    replacing ??= addKey(leadMs, unlessReplaced).finally(() => {
      replacing = null;
    });
    return replacing;
  }

  return {
    async signer() {
      let ring = await load();
      const now = clock.now();
      const newest = ring.keys[ring.keys.length - 1] as StoredKey;
      // A key made while the clock was ahead would otherwise sign for that much longer.
      if (Math.abs(now - newest.createdAt) > rotateAfterMs) {
        await replaceOld(newest);
        ring = await load();
      }
      const stored = signing(ring, now);
      let key = imported.get(stored.kid);
      if (!key) {
        key = (await importJWK(stored.privateJwk, stored.algorithm)) as CryptoKey;
        imported.set(stored.kid, key);
      }
      return { kid: stored.kid, algorithm: stored.algorithm, key };
    },

    async jwks(fresh) {
      const now = clock.now();
      const { keys } = await load(fresh);
      return {
        keys: keys
          .filter((key) => key.publishedUntil === null || key.publishedUntil > now)
          .map((key) => ({ ...key.publicJwk, kid: key.kid, alg: key.algorithm, use: "sig" })),
      };
    },

    async privateJwks() {
      const { keys } = await load();
      return { keys: keys.map((key) => ({ ...key.privateJwk, kid: key.kid, alg: key.algorithm, use: "sig" })) };
    },

    rotate: ({ revoke = false } = {}) => (revoke ? addKey(0, only) : addKey(leadMs, withKey)),

    async isRevoked(kid) {
      return (await load()).revoked?.includes(kid) ?? false;
    },

    async list() {
      const { keys } = await load(true);
      return keys.map(({ publicJwk: _, privateJwk: __, ...key }) => key);
    },
  };
}
