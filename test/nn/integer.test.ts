import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { Chance, COMPILING_MS, clamp, compile, Kernels, nearest } from "./kernels.js";

let wasm: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  wasm = await compile(
    "nn/convolution",
    "nn/halving-convolution",
    "nn/pair-convolution",
    "nn/patch-convolution",
    "nn/quad-convolution",
    "nn/activation",
    "nn/dense",
    "nn/gate",
    "nn/pooling",
  );
}, COMPILING_MS);

const f = Math.fround;
const WORD = 2;
const RUNS = { numRuns: 40 };

interface Layer {
  readonly outputs: number;
  readonly taps: number;
  readonly run: number;
  readonly weights: Int8Array | Int16Array;
  readonly gain: Float32Array;
  readonly bias: Float32Array;
  readonly residualGain: Float32Array;
  readonly low: number;
  readonly high: number;
}

function layer(
  chance: Chance,
  outputs: number,
  taps: number,
  run: number,
  words: boolean,
  low: number,
  high: number,
): Layer {
  const inputs = taps * run;
  return {
    outputs,
    taps,
    run,
    weights: words ? chance.words(outputs * inputs, -1023, 1023) : chance.bytes(outputs * inputs),
    // Sums are about as wide as the output range, so that both limits clamp now and then.
    gain: chance.floats(outputs, 0.5, 3).map((g) => (g * high) / (Math.sqrt(inputs) * (words ? 600 : 70) * 2000)),
    bias: chance.floats(outputs, -high / 4, high / 4),
    residualGain: chance.floats(outputs, 0.1, 1.5),
    low,
    high,
  };
}

interface Steps {
  readonly stride?: number;
  readonly dilation?: number;
  readonly binStride?: number;
}

/** The kernels' record of a layer whose weights are in `panels`. */
function record(k: Kernels, l: Layer, panels: number, { stride = 1, dilation = 1, binStride = 1 }: Steps = {}): number {
  const [gain, bias, residual] = [k.put(l.gain), k.put(l.bias), k.put(l.residualGain)];
  const range = [{ f32: l.low }, { f32: l.high }];
  return k.record(l.outputs, l.taps, l.run, panels, gain, bias, residual, ...range, stride, dilation, binStride);
}

function place(k: Kernels, l: Layer, steps?: Steps): number {
  const panels = k.reserve(l.outputs * l.taps * l.run * WORD);
  k.run.packPanels!(panels, k.put(l.weights), l.outputs, l.taps, l.run, Number(l.weights instanceof Int16Array));
  return record(k, l, panels, steps);
}

/** The kernels' record of a plane with `width` bins in each frame, including padding. */
function shape(k: Kernels, frames: number, bins: number, channels: number, width = bins): number {
  const row = width * channels * WORD;
  return k.record(frames, bins, channels, channels * WORD, row, frames * row);
}

/** How the kernels round an exact sum: f32 steps in this order, ties to even. */
function requantized(l: Layer, o: number, sum: number, residual: number | null, gain = l.gain): number {
  const bias = residual === null ? l.bias[o]! : f(l.bias[o]! + f(f(residual) * l.residualGain[o]!));
  return nearest(clamp(f(f(f(sum) * gain[o]!) + bias), l.low, l.high));
}

describe("convolution over time", () => {
  test("is exact for any size, stride, dilation and slice of a wider row", () => {
    fc.assert(
      fc.property(
        fc.record({
          seed: fc.integer(),
          frames: fc.integer({ min: 1, max: 23 }),
          panels: fc.integer({ min: 1, max: 3 }),
          taps: fc.integer({ min: 1, max: 5 }),
          pairs: fc.integer({ min: 1, max: 20 }),
          stride: fc.integer({ min: 1, max: 3 }),
          dilation: fc.integer({ min: 1, max: 4 }),
          rectified: fc.boolean(),
          words: fc.boolean(),
          room: fc.integer({ min: 0, max: 2 }),
        }),
        ({ seed, frames, panels, taps, pairs, stride, dilation, rectified, words, room }) => {
          const k = new Kernels(wasm);
          const chance = new Chance(seed);
          const channels = pairs * 2;
          const l = layer(chance, panels * 8, taps, channels, words, rectified ? 0 : -32767, rectified ? 4095 : 32767);
          const rows = (frames - 1) * stride + (taps - 1) * dilation + 1;
          const x = chance.words(rows * channels, 0, 4095);
          const width = l.outputs + room * 8;
          const before = chance.words(frames * width, -9, 9);
          const out = k.put(before);
          const at = place(k, l, { stride, dilation });
          k.run.convolve!(out + room * 8 * WORD, width * WORD, k.put(x), channels * WORD, frames, at);
          const wanted = before.slice();
          for (let t = 0; t < frames; t++) {
            for (let o = 0; o < l.outputs; o++) {
              let sum = 0;
              for (let tap = 0; tap < taps; tap++) {
                for (let c = 0; c < channels; c++) {
                  sum += x[(t * stride + tap * dilation) * channels + c]! * l.weights[(o * taps + tap) * channels + c]!;
                }
              }
              wanted[t * width + room * 8 + o] = requantized(l, o, sum, null);
            }
          }
          expect(k.words(out, wanted.length)).toEqual(wanted);
        },
      ),
      RUNS,
    );
  });

  test("the largest sums do not overflow", () => {
    const k = new Kernels(wasm);
    const inputs = 1024;
    const l: Layer = {
      ...layer(new Chance(1), 8, 1, inputs, false, -32767, 32767),
      weights: new Int8Array(8 * inputs).fill(127),
      gain: new Float32Array(8).fill(2 ** -14),
      bias: new Float32Array(8),
    };
    const out = k.reserve(16);
    k.run.convolve!(out, 16, k.put(new Int16Array(inputs).fill(4095)), inputs * WORD, 1, place(k, l));
    const sum = 127 * 4095 * inputs;
    expect(sum).toBeLessThan(2 ** 31);
    expect([...k.words(out, 8)]).toEqual(Array(8).fill(nearest(f(sum) / 2 ** 14)));
  });

  test("another gain masks the outputs", () => {
    const k = new Kernels(wasm);
    const chance = new Chance(5);
    const l = layer(chance, 16, 3, 8, false, -32767, 32767);
    const x = chance.words(12 * 8, 0, 4095);
    const mask = chance.floats(16, 0, 1);
    const gain = l.gain.map((g, o) => g * mask[o]!);
    const at = place(k, { ...l, bias: new Float32Array(16) });
    const out = k.reserve(10 * 16 * WORD);
    k.run.convolveGained!(out, 16 * WORD, k.put(x), 8 * WORD, 10, at, k.put(gain));
    const got = k.words(out, 160);
    for (let t = 0; t < 10; t++) {
      for (let o = 0; o < 16; o++) {
        let sum = 0;
        for (let i = 0; i < 24; i++) sum += x[t * 8 + i]! * l.weights[o * 24 + i]!;
        expect(got[t * 16 + o]).toBe(requantized({ ...l, bias: new Float32Array(16) }, o, sum, null, gain));
      }
    }
  });
});

describe("convolution over a plane of time and bins", () => {
  test("is exact with padding, strides and a residual written in place", () => {
    fc.assert(
      fc.property(
        fc.record({
          seed: fc.integer(),
          frames: fc.integer({ min: 1, max: 5 }),
          bins: fc.integer({ min: 1, max: 11 }),
          stride: fc.integer({ min: 1, max: 2 }),
          binStride: fc.integer({ min: 1, max: 2 }),
          channels: fc.constantFrom(2, 6, 16, 32),
          panels: fc.integer({ min: 1, max: 2 }),
          kind: fc.constantFrom("none", "apart", "in place"),
        }),
        ({ seed, frames, bins, stride, binStride, channels, panels, kind }) => {
          const k = new Kernels(wasm);
          const chance = new Chance(seed);
          const l = layer(chance, panels * 8, 3, 3 * channels, true, 0, 4095);
          const width = (bins - 1) * binStride + 3;
          const x = chance.words(((frames - 1) * stride + 3) * width * channels, 0, 4095);
          const residual = chance.words(frames * bins * l.outputs, -20000, 20000);
          const out = k.put(residual);
          const added = kind === "none" ? 0 : kind === "apart" ? k.put(residual) : out;
          const [to, from] = [shape(k, frames, bins, l.outputs), shape(k, frames, bins, channels, width)];
          k.run.convolvePlane!(out, to, k.put(x), from, place(k, l, { stride, binStride }), added);
          const wanted = residual.slice();
          for (let t = 0; t < frames; t++) {
            for (let b = 0; b < bins; b++) {
              for (let o = 0; o < l.outputs; o++) {
                let sum = 0;
                for (let dt = 0; dt < 3; dt++) {
                  for (let db = 0; db < 3; db++) {
                    for (let c = 0; c < channels; c++) {
                      const at = ((t * stride + dt) * width + b * binStride + db) * channels + c;
                      sum += x[at]! * l.weights[(o * 3 + dt) * 3 * channels + db * channels + c]!;
                    }
                  }
                }
                const at = (t * bins + b) * l.outputs + o;
                wanted[at] = requantized(l, o, sum, kind === "none" ? null : residual[at]!);
              }
            }
          }
          expect(k.words(out, wanted.length)).toEqual(wanted);
        },
      ),
      RUNS,
    );
  });
});

test("a plane of one channel is bit-identical to the general case", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 5 }),
        bins: fc.constantFrom(4, 8, 32, 80),
        panels: fc.integer({ min: 1, max: 3 }),
      }),
      ({ seed, frames, bins, panels }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const at = place(k, layer(chance, panels * 8, 3, 4, true, 0, 4095));
        const size = frames * bins * panels * 8;
        const [to, from] = [shape(k, frames, bins, panels * 8), shape(k, frames, bins, 1, bins + 4)];
        const x = k.put(chance.words((frames + 2) * (bins + 4), -32768, 32767));
        const [any, one] = [k.reserve(size * WORD), k.reserve(size * WORD)];
        k.run.convolvePlane!(any, to, x, from, at, 0);
        k.run.convolveChannel!(one, to, x, (bins + 4) * WORD, at);
        expect(k.words(one, size)).toEqual(k.words(any, size));
      },
    ),
    RUNS,
  );
});

test("four frames at once are bit-identical to frame by frame", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 13 }),
        bins: fc.integer({ min: 1, max: 11 }),
        binStride: fc.integer({ min: 1, max: 2 }),
        channels: fc.constantFrom(8, 16, 32, 40),
        outputs: fc.constantFrom(8, 16, 24, 40),
        extreme: fc.boolean(),
        words: fc.boolean(),
        kind: fc.constantFrom("none", "in place"),
      }),
      ({ seed, frames, bins, binStride, channels, outputs, extreme, words, kind }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        // 24 times a sum of 360 products of 4095 stays below 2³¹ for weights up to 60.
        const size = outputs * 9 * channels;
        const l = {
          ...layer(chance, outputs, 3, 3 * channels, words, 0, 4095),
          weights: words ? chance.words(size, -60, 60) : chance.bytes(size, 60),
        };
        if (extreme) l.weights.fill(60, 0, 9 * channels).fill(-60, 9 * channels, 18 * channels);
        const width = (bins - 1) * binStride + 3;
        const x = chance.words((frames + 2) * width * channels, 0, 4095);
        if (extreme) x.fill(4095, 0, x.length >> 1);
        const residual = chance.words(frames * bins * outputs, -20000, 20000);
        const panels = k.reserve(k.run.quadBytes!(outputs, 3 * channels));
        k.run.packQuads!(panels, k.put(l.weights), outputs, 3 * channels, Number(words));
        const at = record(k, { ...l, gain: l.gain.map((g) => g * 12) }, panels, { binStride });
        const [one, four, slot] = [k.put(residual), k.put(residual), k.put(x)];
        const [to, from] = [shape(k, frames, bins, outputs), shape(k, frames, bins, channels, width)];
        const added = kind === "in place";
        k.run.convolvePlane!(one, to, slot, from, at, added ? one : 0);
        const scratch = k.reserve(6 * width * channels * WORD);
        k.run.convolveQuads!(four, to, slot, from, at, added ? four : 0, scratch);
        expect(k.words(four, residual.length)).toEqual(k.words(one, residual.length));
      },
    ),
    { numRuns: 80 },
  );
});

test("patches of four frames and two bins are bit-identical to frame by frame", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 21 }),
        columns: fc.integer({ min: 1, max: 7 }),
        channels: fc.constantFrom(8, 24, 32, 64, 72),
        outputs: fc.constantFrom(8, 16, 24),
        words: fc.boolean(),
        extreme: fc.boolean(),
        kind: fc.constantFrom("none", "in place"),
      }),
      ({ seed, frames, columns, channels, outputs, words, extreme, kind }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const bins = 2 * columns;
        const rows = Math.ceil(frames / 4) * 4;
        // The largest sums of 9 · channels products of 2047 that stay below 2²⁷.
        const most = Math.min(words ? 455 : 127, Math.floor((2 ** 27 - 1) / (9 * channels * 2047)));
        const weights = chance.words(outputs * 9 * channels, -most, most);
        if (extreme) weights.fill(most, 0, 9 * channels).fill(-most, 9 * channels, 18 * channels);
        const l: Layer = {
          ...layer(chance, outputs, 3, 3 * channels, true, 0, 2047),
          weights: words ? weights : Int8Array.from(weights),
        };
        const x = chance.words((rows + 2) * (bins + 2) * channels, 0, 2047);
        if (extreme) x.fill(2047, 0, x.length >> 1);
        const residual = chance.words(rows * bins * outputs, -20000, 20000);
        const added = kind === "in place";
        const [to, from] = [shape(k, frames, bins, outputs), shape(k, frames, bins, channels, bins + 2)];

        const [one, slot] = [k.put(residual), k.put(x)];
        k.run.convolvePlane!(one, to, slot, from, place(k, l), added ? one : 0);
        const panels = k.reserve(k.run.patchBytes!(outputs, channels));
        k.run.packPatches!(panels, k.put(l.weights), outputs, channels, Number(words));
        const patched = k.put(residual);
        const scratch = k.reserve(k.run.patchScratchBytes!(bins, channels));
        k.run.convolvePatches!(patched, to, slot, from, record(k, l, panels), added ? patched : 0, scratch);
        expect(k.words(patched, frames * bins * outputs)).toEqual(k.words(one, frames * bins * outputs));
      },
    ),
    { numRuns: 80 },
  );
});

/** A layer of bytes or words, packed for pairs of frames; its plain panels come first. */
function placePairs(k: Kernels, chance: Chance, outputs: number, run: number, extreme: boolean): number {
  const words = chance.next() < 0.5;
  const most = words ? 1000 : 127;
  const weights = words ? chance.words(outputs * 3 * run, -most, most) : chance.bytes(outputs * 3 * run);
  if (extreme) weights.fill(most, 0, 3 * run).fill(-most, 3 * run, 6 * run);
  const l: Layer = { ...layer(chance, outputs, 3, run, words, 0, 4095), weights };
  const panels = k.reserve(k.run.pairBytes!(outputs, run));
  k.run.packPairs!(panels, k.put(l.weights), outputs, run, Number(words));
  return record(k, l, panels, { stride: 2 });
}

test("patches of two frames and two bins with strides of 2 are bit-identical to one by one", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 19 }),
        pairs: fc.integer({ min: 1, max: 21 }),
        channels: fc.constantFrom(8, 16, 24),
        outputs: fc.constantFrom(8, 16, 40, 48),
        words: fc.boolean(),
        extreme: fc.boolean(),
      }),
      ({ seed, frames, pairs, channels, outputs, words, extreme }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const [bins, run] = [2 * pairs, 3 * channels];
        const most = words ? 1000 : 127;
        const weights = words ? chance.words(outputs * 3 * run, -most, most) : chance.bytes(outputs * 3 * run);
        if (extreme) weights.fill(most, 0, 3 * run).fill(-most, 3 * run, 6 * run);
        const l: Layer = { ...layer(chance, outputs, 3, run, words, 0, 4095), weights };
        const strides = { stride: 2, binStride: 2 };
        const panels = k.reserve(k.run.halvingBytes!(outputs, channels));
        k.run.packHalves!(panels, k.put(l.weights), outputs, channels, Number(words));

        // Of an odd number of frames, a frame more is read and written.
        const [even, width] = [frames + (frames & 1), 2 * bins + 1];
        const input = chance.words((2 * even + 1) * width * channels, 0, 4095);
        const x = k.put(extreme ? input.fill(4095, 0, input.length >> 1) : input);
        const [to, from] = [shape(k, frames, bins, outputs), shape(k, 2 * even + 1, 2 * bins - 1, channels, width)];
        const size = bins * outputs * WORD;
        const [one, two] = [k.reserve(frames * size), k.reserve(even * size)];
        k.run.convolvePlane!(one, to, x, from, place(k, l, strides), 0);
        const scratch = k.reserve(k.run.halvingScratchBytes!(bins, channels));
        k.run.convolveHalving!(two, to, x, from, record(k, l, panels, strides), scratch);
        expect(k.words(two, frames * bins * outputs)).toEqual(k.words(one, frames * bins * outputs));
      },
    ),
    { numRuns: 80 },
  );
});

test("two frames at once with stride 2 are bit-identical to frame by frame", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 19 }),
        channels: fc.constantFrom(8, 16, 24),
        outputs: fc.constantFrom(8, 16, 24, 40, 48, 80),
        extreme: fc.boolean(),
      }),
      ({ seed, frames, channels, outputs, extreme }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const rows = 2 * frames + 1;
        const x = chance.words(rows * channels, 0, 4095);
        const y = k.put(extreme ? x.fill(4095, 0, x.length >> 1) : x);
        const line = placePairs(k, chance, outputs, channels, extreme);
        const [row, out] = [channels * WORD, outputs * WORD];
        const [plain, paired] = [k.reserve(frames * out), k.reserve(frames * out)];
        k.run.convolve!(plain, out, y, row, frames, line);
        k.run.convolvePairs!(paired, out, y, row, frames, line, k.reserve(rows * row));
        expect(k.words(paired, frames * outputs)).toEqual(k.words(plain, frames * outputs));
      },
    ),
    { numRuns: 80 },
  );
});

test("depthwise convolution is exact", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 9 }),
        channels: fc.constantFrom(8, 24, 40),
        taps: fc.integer({ min: 1, max: 7 }),
        stride: fc.integer({ min: 1, max: 2 }),
        dilation: fc.integer({ min: 1, max: 3 }),
      }),
      ({ seed, frames, channels, taps, stride, dilation }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const l = {
          ...layer(chance, channels, taps, 1, true, 0, 4095),
          weights: chance.words(taps * channels, -1023, 1023),
        };
        const rows = (frames - 1) * stride + (taps - 1) * dilation + 1;
        const x = chance.words(rows * channels, -4095, 4095);
        const at = record(k, l, k.put(l.weights), { stride, dilation });
        const out = k.reserve(frames * channels * WORD);
        k.run.convolveDepthwise!(out, channels * WORD, k.put(x), channels * WORD, frames, at);
        const got = k.words(out, frames * channels);
        for (let t = 0; t < frames; t++) {
          for (let c = 0; c < channels; c++) {
            let sum = 0;
            for (let tap = 0; tap < taps; tap++) {
              sum += x[(t * stride + tap * dilation) * channels + c]! * l.weights[tap * channels + c]!;
            }
            expect(got[t * channels + c]).toBe(requantized(l, c, sum, null));
          }
        }
      },
    ),
    RUNS,
  );
});

test("pre-activation is exact in Q15, saturates, and does not write past its channels in wider rows", () => {
  fc.assert(
    fc.property(
      fc.record({ seed: fc.integer(), frames: fc.integer({ min: 1, max: 6 }), channels: fc.constantFrom(8, 16, 72) }),
      ({ seed, frames, channels }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const width = channels + 8;
        const x = chance.words(frames * width, -32768, 32767);
        const gain = chance.words(channels, -32767, 32767);
        const bias = chance.words(channels, -32768, 32767);
        const out = k.reserve(frames * channels * WORD);
        const norm = k.record(channels, k.put(gain), k.put(bias));
        k.run.preactivate!(out, k.put(x), width * WORD, frames, norm, 4095);
        const got = k.words(out, frames * channels);
        for (let t = 0; t < frames; t++) {
          for (let c = 0; c < channels; c++) {
            const product = clamp((x[t * width + c]! * gain[c]! + 0x4000) >> 15, -32768, 32767);
            expect(got[t * channels + c]).toBe(clamp(clamp(product + bias[c]!, -32768, 32767), 0, 4095));
          }
        }
      },
    ),
    RUNS,
  );
});

test("a convolution that skips zeros is bit-identical to one that does not", () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        frames: fc.integer({ min: 1, max: 13 }),
        channels: fc.constantFrom(8, 16, 72, 96),
        // From all zeros to hardly any.
        lowest: fc.constantFrom(-32768, -32000, -8000, 0, 4000),
      }),
      ({ seed, frames, channels, lowest }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const width = channels + 8;
        const l = layer(chance, 16, 1, channels, false, -32767, 32767);
        const x = k.put(chance.words(frames * width, -2000, 2000));
        const gain = k.put(chance.words(channels, -32767, 32767));
        const bias = k.put(chance.words(channels, lowest, Math.max(lowest, 0) + 100));
        const norm = k.record(channels, gain, bias);
        const [row, step, at] = [channels * WORD, width * WORD, place(k, l)];
        const [plain, listed] = [k.reserve(frames * row), k.reserve(frames * row)];
        const lists = k.reserve(7 * (channels + 16));
        const [wanted, got] = [k.reserve(frames * 16 * WORD), k.reserve(frames * 16 * WORD)];
        k.run.preactivate!(plain, x, step, frames, norm, 4095);
        k.run.convolve!(wanted, 16 * WORD, plain, row, frames, at);
        k.run.preactivateListed!(listed, lists, x, step, frames, norm, 4095);
        k.run.convolveListed!(got, 16 * WORD, listed, row, lists, frames, at);
        expect(k.words(listed, frames * channels)).toEqual(k.words(plain, frames * channels));
        expect(k.words(got, frames * 16)).toEqual(k.words(wanted, frames * 16));
      },
    ),
    RUNS,
  );
});

test("quantize rounds to nearest and saturates; NaN gives 0", () => {
  const k = new Kernels(wasm);
  const chance = new Chance(11);
  const n = 64;
  const out = k.reserve(n * WORD);
  const x = chance.floats(n, -40, 40);
  x[3] = Number.NaN;
  x[4] = 0.5 / 1024;
  x[5] = 1.5 / 1024;
  k.run.quantize!(out, k.put(x), n, 1024);
  expect(k.words(out, n)).toEqual(
    Int16Array.from(x, (v) => (Number.isNaN(v) ? 0 : clamp(nearest(f(v * 1024)), -32768, 32767))),
  );
});

describe("dense layers and gates", () => {
  function dense(k: Kernels, chance: Chance, inputs: number, outputs: number) {
    const weights = chance.words(inputs * outputs, -127, 127);
    const gain = chance.floats(outputs, 0.001, 0.01);
    const bias = chance.floats(outputs, -1, 1);
    const apply = (x: ArrayLike<number>) =>
      Array.from(gain, (g, o) => {
        let sum = 0;
        for (let i = 0; i < inputs; i++) sum += x[i]! * weights[o * inputs + i]!;
        return sum * g + bias[o]!;
      });
    return { at: k.record(inputs, outputs, k.put(weights), k.put(gain), k.put(bias)), apply };
  }
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

  test("dense is within the rounding of an f32 sum", () => {
    const k = new Kernels(wasm);
    const chance = new Chance(3);
    for (const [inputs, outputs] of [
      [8, 1],
      [64, 32],
      [1024, 5],
    ] as const) {
      const { at, apply } = dense(k, chance, inputs, outputs);
      const x = chance.floats(inputs, -1, 1);
      const out = k.reserve(outputs * 4);
      k.run.dense!(out, k.put(x), at);
      const got = k.floats(out, outputs);
      // Eight partial sums of inputs/8 products of at most 127, each rounded to 2⁻²⁴ of what it holds.
      for (const [o, v] of apply(x).entries())
        expect(Math.abs(got[o]! - v)).toBeLessThan(inputs * 127 * 0.01 * 2 ** -22);
    }
  });

  test("normalize gives unit length, and zeros for a zero vector", () => {
    const k = new Kernels(wasm);
    const x = new Chance(4).floats(256, -3, 3);
    const slot = k.put(x);
    k.run.normalize!(slot, 256);
    const got = k.floats(slot, 256);
    const length = Math.hypot(...x);
    for (const [i, v] of got.entries()) expect(Math.abs(v - x[i]! / length)).toBeLessThan(1e-7);
    const nothing = k.put(new Float32Array(16));
    k.run.normalize!(nothing, 16);
    expect(k.floats(nothing, 16)).toEqual(new Float32Array(16));
  });

  test("the mask of a context is the sigmoid of two dense layers", () => {
    const k = new Kernels(wasm);
    const chance = new Chance(9);
    const squeeze = dense(k, chance, 16, 8);
    const excite = dense(k, chance, 8, 12);
    const all = chance.words(16, 0, 32000);
    const part = chance.words(16, 0, 32000);
    const [context, hidden, mask] = [k.reserve(64), k.reserve(32), k.reserve(48)];
    k.run.addMeans!(context, k.put(Int32Array.from(all)), 130, k.put(Int32Array.from(part)), 30, 16);
    const wanted = Array.from(all, (v, c) => v / 130 + part[c]! / 30);
    for (const [c, v] of k.floats(context, 16).entries())
      expect(Math.abs(v - wanted[c]!)).toBeLessThan(v * 2 ** -22 + 1e-9);
    k.run.gate!(mask, hidden, context, squeeze.at, excite.at);
    const truth = excite.apply(squeeze.apply(wanted).map((v) => Math.max(0, v))).map(sigmoid);
    for (const [o, v] of k.floats(mask, 12).entries()) expect(Math.abs(v - truth[o]!)).toBeLessThan(1e-4);
  });
});

describe("pooling", () => {
  test("sums are exact, means correctly rounded, deviations within one unit", () => {
    fc.assert(
      fc.property(fc.record({ seed: fc.integer(), frames: fc.integer({ min: 1, max: 300 }) }), ({ seed, frames }) => {
        const k = new Kernels(wasm);
        const chance = new Chance(seed);
        const channels = 16;
        const x = chance.words(frames * channels, -32768, 32767);
        const slot = k.put(x);
        const [sums, stats] = [k.reserve(channels * 4), k.reserve(channels * 8)];
        k.run.sumFrames!(sums, slot, channels * WORD, frames, channels);
        k.run.meanDeviation!(stats, slot, channels * WORD, frames, channels);
        const got = k.floats(stats, channels * 2);
        for (let c = 0; c < channels; c++) {
          const column = Array.from({ length: frames }, (_, t) => x[t * channels + c]!);
          const total = column.reduce((a, b) => a + b, 0);
          expect(k.integers(sums, channels)[c]).toBe(total);
          const mean = total / frames;
          const variance = column.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, frames - 1);
          expect(got[c]).toBe(f(mean));
          const deviation = Math.sqrt(variance);
          expect(Math.abs(got[channels + c]! - deviation)).toBeLessThan(deviation * 2 ** -23 + 1e-6);
        }
      }),
      RUNS,
    );
  });
});
