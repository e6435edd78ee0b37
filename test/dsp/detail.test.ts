import { createHash } from "node:crypto";
import fc from "fast-check";
import FFT from "fft.js";
import { describe, expect, it } from "vitest";
import { BAD_WINDOW, DETAIL_ROWS } from "../../src/engine/gen/kernel-exports.js";
import { mix, noise, speak } from "../voice.js";
import { floats, instantiate, type Kernels, listen, measured, push, type Window, windowOf } from "./kernels.js";

const BINS = 288;
const BANDS = 80;
const COLUMN_BINS = 32;
const FLOOR = 1.1920929e-7;
const SAMPLES = 16000 * 4;

const kernels = instantiate();
const input = kernels.reserve(SAMPLES * 4);
const output = kernels.reserve((SAMPLES / 160) * BINS * 4);
kernels.seal();

function detail(x: Float32Array): Float32Array {
  floats(kernels, input, x.length).set(x);
  const frames = kernels.detail(output, input, x.length);
  return floats(kernels, output, frames * BINS).slice();
}

/** Powers of bands of equal width, from 20 to 8,000 Hz, of Kaldi's frames: f64, with the FFT of fft.js. */
function bandPowers(x: Float32Array, at: number): number[] {
  const fft = new FFT(512);
  const width = (8000 - 20) / (BANDS + 1);
  const frame = Array.from(x.subarray(at, at + 400));
  const mean = frame.reduce((a, b) => a + b, 0) / 400;
  const windowed = new Array<number>(512).fill(0);
  for (let i = 0; i < 400; i++) {
    const before = frame[Math.max(0, i - 1)]! - mean;
    windowed[i] = (frame[i]! - mean - 0.97 * before) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / 399)) ** 0.85;
  }
  const spectrum = fft.createComplexArray();
  fft.realTransform(spectrum, windowed);
  return Array.from({ length: BANDS }, (_, m) => {
    const [left, centre, right] = [20 + m * width, 20 + (m + 1) * width, 20 + (m + 2) * width];
    let sum = 0;
    for (let k = 0; k < 256; k++) {
      const hz = k * 31.25;
      const weight = Math.max(0, Math.min((hz - left) / (centre - left), (right - hz) / (right - centre)));
      sum += weight * (spectrum[2 * k]! ** 2 + spectrum[2 * k + 1]! ** 2);
    }
    return sum;
  });
}

/** Bins 1..32 of one short frame, f64, by the definition of the transform, and the sum of the magnitudes: the upper limit of each bin. */
function columnPowers(x: Float32Array, at: number): { powers: number[]; sum: number } {
  const windowed = Array.from({ length: 64 }, (_, n) => {
    const emphasized = x[at + n]! - 0.97 * x[at + n - 1]!;
    return emphasized * (0.5 - 0.5 * Math.cos((2 * Math.PI * n) / 63));
  });
  const powers = Array.from({ length: COLUMN_BINS }, (_, bin) => {
    let re = 0;
    let im = 0;
    for (let n = 0; n < 64; n++) {
      const angle = (2 * Math.PI * n * (bin + 1)) / 64;
      re += windowed[n]! * Math.cos(angle);
      im -= windowed[n]! * Math.sin(angle);
    }
    return re * re + im * im;
  });
  return { powers, sum: windowed.reduce((all, y) => all + Math.abs(y), 0) };
}

describe("the details of a frame", () => {
  it.each([
    ["a voice", speak({ speaker: 3, seconds: 2, levelDb: -20 })],
    ["another voice", mix(speak({ speaker: 7, seconds: 2, levelDb: -26 }), noise(2, 16000, 4), 30)],
    ["a quiet voice", speak({ speaker: 4, seconds: 2, levelDb: -50 })],
    ["noise", noise(1, 16000, 5, -20)],
  ])("agree with their definition in f64 on %s", (_, x) => {
    const got = detail(x);
    expect(got.length).toBe(kernels.logMelFrames(x.length) * BINS);
    let worstBand = 0;
    let worstColumn = 0;
    for (let f = 0; f * BINS < got.length; f++) {
      const row = got.subarray(f * BINS, (f + 1) * BINS);
      for (const [m, power] of bandPowers(x, f * 160).entries()) {
        worstBand = Math.max(worstBand, Math.abs(row[m]! - Math.log(Math.max(power, FLOOR))));
      }
      for (let column = 0; column < 4; column++) {
        const { powers, sum } = columnPowers(x, f * 160 + 100 + column * 40);
        for (const [bin, power] of powers.entries()) {
          const value = row[BANDS + column * COLUMN_BINS + bin]!;
          const off = Math.abs(Math.exp(value / 2) - Math.sqrt(Math.max(power, FLOOR)));
          // Cancellation in a bin has the error of the whole sum; at the floor, of the logarithm.
          worstColumn = Math.max(worstColumn, off / (sum + Math.sqrt(FLOOR)));
        }
      }
    }
    expect(worstBand).toBeLessThanOrEqual(
      1e-3 /* f32 against f64, bands of three frequencies 70 dB under the strongest */,
    );
    expect(worstColumn).toBeLessThanOrEqual(5e-7 /* f32 sums of 63 products, and a logarithm of some ten units */);
  });

  it("end with the frame's log-mel, to the last bit", () => {
    const x = speak({ speaker: 3, seconds: 1 });
    const rows = detail(x);
    const frames = kernels.logMel(output, input, x.length);
    const logMel = floats(kernels, output, frames * BANDS).slice();
    const last = Array.from({ length: frames }, (_, f) => [...rows.subarray((f + 1) * BINS - BANDS, (f + 1) * BINS)]);
    expect(last.flat()).toEqual([...logMel]);
  });

  it("are at the floor in silence", () => {
    for (const value of detail(new Float32Array(3200))) expect(Math.abs(value - Math.log(FLOOR))).toBeLessThan(1e-5);
  });

  it("show a click in the columns that hold it, and in no other", () => {
    const x = new Float32Array(1600);
    // Frame 3 begins at 480, its columns of 64 at 580, 620, 660 and 700.
    x[630] = 0.5;
    const row = detail(x).subarray(3 * BINS, 4 * BINS);
    const loudest = [0, 1, 2, 3].map((c) => Math.max(...row.subarray(BANDS + c * 32, BANDS + (c + 1) * 32)));
    expect(loudest.map((value) => value > Math.log(FLOOR) + 5)).toEqual([true, true, false, false]);
  });
});

const recording = mix(speak({ speaker: 5, seconds: 7, rateHz: 8000 }), noise(7, 8000, 2), 25);
const at16k = mix(speak({ speaker: 2, seconds: 3.8, leadSeconds: 1 }), noise(3.8, 16000, 3), 30);

describe("a stream of details", () => {
  it("is bit-identical to the whole recording in any chunking, for speech and the 300 ms around it", () => {
    const all = detail(at16k);
    const { marks } = listen(kernels, at16k, 16000);
    const near = (f: number) => marks.slice(Math.max(0, f - 30), f + 31).includes(1);
    const kept = marks.flatMap((_, f) => (near(f) ? [all.subarray(f * BINS, (f + 1) * BINS)] : []));
    expect(kept.length).toBeGreaterThan(100);
    expect(kept.length).toBeLessThan(marks.length);
    const chunkSizes = fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(chunkSizes, fc.integer({ min: 50, max: 400 }), (chunks, windowFrames) => {
        const { windows } = listen(kernels, at16k, 16000, { windowFrames, chunks, detail: true });
        for (const { features } of windows.slice(0, -1)) expect(features.length).toBe(windowFrames * BINS);
        expect(bits(...windows.map(({ features }) => features))).toBe(bits(...kept));
      }),
      { numRuns: 15 },
    );
  });

  it("detects speech, measures and cuts like a stream of log-mel", () => {
    for (const rateHz of [8000, 16001, 44100]) {
      const fine = listen(kernels, recording, rateHz, { windowFrames: 120, detail: true });
      const plain = listen(kernels, recording, rateHz, { windowFrames: 120 });
      expect(fine.measured).toEqual(plain.measured);
      expect(fine.marks).toEqual(plain.marks);
      const cut = ({ features, ...times }: Window, bins: number) => ({ frames: features.length / bins, ...times });
      expect(fine.windows.map((w) => cut(w, BINS))).toEqual(plain.windows.map((w) => cut(w, 80)));
    }
  });

  it("can be peeked at and saved without a change, beside streams of log-mel", () => {
    const untouched = listen(kernels, recording, 8000, { windowFrames: 150, detail: true });
    const windows: Window[] = [];
    kernels.streamStart(8000, 150, 0, DETAIL_ROWS);
    for (let at = 0; at < recording.length; at += 5000) {
      push(kernels, recording.subarray(at, at + 5000), [700], (w) => windows.push(w));
      const state = stateOf(kernels);
      kernels.streamPeek();
      const soFar = listen(instantiate(), recording.subarray(0, at + 5000), 8000, { windowFrames: 150, detail: true });
      expect(measured(kernels)).toEqual(soFar.measured);
      const last = windowOf(kernels);
      if (last.features.length > 0) expect(printed(last)).toEqual(printed(soFar.windows.at(-1)!));
      expect(bits(stateOf(kernels))).toBe(bits(state));
      listen(kernels, at16k, 16000);
      kernels.streamWipe();
      new Uint8Array(kernels.memory.buffer, kernels.streamStatePtr()).set(state);
    }
    if (kernels.streamFinish() > 0) windows.push(windowOf(kernels));
    expect(measured(kernels)).toEqual(untouched.measured);
    expect(windows.map(printed)).toEqual(untouched.windows.map(printed));
  });

  it("has windows of up to 400 frames", () => {
    expect(kernels.streamStart(16000, 50, 0, DETAIL_ROWS)).toBe(0);
    expect(kernels.windowBins()).toBe(kernels.detailBins());
    for (const frames of [-1, 49, 401, 1000]) {
      expect(kernels.streamStart(16000, frames, 0, DETAIL_ROWS)).toBe(BAD_WINDOW);
    }
    for (const rows of [-1, 3]) expect(kernels.streamStart(16000, 100, 0, rows)).toBe(BAD_WINDOW);
    expect(kernels.windowBins()).toBe(BINS);
    const { windows } = listen(kernels, recording, 8000, { windowFrames: 400, detail: true });
    expect(windows[0]?.features.length).toBe(400 * BINS);
    expect(windows.at(-1)!.features.length).toBeLessThanOrEqual(kernels.windowCapacity() * BINS);
  });

  it("adds nothing to the saved state of a log-mel stream", () => {
    kernels.streamStart(16000, 320, 0, DETAIL_ROWS);
    const fine = kernels.streamStateBytes();
    const ring = 48;
    const undecided = 16;
    const logMelBytes = kernels.featureBins() * 4;
    kernels.streamStart(16000, 320, 0);
    expect(kernels.streamStateBytes()).toBe(fine - ring * (BINS * 4 - logMelBytes) - undecided * logMelBytes);
    expect(kernels.windowBins()).toBe(kernels.featureBins());
  });

  it("keeps nothing after a wipe", () => {
    for (const end of [() => kernels.streamFinish(), () => kernels.streamPeek()]) {
      kernels.streamStart(8000, 400, 0, DETAIL_ROWS);
      push(kernels, recording, [4096], () => {});
      end();
      kernels.streamWipe();
      const state = new Uint8Array(kernels.memory.buffer, kernels.streamStatePtr(), kernels.streamStateCapacity());
      // Of the whole state only one number remains: that the stream is finished.
      expect(state.reduce((sum, byte) => sum + byte, 0)).toBe(4);
    }
  });
});

/** A fingerprint of all values in order: faster to compare than so many numbers. */
function bits(...parts: readonly (Float32Array | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  return hash.digest("hex");
}

function printed({ features, ...times }: Window): object {
  return { ...times, frames: features.length / BINS, features: bits(features) };
}

function stateOf(k: Kernels): Uint8Array {
  return new Uint8Array(k.memory.buffer, k.streamStatePtr(), k.streamStateBytes()).slice();
}
