import { AudioError } from "./audio-error.js";
import { type ByteSource, bytesOf } from "./byte-source.js";
import type { RawFormat, Recording } from "./port.js";
import { recordingOfRaw } from "./samples.js";
import { isWav, recordingOfWav } from "./wav.js";

// What people send instead of WAV: an answer that names it saves them a guess.
const otherContainers: readonly { readonly name: string; readonly at: number; readonly magic: string }[] = [
  { name: "MP3", at: 0, magic: "ID3" },
  { name: "MP3", at: 0, magic: "\xff\xfb" },
  { name: "Ogg (Opus or Vorbis)", at: 0, magic: "OggS" },
  { name: "FLAC", at: 0, magic: "fLaC" },
  { name: "AIFF", at: 0, magic: "FORM" },
  { name: "Sun AU", at: 0, magic: ".snd" },
  { name: "MP4 or M4A", at: 4, magic: "ftyp" },
  { name: "WebM or Matroska", at: 0, magic: "\x1a\x45\xdf\xa3" },
  { name: "AMR", at: 0, magic: "#!AMR" },
  { name: "Core Audio", at: 0, magic: "caff" },
  { name: "big-endian WAV (RIFX)", at: 0, magic: "RIFX" },
];

/** A WAV file, or headerless audio where `raw` says how to read it. The bytes must not change while they are read. */
export function readRecording(bytes: Uint8Array | ArrayBuffer | ByteSource, raw?: RawFormat): Recording {
  const source =
    bytes instanceof Uint8Array
      ? bytesOf(bytes)
      : bytes instanceof ArrayBuffer
        ? bytesOf(new Uint8Array(bytes))
        : bytes;
  if (source.length === 0) throw new AudioError("EMPTY", "the recording is empty (0 bytes)");
  if (raw !== undefined) return recordingOfRaw(source, raw);
  if (isWav(source)) return recordingOfWav(source);
  const head = String.fromCharCode(...source.read(0, 16));
  const other = otherContainers.find(({ at, magic }) => head.startsWith(magic, at));
  if (other) throw new AudioError("UNSUPPORTED_ENCODING", `this is ${other.name}; convert it to WAV`);
  if (head.startsWith("RIFF"))
    throw new AudioError("TRUNCATED", "the file ends inside its header, or is not a WAV file");
  throw new AudioError("NOT_AUDIO", "not a WAV file; for headerless audio give encoding, rate and channels");
}
