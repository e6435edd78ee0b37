import { AudioError } from "./audio-error.js";
import type { Recording } from "./port.js";

/** Frames in one chunk: one second at 16 kHz, so that a long recording is never in memory as a whole. */
const framesPerChunk = 16_384;

/** How a format decodes its frames. `decode` fills `out` with frames of the zero-based `channel`, starting at `first`. */
export interface FrameReader extends Omit<Recording, "read"> {
  /** Frames that can only be decoded together: 1, or a block of ADPCM. A chunk begins at a multiple of it. */
  readonly framesPerBlock: number;
  /** Called once per chunk and channel, in chunk order. */
  decode(out: Float32Array, first: number, channel: number): void;
}

export function recordingOf(reader: FrameReader): Recording {
  const { rateHz, channels, frames, framesPerBlock } = reader;
  const step = Math.max(1, Math.floor(framesPerChunk / framesPerBlock)) * framesPerBlock;

  function* chunks(channel: number): Generator<Float32Array> {
    for (let first = 0; first < frames; first += step) {
      const chunk = new Float32Array(Math.min(step, frames - first));
      if (channel > 0 || channels === 1) reader.decode(chunk, first, Math.max(0, channel - 1));
      else mix(chunk, first);
      yield chunk;
    }
  }

  function mix(out: Float32Array, first: number): void {
    const one = new Float32Array(out.length);
    for (let channel = 0; channel < channels; channel++) {
      reader.decode(one, first, channel);
      for (let i = 0; i < out.length; i++) out[i]! += one[i]!;
    }
    for (let i = 0; i < out.length; i++) out[i]! /= channels;
  }

  return {
    rateHz,
    channels,
    frames,
    read(channel) {
      if (!Number.isInteger(channel) || channel < 0 || channel > channels)
        throw new AudioError("CHANNEL_OUT_OF_RANGE", `channel must be 0 (all mixed) to ${channels}, got ${channel}`);
      return chunks(channel);
    },
  };
}
