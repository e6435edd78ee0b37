import { createHash } from "node:crypto";
import type { Clock } from "./clock.js";
import { collection, type Documents } from "./documents.js";
import { OAuthError } from "./errors.js";

interface Failures {
  readonly count: number;
  /** No attempt is looked at before this time. */
  readonly until: number;
}

/** How many failures are free, and how long the wait may become. */
interface Allowance {
  readonly free: number;
  readonly longestWaitMs: number;
}

/**
 * One client from one address is a guesser: slowed soon and long. A whole address may be an office, and a client's name is no secret,
 * so anybody could fail in its name: both are slowed later and for less, else guessing would shut out the one who knows.
 */
const PAIR: Allowance = { free: 5, longestWaitMs: 15 * 60_000 };
const ADDRESS: Allowance = { free: 30, longestWaitMs: 60_000 };
const CLIENT: Allowance = { free: 50, longestWaitMs: 5_000 };

/** After the first of them. */
const FORGET_AFTER_MS = 60 * 60_000;

export interface Attempt {
  failed(): Promise<void>;
  succeeded(): Promise<void>;
}

export interface Throttle {
  /**
   * Rejects with `temporarily_unavailable` (429, `Retry-After`) while this client or address has to wait. `countFirst` counts the
   * attempt as a failure from now on, until it is told to have succeeded: of many at once not all are let in.
   */
  attempt(client: string, address: string, options?: { countFirst?: boolean }): Promise<Attempt>;
}

/** Names come from strangers and may be as long as a request. */
const short = (name: string): string =>
  name.length <= 128 ? name : createHash("sha256").update(name).digest("base64");

/** Slows guessing by doubling waits. Kept in the store, so that all replicas slow together and a restart forgives nothing. */
export function createThrottle({ documents, clock }: { documents: Documents; clock: Clock }): Throttle {
  const failures = collection<Failures>(documents, "token.failures");

  function refuse(waitMs: number): never {
    throw new OAuthError("temporarily_unavailable", "too many failed attempts, try again later", {
      headers: { "Retry-After": String(Math.ceil(waitMs / 1000)) },
    });
  }

  /** One more failure; with `unlessWaiting` none where there is a wait already, whose rest is the answer. */
  async function count(key: string, { free, longestWaitMs }: Allowance, unlessWaiting: boolean): Promise<number> {
    const now = clock.now();
    let rest = 0;
    // What is there keeps its expiry; made here, an entry has one.
    await failures.insert(key, { count: 0, until: 0 }, now + FORGET_AFTER_MS);
    await failures.update(key, (entry) => {
      rest = unlessWaiting ? Math.max(0, (entry?.until ?? 0) - now) : 0;
      if (rest > 0 || entry === null) return undefined;
      const over = entry.count + 1 - free;
      const waitMs = over < 0 ? 0 : Math.min(longestWaitMs, 1000 * 2 ** Math.min(over, 30));
      return { count: entry.count + 1, until: now + waitMs };
    });
    return rest;
  }

  return {
    async attempt(client, address, { countFirst = false } = {}) {
      const pair = `pair ${address} ${short(client)}`;
      const place = `address ${address}`;
      const name = `client ${short(client)}`;
      const keys: readonly [string, Allowance][] = [
        [pair, PAIR],
        [place, ADDRESS],
        [name, CLIENT],
      ];
      const known = await Promise.all(keys.map(([key]) => failures.get(key)));
      const waitMs = Math.max(0, ...known.map((entry) => (entry?.until ?? 0) - clock.now()));
      if (waitMs > 0) refuse(waitMs);
      if (countFirst) {
        for (const [key, allowance] of keys) {
          const rest = await count(key, allowance, true);
          if (rest > 0) refuse(rest);
        }
      }
      return {
        async failed() {
          if (!countFirst) await Promise.all(keys.map(([key, allowance]) => count(key, allowance, false)));
        },
        async succeeded() {
          if (countFirst || known[0]) await failures.delete(pair);
          if (countFirst || known[2]) await failures.delete(name);
          // The address keeps its count: one known secret must not buy free guesses at others.
          if (countFirst) {
            await failures.update(place, (entry) => (entry ? { count: entry.count - 1, until: 0 } : undefined));
          }
        },
      };
    },
  };
}
