import { typeName } from "../type-name.js";
import { AudioError } from "./audio-error.js";
import { type ByteSource, bytesOf } from "./byte-source.js";
import { compressedFormat } from "./compressed.js";
import type { RawFormat, Recording } from "./port.js";
import { recordingOfRaw } from "./samples.js";
import { isWav, recordingOfWav } from "./wav.js";

/** A WAV file, or headerless audio if `raw` gives its format. The bytes must not change while they are read. */
export function readRecording(bytes: Uint8Array | ArrayBuffer | ByteSource, raw?: RawFormat): Recording {
  const source =
    bytes instanceof Uint8Array
      ? bytesOf(bytes)
      : bytes instanceof ArrayBuffer
        ? bytesOf(new Uint8Array(bytes))
        : bytes;
  if (typeof source?.read !== "function")
    throw new AudioError(
      "NOT_AUDIO",
      `a recording must be a Uint8Array or an ArrayBuffer (read a file first), got ${typeName(source)}`,
    );
  if (source.length === 0) throw new AudioError("EMPTY", "the recording is empty (0 bytes)");
  if (raw !== undefined) return recordingOfRaw(source, raw);
  if (isWav(source)) return recordingOfWav(source);
  const head = source.read(0, 16);
  const format = compressedFormat(head);
  if (format) throw new AudioError("UNSUPPORTED_ENCODING", `this is ${format}; convert it to WAV`);
  if (String.fromCharCode(...head).startsWith("RIFF"))
    throw new AudioError("TRUNCATED", "the file ends inside its header, or is not a WAV file");
  throw new AudioError("NOT_AUDIO", "not a WAV file; for headerless audio give encoding, rate and channels");
}
