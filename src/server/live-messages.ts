/**
 * The messages of a live call as its connection delivers them. Audio packets are joined to 100 ms: each message crosses
 * half a dozen layers, and a hundred calls send five thousand packets a second. Without this, the work of all other
 * calls would delay decisions.
 */
import { create } from "@bufbuild/protobuf";
import { type ListenRequest, ListenRequestSchema, type ListenStart } from "../contract/index.js";
import { bytesPerSample } from "../processor/live/live-audio.js";
import { MessageQueue } from "./message-queue.js";

const GATHERED_SECONDS = 0.1;
/** Smaller packets are not joined: each counts as if it had this many bytes (live-requests.ts). */
const LEAST_GATHERED_BYTES = 32;

/** A second of the fastest call. Without it, a call that sends large messages could fill the memory of the box. */
const MOST_WAITING_BYTES = 1 << 20;

const audioBytes = ({ content }: ListenRequest): number => (content.case === "audio" ? content.value.length : 0);

export type AudioFormat = Pick<ListenStart, "encoding" | "rate" | "channels">;

export class LiveMessages implements AsyncIterable<ListenRequest> {
  readonly #queue: MessageQueue<ListenRequest>;
  #bytesPerSample = 1;
  /** Samples of each channel that did not fit, and those that the reader has not been told of. */
  #droppedSamples = 0;
  #untoldSamples = 0;
  #droppedKeys = 0;
  /** Bytes to join; none before the format is known. */
  #wanted = 0;
  #gathered: Uint8Array | null = null;
  #filled = 0;

  constructor(
    capacity: number,
    /** `null` if the sender cannot be paused: audio that does not fit is lost. */
    private readonly flow: { pause(): void; resume(): void } | null,
  ) {
    this.#queue = new MessageQueue(capacity, flow, audioBytes, MOST_WAITING_BYTES);
  }

  /** The format of the audio that follows. The reader of the messages refuses unknown formats. */
  expect({ encoding, rate, channels }: AudioFormat): void {
    const bytes = Object.hasOwn(bytesPerSample, encoding) ? bytesPerSample[encoding as keyof typeof bytesPerSample] : 0;
    this.#bytesPerSample = Math.max(1, bytes * channels);
    const wanted = Math.floor(GATHERED_SECONDS * rate) * bytes * Math.max(1, channels);
    this.#wanted = wanted > 0 && wanted < 1 << 20 ? wanted : 0;
  }

  /** The bytes are copied. */
  audio(bytes: Uint8Array): void {
    const isAlone = bytes.length < LEAST_GATHERED_BYTES || 2 * bytes.length > this.#wanted;
    if (isAlone || this.#filled + bytes.length > this.#wanted) this.#flush();
    if (isAlone) {
      this.#send(audioMessage(bytes.slice()));
      return;
    }
    this.#gathered ??= new Uint8Array(this.#wanted);
    this.#gathered.set(bytes, this.#filled);
    this.#filled += bytes.length;
    // Does not wait for a packet that would not fit.
    if (this.#filled + bytes.length > this.#wanted) this.#flush();
  }

  push(message: ListenRequest): void {
    const { content } = message;
    if (content.case === "audio") {
      this.audio(content.value);
      return;
    }
    if (content.case === "start") this.expect(content.value);
    this.#flush();
    this.#send(message);
  }

  /** Samples of each channel that were dropped because the sender was faster than the reader. */
  get droppedSamples(): number {
    return this.#droppedSamples;
  }

  /** Keys that were dropped for the same reason. */
  get droppedKeys(): number {
    return this.#droppedKeys;
  }

  /** Waiting messages can still be read. */
  end(): void {
    this.#flush();
    this.#tellLost();
    this.#queue.end();
  }

  /** Waiting messages are dropped. */
  fail(error: unknown): void {
    this.#gathered?.fill(0);
    this.#queue.fail(error);
  }

  [Symbol.asyncIterator](): AsyncIterator<ListenRequest> {
    return this.#queue[Symbol.asyncIterator]();
  }

  #flush(): void {
    const gathered = this.#gathered;
    if (!gathered) return;
    this.#send(audioMessage(gathered.subarray(0, this.#filled)));
    this.#gathered = null;
    this.#filled = 0;
  }

  #send(message: ListenRequest): void {
    if (this.flow || !this.#queue.isFull) {
      this.#tellLost();
      this.#queue.push(message);
    } else {
      if (message.content.case === "dtmf") this.#droppedKeys++;
      const dropped = audioBytes(message) / this.#bytesPerSample;
      this.#droppedSamples += dropped;
      this.#untoldSamples += dropped + (message.content.case === "lostSamples" ? message.content.value : 0);
    }
  }

  /** To the reader, dropped audio is lost like audio that never arrived. */
  #tellLost(): void {
    const lost = Math.min(Math.ceil(this.#untoldSamples), 2 ** 31 - 1);
    this.#untoldSamples = 0;
    if (lost > 0) this.#queue.push(create(ListenRequestSchema, { content: { case: "lostSamples", value: lost } }));
  }
}

const audioMessage = (value: Uint8Array): ListenRequest =>
  create(ListenRequestSchema, { content: { case: "audio", value } });
