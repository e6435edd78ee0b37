import { createHash } from "node:crypto";
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
  /** `counted`: the attempt was counted as a failure beforehand. */
  succeeded(client: string, address: string, counted?: boolean): void;
}

/** Names come from strangers and may be as long as a request. */
const short = (name: string): string =>
  name.length <= 128 ? name : createHash("sha256").update(name).digest("base64");

/** Slows guessing by doubling waits. Kept in this process: each replica slows on its own. */
export function createThrottle(clock: Clock): Throttle {
  const failures = new Map<string, Failures>();

  const pairKey = (client: string, address: string): string => `pair ${address} ${short(client)}`;
  const addressKey = (address: string): string => `address ${address}`;
  const clientKey = (client: string): string => `client ${short(client)}`;
  const keys = (client: string, address: string): [string, Allowance][] => [
    [pairKey(client, address), PAIR],
    [addressKey(address), ADDRESS],
    [clientKey(client), CLIENT],
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

    succeeded(client, address, counted = false) {
      failures.delete(pairKey(client, address));
      failures.delete(clientKey(client));
      // The address keeps its count: one known secret must not buy free guesses at others.
      const entry = failures.get(addressKey(address));
      if (counted && entry) failures.set(addressKey(address), { ...entry, count: entry.count - 1, until: entry.last });
    },
  };
}
