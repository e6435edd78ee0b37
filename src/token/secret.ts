import { createHmac, randomBytes, scrypt, scryptSync, timingSafeEqual } from "node:crypto";
import type { Random } from "./clock.js";

/** scrypt's cost. `memory` in bytes is 128 · n · r. */
export interface Cost {
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

/** A generated secret has 256 random bits: a leaked table is useless at any cost, and anybody may have one checked. */
const GENERATED: Cost = { n: 1 << 4, r: 8, p: 1 };
/** Passwords chosen by people can be guessed: OWASP's recommendation for scrypt at 32 MiB. */
const CHOSEN: Cost = { n: 1 << 15, r: 8, p: 3 };

const HASH_BYTES = 32;
const SALT_BYTES = 16;

async function derive(secret: string, salt: Uint8Array, { n, r, p }: Cost): Promise<Buffer> {
  const given = secret.normalize("NFKC");
  // `maxmem` is about twice what it takes.
  const options = { N: n, r, p, maxmem: 256 * n * r };
  // Another thread would take as long to begin as this takes.
  if (n <= GENERATED.n) return scryptSync(given, salt, HASH_BYTES, options);
  return new Promise((resolve, reject) => {
    scrypt(given, salt, HASH_BYTES, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

const encode = (cost: Cost, salt: Uint8Array, hash: Uint8Array): string =>
  [
    "scrypt",
    cost.n,
    cost.r,
    cost.p,
    Buffer.from(salt).toString("base64url"),
    Buffer.from(hash).toString("base64url"),
  ].join("$");

function decode(record: string): { cost: Cost; salt: Buffer; hash: Buffer } | null {
  const parts = /^scrypt\$(\d+)\$(\d+)\$(\d+)\$([\w-]{22})\$([\w-]{43})$/.exec(record);
  if (!parts) return null;
  const [, n, r, p, salt, hash] = parts as unknown as [string, string, string, string, string, string];
  return {
    cost: { n: Number(n), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt, "base64url"),
    hash: Buffer.from(hash, "base64url"),
  };
}

export type Secrets = ReturnType<typeof createSecrets>;
type Strength = "generated" | "chosen";

/** How many verified secrets are remembered. */
const REMEMBERED = 10_000;

/**
 * Runs scrypt on the first use of a secret, then compares a digest keyed by this process, so that a client that asks every few minutes
 * costs microseconds. The stored record is the cache key: a regenerated secret has another record and never hits the cache.
 */
export function createSecrets(random: Random, chosen: Cost = CHOSEN) {
  const processKey = randomBytes(32);
  const passed = new Map<string, Buffer>();
  const digest = (secret: string): Buffer => createHmac("sha256", processKey).update(secret).digest();

  const remember = (record: string, secret: string): void => {
    passed.set(record, digest(secret));
    if (passed.size > REMEMBERED) passed.delete(passed.keys().next().value as string);
  };

  return {
    /** 256 bits in base64url: none of `:` `%` `+`, which a Basic header may mangle. */
    generate: (): string => Buffer.from(random.bytes(32)).toString("base64url"),

    async hash(secret: string, strength: Strength): Promise<string> {
      const cost = strength === "generated" ? GENERATED : chosen;
      const salt = random.bytes(SALT_BYTES);
      return encode(cost, salt, await derive(secret, salt, cost));
    },

    /** Takes the same time for a client or user that does not exist (`null`). */
    async matches(secret: string, record: string | null, strength: Strength): Promise<boolean> {
      const stored = record === null ? null : decode(record);
      if (record === null || stored === null) {
        await derive(secret, new Uint8Array(SALT_BYTES), strength === "generated" ? GENERATED : chosen);
        return false;
      }
      const known = passed.get(record);
      if (known && timingSafeEqual(known, digest(secret))) return true;
      const hash = await derive(secret, stored.salt, stored.cost);
      const same = timingSafeEqual(hash, stored.hash);
      // A password is checked once per sign-in; only secrets that programs send repeatedly are worth remembering.
      if (same && strength === "generated") remember(record, secret);
      return same;
    },
  };
}
