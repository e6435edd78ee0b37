/** Decodes the bytes of a live stream into whole samples of each channel, however they are split into chunks. */
import { joined, joinedBytes } from "../../audio/joined.js";
import type { RawEncoding, RawFormat } from "../../audio/port.js";
import type { ListenStart } from "../../contract/index.js";
import type { Dependencies } from "../dependencies.js";
import { invalid } from "../failures.js";

export const bytesPerSample: Readonly<Record<RawEncoding, number>> = {
  pcm16: 2,
  l16: 2,
  alaw: 1,
  mulaw: 1,
  float32: 4,
};

const lowestLiveRateHz = 8_000;
const highestLiveRateHz = 48_000;

export function liveFormat({
  encoding,
  rate,
  channels,
}: Pick<ListenStart, "encoding" | "rate" | "channels">): RawFormat {
  if (!Object.hasOwn(bytesPerSample, encoding))
    throw invalid(
      "start.encoding",
      "unknown",
      `encoding must be one of ${Object.keys(bytesPerSample).join(", ")}, got "${encoding}"`,
    );
  if (!Number.isInteger(rate) || rate < lowestLiveRateHz || rate > highestLiveRateHz)
    throw invalid(
      "start.rate",
      "out_of_range",
      `the sampling rate must be a whole number from 8,000 to 48,000 Hz, got ${rate}`,
    );
  const count = channels === 0 ? 1 : channels;
  if (count !== 1 && count !== 2)
    throw invalid("start.channels", "out_of_range", `a live call must have 1 or 2 channels, got ${channels}`);
  return { encoding: encoding as RawEncoding, rateHz: rate, channels: count };
}

export class LiveAudio {
  readonly #frameBytes: number;
  /** An incomplete frame: its remaining bytes come with the next chunk. */
  #rest = new Uint8Array();

  constructor(
    private readonly readRecording: Dependencies["readRecording"],
    private readonly format: RawFormat,
  ) {
    this.#frameBytes = bytesPerSample[format.encoding] * format.channels;
  }

  /** The complete samples of each of these channels (0 mixes all). */
  samples(bytes: Uint8Array, channels: readonly number[]): Float32Array[] {
    const all = this.#rest.length === 0 ? bytes : joinedBytes([this.#rest, bytes]);
    const whole = all.length - (all.length % this.#frameBytes);
    this.#rest = all.slice(whole);
    if (whole === 0) return channels.map(() => new Float32Array());
    try {
      const recording = this.readRecording(all.subarray(0, whole), this.format);
      return channels.map((channel) => joined([...recording.read(channel)]));
    } catch (error) {
      throw invalid("audio", "not_audio", (error as Error).message);
    }
  }
}
