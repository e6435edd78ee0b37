/**
 * Convolutions of three taps with stride 2 in time, two output frames at once, with five multiplications instead of six. In integers
 * this is exact: the result is bit-identical.
 *
 *   frames d0 e0 d1 e1 d2 = x[2t-1 … 2t+3], taps g0 g1 g2
 *
 *   y(t)   = d0·g0 + e0·g1 + d1·g2  =  (d0 - d1)·g0 + e0·g1 + m
 *   y(t+1) = d1·g0 + e1·g1 + d2·g2  =  e1·g1 + (d2 - d1)·g2 + m          m = d1·(g0 + g2)
 *
 * Inputs are 0 … 4095 and weights within ±16383, so that differences and sums fit 16 bits.
 */
import { Convolution, TILE, TILES, convolve, emitPlain, multiply, packPanels, packedBytes } from "./convolution";

/** Bytes of the plain panels of [outputs][3][run] weights, followed by those of g0 + g2. */
export function pairBytes(outputs: i32, run: i32): usize {
  return packedBytes(outputs, 4, run);
}

/** Packs weights (i8, or i16 where `words`) both ways. */
export function packPairs(panels: usize, weights: usize, outputs: i32, run: i32, words: bool): void {
  packPanels(panels, weights, outputs, 3, run, words);
  const sums = panels + packedBytes(outputs, 3, run);
  if (words) packSums<i16>(sums, weights, outputs, run);
  else packSums<i8>(sums, weights, outputs, run);
}

function packSums<T>(out: usize, weights: usize, outputs: i32, run: i32): void {
  for (let o = 0; o < outputs; o += 8) {
    for (let i = 0; i < run; i += 2) {
      for (let j = 0; j < 8; j++) {
        for (let u = 0; u < 2; u++, out += 2) {
          const w = weights + <usize>((o + j) * 3 * run + i + u) * sizeof<T>();
          store<i16>(out, <i16>load<T>(w) + <i16>load<T>(w + <usize>(2 * run) * sizeof<T>()));
        }
      }
    }
  }
}

/** out = a - b, each of `bytes`. */
function subtract(out: usize, a: usize, b: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += 16) v128.store(out + i, i16x8.sub(v128.load(a + i), v128.load(b + i)));
}

/** `convolve` for 3 taps, stride 2 and dilation 1. Weights by `packPairs`; `scratch` is as large as x; xStep = 2 · layer.run, % 16 == 0. */
export function convolvePairs(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, layer: Convolution, scratch: usize): void {
  const pairs = frames >> 1;
  for (let p = 0, u = scratch, d0 = x; p < pairs; p++, u += xStep << 2, d0 += xStep << 2) {
    const d1 = d0 + (xStep << 1);
    subtract(u, d0, d1, xStep);
    subtract(u + xStep, d1 + (xStep << 1), d1, xStep);
  }
  for (let o = 0; o < layer.outputs; o += 8) {
    panel(out + (<usize>o << 1), outStep, outStep << 1, x, xStep, scratch, xStep << 2, pairs, layer, o);
  }
  if (frames & 1) convolve(out + outStep * (frames - 1), outStep, x + (xStep << 1) * (frames - 1), xStep, 1, layer);
}

/**
 * Eight outputs from output `o` on, for `rows` pairs: their frames are at x and xStep, the differences d0 - d1 and d2 - d1 at u and
 * xStep, the next pair `rowStep` further; y(t) goes to out, y(t+1) outStep further, and the next pair outRow further.
 */
function panel(out: usize, outStep: usize, outRow: usize, x: usize, xStep: usize, u: usize, rowStep: usize, rows: i32, layer: Convolution, o: i32): void {
  const bytes = <usize>layer.run << 1;
  const g0 = layer.weights + packedBytes(o, 3, layer.run);
  const g1 = g0 + packedBytes(8, 1, layer.run);
  const both = layer.weights + packedBytes(layer.outputs, 3, layer.run) + packedBytes(o, 1, layer.run);
  const gain = layer.gain + (<usize>o << 2);
  const bias = layer.bias + (<usize>o << 2);
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  for (; rows > 0; rows -= 4, x += rowStep << 2, u += rowStep << 2) {
    const e1 = x + 3 * xStep;
    multiply(TILES, u, rowStep, rows, x + xStep - u, 2, bytes, g0);
    multiply(TILES + TILE, e1, rowStep, rows, u + xStep - e1, 2, bytes, g1);
    multiply(TILES + 2 * TILE, x + (xStep << 1), rowStep, rows, 0, 1, bytes, both);
    for (let s = TILES, end = TILES + <usize>min(rows, 4) * 32; s < end; s += 32, out += outRow) {
      const m0 = v128.load(s, 2 * TILE);
      const m1 = v128.load(s, 2 * TILE + 16);
      emitPlain(out, i32x4.add(v128.load(s), m0), i32x4.add(v128.load(s, 16), m1), gain, bias, low, high);
      emitPlain(out + outStep, i32x4.add(v128.load(s, TILE), m0), i32x4.add(v128.load(s, TILE + 16), m1), gain, bias, low, high);
    }
  }
}
