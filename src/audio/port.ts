/** A recording that can be read in bounded memory, whatever its length. */

/** `pcm16` and `float32` are little-endian, `l16` is 16 bits big-endian as RTP sends it. */
export type RawEncoding = "pcm16" | "l16" | "alaw" | "mulaw" | "float32";

/** Format of headerless bytes. */
export interface RawFormat {
  readonly encoding: RawEncoding;
  readonly rateHz: number;
  readonly channels: number;
}

/** Limits on decoding compressed audio. */
export interface ToWavOptions {
  readonly signal?: AbortSignal;
  /** Size limit of the decoded WAV file. */
  readonly maxBytes?: number;
}

/** Converts compressed recordings to WAV; returns WAV and unknown bytes unchanged. */
export type ToWav = (bytes: Uint8Array, options?: ToWavOptions) => Promise<Uint8Array>;

/** A recording that can be read piece by piece. */
export interface Recording {
  readonly rateHz: number;
  readonly channels: number;
  /** Frames (samples per channel) that the data really holds, whatever the header claims. */
  readonly frames: number;
  /** Mono chunks in -1..1. Channel 0 mixes all channels, 1 is the first, and so on. */
  read(channel: number): Iterable<Float32Array>;
}
