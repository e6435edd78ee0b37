import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { Chance, COMPILING_MS, compile, Kernels } from "./kernels.js";

let wasm: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  wasm = await compile("nn/float/convolution");
}, COMPILING_MS);

const FLOAT = 4;
const RUNS = { numRuns: 40 };
/** A sum of n products of numbers within ±1, each step rounded to 2⁻²⁴ of at most n. */
const sumError = (n: number) => n * n * 2 ** -24 + 1e-7;

function place(
  k: Kernels,
  weights: Float32Array,
  bias: Float32Array,
  outputs: number,
  taps: number,
  run: number,
  low: number,
): number {
  const panels = k.reserve(weights.byteLength);
  k.run.pack!(panels, k.put(weights), outputs, taps, run);
  return k.record(outputs, taps, run, panels, k.put(bias), { f32: low });
}

test("convolution over time agrees with the sum it stands for", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 14 }),
        panels: fc.integer({ min: 1, max: 2 }),
        taps: fc.integer({ min: 1, max: 5 }),
        channels: fc.integer({ min: 1, max: 13 }),
        stride: fc.integer({ min: 1, max: 2 }),
        dilation: fc.integer({ min: 1, max: 3 }),
        rectified: fc.boolean(),
      }),
      ({ seed, frames, panels, taps, channels, stride, dilation, rectified }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const outputs = panels * 8;
        const weights = chance.floats(outputs * taps * channels, -1, 1);
        const bias = chance.floats(outputs, -1, 1);
        const x = chance.floats(((frames - 1) * stride + (taps - 1) * dilation + 1) * channels, -1, 1);
        const low = rectified ? 0 : Number.NEGATIVE_INFINITY;
        const layer = place(k, weights, bias, outputs, taps, channels, low);
        const out = k.reserve(frames * outputs * FLOAT);
        k.run.convolve!(out, outputs * FLOAT, k.put(x), channels * FLOAT, frames, stride, dilation, layer);
        const got = k.floats(out, frames * outputs);
        for (let t = 0; t < frames; t++) {
          for (let o = 0; o < outputs; o++) {
            let sum = bias[o]!;
            for (let tap = 0; tap < taps; tap++) {
              for (let c = 0; c < channels; c++) {
                sum += x[(t * stride + tap * dilation) * channels + c]! * weights[(o * taps + tap) * channels + c]!;
              }
            }
            expect(Math.abs(got[t * outputs + o]! - Math.max(low, sum))).toBeLessThan(sumError(taps * channels + 1));
          }
        }
      },
    ),
    RUNS,
  );
});

test("convolution over a plane adds its residual, also in place", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 4 }),
        bins: fc.integer({ min: 1, max: 9 }),
        stride: fc.integer({ min: 1, max: 2 }),
        channels: fc.integer({ min: 1, max: 9 }),
        added: fc.boolean(),
      }),
      ({ seed, frames, bins, stride, channels, added }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const run = 3 * channels;
        const weights = chance.floats(8 * 3 * run, -1, 1);
        const bias = chance.floats(8, -1, 1);
        const width = (bins - 1) * stride + 3;
        const x = chance.floats((frames + 2) * width * channels, -1, 1);
        const residual = chance.floats(frames * bins * 8, -1, 1);
        const out = k.put(residual);
        const layer = place(k, weights, bias, 8, 3, run, 0);
        const step = width * channels * FLOAT;
        k.run.convolvePlane!(
          out,
          bins * 8 * FLOAT,
          k.put(x),
          step,
          frames,
          bins,
          channels,
          stride,
          layer,
          added ? out : 0,
        );
        const got = k.floats(out, residual.length);
        for (const [at, v] of got.entries()) {
          const [t, b, o] = [Math.floor(at / 8 / bins), Math.floor(at / 8) % bins, at % 8];
          let sum = bias[o]! + (added ? residual[at]! : 0);
          for (let tap = 0; tap < 3; tap++) {
            for (let i = 0; i < run; i++) {
              sum += x[((t + tap) * width + b * stride) * channels + i]! * weights[(o * 3 + tap) * run + i]!;
            }
          }
          expect(Math.abs(v - Math.max(0, sum))).toBeLessThan(sumError(3 * run + 2));
        }
      },
    ),
    RUNS,
  );
});

test("depthwise convolution", () => {
  const k = new Kernels(wasm);
  const chance = new Chance(8);
  const [frames, channels, taps, stride, dilation] = [5, 12, 3, 2, 3];
  const x = chance.floats(((frames - 1) * stride + (taps - 1) * dilation + 1) * channels, -1, 1);
  const weights = chance.floats(taps * channels, -1, 1);
  const bias = chance.floats(channels, -1, 1);
  const layer = k.record(channels, taps, 0, k.put(weights), k.put(bias), { f32: Number.NEGATIVE_INFINITY });
  const out = k.reserve(frames * channels * FLOAT);
  k.run.convolveDepthwise!(out, channels * FLOAT, k.put(x), channels * FLOAT, frames, stride, dilation, layer);
  for (const [at, v] of k.floats(out, frames * channels).entries()) {
    const [t, c] = [Math.floor(at / channels), at % channels];
    let sum = bias[c]!;
    for (let tap = 0; tap < taps; tap++)
      sum += x[(t * stride + tap * dilation) * channels + c]! * weights[tap * channels + c]!;
    expect(Math.abs(v - sum)).toBeLessThan(sumError(taps + 1));
  }
});
