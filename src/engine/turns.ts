/** The calls on one stream run one after the other, whether or not the caller waits for each. */
import { inCall } from "./call.js";
import type { CallOptions } from "./port.js";
import type { Threads } from "./threads.js";

export type TurnWork<T> = (signal: AbortSignal, pause: () => Promise<void>) => Promise<T>;

export class Turns {
  #before: Promise<unknown> = Promise.resolve();
  /** The error that broke the stream: a recording with a gap is never analyzed. */
  #broken: { readonly reason: unknown } | null = null;

  constructor(
    private readonly threads: Threads,
    private readonly options: CallOptions,
  ) {}

  /** `begin` runs at once if the call is admitted, and returns what to do in its turn. A call that is refused changes nothing. */
  next<T>(begin: () => TurnWork<T>): Promise<T> {
    return inCall(this.threads, this.options, (signal, pause) => {
      const work = begin();
      const turn = this.#before.then(async () => {
        if (this.#broken) throw this.#broken.reason;
        try {
          return await work(signal, pause);
        } catch (reason) {
          this.#broken ??= { reason };
          throw reason;
        }
      });
      this.#before = turn.catch(() => {});
      return turn;
    });
  }

  /** No more calls from now on; resolves when the last one has ended. */
  async end(reason: unknown): Promise<void> {
    this.#broken ??= { reason };
    await this.#before;
  }
}
