import { createHash, createHmac, randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import type { Random } from "./clock.js";

/** scrypt's cost. `memory` in bytes is 128 · n · r. */
export interface Cost {
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

/** Passwords chosen by people can be guessed: OWASP's recommendation for scrypt at 32 MiB. */
const CHOSEN: Cost = { n: 1 << 15, r: 8, p: 3 };

const HASH_BYTES = 32;
const SALT_BYTES = 16;

async function derive(secret: string, salt: Uint8Array, { n, r, p }: Cost): Promise<Buffer> {
  const given = secret.normalize("NFKC");
  // `maxmem` is about twice what it takes.
  const options = { N: n, r, p, maxmem: 256 * n * r };
  return new Promise((resolve, reject) => {
    scrypt(given, salt, HASH_BYTES, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

/** A generated secret has 256 random bits: a leaked table is useless at any cost, and anybody may have one checked. */
const digestOf = (secret: string, salt: Uint8Array): Buffer =>
  createHash("sha256").update(salt).update(secret.normalize("NFKC")).digest();

const encode = (algorithm: readonly (string | number)[], salt: Uint8Array, hash: Uint8Array): string =>
  [...algorithm, Buffer.from(salt).toString("base64url"), Buffer.from(hash).toString("base64url")].join("$");

/** `cost` is `null` if the hash is that of a generated secret. */
function decode(record: string): { cost: Cost | null; salt: Buffer; hash: Buffer } | null {
  const parts = /^(?:sha256|scrypt\$(\d+)\$(\d+)\$(\d+))\$([\w-]{22})\$([\w-]{43})$/.exec(record);
  if (!parts) return null;
  const [, n, r, p, salt, hash] = parts;
  return {
    cost: n === undefined ? null : { n: Number(n), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt!, "base64url"),
    hash: Buffer.from(hash!, "base64url"),
  };
}

export type Secrets = ReturnType<typeof createSecrets>;
type Strength = "generated" | "chosen";

/** How many verified secrets are remembered. */
const REMEMBERED = 10_000;

/**
 * Hashes secrets and compares them. Version 0.1.0 kept generated ones as costly as passwords: from the second use of such a secret on, only
 * a digest is compared that is keyed by this process. The stored record is the cache key: a regenerated secret has another record and
 * never hits the cache.
 */
export function createSecrets(random: Random, chosen: Cost = CHOSEN) {
  const processKey = randomBytes(32);
  const passed = new Map<string, Buffer>();
  const digest = (secret: string): Buffer => createHmac("sha256", processKey).update(secret).digest();

  const remember = (record: string, secret: string): void => {
    passed.set(record, digest(secret));
    if (passed.size > REMEMBERED) passed.delete(passed.keys().next().value as string);
  };

  /** Takes the same time for a client or user that does not exist. */
  async function refuse(secret: string, strength: Strength): Promise<false> {
    const salt = new Uint8Array(SALT_BYTES);
    if (strength === "generated") digestOf(secret, salt);
    else await derive(secret, salt, chosen);
    return false;
  }

  return {
    /** 256 bits in base64url: none of `:` `%` `+`, which a Basic header may mangle. */
    generate: (): string => Buffer.from(random.bytes(32)).toString("base64url"),

    async hash(secret: string, strength: Strength): Promise<string> {
      const salt = random.bytes(SALT_BYTES);
      if (strength === "generated") return encode(["sha256"], salt, digestOf(secret, salt));
      return encode(["scrypt", chosen.n, chosen.r, chosen.p], salt, await derive(secret, salt, chosen));
    },

    /** `record` is `null` for a client or user that does not exist. */
    async matches(secret: string, record: string | null, strength: Strength): Promise<boolean> {
      const stored = record === null ? null : decode(record);
      if (record === null || stored === null) return refuse(secret, strength);
      const { cost, salt, hash } = stored;
      if (cost === null) return timingSafeEqual(digestOf(secret, salt), hash);
      const known = passed.get(record);
      if (known && timingSafeEqual(known, digest(secret))) return true;
      const same = timingSafeEqual(await derive(secret, salt, cost), hash);
      // A password is checked once per sign-in; only secrets that programs send repeatedly are worth remembering.
      if (same && strength === "generated") remember(record, secret);
      return same;
    },
  };
}
