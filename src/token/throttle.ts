import { createHash } from "node:crypto";
import { isIPv6 } from "node:net";
import { CallRates } from "./call-rates.js";
import type { Clock } from "./clock.js";
import { collection, type Documents } from "./documents.js";
import { OAuthError } from "./errors.js";

interface Failures {
  readonly count: number;
  /** Attempts before this time are refused. */
  readonly until: number;
}

/** How many failures are allowed without a wait, and the longest wait. */
interface Allowance {
  readonly free: number;
  readonly longestWaitMs: number;
}

/**
 * Failures of one client from one address are likely guesses: slowed soon, with long waits. A whole address may be an office, and anybody
 * can fail in a client's name: both are slowed later and with shorter waits, so that guessing does not lock out the real client.
 */
const PAIR: Allowance = { free: 5, longestWaitMs: 15 * 60_000 };
const ADDRESS: Allowance = { free: 30, longestWaitMs: 60_000 };
const CLIENT: Allowance = { free: 50, longestWaitMs: 5_000 };

/**
 * How many passwords a box checks at places where their owners have not signed in before: each takes tens of milliseconds, and whoever has
 * many addresses and names could have any number checked.
 */
const PASSWORDS_PER_SECOND = 2;
const PASSWORDS_AT_ONCE = 100;

/** Counted from the first failure. */
const FORGET_AFTER_MS = 60 * 60_000;

/** How long a successful address of a client is remembered, and how often it is written again. */
const REMEMBER_SUCCESS_MS = 30 * 86_400_000;
const NOTE_EVERY_MS = 86_400_000;

/** For how long a wait that was read is not read again; an attempt that was running when it began may end it. */
const TRUST_WAIT_MS = 1000;

/** How many successes, waits and failures of programs a process remembers. */
const MOST_NOTED = 10_000;

export type Throttle = ReturnType<typeof createThrottle>;

/** Names are untrusted and may be as long as a request. */
const short = (name: string): string =>
  name.length <= 128 ? name : createHash("sha256").update(name).digest("base64");

function note<T>(entries: Map<string, T>, key: string, value: T): void {
  entries.set(key, value);
  if (entries.size > MOST_NOTED) entries.delete(entries.keys().next().value!);
}

/** A subscriber of IPv6 has a whole network (/64), so its addresses count as one. */
export function networkOf(address: string): string {
  // Without the zone, which may contain anything.
  const plain = address.replace(/%.*/, "");
  if (!isIPv6(plain) || plain.includes(".")) return plain;
  const [head, tail = []] = plain.split("::").map((part) => part.split(":"));
  const zeros = Array<string>(8 - head!.length - tail.length).fill("0");
  const network = [...head!, ...zeros, ...tail]
    .slice(0, 4)
    .map((group) => Number.parseInt(group || "0", 16).toString(16));
  return `${network.join(":")}::/64`;
}

type FailureCounts = Pick<ReturnType<typeof collection<Failures>>, "get" | "insert" | "update" | "delete">;

/** Of people, who choose passwords that can be guessed: in the store, so that all replicas share them and a restart does not reset them. */
export const failuresInStore = (documents: Documents): FailureCounts => collection(documents, "token.failures");

/**
 * Of programs. Nobody guesses their 256 random bits, so each process counts for itself and forgets the oldest of many: anybody may fail as
 * often as they like, and to write that to the store costs more than the rest of the request.
 */
export function failuresInMemory(clock: Clock): FailureCounts {
  const entries = new Map<string, { readonly failures: Failures; readonly expiresAt: number }>();
  const live = (key: string) => {
    const found = entries.get(key);
    return found && clock.now() < found.expiresAt ? found : null;
  };
  return {
    get: async (key) => live(key)?.failures ?? null,
    async insert(key, failures, expiresAt) {
      if (live(key)) return false;
      note(entries, key, { failures, expiresAt: expiresAt! });
      return true;
    },
    async update(key, change) {
      const found = live(key);
      const next = change(found?.failures ?? null);
      if (found && next) entries.set(key, { ...found, failures: next });
      return next;
    },
    delete: async (key) => entries.delete(key),
  };
}

/** Slows guessing by doubling the wait. */
export function createThrottle({
  documents,
  failures,
  clock,
}: {
  documents: Documents;
  failures: FailureCounts;
  clock: Clock;
}) {
  const succeededFrom = collection<{ at: number }>(documents, "token.successes");
  const passwords = new CallRates(PASSWORDS_PER_SECOND, PASSWORDS_AT_ONCE, () => clock.now() / 1000);
  /** Pairs already written by this process, with the time, so that not every token request costs a write. */
  const noted = new Map<string, number>();
  /** Waits that were read, with the time, so that they are not read with each attempt. */
  const waiting = new Map<string, { readonly entry: Failures; readonly readAt: number }>();

  async function noteSuccess(pair: string): Promise<void> {
    const now = clock.now();
    const last = noted.get(pair);
    if (last !== undefined && now >= last && now - last < NOTE_EVERY_MS) return;
    await succeededFrom.put(pair, { at: now }, now + REMEMBER_SUCCESS_MS);
    note(noted, pair, now);
  }

  /** An entry that was read just now. */
  function remembered(key: string): Failures | null {
    const { entry = null, readAt = 0 } = waiting.get(key) ?? {};
    const age = clock.now() - readAt;
    return age >= 0 && age < TRUST_WAIT_MS ? entry : null;
  }

  function refuse(waitMs: number): never {
    throw new OAuthError("temporarily_unavailable", "too many failed attempts, try again later", {
      headers: { "Retry-After": String(Math.ceil(waitMs / 1000)) },
      refusal: "tooManyAttempts",
    });
  }

  /** An entry with more than the longest wait was written while the clock was ahead: it must not lock anybody out for a year. */
  function restOf(entry: Failures | null, { longestWaitMs }: Allowance): number {
    const rest = (entry?.until ?? 0) - clock.now();
    return rest > longestWaitMs ? 0 : Math.max(0, rest);
  }

  /** Counts one more failure. With `unlessWaiting`, counts nothing during a wait and returns the rest of that wait. */
  async function count(key: string, allowance: Allowance, unlessWaiting: boolean): Promise<number> {
    const { free, longestWaitMs } = allowance;
    const now = clock.now();
    let rest = 0;
    // An existing entry keeps its expiry; a new one gets one, and every allowance has more than one free failure.
    if (await failures.insert(key, { count: 1, until: 0 }, now + FORGET_AFTER_MS)) return 0;
    await failures.update(key, (entry) => {
      rest = unlessWaiting ? restOf(entry, allowance) : 0;
      if (rest > 0 || entry === null) return undefined;
      const over = entry.count + 1 - free;
      const waitMs = over < 0 ? 0 : Math.min(longestWaitMs, 1000 * 2 ** over);
      return { count: entry.count + 1, until: now + waitMs };
    });
    return rest;
  }

  return {
    /**
     * Rejects with `temporarily_unavailable` (429, `Retry-After`) while this client or address has to wait. `countFirst` counts the attempt
     * as a failure until it is reported as successful, which limits parallel attempts.
     */
    async attempt(client: string, address: string, { countFirst = false }: { countFirst?: boolean } = {}) {
      const from = networkOf(address);
      const pair = `pair ${from} ${short(client)}`;
      const place = `address ${from}`;
      const name = `client ${short(client)}`;
      const keys: readonly [string, Allowance][] = [
        [pair, PAIR],
        [place, ADDRESS],
        [name, CLIENT],
      ];
      /** Whether the client succeeded from this address before: then failures elsewhere in its name do not lock it out. */
      const refuseWaiting = async (entries: readonly (Failures | null)[]): Promise<boolean> => {
        const waits = entries.map((entry, i) => restOf(entry, keys[i]![1]));
        const isKnownHere = waits[2]! > 0 && (await succeededFrom.get(pair)) !== null;
        if (isKnownHere) waits[2] = 0;
        const waitMs = Math.max(...waits);
        if (waitMs > 0) refuse(waitMs);
        return isKnownHere;
      };
      await refuseWaiting(keys.map(([key]) => remembered(key)));
      const known = await Promise.all(keys.map(([key]) => failures.get(key)));
      for (const [i, [key, allowance]] of keys.entries())
        if (restOf(known[i]!, allowance) > 0) note(waiting, key, { entry: known[i]!, readAt: clock.now() });
      const isKnownHere = await refuseWaiting(known);
      if (countFirst) {
        const waitS = passwords.take("all");
        if (waitS !== null && (await succeededFrom.get(pair)) === null) refuse(waitS * 1000);
        for (const [key, allowance] of keys) {
          if (key === name && isKnownHere) continue;
          const rest = await count(key, allowance, true);
          if (rest > 0) refuse(rest);
        }
      }
      return {
        async failed(): Promise<void> {
          if (!countFirst) await Promise.all(keys.map(([key, allowance]) => count(key, allowance, false)));
        },
        async succeeded(): Promise<void> {
          if (countFirst || known[0]) await failures.delete(pair);
          if (countFirst || known[2]) await failures.delete(name);
          for (const [key] of keys) waiting.delete(key);
          await noteSuccess(pair);
          // The address keeps its count: knowing one secret must not give free guesses at others.
          if (countFirst)
            await failures.update(place, (entry) => (entry ? { count: entry.count - 1, until: 0 } : undefined));
        },
      };
    },
  };
}
