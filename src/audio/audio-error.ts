/** What is wrong with bytes that are no recording, for programs. */
export type AudioErrorCode =
  /** Nothing to read. */
  | "EMPTY"
  /** Neither a WAV file nor said to be headerless. */
  | "NOT_AUDIO"
  /** A container or encoding that is known by name and not read here. */
  | "UNSUPPORTED_ENCODING"
  /** The file ends before its format or its data begins. */
  | "TRUNCATED"
  /** A header that contradicts itself. */
  | "BAD_HEADER"
  | "BAD_RATE"
  | "BAD_CHANNELS"
  | "CHANNEL_OUT_OF_RANGE"
  /** Samples that are not numbers, or compressed data that cannot be. */
  | "CORRUPT_DATA";

/** Why bytes are not a recording. The message is meant for the person who sent them. */
export class AudioError extends Error {
  override readonly name = "AudioError";

  constructor(
    readonly code: AudioErrorCode,
    message: string,
  ) {
    super(message);
  }
}

export const lowestRateHz = 4_000;
export const highestRateHz = 192_000;
export const mostChannels = 64;

/** The one place that says which rates and channel counts are read. */
export function checkLayout(rateHz: number, channels: number): void {
  if (!Number.isInteger(rateHz) || rateHz < lowestRateHz || rateHz > highestRateHz) {
    throw new AudioError("BAD_RATE", `the sampling rate must be ${lowestRateHz} to ${highestRateHz} Hz, got ${rateHz}`);
  }
  if (!Number.isInteger(channels) || channels < 1 || channels > mostChannels) {
    throw new AudioError("BAD_CHANNELS", `a recording must have 1 to ${mostChannels} channels, got ${channels}`);
  }
}
