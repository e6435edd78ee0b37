/** Time and random bytes are passed in, so that tests can control both. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** Random bytes; passed in so that tests can choose them. */
export interface Random {
  bytes(length: number): Uint8Array;
}

/** The clock of this machine. */
export const systemClock: Clock = { now: () => Date.now() };

/** Cryptographically secure random bytes of this machine. */
export const systemRandom: Random = { bytes: (length) => globalThis.crypto.getRandomValues(new Uint8Array(length)) };

/** A clock that a program passed in. If its time is not a number, this machine's is used: compared with NaN, no token would ever expire. */
export const checkedClock = (clock: Clock): Clock => ({
  now: () => {
    const now = clock.now();
    return Number.isFinite(now) ? now : systemClock.now();
  },
});

export const epochSeconds = (clock: Clock): number => Math.floor(clock.now() / 1000);
