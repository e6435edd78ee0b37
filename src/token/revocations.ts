import { type Clock, epochSeconds } from "./clock.js";
import type { Documents } from "./documents.js";

/** The parts of a token that are checked with every call. */
export interface IssuedToken {
  readonly jti: string | null;
  readonly clientId: string;
  readonly gkScopes: ReadonlySet<string>;
  /** Seconds. */
  readonly issuedAt: number;
}

/** Tokens that end before they expire: revoked, or their client or one of its scopes was removed. Replicas learn of it within a second. */
export type Revocations = ReturnType<typeof createRevocations>;

interface Entry {
  /** Milliseconds. */
  readonly at: number;
  /** For a client: the scopes it lost; `null` when the client was deleted. */
  readonly gkScopes?: readonly string[] | null;
}

const COLLECTION = "revoked-tokens";
/** Revocations of other replicas are read at most this often, because a token is checked with every call. */
const LOOK_EVERY_MS = 1000;
/** The clocks of replicas may differ. */
const KEEP_LONGER_S = 60;

export function createRevocations(documents: Documents, clock: Clock, longestTokenS: number) {
  let known = new Map<string, Entry>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | null = null;

  async function look(): Promise<void> {
    const listed = await documents.list(COLLECTION);
    known = new Map(listed.map(({ id, document }) => [id, document as Entry]));
    lookedAt = clock.now();
  }

  /** The time of issue is in whole seconds, so a token of the same second counts as issued before. */
  function isKnown({ jti, clientId, gkScopes, issuedAt }: IssuedToken): boolean {
    if (jti !== null && known.has(jti)) return true;
    const ended = known.get(clientEntry(clientId));
    if (!ended || 1000 * issuedAt > ended.at) return false;
    return ended.gkScopes == null || ended.gkScopes.some((gkScope) => gkScopes.has(gkScope));
  }

  return {
    async revoke(jti: string, expiresAt: number): Promise<void> {
      if (expiresAt <= epochSeconds(clock)) return;
      const entry: Entry = { at: clock.now() };
      await documents.put(COLLECTION, jti, entry, (expiresAt + KEEP_LONGER_S) * 1000);
      known.set(jti, entry);
    },
    /** Ends the tokens issued to the client so far; with scopes, only tokens that open one of them. */
    async endClient(clientId: string, gkScopes?: readonly string[]): Promise<void> {
      const id = clientEntry(clientId);
      const before = (await documents.get(COLLECTION, id)) as Entry | null;
      const lost = before && before.gkScopes == null ? null : gkScopes && [...(before?.gkScopes ?? []), ...gkScopes];
      const entry: Entry = { at: clock.now(), gkScopes: lost ?? null };
      await documents.put(COLLECTION, id, entry, clock.now() + (longestTokenS + KEEP_LONGER_S) * 1000);
      known.set(id, entry);
    },
    isRevoked(token: IssuedToken): Promise<boolean> | boolean {
      if (isKnown(token)) return true;
      const age = clock.now() - lookedAt;
      if (age >= 0 && age < LOOK_EVERY_MS) return false;
      looking ??= look().finally(() => {
        looking = null;
      });
      return looking.then(() => isKnown(token));
    },
  };
}

/** Token ids contain no space, so the keys cannot collide. */
const clientEntry = (clientId: string): string => `client ${clientId}`;
