/**
 * Turns the messages of a socket into an async iterable. Bounded: a sender that is faster than its reader is paused.
 */
export class MessageQueue<T> implements AsyncIterable<T> {
  readonly #waiting: T[] = [];
  #reader: { readonly resolve: (next: IteratorResult<T>) => void; readonly reject: (reason: unknown) => void } | null =
    null;
  #ending: { readonly error: unknown | null } | null = null;
  #isPaused = false;
  #waitingBytes = 0;

  constructor(
    private readonly capacity: number,
    /** Pauses or resumes the socket. Without it, the sender must not push while the queue is full. */
    private readonly flow: { pause(): void; resume(): void } | null,
    private readonly bytesOf: (message: T) => number = () => 0,
    /** The sender is also paused when this many bytes wait: messages may be large. */
    private readonly mostBytes = Number.POSITIVE_INFINITY,
  ) {}

  get isFull(): boolean {
    return this.#waiting.length >= this.capacity || this.#waitingBytes >= this.mostBytes;
  }

  get #hasRoom(): boolean {
    return this.#waiting.length <= this.capacity / 2 && this.#waitingBytes <= this.mostBytes / 2;
  }

  /** After the end, messages are dropped. */
  push(message: T): void {
    if (this.#ending) return;
    const reader = this.#reader;
    if (reader) {
      this.#reader = null;
      reader.resolve({ done: false, value: message });
      return;
    }
    this.#waiting.push(message);
    this.#waitingBytes += this.bytesOf(message);
    if (this.isFull && !this.#isPaused) {
      this.#isPaused = true;
      this.flow?.pause();
    }
  }

  /** Waiting messages can still be read. */
  end(): void {
    this.#settle({ error: null });
  }

  /** Waiting messages are dropped. The socket goes on: behind what is not read any more comes the other side's close. */
  fail(error: unknown): void {
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    if (this.#isPaused) this.flow?.resume();
    this.#isPaused = false;
    this.#settle({ error });
  }

  #settle(ending: { readonly error: unknown | null }): void {
    this.#ending ??= ending;
    const reader = this.#reader;
    this.#reader = null;
    if (reader) void this.#next().then(reader.resolve, reader.reject);
  }

  #next(): Promise<IteratorResult<T>> {
    const message = this.#waiting.shift();
    if (message !== undefined) {
      this.#waitingBytes -= this.bytesOf(message);
      if (this.#isPaused && this.#hasRoom) {
        this.#isPaused = false;
        this.flow?.resume();
      }
      return Promise.resolve({ done: false, value: message });
    }
    if (this.#ending?.error) return Promise.reject(this.#ending.error);
    if (this.#ending) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.fail(new Error("the reader closed the stream"));
        return { done: true, value: undefined };
      },
    };
  }
}
