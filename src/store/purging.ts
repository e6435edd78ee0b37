const PURGE_EVERY_MS = 60_000;

/** Purges with the first write of each minute: what has expired and is never read again would otherwise stay forever. */
export function purgingNowAndThen<T>(now: () => number, purge: (expiredAt: number) => T): () => T | undefined {
  let purgedAt = now();
  return () => {
    const age = now() - purgedAt;
    // The clock may have been set back.
    if (age >= 0 && age < PURGE_EVERY_MS) return;
    purgedAt = now();
    return purge(purgedAt);
  };
}
