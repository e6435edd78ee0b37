import type { Clock } from "./clock.js";
import type { Documents } from "./documents.js";

/** The parts of a token that are checked with every call. */
export interface IssuedToken {
  readonly jti: string | null;
  readonly clientId: string;
  readonly gkScopes: ReadonlySet<string>;
  /** Seconds. */
  readonly issuedAt: number;
  /** The key that signed it; `null` if it names none. */
  readonly keyId: string | null;
}

/** Tokens that end before they expire: revoked, or their client or one of its scopes was removed. Replicas learn of it within a second. */
export type Revocations = ReturnType<typeof createRevocations>;

interface Entry {
  /** Milliseconds. */
  readonly at: number;
  /** The client of a token that was revoked. */
  readonly clientId?: string;
}

const COLLECTION = "revoked-tokens";
/** Revocations of other replicas are read at most this often, because a token is checked with every call. */
const LOOK_EVERY_MS = 1000;
/** More revoked tokens of one client would make every look, and with it the calls of everybody, slower. */
const MOST_OF_CLIENT = 2_000;
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
  function isKnown({ jti, clientId, gkScopes, issuedAt }: Omit<IssuedToken, "keyId">): boolean {
    if (jti !== null && known.has(jti)) return true;
    const hasEnded = (id: string): boolean => {
      const at = known.get(id)?.at ?? Number.NEGATIVE_INFINITY;
      // The clock was ahead when the entry was written: the tokens of that time have ended, and it must not refuse later ones for years.
      return 1000 * issuedAt <= at && at - clock.now() <= longestTokenS * 1000;
    };
    return hasEnded(clientEntry(clientId)) || [...gkScopes].some((gkScope) => hasEnded(clientEntry(clientId, gkScope)));
  }

  async function note(id: string, expiresAt: number, of: { clientId?: string } = {}): Promise<void> {
    const entry: Entry = { at: clock.now(), ...of };
    await documents.put(COLLECTION, id, entry, expiresAt + KEEP_LONGER_S * 1000);
    // A look that began before the write does not have it, and replaces what is known.
    await looking?.catch(() => {});
    known.set(id, entry);
  }

  /** Ends the tokens issued to the client so far; with scopes, only tokens that open one of them. */
  async function endClient(clientId: string, gkScopes?: readonly string[]): Promise<void> {
    // An entry for each scope: an entry for several would have to be read first, and a second writer would overwrite it.
    const ids = gkScopes ? gkScopes.map((gkScope) => clientEntry(clientId, gkScope)) : [clientEntry(clientId)];
    for (const id of ids) await note(id, clock.now() + longestTokenS * 1000);
  }

  return {
    endClient,
    /** With too many, all tokens of the client end. */
    async revoke({ jti, clientId }: Pick<IssuedToken, "jti" | "clientId">, expiresAt: number): Promise<void> {
      if (jti === null) return;
      const others = [...known.values()].filter((entry) => entry.clientId === clientId).length;
      await (others < MOST_OF_CLIENT ? note(jti, expiresAt * 1000, { clientId }) : endClient(clientId));
    },
    isRevoked(token: Omit<IssuedToken, "keyId">): Promise<boolean> | boolean {
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

/** Ids of tokens, clients and scopes contain no space, so the keys cannot collide. */
const clientEntry = (clientId: string, gkScope?: string): string =>
  gkScope === undefined ? `client ${clientId}` : `client ${clientId} ${gkScope}`;
