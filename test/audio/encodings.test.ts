import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { alaw, mulaw } from "../../src/audio/g711.js";
import { readRecording, recordingOfSamples } from "../../src/audio/index.js";
import type { Recording } from "../../src/audio/port.js";
import { chunk, extensible, pcm16, wav } from "./wav-bytes.js";

const { WaveFile } = createRequire(import.meta.url)("wavefile") as typeof import("wavefile");

function golden(name: string): Buffer {
  return readFileSync(new URL(`./golden/${name}`, import.meta.url));
}

function golden16(name: string): Int16Array {
  return new Int16Array(Uint8Array.from(golden(name)).buffer);
}

function all(recording: Recording, channel: number): number[] {
  return [...recording.read(channel)].flatMap((samples) => [...samples]);
}

const sound = Array.from({ length: 40_000 }, (_, i) =>
  Math.round(20_000 * Math.sin(i * 0.05) + 9_000 * Math.sin(i * 0.31)),
);

describe("G.711", () => {
  // ITU-T G.711, tables 1a and 2a: the decoder's output at the ends of the segments, for positive input.
  const aLaw = [1, 3, 31, 33, 63, 66, 126, 132, 252, 264, 504, 528, 1008, 1056, 2016, 2112, 4032];
  const muLaw = [0, 2, 30, 33, 93, 99, 219, 231, 471, 495, 975, 1023, 1983, 2079, 3999, 4191, 8031];

  test("A-law gives the values of G.711", () => {
    const values = new Set(Array.from(alaw, (value) => value * 4096));
    for (const value of aLaw) expect(values.has(value) && values.has(-value), `±${value}`).toBe(true);
    expect(values.size).toBe(256);
    // Character signals with all bits set, even bits inverted: 0xD5 is the smallest positive value, 0xAA the largest.
    expect([alaw[0xd5]! * 4096, alaw[0xaa]! * 4096, alaw[0x55]! * 4096, alaw[0x2a]! * 4096]).toEqual([
      1, 4032, -1, -4032,
    ]);
  });

  test("µ-law gives the values of G.711", () => {
    const values = new Set(Array.from(mulaw, (value) => value * 8192));
    for (const value of muLaw) expect(values.has(value) && values.has(-value), `±${value}`).toBe(true);
    expect([mulaw[0x80]! * 8192, mulaw[0x00]! * 8192, mulaw[0xff]! + 0]).toEqual([8031, -8031, 0]);
  });

  test("all 256 codes decode as ffmpeg decodes them", () => {
    expect(Array.from(alaw, (value) => value * 32768)).toEqual([...golden16("alaw.s16")]);
    expect(Array.from(mulaw, (value) => value * 32768 + 0)).toEqual([...golden16("mulaw.s16")]);
  });
});

describe("WAV encodings", () => {
  // wavefile, an independent library, writes each file and gives its contents.
  const depths = { "8": 2 ** 7, "16": 2 ** 15, "24": 2 ** 23, "32": 2 ** 31, "32f": 1, "64": 1 };
  for (const [depth, fullScale] of Object.entries(depths)) {
    for (const channels of [1, 2, 5]) {
      test(`${depth} bits, ${channels} channels`, () => {
        const file = new WaveFile();
        const planes = Array.from({ length: channels }, (_, c) =>
          sound.map((value) => {
            const scaled = (value / 32768 / (c + 1)) * fullScale;
            return fullScale === 1 ? scaled : Math.round(scaled) + (depth === "8" ? 128 : 0);
          }),
        );
        file.fromScratch(channels, 16_000, depth, channels === 1 ? planes[0]! : (planes as never));
        const recording = readRecording(file.toBuffer());
        expect(recording).toMatchObject({ rateHz: 16_000, channels, frames: sound.length });
        for (let c = 0; c < channels; c++) {
          const expected = planes[c]!.map((value) =>
            Math.fround(depth === "8" ? (value - 128) / 128 : value / fullScale),
          );
          expect(all(recording, c + 1)).toEqual(expected);
        }
      });
    }
  }

  test("A-law and µ-law files", () => {
    const codes = Uint8Array.from({ length: 256 }, (_, i) => i);
    expect(all(readRecording(wav({ tag: 6, bits: 8, data: codes })), 1)).toEqual([...alaw]);
    expect(all(readRecording(wav({ tag: 7, bits: 8, data: codes })), 1)).toEqual([...mulaw]);
  });

  test("WAVE_FORMAT_EXTENSIBLE: 20 valid bits are the upper ones of 24", () => {
    const data = Uint8Array.of(0x00, 0x00, 0x40, 0x10, 0x00, 0x80);
    const file = wav({ tag: 0xfffe, bits: 24, extension: extensible(1, 20), data });
    expect(all(readRecording(file), 1)).toEqual([0.5, Math.fround((0x800010 - 0x1000000) / 0x800000)]);
    const floats = new Uint8Array(Float32Array.of(0.25, -0.75).buffer);
    expect(all(readRecording(wav({ tag: 0xfffe, bits: 32, extension: extensible(3, 32), data: floats })), 1)).toEqual([
      0.25, -0.75,
    ]);
  });

  test("24 bits in four bytes are the upper three, with and without the extensible format", () => {
    const data = Uint8Array.of(0, 0x00, 0x00, 0x40, 0, 0x01, 0x00, 0x80);
    const [extension, bytesPerFrame] = [extensible(1, 24), 4];
    for (const file of [
      wav({ bits: 24, bytesPerFrame, data }),
      wav({ tag: 0xfffe, bits: 24, bytesPerFrame, extension, data }),
      wav({ tag: 0xfffe, bits: 32, extension, data }),
    ])
      expect(all(readRecording(file), 1)).toEqual([0.5, (1 - 0x800000) / 0x800000]);
  });

  test("chunks of an odd length are padded, wherever they are", () => {
    const data = pcm16([1, -2, 3, 32767]);
    for (const bytes of [0, 1, 2, 3, 17]) {
      const note = chunk("LIST", new Uint8Array(bytes).fill(65));
      const recording = readRecording(wav({ between: [note, note], data }));
      expect([...recording.read(1)].flatMap((part) => [...part])).toEqual([1, -2, 3, 32767].map((x) => x / 32768));
    }
  });

  test("RF64 takes its length from the ds64 chunk", () => {
    const sizes = new Uint8Array(28);
    new DataView(sizes.buffer).setBigUint64(8, 4n, true);
    const file = wav({
      riff: "RF64",
      riffBytes: 0xffffffff,
      between: [chunk("ds64", sizes)],
      data: pcm16([1, 2, 3]),
      dataBytes: 0xffffffff,
    });
    expect(readRecording(file).frames).toBe(2);
  });

  for (const channels of [1, 2]) {
    test(`IMA ADPCM decodes as ffmpeg decodes it, ${channels} channels`, () => {
      const recording = readRecording(golden(`ima-${channels}.wav`));
      const expected = [...golden16(`ima-${channels}.s16`)];
      expect(recording).toMatchObject({ rateHz: 8000, channels, frames: expected.length / channels });
      for (let c = 0; c < channels; c++) {
        const samples = all(recording, c + 1).map((value) => value * 32768);
        expect(samples).toEqual(expected.filter((_, i) => i % channels === c));
      }
    });
  }

  test("IMA ADPCM truncated anywhere gives the beginning of the whole", () => {
    const file = golden("ima-2.wav");
    const whole = all(readRecording(file), 2);
    fc.assert(
      fc.property(fc.integer({ min: file.length - 2304, max: file.length }), (length) => {
        const part = all(readRecording(file.subarray(0, length)), 2);
        expect(part).toEqual(whole.slice(0, part.length));
        expect(whole.length - part.length).toBeLessThanOrEqual(file.length - length + 16);
      }),
      { numRuns: 60 },
    );
  });

  test("Microsoft ADPCM is refused by name", () => {
    expect(() => readRecording(golden("ms.wav"))).toThrow(
      expect.objectContaining({ code: "UNSUPPORTED_ENCODING", message: expect.stringContaining("Microsoft ADPCM") }),
    );
  });
});

describe("headerless audio and arrays", () => {
  test("PCM16, A-law and µ-law in the given format", () => {
    const bytes = pcm16([1000, -2000, 3000, 4000]);
    const stereo = readRecording(bytes, { encoding: "pcm16", rateHz: 11_025, channels: 2 });
    expect(stereo).toMatchObject({ rateHz: 11_025, channels: 2, frames: 2 });
    expect(all(stereo, 2)).toEqual([-2000 / 32768, 4000 / 32768]);
    expect(all(stereo, 0)).toEqual([-500 / 32768, 3500 / 32768]);
    const law = readRecording(Uint8Array.of(0xd5, 0x2a), { encoding: "alaw", rateHz: 8000, channels: 1 });
    expect(all(law, 0)).toEqual([1 / 4096, -4032 / 4096]);
  });

  test("typed arrays of every kind come back unchanged", () => {
    const floats = Float32Array.from(sound, (value) => value / 32768);
    const kinds = [floats, Float64Array.from(floats), Int16Array.from(sound)];
    for (const samples of kinds) expect(all(recordingOfSamples(samples, 44_100), 1)).toEqual([...floats]);
    expect(
      all(recordingOfSamples([floats, floats.map((value) => -value)], 8000), 0).every((value) => value === 0),
    ).toBe(true);
  });

  test("chunks are new arrays, limited in size, and add up", () => {
    const chunks = [...recordingOfSamples(Float32Array.from(sound), 8000).read(0)];
    expect(chunks.every((samples) => samples.length <= 16_384)).toBe(true);
    expect(new Set(chunks.map((samples) => samples.buffer)).size).toBe(chunks.length);
    expect(chunks.reduce((sum, samples) => sum + samples.length, 0)).toBe(sound.length);
  });
});
