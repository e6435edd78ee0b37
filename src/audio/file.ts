/** Recordings on disk, read where they lie (Node only; not part of the browser bundle). */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { RawFormat, Recording } from "./port.js";
import { readRecording } from "./read-recording.js";

export interface RecordingFile extends Recording {
  close(): void;
}

/** Opens without reading more than the header. Close it when done. */
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
