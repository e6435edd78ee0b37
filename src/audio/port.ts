/** A recording that can be read in bounded memory, whatever its length. */

/** `pcm16` and `float32` are little-endian, `l16` is 16 bits big-endian as RTP sends it. */
export type RawEncoding = "pcm16" | "l16" | "alaw" | "mulaw" | "float32";

/** How headerless bytes are to be read. */
export interface RawFormat {
  readonly encoding: RawEncoding;
  readonly rateHz: number;
  readonly channels: number;
}

/** Bounds on decoding what is compressed. */
export interface ToWavOptions {
  readonly signal?: AbortSignal;
  /** Of the WAV file that it becomes. */
  readonly maxBytes?: number;
}

/** Compressed recordings as WAV; WAV, and bytes that are neither, as they are. */
export type ToWav = (bytes: Uint8Array, options?: ToWavOptions) => Promise<Uint8Array>;

/** A recording that can be read piece by piece. */
export interface Recording {
  readonly rateHz: number;
  readonly channels: number;
  /** Frames (samples per channel); as many as the data really holds, whatever a header claims. */
  readonly frames: number;
  /** Mono chunks in -1..1 of one channel: 0 mixes all, 1 is the first, and so on. */
  read(channel: number): Iterable<Float32Array>;
}
