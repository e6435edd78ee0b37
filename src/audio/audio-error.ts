/** Error codes for bytes that are not a valid recording. */
export type AudioErrorCode =
  /** There are no bytes to read. */
  | "EMPTY"
  /** Not a WAV file, and no headerless format was given. */
  | "NOT_AUDIO"
  /** A known container or encoding that is not supported. */
  | "UNSUPPORTED_ENCODING"
  /** The file ends before its format or its data begins. */
  | "TRUNCATED"
  /** The header contradicts itself. */
  | "BAD_HEADER"
  | "BAD_RATE"
  | "BAD_CHANNELS"
  | "CHANNEL_OUT_OF_RANGE"
  /** Samples that are not finite numbers, or compressed data that cannot be decoded. */
  | "CORRUPT_DATA";

/** Why the bytes are not a valid recording. The message is for the person who sent them. */
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
const mostChannels = 64;

/** The sampling rate and channel count of every recording are checked here. */
export function checkLayout(rateHz: number, channels: number): void {
  if (!Number.isInteger(rateHz) || rateHz < lowestRateHz || rateHz > highestRateHz)
    throw new AudioError("BAD_RATE", `the sampling rate must be ${lowestRateHz} to ${highestRateHz} Hz, got ${rateHz}`);
  if (!Number.isInteger(channels) || channels < 1 || channels > mostChannels)
    throw new AudioError("BAD_CHANNELS", `a recording must have 1 to ${mostChannels} channels, got ${channels}`);
}
