/** A recording that can be read in bounded memory, whatever its length. */

export type RawEncoding = "pcm16" | "alaw" | "mulaw";

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
