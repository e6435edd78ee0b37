/** Audio as callers give it: whole recordings, and chunks of audio that is still arriving. */
import { highestRateHz, lowestRateHz } from "../audio/audio-error.js";
import { joined } from "../audio/joined.js";
import type { RawEncoding, RawFormat } from "../audio/port.js";
import { readRecording } from "../audio/read-recording.js";
import { sampleEncodings } from "../audio/sample-encoding.js";
import { floatWav } from "../audio/wav-writer.js";
import type { StatusError } from "../contract/index.js";
import { invalid } from "../contract/refusal.js";
import { isMoved } from "../engine/moved.js";
import type { Recording } from "../workflow.js";

/**
 * A recording (WAV, or compressed if it can be decoded), headerless bytes, or mono samples in -1..1; it must not change until the call has
 * ended. Errors name the `File`, or the `name` given.
 */
export type Audio =
  | Uint8Array
  | ArrayBuffer
  | Blob
  | {
      readonly bytes: Uint8Array;
      readonly encoding: RawEncoding;
      readonly rateHz: number;
      readonly channels?: number;
      readonly name?: string;
    }
  | { readonly samples: Float32Array; readonly rateHz: number };

export async function recordingOf(audio: Audio, place?: string): Promise<Recording> {
  assertHere(audio);
  if (audio instanceof Uint8Array) return { chunk: unshared(audio) };
  if (audio instanceof ArrayBuffer) return { chunk: new Uint8Array(audio) };
  if (audio instanceof Blob) {
    const name = audio instanceof File ? audio.name : undefined;
    return { chunk: await bytesOf(audio, name ?? place), ...(name !== undefined && { name }) };
  }
  if (typeof audio === "object" && audio !== null) {
    if ("samples" in audio && audio.samples instanceof Float32Array) {
      assertRate(audio.rateHz, [lowestRateHz, highestRateHz]);
      assertHere(audio.samples);
      return { chunk: floatWav([audio.samples], audio.rateHz) };
    }
    if ("bytes" in audio && audio.bytes instanceof Uint8Array) {
      const { bytes, encoding, rateHz, channels = 1, name } = audio;
      assertHere(bytes);
      const named = name !== undefined && { name };
      // Uploads do not have these encodings.
      if (encoding === "l16" || encoding === "float32")
        return { chunk: wavOf(bytes, { encoding, rateHz, channels }, name ?? place), ...named };
      return { chunk: unshared(bytes), encoding, rate: rateHz, channels, ...named };
    }
  }
  const message =
    "audio must be a recording as Uint8Array, ArrayBuffer or Blob (read a file first), { samples: Float32Array, rateHz }, or { bytes, encoding, rateHz }";
  throw notAudio(message, place);
}

const notAudio = (message: string, name?: string): StatusError =>
  invalid("audio", "not_audio", name === undefined ? message : `${name}: ${message}`);

/** Neither `fetch` nor encryption takes memory that is shared with other threads. */
const unshared = (bytes: Uint8Array): Uint8Array => (bytes.buffer instanceof ArrayBuffer ? bytes : bytes.slice());

/** A file may have been changed or removed since the person chose it. */
async function bytesOf(blob: Blob, name: string | undefined): Promise<Uint8Array> {
  try {
    return new Uint8Array(await blob.arrayBuffer());
  } catch (error) {
    throw notAudio(`the file cannot be read: ${(error as Error).message}`, name);
  }
}

function wavOf(bytes: Uint8Array, format: RawFormat, name: string | undefined): Uint8Array {
  try {
    const recording = readRecording(bytes, format);
    const channels = Array.from({ length: recording.channels }, (_, i) => joined([...recording.read(i + 1)]));
    return floatWav(channels, recording.rateHz);
  } catch (error) {
    throw notAudio((error as Error).message, name);
  }
}

/** Mono audio of a live check: samples in -1..1, 16-bit samples, or bytes in an encoding. */
export type AudioChunk = Float32Array | Int16Array | { readonly bytes: Uint8Array; readonly encoding: RawEncoding };

export function samplesOfChunk(chunk: AudioChunk, rateHz: number): Float32Array {
  assertHere(chunk);
  // Beyond full scale, samples are clipped or refused as in every other recording.
  if (chunk instanceof Float32Array) return chunk.every((value) => value >= -1 && value <= 1) ? chunk : bounded(chunk);
  if (chunk instanceof Int16Array) return Float32Array.from(chunk, (sample) => sample / 32768);
  if (typeof chunk === "object" && chunk !== null && "bytes" in chunk && chunk.bytes instanceof Uint8Array) {
    const { bytes, encoding } = chunk;
    if (bytes.length === 0) return new Float32Array();
    const size = sampleEncodings[encoding]?.bytesPerSample ?? 1;
    if (bytes.length % size !== 0)
      throw notAudio(
        `the length must be a multiple of ${size} bytes (one ${encoding} sample), got ${bytes.length} bytes`,
      );
    try {
      return joined([...readRecording(bytes, { encoding, rateHz, channels: 1 }).read(1)]);
    } catch (error) {
      throw notAudio((error as Error).message);
    }
  }
  const given = chunk === null ? "null" : typeof chunk === "object" ? (chunk as object).constructor.name : typeof chunk;
  throw notAudio(`a chunk must be a Float32Array, an Int16Array or { bytes: Uint8Array, encoding }, got ${given}`);
}

function bounded(chunk: Float32Array): Float32Array {
  const samples = new Float32Array(chunk.length);
  try {
    const bytes = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    sampleEncodings.float32.decode(samples, bytes, 0, Float32Array.BYTES_PER_ELEMENT);
  } catch (error) {
    throw notAudio((error as Error).message);
  }
  return samples;
}

/** A listener and the engine move samples to another thread. Nothing of them is left in the caller's array. */
function assertHere(audio: unknown): void {
  const buffer = ArrayBuffer.isView(audio) ? audio.buffer : audio;
  if (!(buffer instanceof ArrayBuffer && isMoved(buffer))) return;
  throw notAudio("the memory of this audio was moved to another thread by an earlier call; pass that call a copy");
}

export function assertRate(rateHz: number, [lowest, highest]: readonly [number, number]): void {
  if (Number.isInteger(rateHz) && rateHz >= lowest && rateHz <= highest) return;
  const range = [lowest, highest].map((rate) => rate.toLocaleString("en")).join(" to ");
  throw invalid("rate", "out_of_range", `rateHz must be a whole number from ${range}, got ${rateHz}`);
}
