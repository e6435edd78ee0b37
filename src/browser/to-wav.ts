/** The audio module's to-wav.ts for browsers, selected by the field `browser` of package.json: the browser decodes. */
import { AudioError } from "../audio/audio-error.js";
import { compressedFormat } from "../audio/compressed.js";
import type { ToWavOptions } from "../audio/port.js";
import { floatWav } from "../audio/wav-writer.js";

/** The native rate of Opus. A browser resamples every recording to the requested rate. */
const rateHz = 48_000;

export async function toWav(bytes: Uint8Array, { signal, maxBytes = 2 ** 30 }: ToWavOptions = {}): Promise<Uint8Array> {
  const format = compressedFormat(bytes);
  if (format === null) return bytes;
  if (!("OfflineAudioContext" in globalThis))
    throw new AudioError("UNSUPPORTED_ENCODING", `${format} can be decoded only in a page, not in a worker`);
  let audio: AudioBuffer;
  try {
    // A copy, because the browser detaches the buffer.
    audio = await new OfflineAudioContext(1, 1, rateHz).decodeAudioData(bytes.slice().buffer);
  } catch (error) {
    throw new AudioError("CORRUPT_DATA", `this browser cannot decode this ${format}: ${(error as Error).message}`);
  }
  signal?.throwIfAborted();
  if (audio.length * audio.numberOfChannels * 4 > maxBytes)
    throw new AudioError("UNSUPPORTED_ENCODING", `this ${format} contains more than ${maxBytes} bytes of audio`);
  const channels = Array.from({ length: audio.numberOfChannels }, (_, i) => audio.getChannelData(i));
  return floatWav(channels, audio.sampleRate);
}
