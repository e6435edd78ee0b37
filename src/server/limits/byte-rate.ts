/** Limits how fast a stream may send: a sender that is too fast waits, short bursts pass. */
export class ByteRate {
  #credit: number;
  #at: number;

  constructor(
    readonly perSecond: number,
    readonly burstSeconds = 5,
    readonly now: () => number = () => performance.now() / 1000,
  ) {
    this.#credit = perSecond * burstSeconds;
    this.#at = now();
  }

  /** Milliseconds to wait after these bytes. */
  take(bytes: number): number {
    const now = this.now();
    this.#credit = Math.min(this.perSecond * this.burstSeconds, this.#credit + (now - this.#at) * this.perSecond);
    this.#at = now;
    this.#credit -= bytes;
    return this.#credit >= 0 ? 0 : Math.ceil((-this.#credit / this.perSecond) * 1000);
  }
}
