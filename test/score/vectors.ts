/** Random unit vectors from a seed, and the compiled kernels. */
import { readFileSync } from "node:fs";

export { seededRandom as random } from "../../src/evaluate/bootstrap.js";

export const dimensions = 256;

export const kernelsModule = new WebAssembly.Module(
  readFileSync(new URL("../../dist/engine/vivavoce.wasm", import.meta.url)),
);

export function unit(values: Float32Array): Float32Array {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  return values.map((value) => value / length);
}

export function voice(next: () => number): Float32Array {
  return unit(Float32Array.from({ length: dimensions }, () => next() + next() + next() - 1.5));
}

/** A vector with a cosine of about `likeness` to `of`. */
export function like(of: Float32Array, likeness: number, next: () => number): Float32Array {
  const other = voice(next);
  const away = Math.sqrt(1 - likeness * likeness);
  return unit(of.map((value, i) => likeness * value + away * other[i]!));
}

/** In f64, in plain order. */
export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
