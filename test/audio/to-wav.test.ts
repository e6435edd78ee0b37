/** Compressed recordings, encoded and decoded by the real ffmpeg. */
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { openAnyRecording } from "../../src/audio/file.js";
import { readRecording } from "../../src/audio/index.js";
import { toWav } from "../../src/audio/to-wav.js";
import { openWorld, refusal } from "../processor/world.js";
import { speak, wav } from "../voice.js";

const rateHz = 16_000;
const spoken = speak({ speaker: 1, seconds: 4, rateHz });
const original = wav(spoken, rateHz);

/** By default an MP4 has its index at the end, as phones write it. */
const formats = {
  MP3: ["-f", "mp3"],
  "MP4 or M4A": ["-c:a", "aac", "-f", "mp4"],
  "WebM or Matroska": ["-c:a", "libopus", "-f", "webm"],
  "Ogg (Opus or Vorbis)": ["-c:a", "libopus", "-f", "ogg"],
  FLAC: ["-f", "flac"],
  AAC: ["-c:a", "aac", "-f", "adts"],
  // As call recorders write them.
  "WAV with Microsoft ADPCM": ["-c:a", "adpcm_ms", "-f", "wav"],
  "WAV with G.722 ADPCM": ["-c:a", "g722", "-f", "wav"],
};

function encoded(format: string, input = original, options = formats[format as keyof typeof formats]): Uint8Array {
  // To a file: ffmpeg cannot write such an MP4 to a pipe.
  const script = 'f=$(mktemp) && ffmpeg -y -loglevel error -i pipe:0 "$@" "$f" && cat "$f"; rm -f "$f"';
  return execFileSync("sh", ["-c", script, "sh", ...options], { input, maxBuffer: 2 ** 26 });
}

const samplesOf = (bytes: Uint8Array) =>
  Float32Array.from([...readRecording(bytes).read(0)].flatMap((part) => [...part]));

/** Loudness of each fiftieth of a second: codecs change samples and may add a delay, but do not change this. */
function loudness(samples: Float32Array, rate: number): number[] {
  const step = rate / 50;
  return Array.from({ length: Math.floor(samples.length / step) }, (_, i) =>
    Math.sqrt(samples.subarray(i * step, (i + 1) * step).reduce((sum, value) => sum + value * value, 0) / step),
  );
}

/** Cosine of two loudness curves, the second shifted by whole steps. */
function likeness(one: readonly number[], other: readonly number[], by: number): number {
  const moved = one.map((_, i) => other[i + by] ?? 0);
  const product = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  return product(one, moved) / Math.sqrt(product(one, one) * product(moved, moved));
}

afterEach(() => vi.unstubAllEnvs());

describe("with ffmpeg", () => {
  test.each(Object.keys(formats) as (keyof typeof formats)[])("%s is decoded to the same speech", async (format) => {
    const decoded = await toWav(encoded(format));
    const { rateHz: rate, frames, channels } = readRecording(decoded);
    expect(channels).toBe(1);
    expect(Math.abs(frames / rate - 4)).toBeLessThan(0.2 /* a codec's delay and padding */);
    const [before, after] = [loudness(spoken, rateHz), loudness(samplesOf(decoded), rate)];
    // At most 120 ms later, which is more than the delay of any codec.
    const best = Math.max(...[0, 1, 2, 3, 4, 5, 6].map((by) => likeness(before, after, by)));
    expect(best).toBeGreaterThan(0.97);
    expect(likeness(before, after, 25)).toBeLessThan(best);
  });

  test.each([
    ["MP4 or M4A", ["-c:a", "aac", "-f", "mp4"]],
    ["Core Audio", ["-c:a", "alac", "-f", "caf"]],
  ])("%s with its index at the end is read, however long it is", async (format, options) => {
    const seconds = 30;
    const recording = encoded(format, wav(speak({ speaker: 1, seconds, rateHz }), rateHz), options);
    expect(recording.length).toBeGreaterThan(2 * 65_536 /* what ffmpeg reads ahead by default */);
    const { rateHz: rate, frames } = readRecording(await toWav(recording));
    expect(Math.abs(frames / rate - seconds)).toBeLessThan(0.2 /* a codec's delay and padding */);
  });

  test.each([8000, 11_025, 12_000, 16_000, 44_100])("MP3 at %d Hz without a tag is recognized", async (rate) => {
    const options = ["-ar", `${rate}`, "-id3v2_version", "0", "-write_xing", "0", "-f", "mp3"];
    const recording = encoded("MP3", original, options);
    expect(recording[0]).toBe(0xff /* no tag before the first frame */);
    const { rateHz: decodedRate, frames } = readRecording(await toWav(recording));
    expect(decodedRate).toBe(rate);
    expect(Math.abs(frames / rate - 4)).toBeLessThan(
      0.3 /* a codec's delay and padding, in frames of 72 ms at 8 kHz */,
    );
  });

  test("speech is not written to a file, unless the index may be at the end", async () => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-no-files-"));
    const script = `#!/bin/sh\nulimit -f 0\nPATH='${process.env.PATH}'\nexec ffmpeg "$@"\n`;
    await writeFile(join(folder, "ffmpeg"), script, { mode: 0o755 });
    const [ogg, mp4] = [encoded("Ogg (Opus or Vorbis)"), encoded("MP4 or M4A")];
    vi.stubEnv("PATH", folder);
    expect((await toWav(ogg)).length).toBeGreaterThan(0);
    await expect(toWav(mp4)).rejects.toThrow("this MP4 or M4A cannot be read");
    await rm(folder, { recursive: true });
  });

  test("WAV and bytes that are not audio stay unchanged", async () => {
    expect(await toWav(original)).toBe(original);
    const text = new TextEncoder().encode("this is not audio");
    expect(await toWav(text)).toBe(text);
  });

  test("a damaged file, one that is too long, and an aborted call give clear errors", async () => {
    const mp3 = encoded("MP3");
    await expect(toWav(Uint8Array.from([0x49, 0x44, 0x33, ...new Array(500).fill(7)]))).rejects.toThrow(
      /^this MP3 cannot be read: /,
    );
    await expect(toWav(mp3, { maxBytes: 10_000 })).rejects.toThrow("this MP3 contains more than 10000 bytes of audio");
    await expect(toWav(mp3, { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
    const leaving = new AbortController();
    const reading = toWav(mp3, { signal: leaving.signal });
    leaving.abort();
    await expect(reading).rejects.toMatchObject({ name: "AbortError" });
  });

  test("a file that names other files or addresses opens none of them", async () => {
    // A playlist inside the first bytes of an MP3: only audio formats are accepted.
    const playlist = new TextEncoder().encode("ID3\n#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n");
    await expect(toWav(playlist)).rejects.toThrow(/cannot be read/);
  });

  test("an upload accepts it, and is refused without the decoder", async () => {
    const webm = encoded("WebM or Matroska");
    const { processor, context, store } = await openWorld({ toWav });
    const { gkMediaSegmentId } = await processor.addMediaSegment({ context, chunk: webm });
    const kept = (await store.media.get("bank", gkMediaSegmentId!.value))!;
    expect(kept).toMatchObject({ encoding: "wav", channels: 1, rateHz: 48_000 });
    expect(readRecording(kept.audio).frames).toBeGreaterThan(3.8 * 48_000);
    const plain = await openWorld();
    expect(await refusal(plain.processor.addMediaSegment({ context: plain.context, chunk: webm }))).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["chunk not_audio"],
    });
  });
});

test("an upload whose decoder cannot be started is BUSY: the recording may be good", async () => {
  const full = Object.assign(new Error("spawn ffmpeg EMFILE"), { code: "EMFILE", syscall: "spawn ffmpeg" });
  const { processor, context } = await openWorld({ toWav: () => Promise.reject(full) });
  expect(await refusal(processor.addMediaSegment({ context, chunk: original }))).toMatchObject({ code: "BUSY" });
});

test("without ffmpeg it says what to do", async () => {
  const mp3 = encoded("MP3");
  vi.stubEnv("PATH", "/nowhere");
  await expect(toWav(mp3)).rejects.toThrow(
    "this is MP3; install ffmpeg to read it here, or convert it to WAV with PCM",
  );
});

test.each(["WAV", "FLAC"] as const)("%s is read from a pipe too, as a shell's <(…) gives it", async (format) => {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-pipe-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const file = join(folder, "recording");
  await writeFile(file, format === "WAV" ? original : encoded(format));
  // In a process of its own, because a pipe is opened when both ends are.
  const written = once(execFile("sh", ["-c", `cat "$1" > "$2"`, "sh", file, pipe]), "close");
  const recording = await openAnyRecording(pipe);
  expect(recording.frames).toBe(spoken.length);
  recording.close();
  await written;
  await rm(folder, { recursive: true });
});
