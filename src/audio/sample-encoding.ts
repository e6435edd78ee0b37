/** Encodings with a fixed number of bytes per sample; little-endian except for l16. */
import { AudioError } from "./audio-error.js";
import { alaw, mulaw } from "./g711.js";

export interface SampleEncoding {
  readonly bytesPerSample: number;
  /** out[i] = the sample at byte first + i·stride, in -1..1. */
  decode(out: Float32Array, bytes: Uint8Array, first: number, stride: number): void;
}

/** Float samples beyond full scale are clipped, as a converter would do. NaN and infinity are refused. */
function bounded(value: number): number {
  if (value >= -1 && value <= 1) return value;
  if (!Number.isFinite(value))
    throw new AudioError("CORRUPT_DATA", `the recording contains a sample that is not a finite number: ${value}`);
  return value > 0 ? 1 : -1;
}

/** Reads every sample on its own. */
function sampled(bytesPerSample: number, read: (view: DataView, at: number) => number): SampleEncoding {
  return {
    bytesPerSample,
    decode(out, bytes, first, stride) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let i = 0, at = first; i < out.length; i++, at += stride) out[i] = read(view, at);
    },
  };
}

function lookup(table: Float32Array): SampleEncoding {
  return {
    bytesPerSample: 1,
    decode(out, bytes, first, stride) {
      for (let i = 0, at = first; i < out.length; i++, at += stride) out[i] = table[bytes[at]!]!;
    },
  };
}

export const sampleEncodings = {
  pcm8: sampled(1, (view, at) => (view.getUint8(at) - 128) / 128),
  pcm16: {
    bytesPerSample: 2,
    decode(out, bytes, first, stride) {
      // Fast path for the usual file: one channel, in the machine's byte order.
      if (stride === 2 && (bytes.byteOffset + first) % 2 === 0) {
        const samples = new Int16Array(bytes.buffer, bytes.byteOffset + first, out.length);
        for (let i = 0; i < out.length; i++) out[i] = samples[i]! / 32768;
        return;
      }
      for (let i = 0, at = first; i < out.length; i++, at += stride)
        out[i] = (((bytes[at]! | (bytes[at + 1]! << 8)) << 16) >> 16) / 32768;
    },
  },
  /** Big-endian. */
  l16: sampled(2, (view, at) => view.getInt16(at) / 32768),
  pcm24: sampled(3, (view, at) => ((view.getUint16(at, true) << 8) | (view.getInt8(at + 2) << 24)) / 2147483648),
  pcm32: sampled(4, (view, at) => view.getInt32(at, true) / 2147483648),
  float32: sampled(4, (view, at) => bounded(view.getFloat32(at, true))),
  float64: sampled(8, (view, at) => bounded(view.getFloat64(at, true))),
  alaw: lookup(alaw),
  mulaw: lookup(mulaw),
} satisfies Record<string, SampleEncoding>;
