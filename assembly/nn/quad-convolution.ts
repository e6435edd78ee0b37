/**
 * 3 × 3 convolutions of four frames at once, with half of the multiplications (Winograd's F(4,3) over time). In integers it is
 * exact: the sums are 24 times those of `convolvePlane`, are divided without remainder, and give the same bits.
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
 * Inputs are 0 … 4095 and weights within ±1365, so that u and v fit 16 bits. Sums may wrap on the way, because the outputs are
 * exact modulo 2³²; 24 times an output must stay below 2³¹: the exporter checks it.
 */
import { Convolution, convolvePlane, emit, packWords, packedBytes } from "./convolution";

const FACTORS = 6;

/** Bytes of the plain panels of [outputs][3][run] weights and, behind them, those for four frames. */
export function quadBytes(outputs: i32, run: i32): usize {
  return packedBytes(outputs, 3, run) + packedBytes(outputs, FACTORS, run);
}

function factor(v: i32, g0: i32, g1: i32, g2: i32): i32 {
  if (v == 0) return 6 * g0;
  if (v == 1) return -4 * (g0 + g1 + g2);
  if (v == 2) return -4 * (g0 - g1 + g2);
  if (v == 3) return g0 + 2 * g1 + 4 * g2;
  if (v == 4) return g0 - 2 * g1 + 4 * g2;
  return 24 * g2;
}

/** Packs i16 weights both ways; a panel of 8 outputs holds v0 … v5 one after the other. */
export function packQuads(panels: usize, weights: usize, outputs: i32, run: i32): void {
  packWords(panels, weights, outputs, 3, run);
  const tap = <usize>run << 1;
  let out = panels + packedBytes(outputs, 3, run);
  for (let o = 0; o < outputs; o += 8) {
    for (let v = 0; v < FACTORS; v++) {
      for (let i = 0; i < run; i += 2) {
        for (let j = 0; j < 8; j++) {
          for (let u = 0; u < 2; u++, out += 2) {
            const w = weights + <usize>(o + j) * 3 * tap + (<usize>(i + u) << 1);
            store<i16>(out, factor(v, load<i16>(w), load<i16>(w + tap), load<i16>(w + 2 * tap)));
          }
        }
      }
    }
  }
}

/** u0 … u5 of the frames d0 … d5, each of `bytes`. */
function transform(out: usize, d0: usize, bytes: usize): void {
  const d1 = d0 + bytes;
  const d2 = d1 + bytes;
  const d3 = d2 + bytes;
  const d4 = d3 + bytes;
  const d5 = d4 + bytes;
  for (let i: usize = 0; i < bytes; i += 16) {
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
  }
}

/** `convolvePlane` for 3 taps, bit for bit. Weights by `packQuads`; `scratch` holds 6 frames of x; xStep % 16 == 0. */
export function convolveQuads(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, bins: i32, channels: i32, binStride: i32, layer: Convolution, residual: usize, scratch: usize): void {
  const xBin = <usize>(channels * binStride) << 1;
  for (; frames >= 4; frames -= 4, out += outStep << 2, x += xStep << 2) {
    transform(scratch, x, xStep);
    for (let o = 0; o < layer.outputs; o += 8) {
      const slice = <usize>o << 1;
      quadPanel(out + slice, outStep, scratch, xStep, xBin, bins, layer, o, residual ? residual + slice : 0);
    }
    if (residual) residual += outStep << 2;
  }
  if (frames) convolvePlane(out, outStep, x, xStep, frames, bins, channels, binStride, layer, residual);
}

/** Tiles of 4 bins × 8 outputs, i32: m1 … m4, then 24 times the outputs of the four frames. */
const TILE: usize = 128;
const TILES: usize = memory.data(512, 16);

/** The last tiles are of a voice, too. */
export function wipeTiles(): void {
  memory.fill(TILES, 0, 4 * TILE);
}

function quadPanel(out: usize, outStep: usize, u: usize, uStep: usize, uBin: usize, bins: i32, layer: Convolution, o: i32, residual: usize): void {
  const outBin = <usize>layer.outputs << 1;
  const bytes = <usize>layer.run << 1;
  const v = packedBytes(8, 1, layer.run);
  const w = layer.weights + packedBytes(layer.outputs, 3, layer.run) + packedBytes(o, FACTORS, layer.run);
  for (; bins > 0; bins -= 4, u += uBin << 2, out += outBin << 2) {
    const rows = min(bins, 4);
    memory.fill(TILES, 0, 4 * TILE);
    for (let k: usize = 0; k < 4; k++) accumulate(TILES + k * TILE, u + (k + 1) * uStep, uBin, bytes, w + (k + 1) * v, rows);
    combine();
    accumulate(TILES, u, uBin, bytes, w, rows);
    accumulate(TILES + 3 * TILE, u + 5 * uStep, uBin, bytes, w + 5 * v, rows);
    for (let k: usize = 0; k < 4; k++) emitTile(out + k * outStep, outBin, TILES + k * TILE, rows, layer, o, residual ? residual + k * outStep : 0);
    if (residual) residual += outBin << 2;
  }
}

/** m1 … m4 to their share of the four outputs. */
function combine(): void {
  for (let i = TILES; i < TILES + TILE; i += 16) {
    const m1 = v128.load(i);
    const m2 = v128.load(i + TILE);
    const m3 = v128.load(i + 2 * TILE);
    const m4 = v128.load(i + 3 * TILE);
    const even = i32x4.add(m1, m2);
    const odd = i32x4.sub(m1, m2);
    const even2 = i32x4.add(m3, m4);
    const odd2 = i32x4.shl(i32x4.sub(m3, m4), 1);
    v128.store(i, i32x4.add(even, even2));
    v128.store(i + TILE, i32x4.add(odd, odd2));
    v128.store(i + 2 * TILE, i32x4.add(even, i32x4.shl(even2, 2)));
    v128.store(i + 3 * TILE, i32x4.add(odd, i32x4.shl(odd2, 2)));
  }
}

/** sums[r][o] += Σ x[r][i] · w[o][i] for at most 4 rows. */
function accumulate(sums: usize, x: usize, xBin: usize, bytes: usize, w: usize, rows: i32): void {
  if (rows < 4) {
    for (; rows > 0; rows--, sums += 32, x += xBin) {
      let s0 = v128.load(sums), s1 = v128.load(sums, 16);
      for (let p = x, v = w, end = x + bytes; p < end; p += 4, v += 32) {
        const x0 = v128.load32_splat(p);
        s0 = i32x4.add(s0, i32x4.dot_i16x8_s(x0, v128.load(v)));
        s1 = i32x4.add(s1, i32x4.dot_i16x8_s(x0, v128.load(v, 16)));
      }
      v128.store(sums, s0);
      v128.store(sums, s1, 16);
    }
    return;
  }
  let s00 = v128.load(sums), s01 = v128.load(sums, 16), s10 = v128.load(sums, 32), s11 = v128.load(sums, 48);
  let s20 = v128.load(sums, 64), s21 = v128.load(sums, 80), s30 = v128.load(sums, 96), s31 = v128.load(sums, 112);
  let p0 = x;
  let p1 = p0 + xBin;
  let p2 = p1 + xBin;
  let p3 = p2 + xBin;
  const end = p0 + bytes;
  do {
    const w0 = v128.load(w);
    const w1 = v128.load(w, 16);
    const x0 = v128.load32_splat(p0);
    s00 = i32x4.add(s00, i32x4.dot_i16x8_s(x0, w0));
    s01 = i32x4.add(s01, i32x4.dot_i16x8_s(x0, w1));
    const x1 = v128.load32_splat(p1);
    s10 = i32x4.add(s10, i32x4.dot_i16x8_s(x1, w0));
    s11 = i32x4.add(s11, i32x4.dot_i16x8_s(x1, w1));
    const x2 = v128.load32_splat(p2);
    s20 = i32x4.add(s20, i32x4.dot_i16x8_s(x2, w0));
    s21 = i32x4.add(s21, i32x4.dot_i16x8_s(x2, w1));
    const x3 = v128.load32_splat(p3);
    s30 = i32x4.add(s30, i32x4.dot_i16x8_s(x3, w0));
    s31 = i32x4.add(s31, i32x4.dot_i16x8_s(x3, w1));
    w += 32;
    p0 += 4;
    p1 += 4;
    p2 += 4;
    p3 += 4;
  } while (p0 < end);
  v128.store(sums, s00);
  v128.store(sums, s01, 16);
  v128.store(sums, s10, 32);
  v128.store(sums, s11, 48);
  v128.store(sums, s20, 64);
  v128.store(sums, s21, 80);
  v128.store(sums, s30, 96);
  v128.store(sums, s31, 112);
}

/** x / 24 for multiples of 24: a shift for the 8, and for the 3 its inverse modulo 2³². */
// @ts-ignore: decorator
@inline
function divided(x: v128): v128 {
  return i32x4.mul(i32x4.shr_s(x, 3), i32x4.splat(0xaaaaaaab));
}

function emitTile(out: usize, outBin: usize, sums: usize, rows: i32, layer: Convolution, o: i32, residual: usize): void {
  const at = <usize>o << 2;
  const g0 = v128.load(layer.gain + at);
  const g1 = v128.load(layer.gain + at, 16);
  const b0 = v128.load(layer.bias + at);
  const b1 = v128.load(layer.bias + at, 16);
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  for (; rows > 0; rows--, sums += 32, out += outBin) {
    emit(out, residual, divided(v128.load(sums)), divided(v128.load(sums, 16)), g0, g1, b0, b1, layer.residualGain + at, low, high);
    if (residual) residual += outBin;
  }
}
