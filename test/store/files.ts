/** Reading folders byte by byte, as a thief would. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesIn(path) : [path];
  });
}

/** The files that contain these bytes anywhere. */
export function filesWith(folder: string, bytes: Uint8Array): string[] {
  return filesIn(folder).filter((path) => readFileSync(path).includes(Buffer.from(bytes)));
}

/** Sixteen consecutive values from several places: enough to recognize an embedding or audio, short enough not to be split by a page. */
export function fragmentsOf(content: Float32Array | Uint8Array): Uint8Array[] {
  const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
  return [0, 0.25, 0.5, 0.75].map((part) => {
    const at = Math.floor((bytes.length * part) / 4) * 4;
    return bytes.slice(at, at + 64);
  });
}
