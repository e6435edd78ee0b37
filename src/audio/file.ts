/** Recordings on disk, read in place (Node only; not part of the browser bundle). */
import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { AudioError } from "./audio-error.js";
import type { RawFormat, Recording } from "./port.js";
import { readRecording } from "./read-recording.js";
import { toWav } from "./to-wav.js";

export interface RecordingFile extends Recording {
  close(): void;
}

/** A WAV file of any length is read in place; a compressed file is decoded if possible, and a pipe is read to its end. Close it when done. */
export async function openAnyRecording(path: string, raw?: RawFormat): Promise<RecordingFile> {
  // A pipe can be read only once, and only from its start.
  if (!statSync(path).isFile()) {
    const bytes = readFileSync(path);
    return { ...readRecording(raw ? bytes : await toWav(bytes), raw), close() {} };
  }
  try {
    return openRecording(path, raw);
  } catch (error) {
    if (raw || !(error instanceof AudioError) || error.code !== "UNSUPPORTED_ENCODING") throw error;
    return { ...readRecording(await toWav(readFileSync(path))), close() {} };
  }
}

/** Reads only the header when opening. Close it when done. */
export function openRecording(path: string, raw?: RawFormat): RecordingFile {
  const file = openSync(path, "r");
  try {
    const source = {
      length: fstatSync(file).size,
      read(offset: number, length: number): Uint8Array {
        const bytes = new Uint8Array(length);
        let filled = 0;
        while (filled < length) {
          const got = readSync(file, bytes, filled, length - filled, offset + filled);
          if (got === 0) break;
          filled += got;
        }
        return bytes.subarray(0, filled);
      },
    };
    return { ...readRecording(source, raw), close: () => closeSync(file) };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}
