/**
 * 3 × 3 convolutions of patches of four frames × two bins, with a third of the multiplications: Winograd's F(4,3) over time, as in
 * quad-convolution.ts, and F(2,3) over bins. In integers this is exact: the sums are 48 times those of `convolvePlane`, are divided without
 * remainder, and the result is bit-identical.
 *
 * Bins e0 … e3 = u[b-1 … b+2] of each of the six transformed frames, and taps h0 h1 h2 over bins:
 *
 *   p0 = e0 - e2     q0 = 2·h0                2·y(b)   = m0 + m1 + m2
 *   p1 = e1 + e2     q1 = h0 + h1 + h2        2·y(b+1) =      m1 - m2 - m3
 *   p2 = e2 - e1     q2 = h0 - h1 + h2
 *   p3 = e1 - e3     q3 = 2·h2
 *
 * A patch has 24 products m = p · q of its channels with the outputs: 24 products of matrices, [patches][channels] × [channels][outputs].
 *
 * Inputs are 0 … 2047 and weights within ±455, so that p and q fit 16 bits. Outputs times 16 are exact modulo 2³²: an output must stay
 * below 2²⁷. The exporter checks it.
 */
import { Convolution, TILE, TILES, multiplyRows } from "./convolution";
import { Plane } from "./plane";
import { FACTORS, emitFrames, factor, transform } from "./quad-convolution";

/** Largest input of a patch convolution. */
export const PATCH_HIGH = 2047;

const PRODUCTS = 24;
/** 48 is 3 · 2⁴. */
const SIXTEENTH = 4;

/** Bytes of the factors of [outputs][3][3 · channels] weights. */
export function patchBytes(outputs: i32, channels: i32): usize {
  return <usize>(PRODUCTS * outputs * channels) << 1;
}

/** Rows of patches processed at a time, so that their transforms, and the weights in turn, stay in near caches. */
// @ts-ignore: decorator
@inline
function rowsAtOnce(channels: i32): i32 {
  return max(1, channels >> 5);
}

/** Bytes of one of the 24 products of a number of patches with eight outputs: i32 [patches][8]. */
// @ts-ignore: decorator
@inline
function sumBytes(patches: i32): usize {
  return <usize>((patches + 3) & ~3) << 5;
}

/** Bytes of the scratch for planes of this width: six frames, the factors of some rows of patches, and their products with eight outputs. */
export function patchScratchBytes(bins: i32, channels: i32): usize {
  const frame = <usize>((bins + 2) * channels) << 1;
  const patches = rowsAtOnce(channels) * (bins >> 1);
  return frame * FACTORS + (<usize>(PRODUCTS * patches * channels) << 1) + sumBytes(patches) * PRODUCTS;
}

/** Packs [outputs][3][3 · channels] weights (i8, or i16 where `words`): for each 8 outputs 24 panels, one after the other. */
export function packPatches(panels: usize, weights: usize, outputs: i32, channels: i32, words: bool): void {
  if (words) pack<i16>(panels, weights, outputs, channels);
  else pack<i8>(panels, weights, outputs, channels);
}

function pack<T>(panels: usize, weights: usize, outputs: i32, channels: i32): void {
  const bin = <usize>channels * sizeof<T>();
  const frame = bin * 3;
  const product = <usize>channels << 4;
  for (let o = 0; o < outputs; o++) {
    const place = panels + <usize>(o >> 3) * PRODUCTS * product + (<usize>(o & 7) << 2);
    for (let c = 0; c < channels; c++) {
      const w = weights + <usize>o * 3 * frame + <usize>c * sizeof<T>();
      let to = place + (<usize>(c >> 1) << 5) + (<usize>(c & 1) << 1);
      for (let k = 0; k < FACTORS; k++) {
        const h0 = factor(k, load<T>(w), load<T>(w + frame), load<T>(w + 2 * frame));
        const h1 = factor(k, load<T>(w + bin), load<T>(w + frame + bin), load<T>(w + 2 * frame + bin));
        const h2 = factor(k, load<T>(w + 2 * bin), load<T>(w + frame + 2 * bin), load<T>(w + 2 * frame + 2 * bin));
        store<i16>(to, 2 * h0);
        store<i16>(to + product, h0 + h1 + h2);
        store<i16>(to + 2 * product, h0 - h1 + h2);
        store<i16>(to + 3 * product, 2 * h2);
        to += 4 * product;
      }
    }
  }
}

/** p0 … p3, `step` bytes apart, of a row of patches; a bin has `bin` bytes. */
function transformBins(out: usize, step: usize, x: usize, bin: usize, patches: i32): void {
  for (; patches > 0; patches--, out += bin, x += bin << 1) {
    let i: usize = 0;
    do {
      const e1 = v128.load(x + bin + i);
      const e2 = v128.load(x + 2 * bin + i);
      v128.store(out + i, i16x8.sub(v128.load(x + i), e2));
      v128.store(out + step + i, i16x8.add(e1, e2));
      v128.store(out + 2 * step + i, i16x8.sub(e2, e1));
      v128.store(out + 3 * step + i, i16x8.sub(e1, v128.load(x + 3 * bin + i)));
      i += 16;
    } while (i < bin);
  }
}

/**
 * `convolvePlane` for 3 × 3 and strides of 1, bit for bit. Weights by `packPatches`; bins % 2 == 0,
 * channels % 8 == 0, outputs % 8 == 0; `scratch` has patchScratchBytes(bins, channels). If frames % 4 != 0, one to three frames after
 * the last are written too: out must have room for them, and x a row for each.
 */
export function convolvePatches(out: usize, to: Plane, x: usize, from: Plane, layer: Convolution, residual: usize, scratch: usize): void {
  const outStep = to.row;
  const xStep = from.row;
  const columns = to.bins >> 1;
  const bin = from.bin;
  const factors = scratch + xStep * FACTORS;
  for (let left = (to.frames + 3) >> 2; left > 0; ) {
    const rows = min(left, rowsAtOnce(from.channels));
    const row = <usize>columns * bin;
    const product = row * rows;
    for (let r = 0; r < rows; r++, x += xStep << 2) {
      transform(scratch, x, xStep);
      for (let k: usize = 0; k < <usize>FACTORS; k++) {
        transformBins(factors + 4 * k * product + <usize>r * row, product, scratch + k * xStep, bin, columns);
      }
    }
    for (let o = 0; o < layer.outputs; o += 8) {
      const slice = <usize>o << 1;
      panel(out + slice, outStep, factors, product, bin, rows, columns, layer, o, residual ? residual + slice : 0);
    }
    out += (outStep << 2) * rows;
    if (residual) residual += (outStep << 2) * rows;
    left -= rows;
  }
}

/** Eight outputs from output `o` on, of `rows` × `columns` patches: their 24 products, then the outputs. */
function panel(out: usize, outStep: usize, factors: usize, product: usize, bin: usize, rows: i32, columns: i32, layer: Convolution, o: i32, residual: usize): void {
  const outBin = <usize>layer.outputs << 1;
  const patch = outBin << 1;
  // From the end of a row of patches to the next.
  const turn = (outStep << 2) - patch * columns;
  const w = layer.weights + <usize>o * PRODUCTS * bin;
  let sums = factors + product * PRODUCTS;
  const sumStep = sumBytes(rows * columns);
  for (let k: usize = 0; k < <usize>PRODUCTS; k++) multiplyRows(sums + k * sumStep, factors + k * product, rows * columns, bin, w + k * (bin << 3));
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++, sums += 32) {
      addBins(sums, sumStep);
      emitFrames(out, outStep, outBin, TILES, 2, layer, o, residual, SIXTEENTH);
      out += patch;
      if (residual) residual += patch;
    }
    out += turn;
    if (residual) residual += turn;
  }
}

/** The sums over bins of a patch's products, `step` bytes apart, to TILES: twice those of two bins, for each of the six frames' factors. */
function addBins(m: usize, step: usize): void {
  let to = TILES;
  const end = to + TILE * FACTORS;
  do {
    const m1 = m + step;
    const m2 = m1 + step;
    const m3 = m2 + step;
    let a = v128.load(m1);
    let b = v128.load(m2);
    v128.store(to, i32x4.add(v128.load(m), i32x4.add(a, b)));
    v128.store(to, i32x4.sub(i32x4.sub(a, b), v128.load(m3)), 32);
    a = v128.load(m1, 16);
    b = v128.load(m2, 16);
    v128.store(to, i32x4.add(v128.load(m, 16), i32x4.add(a, b)), 16);
    v128.store(to, i32x4.sub(i32x4.sub(a, b), v128.load(m3, 16)), 48);
    m = m3 + step;
    to += TILE;
  } while (to < end);
}
