/** Polls the box, unless paused or not visible, and reports why an answer is missing. */
export class Live {
  #paused = false;
  #stopped = false;
  readonly #lost = new Map<object, string>();
  readonly #waiting = new Set<() => void>();

  constructor(readonly changed: (state: { readonly paused: boolean; readonly lost: string | null }) => void) {
    document.addEventListener("visibilitychange", () => this.#wake());
  }

  toggle(): void {
    this.#paused = !this.#paused;
    this.#notify();
    this.#wake();
  }

  /** Stops polling permanently. */
  stop(): void {
    this.#stopped = true;
    this.#wake();
  }

  /** Runs `work` repeatedly, each time after the previous run has ended. An error is reported, and polling continues. */
  async every(milliseconds: number, work: () => Promise<void>): Promise<void> {
    const loop = {};
    while (!this.#stopped) {
      try {
        await work();
        this.#lost.delete(loop);
      } catch (error) {
        this.#lost.set(loop, (error as Error).message);
      }
      this.#notify();
      await new Promise((resolve) => setTimeout(resolve, milliseconds));
      while (!this.#stopped && (this.#paused || document.hidden))
        await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  #notify(): void {
    this.changed({ paused: this.#paused, lost: [...this.#lost.values()][0] ?? null });
  }
}
