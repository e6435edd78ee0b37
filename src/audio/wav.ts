/**
 * WAV files (RIFF, RF64 and BW64), read in place. The header is checked against the size of the file:
 * a data chunk longer than the file (the recorder lost power, or the stream had no known length) ends with the file.
 */
import { AudioError, checkLayout } from "./audio-error.js";
import type { ByteSource } from "./byte-source.js";
import { recordingOfImaAdpcm } from "./ima-adpcm.js";
import type { Recording } from "./port.js";
import { type SampleEncoding, sampleEncodings } from "./sample-encoding.js";
import { recordingOfBytes } from "./samples.js";

const formatTag = { pcm: 1, float: 3, alaw: 6, mulaw: 7, imaAdpcm: 0x11, extensible: 0xfffe } as const;

/** Known encodings that are not read here. */
const otherFormats = new Map([
  [0x02, "Microsoft ADPCM"],
  [0x31, "GSM 6.10"],
  [0x40, "G.721 ADPCM"],
  [0x45, "G.726 ADPCM"],
  [0x50, "MPEG audio"],
  [0x55, "MP3"],
  [0x64, "G.726 ADPCM"],
  [0x65, "G.722 ADPCM"],
  [0x83, "G.729"],
  [0xff, "AAC"],
  [0x161, "Windows Media Audio"],
  [0x28f, "G.722 ADPCM"],
]);

const unknownLength = 0xffffffff;

interface Format {
  readonly tag: number;
  readonly channels: number;
  readonly rateHz: number;
  readonly bytesPerFrame: number;
  readonly bitsPerSample: number;
}

interface Chunk {
  readonly id: string;
  readonly start: number;
  readonly claimedBytes: number;
}

function ascii(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

export function isWav(source: ByteSource): boolean {
  const head = source.read(0, 12);
  return (
    head.length === 12 && /^(RIFF|RF64|BW64)$/.test(ascii(head.subarray(0, 4))) && ascii(head.subarray(8)) === "WAVE"
  );
}

function viewAt(source: ByteSource, offset: number, length: number): DataView {
  const bytes = source.read(offset, length);
  if (bytes.length < length) throw new AudioError("TRUNCATED", "the file ends inside its header");
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function* chunksOf(source: ByteSource): Generator<Chunk> {
  // A file full of zeros would mean walking gigabytes in steps of 8 bytes. No real file has this many chunks.
  const mostChunks = 10_000;
  for (let at = 12, seen = 0; at + 8 <= source.length && seen < mostChunks; seen++) {
    const head = source.read(at, 8);
    const claimedBytes = new DataView(head.buffer, head.byteOffset, 8).getUint32(4, true);
    yield { id: ascii(head.subarray(0, 4)), start: at + 8, claimedBytes };
    at += 8 + claimedBytes + (claimedBytes & 1);
  }
}

function formatOf(source: ByteSource, chunk: Chunk): Format {
  if (chunk.claimedBytes < 16) throw new AudioError("BAD_HEADER", "the format chunk is too short (less than 16 bytes)");
  const view = viewAt(source, chunk.start, 16);
  let tag = view.getUint16(0, true);
  let bitsPerSample = view.getUint16(14, true);
  if (tag === formatTag.extensible) {
    if (chunk.claimedBytes < 40) throw new AudioError("BAD_HEADER", "the extensible format chunk is incomplete");
    tag = viewAt(source, chunk.start + 24, 2).getUint16(0, true);
    // The container size decides how samples are read; the valid bits are the upper ones.
    bitsPerSample = (bitsPerSample + 7) & ~7;
  }
  return {
    tag,
    channels: view.getUint16(2, true),
    rateHz: view.getUint32(4, true),
    bytesPerFrame: view.getUint16(12, true),
    bitsPerSample,
  };
}

function nameOf(tag: number): string {
  return otherFormats.get(tag) ?? `format 0x${tag.toString(16).padStart(4, "0")}`;
}

function encodingOf(format: Format): SampleEncoding {
  const { tag, bitsPerSample, bytesPerFrame, channels } = format;
  const bytes = (bitsPerSample + 7) >> 3;
  if (tag === formatTag.alaw && bytes === 1) return sampleEncodings.alaw;
  if (tag === formatTag.mulaw && bytes === 1) return sampleEncodings.mulaw;
  if (tag === formatTag.float && bitsPerSample === 32) return sampleEncodings.float32;
  if (tag === formatTag.float && bitsPerSample === 64) return sampleEncodings.float64;
  // 24 bits in four bytes: the upper three, as the extensible format defines.
  if (tag === formatTag.pcm && bytes === 3 && bytesPerFrame === 4 * channels) return sampleEncodings.pcm32;
  if (tag === formatTag.pcm && bytes >= 1 && bytes <= 4)
    return [sampleEncodings.pcm8, sampleEncodings.pcm16, sampleEncodings.pcm24, sampleEncodings.pcm32][bytes - 1]!;
  const known = tag === formatTag.pcm || tag === formatTag.float || tag === formatTag.alaw || tag === formatTag.mulaw;
  if (known)
    throw new AudioError(
      "BAD_HEADER",
      `${bitsPerSample} bits per sample are not supported in this encoding; convert to 16-bit PCM`,
    );
  throw new AudioError(
    "UNSUPPORTED_ENCODING",
    `WAV with ${nameOf(tag)} is not supported; convert to PCM, float, G.711 or IMA ADPCM`,
  );
}

/** The name of a WAV file's encoding that only a decoder can read; `null` for all other bytes. */
export function compressedWav(source: ByteSource): string | null {
  if (!isWav(source)) return null;
  for (const chunk of chunksOf(source)) {
    if (chunk.id !== "fmt ") continue;
    const { tag } = formatOf(source, chunk);
    return Object.values<number>(formatTag).includes(tag) ? null : `WAV with ${nameOf(tag)}`;
  }
  return null;
}

export function recordingOfWav(source: ByteSource): Recording {
  const riffBytes = viewAt(source, 4, 4).getUint32(0, true);
  let format: Format | null = null;
  let claimedFrames: number | null = null;
  let longBytes: number | null = null;
  for (const chunk of chunksOf(source)) {
    if (chunk.id === "ds64" && chunk.claimedBytes >= 24) {
      longBytes = Number(viewAt(source, chunk.start, 16).getBigUint64(8, true));
    } else if (chunk.id === "fmt ") {
      format = formatOf(source, chunk);
    } else if (chunk.id === "fact" && chunk.claimedBytes >= 4) {
      claimedFrames = viewAt(source, chunk.start, 4).getUint32(0, true) || null;
    } else if (chunk.id === "data") {
      if (format === null) throw new AudioError("BAD_HEADER", "the data chunk comes before the format chunk");
      return recordingOfData(source, format, chunk, { riffBytes, longBytes, claimedFrames });
    }
  }
  throw new AudioError("TRUNCATED", format === null ? "the file has no format chunk" : "the file has no data chunk");
}

interface Claims {
  readonly riffBytes: number;
  readonly longBytes: number | null;
  readonly claimedFrames: number | null;
}

function recordingOfData(source: ByteSource, format: Format, data: Chunk, claims: Claims): Recording {
  const { tag, channels, rateHz, bytesPerFrame } = format;
  const encoding = tag === formatTag.imaAdpcm ? null : encodingOf(format);
  checkLayout(rateHz, channels);
  const held = source.length - data.start;
  // The header that a recorder writes first and never finished says that the file ends before its data, or that its length is unknown.
  const unfinished =
    data.claimedBytes === 0 && (claims.riffBytes + 8 <= data.start || claims.riffBytes === unknownLength);
  const claimed = data.claimedBytes === unknownLength ? claims.longBytes || held : data.claimedBytes;
  const bytes = unfinished ? held : Math.min(claimed, held);
  const layout = { rateHz, channels, start: data.start, bytes };
  if (encoding === null) {
    if (format.bitsPerSample !== 4)
      throw new AudioError("BAD_HEADER", `IMA ADPCM must have 4 bits per sample, got ${format.bitsPerSample}`);
    return recordingOfImaAdpcm(source, {
      ...layout,
      bytesPerBlock: bytesPerFrame,
      claimedFrames: claims.claimedFrames,
    });
  }
  if (bytesPerFrame !== encoding.bytesPerSample * channels)
    throw new AudioError(
      "BAD_HEADER",
      `the header says ${bytesPerFrame} bytes per frame, but ${channels} channel(s) of ${encoding.bytesPerSample} bytes each take ${encoding.bytesPerSample * channels}`,
    );
  return recordingOfBytes(source, { ...layout, bytesPerFrame }, encoding);
}
