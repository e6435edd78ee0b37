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
 * One client from one address is a guesser: slowed soon and long. A whole address may be an office, and a client's name is not secret,
 * so anybody could fail in its name: both are slowed later and for less, else guessing would shut out the one who knows.
 */
const PAIR: Allowance = { free: 5, longestWaitMs: 15 * 60_000 };
const ADDRESS: Allowance = { free: 30, longestWaitMs: 60_000 };
const CLIENT: Allowance = { free: 50, longestWaitMs: 5_000 };

/** After the first of them. */
const FORGET_AFTER_MS = 60 * 60_000;

/** An address from which a client came in is known for so long, and noted again so often. */
const REMEMBER_SUCCESS_MS = 30 * 86_400_000;
const NOTE_EVERY_MS = 86_400_000;
const MOST_NOTED = 10_000;

export interface Attempt {
  failed(): Promise<void>;
  succeeded(): Promise<void>;
}

export interface Throttle {
  /**
   * Rejects with `temporarily_unavailable` (429, `Retry-After`) while this client or address has to wait. `countFirst` counts the
   * attempt as a failure from now on, until it is reported as successful: of many at once not all get in.
   */
  attempt(client: string, address: string, options?: { countFirst?: boolean }): Promise<Attempt>;
}

/** Names come from strangers and may be as long as a request. */
const short = (name: string): string =>
  name.length <= 128 ? name : createHash("sha256").update(name).digest("base64");

/** Slows guessing by doubling waits. Kept in the store, so that all replicas slow together and a restart forgives nothing. */
export function createThrottle({ documents, clock }: { documents: Documents; clock: Clock }): Throttle {
  const failures = collection<Failures>(documents, "token.failures");
  const succeededFrom = collection<{ at: number }>(documents, "token.successes");
  /** Pairs noted by this process, with the time: a token request is not to cost a write each. */
  const noted = new Map<string, number>();

  async function noteSuccess(pair: string): Promise<void> {
    const now = clock.now();
    const last = noted.get(pair);
    if (last !== undefined && now >= last && now - last < NOTE_EVERY_MS) return;
    noted.delete(pair);
    noted.set(pair, now);
    if (noted.size > MOST_NOTED) noted.delete(noted.keys().next().value!);
    await succeededFrom.put(pair, { at: now }, now + REMEMBER_SUCCESS_MS);
  }

  function refuse(waitMs: number): never {
    throw new OAuthError("temporarily_unavailable", "too many failed attempts, try again later", {
      headers: { "Retry-After": String(Math.ceil(waitMs / 1000)) },
      refusal: "tooManyAttempts",
    });
  }

  /** No wait is longer than it may become: a clock that was ahead when it was written must not keep anybody out for a year. */
  const restOf = (entry: Failures | null, { longestWaitMs }: Allowance): number =>
    Math.min(longestWaitMs, Math.max(0, (entry?.until ?? 0) - clock.now()));

  /** One more failure; with `unlessWaiting` none where there is a wait already, whose rest is the answer. */
  async function count(key: string, allowance: Allowance, unlessWaiting: boolean): Promise<number> {
    const { free, longestWaitMs } = allowance;
    const now = clock.now();
    let rest = 0;
    // What is there keeps its expiry; made here, an entry has one.
    await failures.insert(key, { count: 0, until: 0 }, now + FORGET_AFTER_MS);
    await failures.update(key, (entry) => {
      rest = unlessWaiting ? restOf(entry, allowance) : 0;
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
      const waits = known.map((entry, i) => restOf(entry, keys[i]![1]));
      // Who got in from here before is not kept out by others who fail in its name elsewhere.
      if (waits[2]! > 0 && (await succeededFrom.get(pair)) !== null) waits[2] = 0;
      const waitMs = Math.max(0, ...waits);
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
          if (!countFirst) await noteSuccess(pair);
          // The address keeps its count: one known secret must not buy free guesses at others.
          if (countFirst) {
            await failures.update(place, (entry) => (entry ? { count: entry.count - 1, until: 0 } : undefined));
          }
        },
      };
    },
  };
}
