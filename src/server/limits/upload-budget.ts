/** Limits the bytes of recordings in memory, over all uploads. */
export class UploadBudget {
  #used = 0;

  constructor(readonly capacity: number) {}

  get used(): number {
    return this.#used;
  }

  /** False if these bytes do not fit now. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.capacity) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }
}
