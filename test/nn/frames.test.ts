/** Kernels over rows of frames that the time-delay and attack networks use, against their definitions. */
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { Chance, COMPILING_MS, clamp, compile, Kernels, nearest } from "./kernels.js";

let wasm: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  wasm = await compile(
    "nn/bounded-convolution",
    "nn/convolution",
    "nn/frames",
    "nn/attention",
    "nn/plane",
    "nn/pooling",
    "nn/activation",
    "speaker/features",
  );
}, COMPILING_MS);

const f = Math.fround;
const WORD = 2;
const RUNS = { numRuns: 40 };
const seed = fc.integer();
const eights = (most: number) => fc.integer({ min: 1, max: most }).map((n) => 8 * n);

test("a bounded convolution is exact, clamps each channel to its own range, and takes another bias", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed,
        frames: fc.integer({ min: 1, max: 13 }),
        outputs: eights(3),
        taps: fc.integer({ min: 1, max: 5 }),
        inputs: eights(3),
        dilation: fc.integer({ min: 1, max: 4 }),
        room: fc.constantFrom(0, 8),
      }),
      ({ seed, frames, outputs, taps, inputs, dilation, room }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const weights = chance.words(outputs * taps * inputs, -1000, 1000);
        const panels = k.reserve(weights.byteLength);
        k.run.packPanels!(panels, k.put(weights), outputs, taps, inputs, 1);
        const [gain, bias] = [chance.floats(outputs, 1e-6, 3e-4), chance.floats(outputs, -3000, 3000)];
        const [low, high] = [-32767, 0].map((from) => chance.floats(outputs, from, from + 32767).map(Math.round));
        const steps = [{ f32: 0 }, { f32: 0 }, 1, dilation, 1];
        const layer = k.record(outputs, taps, inputs, panels, k.put(gain), 0, 0, ...steps);
        const [xWidth, width] = [inputs + room, outputs + room];
        const x = chance.words((frames + (taps - 1) * dilation) * xWidth, -4000, 4095);
        const before = chance.words(frames * width, -9, 9);
        const out = k.put(before);
        const bounded = k.record(layer, k.put(low!), k.put(high!));
        k.run.convolveBounded!(out, width * WORD, k.put(x), xWidth * WORD, frames, bounded, k.put(bias));
        const wanted = before.slice();
        for (let t = 0; t < frames; t++) {
          for (let o = 0; o < outputs; o++) {
            let sum = 0;
            for (let tap = 0; tap < taps; tap++) {
              for (let c = 0; c < inputs; c++) {
                sum += x[(t + tap * dilation) * xWidth + c]! * weights[(o * taps + tap) * inputs + c]!;
              }
            }
            wanted[t * width + o] = nearest(clamp(f(f(f(sum) * gain[o]!) + bias[o]!), low![o]!, high![o]!));
          }
        }
        expect(k.words(out, wanted.length)).toEqual(wanted);
      },
    ),
    RUNS,
  );
});

test("padding is zeros or the mirrored frames, of the channels given and of no others", () => {
  fc.assert(
    fc.property(
      fc.record({ seed, frames: fc.integer({ min: 1, max: 20 }), channels: eights(3), room: fc.constantFrom(0, 8) }),
      ({ seed, frames, channels, room }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const [border, width] = [8, channels + room];
        const rows = chance.integer(0, Math.min(frames - 1, border));
        const x = chance.words((frames + 2 * border) * width, -32768, 32767);
        const mirrored = (t: number) => (t < 0 ? -t : 2 * (frames - 1) - t);
        for (const [kernel, source] of [
          ["padZeros", () => null],
          ["padMirrored", mirrored],
        ] as const) {
          const slot = k.put(x);
          k.run[kernel]!(slot + border * width * WORD, width * WORD, channels * WORD, frames, rows);
          const wanted = x.slice();
          for (let t = -rows; t < frames + rows; t++) {
            if (t >= 0 && t < frames) continue;
            const from = source(t);
            for (let c = 0; c < channels; c++)
              wanted[(t + border) * width + c] = from === null ? 0 : x[(from + border) * width + c]!;
          }
          expect(k.words(slot, x.length)).toEqual(wanted);
        }
      },
    ),
    RUNS,
  );
});

test("a sum of frames is exact, in place too, with or without a second input", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed,
        frames: fc.integer({ min: 1, max: 9 }),
        channels: eights(3),
        room: fc.constantFrom(0, 8),
        isInPlace: fc.boolean(),
        hasSecond: fc.boolean(),
        low: fc.constantFrom(0, -32767),
      }),
      ({ seed, frames, channels, room, isInPlace, hasSecond, low }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const [width, yWidth] = [channels + room, channels + 2 * room];
        const x = chance.words(frames * width, -32768, 32767);
        const y = chance.words(frames * yWidth, -32768, 32767);
        const [xGain, yGain] = [chance.floats(channels, -2, 2), chance.floats(channels, -2, 2)];
        const slot = k.put(x);
        const out = isInPlace ? slot : k.put(x);
        const sum = k.record(channels, width * WORD, width * WORD, yWidth * WORD, 0, k.put(yGain), { f32: low });
        k.run.addFrames!(out, slot, hasSecond ? k.put(y) : 0, frames, sum, k.put(xGain));
        const wanted = x.slice();
        for (let t = 0; t < frames; t++) {
          for (let c = 0; c < channels; c++) {
            const first = f(x[t * width + c]! * xGain[c]!);
            const second = hasSecond ? f(y[t * yWidth + c]! * yGain[c]!) : 0;
            wanted[t * width + c] = nearest(clamp(f(first + second), low, 32767));
          }
        }
        expect(k.words(out, x.length)).toEqual(wanted);
      },
    ),
    RUNS,
  );
});

describe("attention", () => {
  test("weights frames by the softmax of their scores, and stays in its scratch", () => {
    fc.assert(
      fc.property(
        fc.record({
          seed,
          frames: fc.constantFrom(1, 2, 50, 464),
          channels: eights(4),
          // From even weights to those of a single frame.
          steepness: fc.constantFrom(1e-7, 1e-4, 1e-2),
          lowest: fc.constantFrom(-32768, 32760),
        }),
        ({ seed, frames, channels, steepness, lowest }) => {
          const k = new Kernels(wasm);
          const chance = new Chance(seed);
          const width = channels + 8;
          const x = chance.words(frames * width, lowest, 32767);
          const scores = chance.words(frames * channels, -32767, 32767);
          const step = chance.floats(channels, steepness, 2 * steepness);
          const [bytes, guard] = [k.run.attentionBytes!(frames, channels), new Int16Array(32).fill(99)];
          const slot = k.reserve(bytes + guard.byteLength);
          k.write(slot, scores);
          k.write(slot + bytes, guard);
          const column = (c: number) => Array.from({ length: frames }, (_, t) => x[t * width + c]!);
          const means = Float32Array.from({ length: 2 * channels }, (_, c) =>
            c < channels ? column(c).reduce((a, b) => a + b, 0) / frames : 0,
          );
          const out = k.put(means);
          k.run.attend!(out, k.put(x), width * WORD, slot, k.put(step), frames, channels);
          const got = k.floats(out, 2 * channels);
          for (let c = 0; c < channels; c++) {
            const values = column(c);
            const top = Math.max(...values.map((_, t) => scores[t * channels + c]!));
            const weights = values.map((_, t) => Math.exp((scores[t * channels + c]! - top) * step[c]!));
            const total = weights.reduce((a, b) => a + b, 0);
            const mean = values.reduce((sum, v, t) => sum + v * weights[t]!, 0) / total;
            const square = values.reduce((sum, v, t) => sum + (v - mean) ** 2 * weights[t]!, 0) / total;
            // Sums of f32 about the plain mean: their error follows the distance from it.
            const spread = Math.sqrt(square + (mean - means[c]!) ** 2) + 1;
            expect(Math.abs(got[c]! - mean)).toBeLessThan(1e-4 * spread + 4e-3);
            expect(Math.abs(got[channels + c]! - Math.sqrt(square))).toBeLessThan(1e-3 * spread + 2e-2);
          }
          expect(k.words(slot + bytes, guard.length)).toEqual(guard);
        },
      ),
      RUNS,
    );
  });

  test("squashes with a hyperbolic tangent", () => {
    const k = new Kernels(wasm);
    const chance = new Chance(2);
    const [frames, channels] = [40, 24];
    const x = chance.words(frames * channels, -32768, 32767);
    const step = chance.floats(channels, 1e-6, 1e-3);
    const slot = k.put(x);
    k.run.squash!(slot, frames, channels, k.put(step));
    for (const [i, value] of k.words(slot, x.length).entries())
      expect(Math.abs(value - 32767 * Math.tanh(x[i]! * step[i % channels]!))).toBeLessThan(0.51);
  });
});

test("the border of a plane becomes zero, with all frames after the last, and nothing else changes", () => {
  fc.assert(
    fc.property(
      fc.record({
        frames: fc.integer({ min: 1, max: 9 }),
        bins: fc.integer({ min: 1, max: 9 }),
        channels: eights(3),
        atOnce: fc.constantFrom(1, 4),
      }),
      ({ frames, bins, channels, atOnce }) => {
        const k = new Kernels(wasm);
        const plane = k.reserve(24);
        // The compiler's way of passing an optional argument.
        k.run.__setArgumentsLength!(5);
        k.run.setPlane!(plane, frames, bins, channels, atOnce);
        const bytes = k.integers(plane, 6)[5]!;
        const rows = Math.ceil(frames / atOnce) * atOnce + 2;
        expect(bytes).toBe(rows * (bins + 2) * channels * WORD);
        const after = 8;
        const x = new Int16Array(bytes / WORD + after).fill(7);
        const slot = k.put(x);
        k.run.clearBorder!(slot, plane);
        const isInside = (i: number) => {
          const [row, bin] = [Math.floor(i / ((bins + 2) * channels)), Math.floor(i / channels) % (bins + 2)];
          return i >= x.length - after || (row > 0 && row <= frames && bin > 0 && bin <= bins);
        };
        expect(k.words(slot, x.length)).toEqual(x.map((value, i) => (isInside(i) ? value : 0)));
      },
    ),
    RUNS,
  );
});

test("deviations with any denominator, of channels that hardly change too", () => {
  const chance = new Chance(6);
  for (const [low, high] of [
    [-32768, 32767],
    [32766, 32767],
    [-32768, -32768],
  ] as const) {
    for (const frames of [1, 2, 49, 600]) {
      const k = new Kernels(wasm);
      const channels = 16;
      const denominator = chance.integer(1, frames);
      const x = chance.words(frames * channels, low, high);
      const out = k.reserve(channels * 8);
      k.run.meanDeviationOver!(out, k.put(x), channels * WORD, frames, channels, denominator);
      const got = k.floats(out, 2 * channels);
      for (let c = 0; c < channels; c++) {
        const values = Array.from({ length: frames }, (_, t) => x[t * channels + c]!);
        const mean = values.reduce((a, b) => a + b, 0) / frames;
        const deviation = Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / denominator);
        expect(got[c]).toBe(f(mean));
        // The difference of two f64 sums of up to 6e11.
        expect(Math.abs(got[channels + c]! - deviation)).toBeLessThan(deviation * 2 ** -22 + 2e-3);
      }
    }
  }
});

test("features above a floor, less their mean, are rounded and saturate", () => {
  const k = new Kernels(wasm);
  const chance = new Chance(3);
  const n = 80;
  const [x, mean, least] = [chance.floats(n, -40, 40), chance.floats(n, -20, 20), -3.25];
  x[0] = 3e38;
  x[1] = -3e38;
  const out = k.reserve(n * WORD);
  k.run.quantizeAbove!(out, k.put(x), least, k.put(mean), n, 1024);
  expect(k.words(out, n)).toEqual(
    Int16Array.from(x, (v, i) => nearest(clamp(f(f(Math.max(least, v) - mean[i]!) * 1024), -32768, 32767))),
  );
});

test("standardized features have a deviation of 1; a bin that does not change stays 0", () => {
  const k = new Kernels(wasm);
  const chance = new Chance(4);
  const [frames, bins] = [75, 80];
  const x = chance.floats(frames * bins, -3, 3);
  for (let b = 0; b < bins; b++) {
    const scale = b % 5 === 0 ? 0 : b % 7 === 0 ? 1e-4 : 1;
    let mean = 0;
    for (let t = 0; t < frames; t++) mean += x[t * bins + b]! / frames;
    for (let t = 0; t < frames; t++) x[t * bins + b] = (x[t * bins + b]! - mean) * scale;
  }
  const slot = k.put(x);
  k.run.standardize!(slot, frames);
  const got = k.floats(slot, x.length);
  for (let b = 0; b < bins; b++) {
    let squares = 0;
    for (let t = 0; t < frames; t++) squares += x[t * bins + b]! ** 2;
    const deviation = Math.sqrt(squares / (frames - 1)) + 1e-5;
    for (let t = 0; t < frames; t++)
      expect(Math.abs(got[t * bins + b]! - x[t * bins + b]! / deviation)).toBeLessThan(2e-6);
  }
});
