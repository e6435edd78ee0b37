/** Calls announced in advance, for lines whose dialect says too little about a call or has no password. */

const MOST_ANNOUNCED = 10_000;

export class Announcements<T> {
  readonly #open = new Map<string, { readonly value: T; readonly until: number }>();

  constructor(
    private readonly seconds: number,
    private readonly now: () => number = () => performance.now() / 1000,
  ) {}

  /** False if too many are waiting. */
  add(id: string, value: T): boolean {
    this.#forget();
    // An id that is announced again moves to the end: the order is that of expiry.
    this.#open.delete(id);
    if (this.#open.size >= MOST_ANNOUNCED) return false;
    this.#open.set(id, { value, until: this.now() + this.seconds });
    return true;
  }

  get(id: string): T | null {
    this.#forget();
    return this.#open.get(id)?.value ?? null;
  }

  /** Each announcement is used once. */
  take(id: string): T | null {
    const value = this.get(id);
    this.#open.delete(id);
    return value;
  }

  /** In order of arrival, so the oldest come first. */
  #forget(): void {
    for (const [id, { until }] of this.#open) {
      if (until > this.now()) return;
      this.#open.delete(id);
    }
  }
}
