/**
 * 3 × 3 convolutions with stride 2 over frames and bins, patches of two frames × two bins at once, with 25 multiplications instead of 36. In
 * integers this is exact: the result is bit-identical. Over time, as in pair-convolution.ts:
 *
 *   frames d0 e0 d1 e1 d2 = x[2t-1 … 2t+3], taps g0 g1 g2
 *
 *   y(t)   = d0·g0 + e0·g1 + d1·g2  =  (d0 - d1)·g0 + e0·g1 + d1·(g0 + g2)
 *   y(t+1) = d1·g0 + e1·g1 + d2·g2  =  e1·g1 + (d2 - d1)·g2 + d1·(g0 + g2)
 *
 * so that five factors of the frames do for both, and in the same way five of the bins: a patch has 5 × 5 factors of its channels,
 *
 *   d0 - d1, e0 | e1, d2 - d1 | d1        of frames, and within each of these the same of bins
 *
 * and the bars part them into nine blocks. The four large ones belong to one output each, those at the sides to two, the last to all four.
 *
 * Inputs are 0 … 4095 and weights within ±8191, so that factors and sums of weights fit 16 bits.
 */
import { Convolution, TILE, TILES, emitPlain, multiply, multiplyApart } from "./convolution";
import { Plane } from "./plane";

/** Factors of frames, and of bins. */
const FACTORS = 5;
const PATCH = FACTORS * FACTORS;
/** Panels of the weights: nine taps, the sums over the outer frames of each bin, over the outer bins of each frame, and over all four corners. */
const PANELS = 16;

/** Bytes of the weights of [outputs][3][3 · channels]. */
export function halvingBytes(outputs: i32, channels: i32): usize {
  return <usize>(PANELS * outputs * channels) << 1;
}

/** Rows of patches processed at a time: together they have about twenty patches, for which the weights of eight outputs stay in the nearest cache. */
// @ts-ignore: decorator
@inline
function rowsAtOnce(bins: i32): i32 {
  return max(1, 40 / bins);
}

/** Bytes of the scratch for planes of `bins` output bins: the factors of some rows of patches. */
export function halvingScratchBytes(bins: i32, channels: i32): usize {
  return <usize>(rowsAtOnce(bins) * (bins >> 1) * PATCH * channels) << 1;
}

/** Packs [outputs][3][3 · channels] weights (i8, or i16 where `words`): for each 8 outputs the panels, one after the other. */
export function packHalves(panels: usize, weights: usize, outputs: i32, channels: i32, words: bool): void {
  if (words) pack<i16>(panels, weights, outputs, channels);
  else pack<i8>(panels, weights, outputs, channels);
}

function pack<T>(panels: usize, weights: usize, outputs: i32, channels: i32): void {
  const bin = <usize>channels * sizeof<T>();
  const frame = bin * 3;
  const panel = <usize>channels << 4;
  for (let o = 0; o < outputs; o++) {
    for (let c = 0; c < channels; c++) {
      const w = weights + <usize>o * 3 * frame + <usize>c * sizeof<T>();
      const to = panels + <usize>(o >> 3) * PANELS * panel + (<usize>(o & 7) << 2) + (<usize>(c >> 1) << 5) + (<usize>(c & 1) << 1);
      for (let i: usize = 0; i < 3; i++) {
        for (let j: usize = 0; j < 3; j++) store<i16>(to + (3 * i + j) * panel, <i16>load<T>(w + i * frame + j * bin));
        store<i16>(to + (9 + i) * panel, <i16>load<T>(w + i * bin) + <i16>load<T>(w + 2 * frame + i * bin));
        store<i16>(to + (12 + i) * panel, <i16>load<T>(w + i * frame) + <i16>load<T>(w + i * frame + 2 * bin));
      }
      store<i16>(to + 15 * panel, load<i16>(to + 9 * panel) + load<i16>(to + 11 * panel));
    }
  }
}

/** The five factors of the bins a … e. */
// @ts-ignore: decorator
@inline
function storeFactors(out: usize, bin: usize, a: v128, b: v128, c: v128, d: v128, e: v128): void {
  v128.store(out, i16x8.sub(a, c));
  v128.store(out + bin, b);
  v128.store(out + 2 * bin, d);
  v128.store(out + 3 * bin, i16x8.sub(e, c));
  v128.store(out + 4 * bin, c);
}

/** Factors of a row of patches, `patch` bytes apart, of frame x. */
function factorsOf(out: usize, patch: usize, x: usize, bin: usize, columns: i32): void {
  for (; columns > 0; columns--, out += patch, x += 4 * bin) {
    for (let i: usize = 0; i < bin; i += 16) {
      const p = x + i;
      storeFactors(out + i, bin, v128.load(p), v128.load(p + bin), v128.load(p + 2 * bin), v128.load(p + 3 * bin), v128.load(p + 4 * bin));
    }
  }
}

/** Those of x - y. */
function factorsOfDifference(out: usize, patch: usize, x: usize, y: usize, bin: usize, columns: i32): void {
  for (; columns > 0; columns--, out += patch, x += 4 * bin, y += 4 * bin) {
    for (let i: usize = 0; i < bin; i += 16) {
      const p = x + i;
      const q = y + i;
      storeFactors(
        out + i,
        bin,
        i16x8.sub(v128.load(p), v128.load(q)),
        i16x8.sub(v128.load(p + bin), v128.load(q + bin)),
        i16x8.sub(v128.load(p + 2 * bin), v128.load(q + 2 * bin)),
        i16x8.sub(v128.load(p + 3 * bin), v128.load(q + 3 * bin)),
        i16x8.sub(v128.load(p + 4 * bin), v128.load(q + 4 * bin)),
      );
    }
  }
}

/**
 * `convolvePlane` for 3 × 3 and strides of 2, without a residual, bit for bit. Weights by `packHalves`; to.bins % 2 == 0,
 * channels % 8 == 0, outputs % 8 == 0; `scratch` has halvingScratchBytes(to.bins, from.channels). If to.frames is odd, a frame after the
 * last is written too: out must have room for it, and x two more rows.
 */
export function convolveHalving(out: usize, to: Plane, x: usize, from: Plane, layer: Convolution, scratch: usize): void {
  const step = from.row;
  const bin = from.bin;
  const columns = to.bins >> 1;
  const factor = bin * FACTORS;
  const patch = bin * PATCH;
  for (let left = (to.frames + 1) >> 1; left > 0; ) {
    const rows = min(left, rowsAtOnce(to.bins));
    let factors = scratch;
    for (let r = 0; r < rows; r++, x += step << 2, factors += patch * columns) {
      const d1 = x + 2 * step;
      factorsOfDifference(factors, patch, x, d1, bin, columns);
      factorsOf(factors + factor, patch, x + step, bin, columns);
      factorsOf(factors + 2 * factor, patch, d1 + step, bin, columns);
      factorsOfDifference(factors + 3 * factor, patch, d1 + 2 * step, d1, bin, columns);
      factorsOf(factors + 4 * factor, patch, d1, bin, columns);
    }
    for (let o = 0; o < layer.outputs; o += 8) panel(out + (<usize>o << 1), to, scratch, bin, rows * columns, layer, o);
    out += 2 * to.row * rows;
    left -= rows;
  }
}

/** Eight outputs from output `o` on, of a number of patches: the nine blocks of four patches, then their outputs. */
function panel(out: usize, to: Plane, factors: usize, bin: usize, patches: i32, layer: Convolution, o: i32): void {
  const patch = bin * PATCH;
  const factor = bin * FACTORS;
  const one = bin << 3; // a panel of weights
  const w = layer.weights + <usize>o * PANELS * bin;
  const gain = layer.gain + (<usize>o << 2);
  const bias = layer.bias + (<usize>o << 2);
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  const columns = to.bins >> 1;
  const nextBin = to.bin;
  const nextFrame = to.row;
  let column = columns;
  for (; patches > 0; patches -= 4, factors += patch << 2) {
    const later = factors + 2 * factor;
    const shared = factors + 4 * factor;
    multiplyApart(TILES, factors, patch, patches, factor, 2 * bin, w, 3 * one);
    multiplyApart(TILES + TILE, factors + 2 * bin, patch, patches, factor, 2 * bin, w + one, 3 * one);
    multiplyApart(TILES + 2 * TILE, later, patch, patches, factor, 2 * bin, w + 3 * one, 3 * one);
    multiplyApart(TILES + 3 * TILE, later + 2 * bin, patch, patches, factor, 2 * bin, w + 4 * one, 3 * one);
    multiply(TILES + 4 * TILE, shared, patch, patches, 0, 1, 2 * bin, w + 9 * one);
    multiply(TILES + 5 * TILE, shared + 2 * bin, patch, patches, 0, 1, 2 * bin, w + 10 * one);
    multiply(TILES + 6 * TILE, factors + 4 * bin, patch, patches, factor, 2, bin, w + 12 * one);
    multiply(TILES + 7 * TILE, later + 4 * bin, patch, patches, factor, 2, bin, w + 13 * one);
    multiply(TILES + 8 * TILE, shared + 4 * bin, patch, patches, 0, 1, bin, w + 15 * one);
    for (let s = TILES, end = TILES + <usize>min(patches, 4) * 32; s < end; s += 32) {
      const low0 = i32x4.add(v128.load(s, 4 * TILE), v128.load(s, 8 * TILE));
      const low1 = i32x4.add(v128.load(s, 4 * TILE + 16), v128.load(s, 8 * TILE + 16));
      const high0 = i32x4.add(v128.load(s, 5 * TILE), v128.load(s, 8 * TILE));
      const high1 = i32x4.add(v128.load(s, 5 * TILE + 16), v128.load(s, 8 * TILE + 16));
      let t0 = v128.load(s, 6 * TILE);
      let t1 = v128.load(s, 6 * TILE + 16);
      emitPlain(out, sum(v128.load(s), low0, t0), sum(v128.load(s, 16), low1, t1), gain, bias, low, high);
      emitPlain(out + nextBin, sum(v128.load(s, TILE), high0, t0), sum(v128.load(s, TILE + 16), high1, t1), gain, bias, low, high);
      t0 = v128.load(s, 7 * TILE);
      t1 = v128.load(s, 7 * TILE + 16);
      emitPlain(out + nextFrame, sum(v128.load(s, 2 * TILE), low0, t0), sum(v128.load(s, 2 * TILE + 16), low1, t1), gain, bias, low, high);
      emitPlain(out + nextFrame + nextBin, sum(v128.load(s, 3 * TILE), high0, t0), sum(v128.load(s, 3 * TILE + 16), high1, t1), gain, bias, low, high);
      out += 2 * nextBin;
      if (--column == 0) {
        column = columns;
        out += 2 * nextFrame - 2 * nextBin * <usize>columns;
      }
    }
  }
}

// @ts-ignore: decorator
@inline
function sum(a: v128, b: v128, c: v128): v128 {
  return i32x4.add(a, i32x4.add(b, c));
}
