import { type Clock, epochSeconds } from "./clock.js";
import type { Documents } from "./documents.js";

/** Tokens that their clients revoked before they expired. Every replica knows within a second. */
export interface Revocations {
  revoke(jti: string, expiresAt: number): Promise<void>;
  isRevoked(jti: string): Promise<boolean> | boolean;
}

const COLLECTION = "revoked-tokens";
/** Other replicas' revocations are looked for this often at most: a token is checked with every call. */
const LOOK_EVERY_MS = 1000;
/** Clocks of replicas may differ. */
const KEEP_LONGER_S = 60;

export function createRevocations({ documents, clock }: { documents: Documents; clock: Clock }): Revocations {
  let known = new Set<string>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | null = null;

  async function look(): Promise<void> {
    const listed = await documents.list(COLLECTION);
    known = new Set(listed.map(({ id }) => id));
    lookedAt = clock.now();
  }

  return {
    async revoke(jti, expiresAt) {
      if (expiresAt <= epochSeconds(clock)) return;
      await documents.put(COLLECTION, jti, { at: clock.now() }, (expiresAt + KEEP_LONGER_S) * 1000);
      known.add(jti);
    },
    isRevoked(jti) {
      if (known.has(jti)) return true;
      const age = clock.now() - lookedAt;
      if (age >= 0 && age < LOOK_EVERY_MS) return false;
      looking ??= look().finally(() => {
        looking = null;
      });
      return looking.then(() => known.has(jti));
    },
  };
}
