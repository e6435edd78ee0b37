import type { Clock } from "./clock.js";
import { OAuthError } from "./errors.js";

interface Failures {
  count: number;
  /** No attempt is looked at before this time. */
  until: number;
  last: number;
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

const FORGET_AFTER_MS = 60 * 60_000;
const REMEMBERED = 20_000;

export interface Throttle {
  /** Throws `temporarily_unavailable` (429, `Retry-After`) while this client or address has to wait. */
  admit(client: string, address: string): void;
  failed(client: string, address: string): void;
  succeeded(client: string, address: string): void;
}

/** Slows guessing by doubling waits. Kept in this process: each replica slows on its own. */
export function createThrottle(clock: Clock): Throttle {
  const failures = new Map<string, Failures>();

  const keys = (client: string, address: string): [string, Allowance][] => [
    [`pair ${address} ${client}`, PAIR],
    [`address ${address}`, ADDRESS],
    [`client ${client}`, CLIENT],
  ];

  const recall = (key: string, now: number): Failures | undefined => {
    const entry = failures.get(key);
    if (entry && now - entry.last > FORGET_AFTER_MS) {
      failures.delete(key);
      return undefined;
    }
    return entry;
  };

  return {
    admit(client, address) {
      const now = clock.now();
      const waitMs = Math.max(0, ...keys(client, address).map(([key]) => (recall(key, now)?.until ?? 0) - now));
      if (waitMs > 0) {
        throw new OAuthError("temporarily_unavailable", "too many failed attempts, try again later", {
          headers: { "Retry-After": String(Math.ceil(waitMs / 1000)) },
        });
      }
    },

    failed(client, address) {
      const now = clock.now();
      for (const [key, allowance] of keys(client, address)) {
        const count = (recall(key, now)?.count ?? 0) + 1;
        const over = count - allowance.free;
        const waitMs = over < 0 ? 0 : Math.min(allowance.longestWaitMs, 1000 * 2 ** Math.min(over, 30));
        failures.delete(key);
        failures.set(key, { count, until: now + waitMs, last: now });
      }
      while (failures.size > REMEMBERED) failures.delete(failures.keys().next().value as string);
    },

    succeeded(client, address) {
      // The address keeps its count: one known secret must not buy free guesses at others.
      failures.delete(`pair ${address} ${client}`);
      failures.delete(`client ${client}`);
    },
  };
}
