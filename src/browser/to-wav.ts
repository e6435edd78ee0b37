/** The audio part's to-wav.ts for browsers, by the field `browser` of the manifest: the browser itself decodes. */
import { AudioError } from "../audio/audio-error.js";
import { compressedFormat } from "../audio/compressed.js";
import type { ToWavOptions } from "../audio/port.js";
import { floatWav } from "../audio/wav-writer.js";

/** What Opus is made for; a browser brings every recording to the rate it is asked for. */
const rateHz = 48_000;

export async function toWav(bytes: Uint8Array, { signal, maxBytes = 2 ** 30 }: ToWavOptions = {}): Promise<Uint8Array> {
  const format = compressedFormat(bytes);
  if (format === null) return bytes;
  if (!("OfflineAudioContext" in globalThis))
    throw new AudioError("UNSUPPORTED_ENCODING", `this is ${format}; only a page can read it, not a worker`);
  let audio: AudioBuffer;
  try {
    // A copy: the browser takes it away.
    audio = await new OfflineAudioContext(1, 1, rateHz).decodeAudioData(bytes.slice().buffer);
  } catch (error) {
    throw new AudioError("CORRUPT_DATA", `this browser cannot read this ${format}: ${(error as Error).message}`);
  }
  signal?.throwIfAborted();
  if (audio.length * audio.numberOfChannels * 4 > maxBytes)
    throw new AudioError("UNSUPPORTED_ENCODING", `this ${format} holds more than ${maxBytes} bytes of sound`);
  const channels = Array.from({ length: audio.numberOfChannels }, (_, i) => audio.getChannelData(i));
  return floatWav(channels, audio.sampleRate);
}
