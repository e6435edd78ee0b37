/** Passes the messages of a live call to the operation, within the limits on time and speed. */
import { create } from "@bufbuild/protobuf";
import { type ListenRequest, ListenRequestSchema, type ListenStart, StatusCode } from "../contract/index.js";
import { ByteRate } from "./limits/byte-rate.js";
import { watchQuiet } from "./limits/quiet-watch.js";
import { Refusal } from "./refusal.js";

export interface LiveLimits {
  readonly liveBytesPerSecond: number;
  readonly liveCallSeconds: number;
  readonly liveIdleSeconds: number;
}

/** A message costs more than its bytes. Without this, empty messages would be free. */
const LEAST_MESSAGE_BYTES = 32;

export class LiveRequests {
  readonly #rate: ByteRate;
  #audioEnded = false;
  /** Ends the wait for the next message without a message. */
  #interrupt: (() => void) | null = null;
  bytes = 0;

  constructor(
    private readonly messages: AsyncIterable<ListenRequest>,
    private readonly ended: AbortController,
    private readonly limits: LiveLimits,
    /** Throws if the caller may not do what the first message requests. */
    private readonly checkStart: (start: ListenStart) => void,
    /** What to do when nothing arrives for too long. By default the call is aborted. */
    private readonly onIdle?: () => void,
  ) {
    this.#rate = new ByteRate(limits.liveBytesPerSecond);
  }

  /** As if the sender had ended the audio. */
  endAudio(): void {
    this.#audioEnded = true;
    this.#interrupt?.();
  }

  async *received(): AsyncGenerator<ListenRequest> {
    const { liveCallSeconds, liveIdleSeconds } = this.limits;
    const messages = this.messages[Symbol.asyncIterator]();
    const longest = setTimeout(() => this.endAudio(), liveCallSeconds * 1000);
    let isWaiting = true;
    const quiet = watchQuiet(
      Math.min(1000, liveIdleSeconds * 250),
      () => liveIdleSeconds,
      () => {
        if (!isWaiting) return;
        if (this.onIdle) this.onIdle();
        else
          this.ended.abort(new Refusal(StatusCode.DEADLINE_EXCEEDED, `nothing was received for ${liveIdleSeconds} s`));
      },
    );
    const interrupt = () => this.#interrupt?.();
    this.ended.signal.addEventListener("abort", interrupt);
    try {
      for (;;) {
        const received = await this.#uninterrupted(() => messages.next());
        if (received === null) {
          yield create(ListenRequestSchema, { content: { case: "end", value: {} } });
          return;
        }
        if (received.done) return;
        const { content } = received.value;
        if (content.case === "start") this.checkStart(content.value);
        const size = content.case === "audio" ? content.value.length : 0;
        this.bytes += size;
        isWaiting = false;
        yield received.value;
        const wait = this.#rate.take(Math.max(size, LEAST_MESSAGE_BYTES));
        if (wait > 0) await this.#uninterrupted(() => pause(wait));
        quiet.heard();
        isWaiting = true;
      }
    } finally {
      clearTimeout(longest);
      quiet.stop();
      this.ended.signal.removeEventListener("abort", interrupt);
      // Not awaited: a silent sender would hold what it should free.
      void messages.return?.().catch(() => {});
    }
  }

  /**
   * `null` if the audio has been ended in the meantime. A race of promises would keep a part of every message until the
   * call ends.
   */
  #uninterrupted<T>(work: () => Promise<T>): Promise<T | null> {
    const { signal } = this.ended;
    return new Promise((resolve, reject) => {
      const settle = () => (signal.aborted ? reject(signal.reason) : resolve(null));
      if (signal.aborted || this.#audioEnded) return settle();
      this.#interrupt = settle;
      work().then(resolve, reject);
    });
  }
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
