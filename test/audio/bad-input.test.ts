import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openRecording } from "../../src/audio/file.js";
import { AudioError, readRecording, recordingOfSamples } from "../../src/audio/index.js";
import type { RawFormat, Recording } from "../../src/audio/port.js";
import { chunk, joined, pcm16, wav } from "./wav-bytes.js";

function codeOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof AudioError) return error.code;
    throw error;
  }
  return "read";
}

function framesIn(recording: Recording): number {
  let frames = 0;
  for (const samples of recording.read(0)) {
    frames += samples.length;
    if (!samples.every(Number.isFinite)) throw new Error("a sample that is not finite came through");
  }
  return frames;
}

test.each([null, undefined, "call.wav", 7, {}])("%j in place of bytes is refused", (given) => {
  expect(() => readRecording(given as never)).toThrow(/^a recording must be a Uint8Array or an ArrayBuffer/);
  expect(codeOf(() => recordingOfSamples(given as never, 8000))).toBe("NOT_AUDIO");
  expect(() => recordingOfSamples(given as never, 8000)).toThrow(
    `an Int16Array, got ${given === null ? "null" : typeof given}`,
  );
});

test("channels of different lengths are refused with their lengths", () => {
  expect(() => recordingOfSamples([new Float32Array(2), new Float32Array(3)], 8000)).toThrow("got 2, 3 samples");
});

test.each([null, 16_000, "pcm16"])("%j in place of a format is refused in words", (format) => {
  expect(() => readRecording(Uint8Array.of(1, 2), format as never)).toThrow(
    `the format of headerless audio must be { encoding, rateHz, channels }, got ${format === null ? "null" : typeof format}`,
  );
});

describe("files that are not recordings", () => {
  const text = new TextEncoder().encode("The quick brown fox jumps over the lazy dog. ".repeat(50));
  const cases: [string, Uint8Array, string][] = [
    ["nothing", new Uint8Array(0), "EMPTY"],
    ["text", text, "NOT_AUDIO"],
    ["an MP3", joined(new TextEncoder().encode("ID3"), new Uint8Array(400)), "UNSUPPORTED_ENCODING"],
    ["an Ogg file", joined(new TextEncoder().encode("OggS"), new Uint8Array(400)), "UNSUPPORTED_ENCODING"],
    ["four bytes of a header", new TextEncoder().encode("RIFF"), "TRUNCATED"],
    ["a header without chunks", wav({}).subarray(0, 12), "TRUNCATED"],
    ["a header without data", wav({}).subarray(0, 36), "TRUNCATED"],
    ["half a format chunk", wav({}).subarray(0, 28), "TRUNCATED"],
    ["0 Hz", wav({ rateHz: 0, data: pcm16([1]) }), "BAD_RATE"],
    ["1 MHz", wav({ rateHz: 1_000_000, data: pcm16([1]) }), "BAD_RATE"],
    ["no channels", wav({ channels: 0, data: pcm16([1]) }), "BAD_CHANNELS"],
    ["65 channels", wav({ channels: 65, data: new Uint8Array(130) }), "BAD_CHANNELS"],
    ["a frame that does not add up", wav({ bytesPerFrame: 3, data: pcm16([1, 2, 3]) }), "BAD_HEADER"],
    ["0 bits", wav({ bits: 0, data: pcm16([1]) }), "BAD_HEADER"],
    ["40 bits", wav({ bits: 40, data: new Uint8Array(40) }), "BAD_HEADER"],
    ["float of 16 bits", wav({ tag: 3, bits: 16, data: pcm16([1]) }), "BAD_HEADER"],
    ["GSM", wav({ tag: 0x31, bits: 0, bytesPerFrame: 65, data: new Uint8Array(65) }), "UNSUPPORTED_ENCODING"],
    ["an unknown encoding", wav({ tag: 0x7777, data: pcm16([1]) }), "UNSUPPORTED_ENCODING"],
    [
      "IMA ADPCM with blocks of nothing",
      wav({ tag: 0x11, bits: 4, bytesPerFrame: 4, data: new Uint8Array(64) }),
      "BAD_HEADER",
    ],
  ];
  for (const [name, bytes, code] of cases) {
    test(`${name}: ${code}`, () => expect(codeOf(() => readRecording(bytes))).toBe(code));
  }

  test("NaN and infinite samples", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const data = new Uint8Array(Float32Array.of(0.5, value).buffer);
      expect(codeOf(() => framesIn(readRecording(wav({ tag: 3, bits: 32, data }))))).toBe("CORRUPT_DATA");
      expect(codeOf(() => framesIn(recordingOfSamples(Float32Array.of(0, value), 8000)))).toBe("CORRUPT_DATA");
    }
  });

  test("IMA ADPCM with a step that does not exist", () => {
    const data = new Uint8Array(256);
    data[2] = 89;
    expect(codeOf(() => framesIn(readRecording(wav({ tag: 0x11, bits: 4, bytesPerFrame: 256, data }))))).toBe(
      "CORRUPT_DATA",
    );
  });

  test("channels, rates and encodings that do not exist", () => {
    const stereo = readRecording(wav({ channels: 2, data: pcm16([1, 2]) }));
    for (const channel of [-1, 3, 0.5, Number.NaN])
      expect(codeOf(() => stereo.read(channel))).toBe("CHANNEL_OUT_OF_RANGE");
    const raw = (format: Partial<RawFormat>) => () =>
      readRecording(Uint8Array.of(1, 2), { encoding: "pcm16", rateHz: 8000, channels: 1, ...format });
    expect(codeOf(raw({ rateHz: 0 }))).toBe("BAD_RATE");
    expect(codeOf(raw({ rateHz: Number.NaN }))).toBe("BAD_RATE");
    expect(codeOf(raw({ channels: 0 }))).toBe("BAD_CHANNELS");
    expect(codeOf(raw({ encoding: "opus" as "alaw" }))).toBe("UNSUPPORTED_ENCODING");
    expect(codeOf(() => recordingOfSamples([new Float32Array(3), new Float32Array(4)], 8000))).toBe("BAD_HEADER");
  });
});

describe("wrong headers, read as far as possible", () => {
  test("a data chunk longer than the file", () => {
    const file = wav({ data: pcm16([1, 2, 3]), dataBytes: 1_000_000 });
    expect(framesIn(readRecording(file))).toBe(3);
    expect(framesIn(readRecording(file.subarray(0, file.length - 1)))).toBe(2);
  });

  test("a stream of unknown length, a recorder that lost power", () => {
    expect(framesIn(readRecording(wav({ data: pcm16([1, 2]), dataBytes: 0xffffffff, riffBytes: 0xffffffff })))).toBe(2);
    expect(framesIn(readRecording(wav({ data: pcm16([1, 2]), dataBytes: 0, riffBytes: 0 })))).toBe(2);
    expect(framesIn(readRecording(wav({ data: pcm16([1, 2]), dataBytes: 0 })))).toBe(0);
    // libsndfile (FreeSWITCH) begins with 8, others with the length of a file without data.
    for (const riffBytes of [8, 36])
      expect(framesIn(readRecording(wav({ data: pcm16([1, 2]), dataBytes: 0, riffBytes })))).toBe(2);
    const long = { riff: "RF64", riffBytes: 0xffffffff, between: [chunk("ds64", new Uint8Array(28))] };
    expect(framesIn(readRecording(wav({ ...long, data: pcm16([1, 2]), dataBytes: 0xffffffff })))).toBe(2);
  });

  test("64 channels, one sample, no samples", () => {
    const wide = readRecording(wav({ channels: 64, data: pcm16(Array.from({ length: 128 }, (_, i) => i)) }));
    expect([...wide.read(64)][0]).toEqual(Float32Array.of(63 / 32768, 127 / 32768));
    expect(framesIn(readRecording(wav({ data: pcm16([7]) })))).toBe(1);
    expect(framesIn(readRecording(wav({})))).toBe(0);
  });

  test("floats beyond full scale are clipped as a converter would do", () => {
    const data = new Uint8Array(Float32Array.of(3e38, -1.5, 0.5).buffer);
    expect([...readRecording(wav({ tag: 3, bits: 32, data })).read(0)][0]).toEqual(Float32Array.of(1, -1, 0.5));
  });
});

describe("fuzz", () => {
  test("random bytes: a named error or finite samples", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        expect(codeOf(() => framesIn(readRecording(bytes)))).toMatch(/^(read|[A-Z_]+)$/);
      }),
      { numRuns: 300 },
    );
  });

  test("a good file with bytes changed and its end cut off", () => {
    const good = wav({
      tag: 0xfffe,
      bits: 32,
      channels: 2,
      data: new Uint8Array(Float32Array.from({ length: 64 }, (_, i) => i / 64).buffer),
      extension: Uint8Array.from({ length: 24 }, (_, i) => (i === 0 ? 22 : i === 2 ? 32 : i === 8 ? 3 : 0)),
    });
    expect(codeOf(() => framesIn(readRecording(good)))).toBe("read");
    const change = fc.tuple(fc.integer({ min: 8, max: 90 }), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(fc.array(change, { maxLength: 6 }), fc.integer({ min: 0, max: good.length }), (changes, length) => {
        const bytes = good.slice(0, length);
        for (const [at, value] of changes) if (at < length) bytes[at] = value;
        codeOf(() => framesIn(readRecording(bytes)));
      }),
      { numRuns: 2000 },
    );
  });

  test("any bytes are headerless audio", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 300 }),
        fc.constantFrom("pcm16", "alaw", "mulaw"),
        fc.integer({ min: 1, max: 3 }),
        (bytes, encoding, channels) => {
          const width = encoding === "pcm16" ? 2 : 1;
          expect(framesIn(readRecording(bytes, { encoding, rateHz: 8000, channels }))).toBe(
            Math.floor(bytes.length / width / channels),
          );
        },
      ),
    );
  });
});

describe("files on disk", () => {
  test("are read in place; a file that shrinks is an error", () => {
    const folder = mkdtempSync(join(tmpdir(), "vivavoce-audio-"));
    try {
      const path = join(folder, "tone.wav");
      writeFileSync(path, wav({ data: pcm16(Array.from({ length: 50_000 }, (_, i) => i % 99)) }));
      const recording = openRecording(path);
      expect(framesIn(recording)).toBe(50_000);
      truncateSync(path, 60_000);
      expect(codeOf(() => framesIn(recording))).toBe("TRUNCATED");
      recording.close();
      expect(() => openRecording(join(folder, "none.wav"))).toThrow("ENOENT");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
