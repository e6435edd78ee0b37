/**
 * 3 × 3 convolutions of four frames at once, with half the multiplications (Winograd's F(4,3) over time). In integers this is
 * exact: the sums are 24 times those of `convolvePlane`, are divided without remainder, and the result is bit-identical.
 *
 * Frames d0 … d5 = x[t-1 … t+4] and taps g0 g1 g2 become six products m = u · v, and these four outputs:
 *
 *   u0 =  4·d0        - 5·d2        + d4         v0 =  6·g0                     24·y(t)   = m0 + m1 + m2 +   m3 +   m4
 *   u1 =      - 4·d1  - 4·d2 +   d3 + d4         v1 = -4·g0 - 4·g1 - 4·g2       24·y(t+1) =      m1 - m2 + 2·m3 - 2·m4
 *   u2 =        4·d1  - 4·d2 -   d3 + d4         v2 = -4·g0 + 4·g1 - 4·g2       24·y(t+2) =      m1 + m2 + 4·m3 + 4·m4
 *   u3 =      - 2·d1  -   d2 + 2·d3 + d4         v3 =    g0 + 2·g1 + 4·g2       24·y(t+3) =      m1 - m2 + 8·m3 - 8·m4 + m5
 *   u4 =        2·d1  -   d2 - 2·d3 + d4         v4 =    g0 - 2·g1 + 4·g2
 *   u5 =        4·d1         - 5·d3        + d5  v5 = 24·g2
 *
 * Inputs are 0 … 4095 and weights within ±1365, so that u and v fit 16 bits. Intermediate sums may wrap, because they are exact modulo 2³².
 * So are the outputs times 8, because 3 has an inverse there: an output must stay below 2²⁸. The exporter checks it.
 */
import { Convolution, TILE, TILES, added, convolvePlaneFrames, emit, multiply, packPanels, packedBytes, storeTile } from "./convolution";
import { Plane } from "./plane";

export const FACTORS = 6;
/** 24 is 3 · 2³. */
const EIGHTH = 3;

/** Bytes of the plain panels of [outputs][3][run] weights, followed by those for four frames. */
export function quadBytes(outputs: i32, run: i32): usize {
  return packedBytes(outputs, 3, run) + packedBytes(outputs, FACTORS, run);
}

/** v0 … v5 of the taps g0 g1 g2. */
export function factor(v: i32, g0: i32, g1: i32, g2: i32): i32 {
  if (v == 0) return 6 * g0;
  if (v == 1) return -4 * (g0 + g1 + g2);
  if (v == 2) return -4 * (g0 - g1 + g2);
  if (v == 3) return g0 + 2 * g1 + 4 * g2;
  if (v == 4) return g0 - 2 * g1 + 4 * g2;
  return 24 * g2;
}

/** Packs weights (i8, or i16 where `words`) both ways; a panel of 8 outputs holds v0 … v5 one after the other. */
export function packQuads(panels: usize, weights: usize, outputs: i32, run: i32, words: bool): void {
  packPanels(panels, weights, outputs, 3, run, words);
  const factors = panels + packedBytes(outputs, 3, run);
  if (words) packFactors<i16>(factors, weights, outputs, run);
  else packFactors<i8>(factors, weights, outputs, run);
}

function packFactors<T>(out: usize, weights: usize, outputs: i32, run: i32): void {
  const tap = <usize>run * sizeof<T>();
  for (let o = 0; o < outputs; o += 8) {
    for (let v = 0; v < FACTORS; v++) {
      for (let i = 0; i < run; i += 2) {
        for (let j = 0; j < 8; j++) {
          for (let u = 0; u < 2; u++, out += 2) {
            const w = weights + <usize>(o + j) * 3 * tap + <usize>(i + u) * sizeof<T>();
            store<i16>(out, factor(v, load<T>(w), load<T>(w + tap), load<T>(w + 2 * tap)));
          }
        }
      }
    }
  }
}

/** u0 … u5 of the frames d0 … d5, each of `bytes`. */
export function transform(out: usize, d0: usize, bytes: usize): void {
  const d1 = d0 + bytes;
  const d2 = d1 + bytes;
  const d3 = d2 + bytes;
  const d4 = d3 + bytes;
  const d5 = d4 + bytes;
  let i: usize = 0;
  do {
    const b = v128.load(d1 + i);
    const c = v128.load(d2 + i);
    const d = v128.load(d3 + i);
    const e = v128.load(d4 + i);
    const b4 = i16x8.shl(b, 2);
    const c4 = i16x8.shl(c, 2);
    const ec = i16x8.sub(e, c); // e - c
    const ec4 = i16x8.sub(e, c4); // e - 4c
    const bd = i16x8.sub(b4, d); // 4b - d
    const bd2 = i16x8.shl(i16x8.sub(b, d), 1); // 2b - 2d
    v128.store(out + i, i16x8.add(i16x8.shl(i16x8.sub(v128.load(d0 + i), c), 2), ec));
    v128.store(out + bytes + i, i16x8.sub(ec4, bd));
    v128.store(out + 2 * bytes + i, i16x8.add(ec4, bd));
    v128.store(out + 3 * bytes + i, i16x8.sub(ec, bd2));
    v128.store(out + 4 * bytes + i, i16x8.add(ec, bd2));
    v128.store(out + 5 * bytes + i, i16x8.add(i16x8.sub(i16x8.shl(i16x8.sub(b, d), 2), d), v128.load(d5 + i)));
    i += 16;
  } while (i < bytes);
}

/** `convolvePlane` for 3 taps and stride 1 in time, bit for bit. Weights by `packQuads`; `scratch` holds 6 frames of x, of % 16 == 0 bytes each. */
export function convolveQuads(out: usize, to: Plane, x: usize, from: Plane, layer: Convolution, residual: usize, scratch: usize): void {
  const outStep = to.row;
  const xStep = from.row;
  const xBin = from.bin * layer.binStride;
  const bins = to.bins;
  // One or two bins left over from tiles of four form a tile with sixteen outputs; with eight outputs they form their own tile.
  const rest = (bins & 3) < 3 ? bins & 3 : 0;
  const tiled = bins - rest;
  const paired = layer.outputs & ~15;
  const restOut = to.bin * tiled;
  let frames = to.frames;
  for (; frames >= 4; frames -= 4, out += outStep << 2, x += xStep << 2) {
    transform(scratch, x, xStep);
    for (let o = 0; o < layer.outputs; o += 8) {
      const slice = <usize>o << 1;
      quadPanel(out + slice, outStep, scratch, xStep, xBin, o < paired ? tiled : bins, layer, o, residual ? residual + slice : 0);
    }
    if (rest) {
      for (let o = 0; o < paired; o += 16) {
        const slice = restOut + (<usize>o << 1);
        restPanels(out + slice, outStep, scratch + xBin * tiled, xStep, rest > 1 ? xBin : 0, rest, layer, o, residual ? residual + slice : 0);
      }
    }
    if (residual) residual += outStep << 2;
  }
  if (frames) convolvePlaneFrames(out, to, x, from, frames, layer, residual);
}

/** Eight outputs from output `o` on, for four frames of `bins`: the six products of 4 bins, then the outputs. */
function quadPanel(out: usize, outStep: usize, u: usize, uStep: usize, uBin: usize, bins: i32, layer: Convolution, o: i32, residual: usize): void {
  const outBin = <usize>layer.outputs << 1;
  const bytes = <usize>layer.run << 1;
  const v = packedBytes(8, 1, layer.run);
  const w = layer.weights + packedBytes(layer.outputs, 3, layer.run) + packedBytes(o, FACTORS, layer.run);
  for (; bins > 0; bins -= 4, u += uBin << 2, out += outBin << 2) {
    for (let k: usize = 0; k < <usize>FACTORS; k++) multiply(TILES + k * TILE, u + k * uStep, uBin, bins, 0, 1, bytes, w + k * v);
    emitQuads(out, outStep, outBin, TILES, min(bins, 4), layer, o, residual);
    if (residual) residual += outBin << 2;
  }
}

/** Sixteen outputs from output `o` on, for four frames of one or two bins. */
function restPanels(out: usize, outStep: usize, u: usize, uStep: usize, uBin: usize, bins: i32, layer: Convolution, o: i32, residual: usize): void {
  const outBin = <usize>layer.outputs << 1;
  const bytes = <usize>layer.run << 1;
  const v = packedBytes(8, 1, layer.run);
  const w = layer.weights + packedBytes(layer.outputs, 3, layer.run) + packedBytes(o, FACTORS, layer.run);
  for (let k: usize = 0; k < <usize>FACTORS; k++) multiplyTwo(TILES + k * TILE, u + k * uStep, u + k * uStep + uBin, bytes, w + k * v, v * FACTORS);
  emitQuads(out, outStep, outBin, TILES, bins, layer, o, residual);
  emitQuads(out + 16, outStep, outBin, TILES + TILE / 2, bins, layer, o + 8, residual ? residual + 16 : 0);
}

/** `multiply` for one tap of the rows x and x1 and 16 outputs: a tile's rows 0 and 1 are the first eight, 2 and 3 the others, `next` bytes on. */
function multiplyTwo(sums: usize, x: usize, x1: usize, bytes: usize, w: usize, next: usize): void {
  let s00 = i32x4.splat(0), s01 = i32x4.splat(0), s10 = i32x4.splat(0), s11 = i32x4.splat(0);
  let s20 = i32x4.splat(0), s21 = i32x4.splat(0), s30 = i32x4.splat(0), s31 = i32x4.splat(0);
  let w1 = w + next;
  const end = x + bytes;
  do {
    const y0 = v128.load32_splat(x);
    const y1 = v128.load32_splat(x1);
    let v = v128.load(w);
    s00 = added(s00, y0, v);
    s10 = added(s10, y1, v);
    v = v128.load(w, 16);
    s01 = added(s01, y0, v);
    s11 = added(s11, y1, v);
    v = v128.load(w1);
    s20 = added(s20, y0, v);
    s30 = added(s30, y1, v);
    v = v128.load(w1, 16);
    s21 = added(s21, y0, v);
    s31 = added(s31, y1, v);
    x += 4;
    x1 += 4;
    w += 32;
    w1 += 32;
  } while (x < end);
  storeTile(sums, s00, s01, s10, s11, s20, s21, s30, s31);
}

// The inverse of 3 modulo 2³², in memory because engines copy a vector constant to each of its uses.
const THIRD: usize = memory.data<i32>([0xaaaaaaab, 0xaaaaaaab, 0xaaaaaaab, 0xaaaaaaab], 16);

/** x / (3 · 2ⁿ) of a multiple of it modulo 2³²: multiplies by the inverse of 3, then shifts. */
// @ts-ignore: decorator
@inline
function divided(x: v128, n: i32): v128 {
  return i32x4.shr_s(i32x4.mul(x, v128.load(THIRD)), n);
}

function emitQuads(out: usize, outStep: usize, outBin: usize, m: usize, rows: i32, layer: Convolution, o: i32, residual: usize): void {
  emitFrames(out, outStep, outBin, m, rows, layer, o, residual, EIGHTH);
}

/** The outputs of four frames and `rows` bins from their products m0 … m5, of which the first begins at m: 3 · 2ⁿ times the sums. */
// @ts-ignore: decorator
@inline
export function emitFrames(out: usize, outStep: usize, outBin: usize, m: usize, rows: i32, layer: Convolution, o: i32, residual: usize, n: i32): void {
  const at = <usize>o << 2;
  const g0 = v128.load(layer.gain + at);
  const g1 = v128.load(layer.gain + at, 16);
  const b0 = v128.load(layer.bias + at);
  const b1 = v128.load(layer.bias + at, 16);
  const r = layer.residualGain + at;
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  const end = m + <usize>rows * 32;
  do {
    const even0 = i32x4.add(v128.load(m, TILE), v128.load(m, 2 * TILE));
    const even1 = i32x4.add(v128.load(m, TILE + 16), v128.load(m, 2 * TILE + 16));
    const even20 = i32x4.add(v128.load(m, 3 * TILE), v128.load(m, 4 * TILE));
    const even21 = i32x4.add(v128.load(m, 3 * TILE + 16), v128.load(m, 4 * TILE + 16));
    const y00 = i32x4.add(v128.load(m), i32x4.add(even0, even20));
    const y01 = i32x4.add(v128.load(m, 16), i32x4.add(even1, even21));
    emit(out, residual, divided(y00, n), divided(y01, n), g0, g1, b0, b1, r, low, high);
    const y20 = i32x4.add(even0, i32x4.shl(even20, 2));
    const y21 = i32x4.add(even1, i32x4.shl(even21, 2));
    emit(out + 2 * outStep, residual ? residual + 2 * outStep : 0, divided(y20, n), divided(y21, n), g0, g1, b0, b1, r, low, high);
    const odd0 = i32x4.sub(v128.load(m, TILE), v128.load(m, 2 * TILE));
    const odd1 = i32x4.sub(v128.load(m, TILE + 16), v128.load(m, 2 * TILE + 16));
    const odd20 = i32x4.shl(i32x4.sub(v128.load(m, 3 * TILE), v128.load(m, 4 * TILE)), 1);
    const odd21 = i32x4.shl(i32x4.sub(v128.load(m, 3 * TILE + 16), v128.load(m, 4 * TILE + 16)), 1);
    const y10 = i32x4.add(odd0, odd20);
    const y11 = i32x4.add(odd1, odd21);
    emit(out + outStep, residual ? residual + outStep : 0, divided(y10, n), divided(y11, n), g0, g1, b0, b1, r, low, high);
    const y30 = i32x4.add(v128.load(m, 5 * TILE), i32x4.add(odd0, i32x4.shl(odd20, 2)));
    const y31 = i32x4.add(v128.load(m, 5 * TILE + 16), i32x4.add(odd1, i32x4.shl(odd21, 2)));
    emit(out + 3 * outStep, residual ? residual + 3 * outStep : 0, divided(y30, n), divided(y31, n), g0, g1, b0, b1, r, low, high);
    if (residual) residual += outBin;
    m += 32;
    out += outBin;
  } while (m < end);
}
