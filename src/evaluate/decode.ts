import { execFile } from "node:child_process";
import { readRecording } from "../audio/index.js";
import type { Recording } from "../audio/port.js";

/** WAV as it is; anything else through ffmpeg, where this machine has it. */
export function decodeFile(bytes: Uint8Array, path: string): Recording | Promise<Recording> {
  if (/\.wav$/i.test(path)) return readRecording(bytes);
  return new Promise((resolve, reject) => {
    const arguments_ = ["-hide_banner", "-loglevel", "error", "-i", path, "-f", "wav", "-c:a", "pcm_s16le", "-"];
    const options = { encoding: "buffer", maxBuffer: 2 ** 30 } as const;
    execFile("ffmpeg", arguments_, options, (error, wav, said) => {
      if (error && (error as NodeJS.ErrnoException).code === "ENOENT")
        reject(new Error("only WAV can be read here: install ffmpeg for FLAC, MP3 and Opus"));
      else if (error) reject(new Error(`ffmpeg cannot read it: ${said.toString().trim().split("\n")[0] ?? ""}`));
      else resolve(readRecording(withLength(wav)));
    });
  });
}

/** ffmpeg cannot go back in a pipe to write how long the file became: 0xffffffff stands there. */
function withLength(wav: Uint8Array): Uint8Array {
  const view = new DataView(wav.buffer, wav.byteOffset, wav.byteLength);
  view.setUint32(4, wav.length - 8, true);
  for (let at = 12; at + 8 <= wav.length; ) {
    const name = String.fromCharCode(...wav.subarray(at, at + 4));
    if (name === "data") {
      view.setUint32(at + 4, wav.length - at - 8, true);
      break;
    }
    at += 8 + view.getUint32(at + 4, true);
  }
  return wav;
}
