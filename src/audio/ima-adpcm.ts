/** IMA ADPCM as WAV files carry it (DVI4): each block begins with a full sample and a step, then 4 bits a sample. */
import { AudioError } from "./audio-error.js";
import type { ByteSource } from "./byte-source.js";
import type { Recording } from "./port.js";
import { recordingOf } from "./recording.js";

const indexChange = Int8Array.of(-1, -1, -1, -1, 2, 4, 6, 8);

// The 89 step sizes of the IMA Digital Audio Focus and Technical Working Group, 1992.
const stepSizes = Int16Array.of(
  ...[7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107],
  ...[
    118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963,
  ],
  ...[1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894],
  ...[6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794],
  32767,
);

export interface ImaLayout {
  readonly rateHz: number;
  readonly channels: number;
  readonly start: number;
  readonly bytes: number;
  readonly bytesPerBlock: number;
  /** From the `fact` chunk: the last block is padded. */
  readonly claimedFrames: number | null;
}

/** Frames in a block of `bytes`, complete or truncated: one in the head, then eight for every four bytes per channel. */
function framesIn(bytes: number, channels: number): number {
  const head = 4 * channels;
  return bytes < head ? 0 : 1 + Math.floor((bytes - head) / head) * 8;
}

export function recordingOfImaAdpcm(source: ByteSource, layout: ImaLayout): Recording {
  const { rateHz, channels, start, bytes, bytesPerBlock, claimedFrames } = layout;
  const framesPerBlock = framesIn(bytesPerBlock, channels);
  if (bytesPerBlock % (4 * channels) !== 0 || framesPerBlock < 9)
    throw new AudioError(
      "BAD_HEADER",
      `an IMA ADPCM block of ${bytesPerBlock} bytes is too small for ${channels} channels`,
    );
  const held = Math.floor(bytes / bytesPerBlock) * framesPerBlock + framesIn(bytes % bytesPerBlock, channels);
  return recordingOf({
    rateHz,
    channels,
    frames: claimedFrames === null ? held : Math.min(held, claimedFrames),
    framesPerBlock,
    decode(out, first, channel) {
      const blocks = Math.ceil(out.length / framesPerBlock);
      const firstByte = (first / framesPerBlock) * bytesPerBlock;
      const length = Math.min(blocks * bytesPerBlock, bytes - firstByte);
      const data = source.read(start + firstByte, length);
      if (data.length < length) throw new AudioError("TRUNCATED", "the file became shorter while it was being read");
      for (let block = 0; block < blocks; block++) {
        const samples = out.subarray(block * framesPerBlock, (block + 1) * framesPerBlock);
        decodeBlock(samples, data.subarray(block * bytesPerBlock, (block + 1) * bytesPerBlock), channel, channels);
      }
    },
  });
}

function decodeBlock(out: Float32Array, block: Uint8Array, channel: number, channels: number): void {
  const head = 4 * channel;
  let sample = ((block[head]! | (block[head + 1]! << 8)) << 16) >> 16;
  let index = block[head + 2]!;
  if (index >= stepSizes.length)
    throw new AudioError(
      "CORRUPT_DATA",
      `an IMA ADPCM block must begin with a step index below ${stepSizes.length}, got ${index}`,
    );
  out[0] = sample / 32768;
  for (let i = 1; i < out.length; i++) {
    const nibbleAt = i - 1;
    // Four bytes hold eight samples of one channel, low nibble first; then come those of the next channel.
    const byte = block[4 * channels * (1 + (nibbleAt >> 3)) + head + ((nibbleAt & 7) >> 1)]!;
    const nibble = nibbleAt & 1 ? byte >> 4 : byte & 15;
    const step = stepSizes[index]!;
    // (2n+1)/8 of a step, rounded once, as ffmpeg does; the 1992 text rounds each bit's share and differs by up to 3 of 32768.
    const change = ((2 * (nibble & 7) + 1) * step) >> 3;
    sample = Math.max(-32768, Math.min(32767, nibble & 8 ? sample - change : sample + change));
    index = Math.max(0, Math.min(stepSizes.length - 1, index + indexChange[nibble & 7]!));
    out[i] = sample / 32768;
  }
}
