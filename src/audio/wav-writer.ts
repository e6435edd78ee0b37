export const WAV_HEADER_BYTES = 44;
const PCM = 1;
const FLOAT = 3;

/** A WAV file of 16-bit PCM; every channel carries the same samples. */
export function pcm16Wav(samples: Float32Array, rateHz: number, channels = 1): Uint8Array<ArrayBuffer> {
  const file = emptyWav(PCM, samples.length, channels, 2, rateHz);
  let at = WAV_HEADER_BYTES;
  for (const x of samples) {
    const value = Math.max(-32768, Math.min(32767, Math.round(x * 32768)));
    for (let c = 0; c < channels; c++, at += 2) file.setInt16(at, value, true);
  }
  return new Uint8Array(file.buffer);
}

/** A lossless WAV file of 32-bit floats. One array per channel, all of the same length. */
export function floatWav(channels: readonly Float32Array[], rateHz: number): Uint8Array<ArrayBuffer> {
  const frames = channels[0]!.length;
  const file = emptyWav(FLOAT, frames, channels.length, 4, rateHz);
  for (const [channel, samples] of channels.entries())
    for (let i = 0; i < frames; i++)
      file.setFloat32(WAV_HEADER_BYTES + 4 * (i * channels.length + channel), samples[i]!, true);
  return new Uint8Array(file.buffer);
}

function emptyWav(tag: number, frames: number, channels: number, sampleBytes: number, rateHz: number) {
  const dataBytes = frames * channels * sampleBytes;
  const file = new DataView(new ArrayBuffer(WAV_HEADER_BYTES + dataBytes));
  const text = (at: number, value: string) => {
    for (let i = 0; i < value.length; i++) file.setUint8(at + i, value.charCodeAt(i));
  };
  text(0, "RIFF");
  file.setUint32(4, file.byteLength - 8, true);
  text(8, "WAVEfmt ");
  file.setUint32(16, 16, true);
  file.setUint16(20, tag, true);
  file.setUint16(22, channels, true);
  file.setUint32(24, rateHz, true);
  file.setUint32(28, rateHz * channels * sampleBytes, true);
  file.setUint16(32, channels * sampleBytes, true);
  file.setUint16(34, 8 * sampleBytes, true);
  text(36, "data");
  file.setUint32(40, dataBytes, true);
  return file;
}
