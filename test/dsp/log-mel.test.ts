import { readFileSync } from "node:fs";
import FFT from "fft.js";
import { describe, expect, it } from "vitest";
import { noise, speak } from "../voice.js";
import { floats, instantiate, listen } from "./kernels.js";

const BINS = 80;
const FLOOR = Math.log(1.1920929e-7);
const SAMPLES = 16000 * 4;

const kernels = instantiate();
const input = kernels.reserve(SAMPLES * 4);
const output = kernels.reserve((SAMPLES / 160) * BINS * 4);
kernels.seal();

type Shape = "povey" | "hamming";

function logMel(x: Float32Array, shape: Shape = "povey"): Float32Array {
  floats(kernels, input, x.length).set(x);
  const frames = kernels[shape === "povey" ? "logMel" : "hammingLogMel"](output, input, x.length);
  return floats(kernels, output, frames * BINS).slice();
}

function golden(name: string): Buffer {
  return readFileSync(new URL(`golden/${name}`, import.meta.url));
}

/** Kaldi's definition in f64, one frame at a time, with the FFT of fft.js. */
function reference(x: Float32Array, shape: Shape): number[] {
  const mel = (hz: number) => 1127 * Math.log(1 + hz / 700);
  const low = mel(20);
  const width = (mel(8000) - low) / (BINS + 1);
  const fft = new FFT(512);
  const places = Array.from({ length: 256 }, (_, k) => (mel((k * 16000) / 512) - low) / width);
  const out: number[] = [];
  for (let at = 0; at + 400 <= x.length; at += 160) {
    const frame = Array.from(x.subarray(at, at + 400));
    const mean = frame.reduce((a, b) => a + b, 0) / 400;
    const centred = frame.map((v) => v - mean);
    const windowed = new Array<number>(512).fill(0);
    for (let i = 0; i < 400; i++) {
      const before = centred[Math.max(0, i - 1)] ?? 0;
      const turn = Math.cos((2 * Math.PI * i) / 399);
      const weight = shape === "povey" ? (0.5 - 0.5 * turn) ** 0.85 : 0.54 - 0.46 * turn;
      windowed[i] = ((centred[i] ?? 0) - 0.97 * before) * weight;
    }
    const spectrum = fft.createComplexArray();
    fft.realTransform(spectrum, windowed);
    for (let m = 0; m < BINS; m++) {
      let sum = 0;
      for (let k = 0; k < 256; k++) {
        const place = (places[k] ?? 0) - m;
        const weight = Math.max(0, Math.min(place, 2 - place));
        if (weight > 0) sum += weight * ((spectrum[2 * k] ?? 0) ** 2 + (spectrum[2 * k + 1] ?? 0) ** 2);
      }
      out.push(Math.log(Math.max(sum, 1.1920929e-7)));
    }
  }
  return out;
}

function furthest(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(got.length).toBe(expected.length);
  let worst = 0;
  for (let i = 0; i < got.length; i++) worst = Math.max(worst, Math.abs((got[i] ?? Number.NaN) - (expected[i] ?? 0)));
  return worst;
}

describe("log-mel", () => {
  it.each([
    ["povey", "fbank.f32"],
    ["hamming", "fbank-hamming.f32"],
  ] as const)("agrees with kaldi-native-fbank under a %s window", (shape, name) => {
    const pcm = golden("fbank.i16");
    const features = golden(name);
    const x = Float32Array.from({ length: pcm.length / 2 }, (_, i) => pcm.readInt16LE(2 * i) / 32768);
    const expected = Float32Array.from({ length: features.length / 4 }, (_, i) => features.readFloatLE(4 * i));
    // Both sum 257 powers in f32; the worst bins are near the floor next to loud ones.
    expect(furthest(logMel(x, shape), expected)).toBeLessThanOrEqual(2e-4);
  });

  it.each([
    ["a voice", speak({ speaker: 3, seconds: 2, levelDb: -20 })],
    ["a quiet voice", speak({ speaker: 4, seconds: 2, levelDb: -50 })],
    ["noise", noise(1, 16000, 5, -20)],
    ["brown noise", noise(1, 16000, 6, -12, "brown")],
  ])("agrees with the definition in f64 on %s", (_, x) => {
    for (const shape of ["povey", "hamming"] as const) {
      expect(furthest(logMel(x, shape), reference(x, shape)), shape).toBeLessThanOrEqual(
        5e-4 /* f32 against f64, bins 70 dB under the strongest */,
      );
    }
  });

  it("is at the floor in silence and ignores a constant offset", () => {
    for (const constant of [0, 1, -1, 0.3]) {
      const bins = logMel(Float32Array.from({ length: 3200 }, () => constant));
      for (const bin of bins) expect(Math.abs(bin - FLOOR)).toBeLessThan(constant === 0 ? 1e-5 : 1e-3);
    }
  });

  it("has a frame every 10 ms as long as 25 ms fit", () => {
    for (const [samples, frames] of [
      [0, 0],
      [1, 0],
      [399, 0],
      [400, 1],
      [559, 1],
      [560, 2],
      [880, 4],
      [1040, 5],
      [16000, 98],
    ] as const) {
      expect(kernels.logMelFrames(samples)).toBe(frames);
      expect(logMel(noise(samples / 16000 || 0, 16000, 9)).length).toBe(frames * BINS);
    }
  });

  it("is bit-identical to the stream, for speech and the 300 ms around it", () => {
    const x = speak({ speaker: 2, seconds: 3.5 });
    for (const shape of ["povey", "hamming"] as const) {
      const all = logMel(x, shape);
      const hamming = shape === "hamming";
      const { windows, marks } = listen(kernels, x, 16000, { windowFrames: 1000, chunks: [333], hamming });
      const near = (f: number) => marks.slice(Math.max(0, f - 30), f + 31).includes(1);
      const kept = marks.flatMap((_, f) => (near(f) ? [...all.subarray(f * BINS, (f + 1) * BINS)] : []));
      expect(kept.length).toBeGreaterThan(100 * BINS);
      expect(windows.flatMap((w) => [...w.features])).toEqual(kept);
    }
  });

  it("under a Hamming window changes neither measures nor voice activity", () => {
    const x = speak({ speaker: 2, seconds: 3.5 });
    const [plain, other] = [false, true].map((hamming) => listen(kernels, x, 16000, { windowFrames: 120, hamming }));
    expect(other!.measured).toEqual(plain!.measured);
    expect(other!.marks).toEqual(plain!.marks);
    expect(other!.windows.map((w) => w.features.length)).toEqual(plain!.windows.map((w) => w.features.length));
    expect(other!.windows[0]!.features).not.toEqual(plain!.windows[0]!.features);
  });
});
