/**
 * Converts compressed recordings to WAV with ffmpeg, if it is installed. Node only; browsers use src/browser/to-wav.ts instead.
 * ffmpeg reads untrusted bytes: it gets them through a pipe, opens nothing else, accepts audio formats only, and is stopped when it exceeds
 * its time or size limit.
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { AudioError } from "./audio-error.js";
import { bytesOf } from "./byte-source.js";
import { compressedFormat } from "./compressed.js";
import type { ToWavOptions } from "./port.js";
import { compressedWav } from "./wav.js";

/** Formats that may store their index at the end. */
const indexedAtEnd = new Set(["MP4 or M4A", "Core Audio", "AIFF"]);

/**
 * To find an index at the end, ffmpeg needs `cache`, which copies the pipe to a temporary file without a name, and no limit for reading
 * ahead: the default of 64 kB is a few seconds of speech. Other formats are read from the pipe, so their speech is never written to a disk.
 */
const inputOf = (format: string) =>
  indexedAtEnd.has(format) ? ["-read_ahead_limit", "-1", "-i", "cache:pipe:0"] : ["-i", "pipe:0"];

const commandFor = (format: string) => [
  ...["-hide_banner", "-nostdin", "-loglevel", "error", "-threads", "1"],
  ...["-protocol_whitelist", "cache,pipe"],
  ...["-format_whitelist", "matroska,webm,mov,mp4,m4a,3gp,mp3,ogg,flac,aac,amr,aiff,au,caf,wav"],
  ...inputOf(format),
  ...["-map", "0:a:0", "-f", "wav", "-c:a", "pcm_s16le", "pipe:1"],
];

const longestMs = 60_000;
const mostBytes = 2 ** 30;

/** The bytes of a WAV file. WAV that can be read as it is, and bytes of an unknown format, are returned unchanged. */
export async function toWav(bytes: Uint8Array, options: ToWavOptions = {}): Promise<Uint8Array> {
  const format = compressedFormat(bytes) ?? compressedWav(bytesOf(bytes));
  return format === null ? bytes : inTurn(() => decoded(bytes, format, options));
}

/** One process per core at a time: uploads have no limit of their own, unlike checks. */
const places = availableParallelism();
const waiting: (() => void)[] = [];
let running = 0;

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= places) await new Promise<void>((resolve) => waiting.push(resolve));
  else running++;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running--;
  }
}

function decoded(bytes: Uint8Array, format: string, { signal, maxBytes = mostBytes }: ToWavOptions) {
  signal?.throwIfAborted();
  return new Promise<Uint8Array>((resolve, reject) => {
    const ffmpeg = spawn("ffmpeg", commandFor(format), { env: { PATH: process.env.PATH ?? "" }, windowsHide: true });
    const refuse = (error: Error) => {
      ffmpeg.kill("SIGKILL");
      reject(error);
    };
    const timer = setTimeout(
      () => refuse(unreadable(format, `ffmpeg took more than ${longestMs / 1000} s`)),
      longestMs,
    );
    const abort = () => refuse(signal!.reason as Error);
    signal?.addEventListener("abort", abort, { once: true });
    const chunks: Buffer[] = [];
    let length = 0;
    let said = "";
    ffmpeg.on("error", (error: NodeJS.ErrnoException) => {
      const missing = `this is ${format}; install ffmpeg to read it here, or convert it to WAV with PCM`;
      refuse(error.code === "ENOENT" ? new AudioError("UNSUPPORTED_ENCODING", missing) : error);
    });
    ffmpeg.on("close", (code) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      if (code === 0 && length > 0) resolve(new Uint8Array(Buffer.concat(chunks)));
      else reject(unreadable(format, reasonOf(said)));
    });
    // Without free descriptors there are no pipes; the error that follows says so.
    if (!ffmpeg.stdout) return;
    ffmpeg.stdout.on("data", (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length > maxBytes)
        refuse(new AudioError("UNSUPPORTED_ENCODING", `this ${format} contains more than ${maxBytes} bytes of audio`));
    });
    ffmpeg.stderr.on("data", (chunk: Buffer) => {
      if (said.length < 2000) said += chunk;
    });
    // ffmpeg may stop reading early; its own error message gives the reason.
    ffmpeg.stdin.on("error", () => {});
    ffmpeg.stdin.end(bytes);
  });
}

const unreadable = (format: string, why: string) =>
  new AudioError("CORRUPT_DATA", `this ${format} cannot be read: ${why}`);

/** The last line that ffmpeg printed, without its name for the pipe. */
function reasonOf(said: string): string {
  const lines = said.split("\n").filter((line) => line.trim() !== "" && !/seekback|Last message repeated/.test(line));
  return (lines.at(-1) ?? "it contains no audio").replace(/^(cache:)?pipe:0: /, "").trim();
}
