/** The parts of the measures, compiled from their own files, against their definitions. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { Chance, COMPILING_MS, compile, Kernels } from "../nn/kernels.js";

let wasm: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  wasm = await compile("quality/saturation", "quality/voice-activity");
}, COMPILING_MS);

const constantOf = (k: Kernels, name: string) => (k.run[name] as unknown as WebAssembly.Global).value as number;

describe("saturation", () => {
  /** Clipped at any level, on one side or both, as 16-bit or float samples: the cases in which samples are skipped or not. */
  const signal = fc
    .record({
      seed: fc.integer(),
      samples: fc.integer({ min: 1, max: 2000 }),
      cycle: fc.double({ min: 4, max: 200, noNaN: true }),
      gain: fc.constantFrom(0.02, 0.5, 1, 3),
      offset: fc.constantFrom(0, 0.4),
      limit: fc.constantFrom(0.015, 0.3, 0.9995, 1),
      noise: fc.constantFrom(0, 1e-5, 0.2),
      isRounded: fc.boolean(),
    })
    .map(({ seed, samples, cycle, gain, offset, limit, noise, isRounded }) => {
      const chance = new Chance(seed);
      return Float32Array.from({ length: samples }, (_, i) => {
        const x = gain * Math.sin((2 * Math.PI * i) / cycle) + offset + noise * (chance.next() - 0.5);
        const clipped = Math.max(-limit, Math.min(limit, x));
        return isRounded ? Math.round(clipped * 32768) / 32768 : clipped;
      });
    });

  it("is the same whether quiet samples are skipped four at a time or not", () => {
    fc.assert(
      fc.property(signal, (x) => {
        const k = new Kernels(wasm);
        const bytes = constantOf(k, "SATURATION_BYTES");
        const [slot, fast, slow] = [k.put(x), k.reserve(bytes), k.reserve(bytes)];
        for (let at = 0; at < x.length; at += 256)
          k.run.saturationPush!(fast, slot + 4 * at, Math.min(256, x.length - at));
        for (let at = 0; at < x.length; at++) k.run.saturationPush!(slow, slot + 4 * at, 1);
        for (const count of ["saturatedSamples", "saturatedRuns"])
          expect(k.run[count]!(fast), count).toBe(k.run[count]!(slow));
      }),
      { numRuns: 200 },
    );
  });
});

describe("the voice-activity network", () => {
  const source = readFileSync(new URL("../../assembly/quality/voice-activity-weights.ts", import.meta.url), "utf8");
  const numbers = (name: string) => {
    const values = new RegExp(`export const ${name}\\b[^[]*\\[([^\\]]*)\\]`).exec(source)![1]!;
    return Float32Array.from(
      values.split(",").filter((one) => one.trim() !== ""),
      Number,
    );
  };
  const [bins, hidden, gates] = [80, 32, 96];
  const [weights, scales, biases] = [numbers("WEIGHTS"), numbers("SCALES"), numbers("BIASES")];

  /** Rows `row` on of one of the matrices, which lie one after the other, times x, plus the biases. */
  const affine = (rows: number, row: number, weight: number, x: readonly number[]) =>
    Array.from({ length: rows }, (_, r) => {
      const products = x.map((value, c) => weights[weight + r * x.length + c]! * value);
      return biases[row + r]! + scales[row + r]! * products.reduce((a, b) => a + b, 0);
    });
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

  /** A dense layer and a gated recurrent unit, as PyTorch defines it, in f64. */
  function step(state: readonly number[], logMel: Float32Array): { state: number[]; score: number } {
    const normalized = Array.from(logMel, (value) => (value + 8) / 4);
    const features = affine(hidden, 0, 0, normalized).map((value) => Math.max(0, value));
    const own = affine(gates, hidden, hidden * bins, features);
    const last = affine(gates, hidden + gates, hidden * bins + gates * hidden, state);
    const next = state.map((h, i) => {
      const [reset, keep] = [0, hidden].map((at) => sigmoid(own[at + i]! + last[at + i]!));
      const fresh = Math.tanh(own[2 * hidden + i]! + reset! * last[2 * hidden + i]!);
      return keep! * h + (1 - keep!) * fresh;
    });
    const out = hidden + 2 * gates;
    const score = next.reduce((sum, h, i) => sum + h * biases[out + i]!, biases[out + hidden]!);
    return { state: next, score };
  }

  it("gives the scores of its definition in f64, from silence to the loudest frames", () => {
    expect([weights.length, scales.length, biases.length]).toEqual([8704, 224, 257]);
    const k = new Kernels(wasm);
    const chance = new Chance(8);
    const [at, frame] = [k.reserve(4 * hidden), k.reserve(4 * bins)];
    k.run.voiceActivityStart!(at);
    let state = Array.from(k.floats(at, hidden));
    for (let t = 0; t < 1000; t++) {
      const [low, high] = [
        [-15.94, -15.94],
        [-13, -11],
        [-8, -2],
        [0, 12],
        [-15.94, 5],
      ][Math.floor(t / 50) % 5]!;
      const logMel = chance.floats(bins, low!, high!);
      k.write(frame, logMel);
      const expected = step(state, logMel);
      // f32 sums of 80 products, carried on through the state.
      expect(Math.abs(k.run.voiceActivity!(at, frame) - expected.score)).toBeLessThan(2e-4);
      state = expected.state;
    }
  });
});
