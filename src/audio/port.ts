/** A recording that can be read in bounded memory, whatever its length. */

/** `pcm16` and `float32` are little-endian, `l16` is 16 bits big-endian as RTP sends it. */
export type RawEncoding = "pcm16" | "l16" | "alaw" | "mulaw" | "float32";

/** How headerless bytes are to be read. */
export interface RawFormat {
  readonly encoding: RawEncoding;
  readonly rateHz: number;
  readonly channels: number;
}

export interface Recording {
  readonly rateHz: number;
  readonly channels: number;
  /** Frames (samples per channel); as many as the data really holds, whatever a header claims. */
  readonly frames: number;
  /** Mono chunks in -1..1 of one channel: 0 mixes all, 1 is the first, and so on. */
  read(channel: number): Iterable<Float32Array>;
}
