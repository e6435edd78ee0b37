interface Bucket {
  tokens: number;
  filledAt: number;
}

/** A token bucket for each client. */
export class CallRates {
  readonly #buckets = new Map<string, Bucket>();

  constructor(
    /** 0 sets no limit. */
    readonly perSecond: number,
    readonly burst: number,
    readonly now: () => number = () => performance.now() / 1000,
    /** Number of buckets kept. The least recently used is dropped first, and its client starts with a full one. */
    readonly capacity = 10_000,
  ) {}

  /** `null` if the call is allowed, else the seconds until the next one is. */
  take(client: string): number | null {
    if (this.perSecond === 0) return null;
    const now = this.now();
    const bucket = this.#buckets.get(client) ?? { tokens: this.burst, filledAt: now };
    // A clock that was set back, or gives no number, fills nothing and takes nothing away.
    if (now > bucket.filledAt)
      bucket.tokens = Math.min(this.burst, bucket.tokens + (now - bucket.filledAt) * this.perSecond);
    bucket.filledAt = now;
    // Inserted again, so that the map is ordered by last use.
    this.#buckets.delete(client);
    this.#buckets.set(client, bucket);
    if (this.#buckets.size > this.capacity) {
      const [oldest] = this.#buckets.keys();
      this.#buckets.delete(oldest!);
    }
    if (bucket.tokens < 1) return (1 - bucket.tokens) / this.perSecond;
    bucket.tokens -= 1;
    return null;
  }
}
