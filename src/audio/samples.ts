import { typeName } from "../type-name.js";
import { AudioError, checkLayout } from "./audio-error.js";
import type { ByteSource } from "./byte-source.js";
import type { RawEncoding, RawFormat, Recording } from "./port.js";
import { recordingOf } from "./recording.js";
import { type SampleEncoding, sampleEncodings } from "./sample-encoding.js";

/** Samples as callers pass them: floats in -1..1, or 16-bit integers. */
export type Samples = Float32Array | Float64Array | Int16Array;

/** Interleaved samples in `encoding`, from byte `start` on. Bytes after the last complete frame are ignored. */
export function recordingOfBytes(
  source: ByteSource,
  layout: { rateHz: number; channels: number; start: number; bytes: number; bytesPerFrame: number },
  encoding: SampleEncoding,
): Recording {
  const { rateHz, channels, start, bytes, bytesPerFrame } = layout;
  const bytesPerChannel = bytesPerFrame / channels;
  return recordingOf({
    rateHz,
    channels,
    frames: Math.floor(bytes / bytesPerFrame),
    framesPerBlock: 1,
    decode(out, first, channel) {
      const chunk = source.read(start + first * bytesPerFrame, out.length * bytesPerFrame);
      if (chunk.length < out.length * bytesPerFrame)
        throw new AudioError("TRUNCATED", "the file became shorter while it was being read");
      encoding.decode(out, chunk, channel * bytesPerChannel, bytesPerFrame);
    },
  });
}

const rawEncodings: readonly RawEncoding[] = ["pcm16", "l16", "alaw", "mulaw", "float32"];

/** Headerless bytes in the format that the caller gives. */
export function recordingOfRaw(source: ByteSource, format: RawFormat): Recording {
  if (typeof format !== "object" || format === null)
    throw new AudioError(
      "UNSUPPORTED_ENCODING",
      `the format of headerless audio must be { encoding, rateHz, channels }, got ${typeName(format)}`,
    );
  const { rateHz, channels, encoding: name } = format;
  checkLayout(rateHz, channels);
  if (!rawEncodings.includes(name)) {
    const known = rawEncodings.join(", ");
    throw new AudioError(
      "UNSUPPORTED_ENCODING",
      `the encoding of headerless audio must be one of ${known}, got ${String(name)}`,
    );
  }
  const encoding = sampleEncodings[name];
  const bytesPerFrame = encoding.bytesPerSample * channels;
  return recordingOfBytes(source, { rateHz, channels, start: 0, bytes: source.length, bytesPerFrame }, encoding);
}

const isSamples = (given: unknown): boolean =>
  given instanceof Float32Array || given instanceof Float64Array || given instanceof Int16Array;

/** Samples from the caller: one array per channel, floats in -1..1 or 16-bit integers. They are not modified. */
export function recordingOfSamples(samples: Samples | readonly Samples[], rateHz: number): Recording {
  const channels = Array.isArray(samples) ? (samples as readonly Samples[]) : [samples as Samples];
  checkLayout(rateHz, channels.length);
  for (const channel of channels)
    if (!isSamples(channel))
      throw new AudioError(
        "NOT_AUDIO",
        `samples must be a Float32Array, a Float64Array or an Int16Array, got ${typeName(channel)}`,
      );
  const frames = channels[0]!.length;
  if (channels.some((channel) => channel.length !== frames))
    throw new AudioError(
      "BAD_HEADER",
      `all channels of a recording must have the same length, got ${channels.map(({ length }) => length).join(", ")} samples`,
    );
  return recordingOf({
    rateHz,
    channels: channels.length,
    frames,
    framesPerBlock: 1,
    decode(out, first, channel) {
      const from = channels[channel]!.subarray(first, first + out.length);
      const name = from instanceof Int16Array ? "pcm16" : from instanceof Float32Array ? "float32" : "float64";
      const encoding = sampleEncodings[name];
      const bytes = new Uint8Array(from.buffer, from.byteOffset, from.byteLength);
      encoding.decode(out, bytes, 0, encoding.bytesPerSample);
    },
  });
}
