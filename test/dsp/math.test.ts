import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { floats, instantiate } from "./kernels.js";

const kernels = instantiate();
const COUNT = 1 << 16;
const x = kernels.reserve(COUNT * 4);
const out = kernels.reserve(COUNT * 4);
kernels.seal();

type Name = "exp" | "log" | "sigmoid" | "tanh";

function apply(name: Name, values: ArrayLike<number>): Float32Array {
  floats(kernels, x, values.length).set(values);
  kernels[name](out, x, values.length);
  return floats(kernels, out, values.length).slice();
}

/** Distance to the next float above |value|. */
function unitInLastPlace(value: number): number {
  const float = new Float32Array([Math.abs(value)]);
  const bits = new Int32Array(float.buffer);
  const below = float[0] ?? 0;
  bits[0] = (bits[0] ?? 0) + 1;
  return (float[0] ?? 0) - below;
}

function worst(name: Name, truth: (x: number) => number, low: number, high: number, spread = (u: number) => u): number {
  let units = 0;
  const values = Float32Array.from({ length: COUNT }, (_, i) => spread(low + ((high - low) * i) / (COUNT - 1)));
  const got = apply(name, values);
  for (let i = 0; i < COUNT; i++) {
    const expected = truth(values[i] ?? 0);
    units = Math.max(units, Math.abs(expected - (got[i] ?? Number.NaN)) / unitInLastPlace(expected));
  }
  return units;
}

const logistic = (v: number) => 1 / (1 + Math.exp(-v));

describe("elementary functions keep their stated error", () => {
  it.each([
    ["log near 1", "log", Math.log, 0.5, 2, undefined, 1],
    ["log over all magnitudes", "log", Math.log, -86, 88, Math.exp, 1],
    ["exp", "exp", Math.exp, -87.3, 88, undefined, 1.5],
    ["exp near 0", "exp", Math.exp, -1, 1, undefined, 1.5],
    ["sigmoid", "sigmoid", logistic, -86, 86, undefined, 3],
    ["tanh", "tanh", Math.tanh, -12, 12, undefined, 2],
    ["tanh near 0", "tanh", Math.tanh, -0.7, 0.7, undefined, 2],
    ["tanh of tiny values", "tanh", Math.tanh, -60, -2, Math.exp, 2],
  ] as const)("%s", (_, name, truth, low, high, spread, bound) => {
    expect(worst(name, truth, low, high, spread)).toBeLessThanOrEqual(bound);
  });
});

describe("elementary functions at the edges", () => {
  it("exp is clamped, never 0 nor infinite", () => {
    const [low, high] = apply("exp", [-1e30, 1e30]);
    expect(low).toBeGreaterThan(0);
    expect(Number.isFinite(high)).toBe(true);
  });

  it("sigmoid and tanh saturate", () => {
    expect([...apply("sigmoid", [-1e9, 0, 1e9])]).toEqual([expect.closeTo(0, 30), 0.5, 1]);
    expect([...apply("tanh", [-1e9, 0, 1e9])]).toEqual([-1, 0, 1]);
  });

  it("a value's result depends neither on its lane nor on the array's length", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Name>("exp", "log", "sigmoid", "tanh"),
        fc.array(fc.float({ min: Math.fround(1e-6), max: 80, noNaN: true }), { minLength: 1, maxLength: 23 }),
        (name, values) => {
          const together = apply(name, values);
          values.forEach((value, i) => {
            expect(apply(name, [value])[0]).toBe(together[i]);
          });
        },
      ),
    );
  });
});
