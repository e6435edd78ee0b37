/** Time and chance, handed in so that tests own both. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface Random {
  bytes(length: number): Uint8Array;
}

export const systemClock: Clock = { now: () => Date.now() };

export const systemRandom: Random = { bytes: (length) => globalThis.crypto.getRandomValues(new Uint8Array(length)) };

export const epochSeconds = (clock: Clock): number => Math.floor(clock.now() / 1000);
