/**
 * Convolutions of 16-bit activations with small integer weights, channels last.
 *
 * One loop nest does all of them. An output row is a sum over taps; a tap is a run of adjacent elements:
 *
 *   1-D  [time][channel]        row = frame            tap = one frame, all channels          tapStep = dilation · frame
 *   2-D  [time][bin][channel]   row = bin of a frame   tap = one frame, 3 bins, all channels  tapStep = frame
 *
 * so strides and dilations are pointer steps, padding is rows and bins of zeros around the plane, and nothing is copied.
 *
 * Weights are packed in panels of 8 outputs. For each pair of adjacent inputs (a, b) a panel holds 32 bytes:
 *
 *   | o0a o0b | o1a o1b | o2a o2b | o3a o3b |   | o4a o4b | … | o7a o7b |      i16 each
 *
 * which `i32x4.dot_i16x8_s` multiplies with the pair, broadcast. A tile is 4 rows × 8 outputs: 8 accumulators, 2 weights and
 * 1 input fit the 16 vector registers of every machine. Unrolled loops have an exit between the steps: without it V8 loads the operands of
 * all steps first, and spills.
 *
 * The sum of |weight| · |activation| of one output must stay below 2³¹: the exporter checks it.
 *
 * A layer and the shape of a plane are records. Inner functions (panels, tiles, `emit`) get numbers and vectors instead, because
 * their loops keep them in registers.
 */
import { ATTACKS, SPEAKER, holdsVoice } from "../memory";
import { Plane } from "./plane";

/** One convolution: its weights, and how its sums become activations of the next layer. */
@unmanaged
export class Convolution {
  outputs: i32;
  taps: i32;
  /** Elements per tap, even. */
  run: i32;
  /** Panels, `packedBytes` long. */
  weights: usize;
  /** f32[outputs]: out = round(sum · gain + bias), in steps of the output. */
  gain: usize;
  bias: usize;
  /** f32[outputs]: steps of the residual in steps of the output. */
  residualGain: usize;
  /** The output is clamped to low..high, within ±32767. A low of 0 is a ReLU. */
  low: f32;
  high: f32;
  /** Frames from an output to the next and from a tap to the next, and bins from an output to the next in a plane: 1 or more. */
  stride: i32;
  dilation: i32;
  binStride: i32;
}

/** Bytes of the panels of `outputs` × `taps` × `run` weights; outputs % 8 == 0. */
export function packedBytes(outputs: i32, taps: i32, run: i32): usize {
  return <usize>(outputs * taps * run) << 1;
}

/** Packs [outputs][taps][run] weights (i8, or i16 where `words`) into panels. */
export function packPanels(panels: usize, weights: usize, outputs: i32, taps: i32, run: i32, words: bool): void {
  if (words) pack<i16>(panels, weights, outputs, taps, run);
  else pack<i8>(panels, weights, outputs, taps, run);
}

function pack<T>(panels: usize, weights: usize, outputs: i32, taps: i32, run: i32): void {
  const inputs = taps * run;
  for (let o = 0; o < outputs; o += 8) {
    for (let i = 0; i < inputs; i += 2) {
      for (let j = 0; j < 8; j++, panels += 4) {
        const w = weights + <usize>((o + j) * inputs + i) * sizeof<T>();
        store<i16>(panels, <i16>load<T>(w));
        store<i16>(panels, <i16>load<T>(w, sizeof<T>()), 2);
      }
    }
  }
}

// 1.5 · 2²³: adding it to a float below 2²² leaves the nearest integer (ties to even) in the low bits. It is in memory,
// because engines copy a vector constant to each of its uses.
const ROUNDING: usize = memory.data<f32>([12582912, 12582912, 12582912, 12582912], 16);

/** y rounded to integers and clamped to low..high. */
// @ts-ignore: decorator
@inline
export function nearest(y: v128, low: v128, high: v128): v128 {
  const rounding = v128.load(ROUNDING);
  return i32x4.sub(f32x4.add(f32x4.pmin(high, f32x4.pmax(low, y)), rounding), rounding);
}

// @ts-ignore: decorator
@inline
function requantized(sum: v128, gain: v128, bias: v128, low: v128, high: v128): v128 {
  return nearest(f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(sum), gain), bias), low, high);
}

// @ts-ignore: decorator
@inline
export function emit(out: usize, residual: usize, s0: v128, s1: v128, g0: v128, g1: v128, b0: v128, b1: v128, r: usize, low: v128, high: v128): void {
  if (residual) {
    b0 = f32x4.add(b0, f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(residual)), v128.load(r)));
    b1 = f32x4.add(b1, f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(residual, 8)), v128.load(r, 16)));
  }
  v128.store(out, i16x8.narrow_i32x4_s(requantized(s0, g0, b0, low, high), requantized(s1, g1, b1, low, high)));
}

/** `emit` without a residual; `gain` and `bias` point at those of the first output. */
// @ts-ignore: decorator
@inline
export function emitPlain(out: usize, s0: v128, s1: v128, gain: usize, bias: usize, low: v128, high: v128): void {
  emit(out, 0, s0, s1, v128.load(gain), v128.load(gain, 16), v128.load(bias), v128.load(bias, 16), 0, low, high);
}

/** Sums of tiles, i32 [4][8] each: one tile, three for pairs of frames, six for `convolveQuads` and `convolvePatches`, nine for `convolveHalving`. */
export const TILE: usize = 128;
export const TILES: usize = memory.data(9 * 128, 16);
holdsVoice(TILES, 9 * 128, SPEAKER | ATTACKS);

// @ts-ignore: decorator
@inline
export function added(sum: v128, x: v128, w: v128): v128 {
  return i32x4.add(sum, i32x4.dot_i16x8_s(x, w));
}

// @ts-ignore: decorator
@inline
export function storeTile(sums: usize, s00: v128, s01: v128, s10: v128, s11: v128, s20: v128, s21: v128, s30: v128, s31: v128): void {
  v128.store(sums, s00);
  v128.store(sums, s01, 16);
  v128.store(sums, s10, 32);
  v128.store(sums, s11, 48);
  v128.store(sums, s20, 64);
  v128.store(sums, s21, 80);
  v128.store(sums, s30, 96);
  v128.store(sums, s31, 112);
}

/**
 * sums[r][o] = Σ x[r][k][i] · w[o][k][i] over taps and their runs of `bytes`, for 8 outputs and 4 rows; if there are fewer, the
 * last row is repeated. Steps are bytes.
 */
export function multiply(sums: usize, x: usize, rowStep: usize, rows: i32, tapStep: usize, taps: i32, bytes: usize, w: usize): void {
  multiplyTile(sums, x, rowStep, rows, tapStep, taps, bytes, w, bytes << 3);
}

/** `multiply` for two taps whose weights are `wStep` bytes apart. */
export function multiplyApart(sums: usize, x: usize, rowStep: usize, rows: i32, tapStep: usize, bytes: usize, w: usize, wStep: usize): void {
  multiplyTile(sums, x, rowStep, rows, tapStep, 2, bytes, w, wStep);
}

/** One tap of any number of rows, `bytes` apart; sums[rows][8] has room for a multiple of four. */
export function multiplyRows(sums: usize, x: usize, rows: i32, bytes: usize, w: usize): void {
  for (; rows > 0; rows -= 4, sums += TILE, x += bytes << 2) multiplyTile(sums, x, bytes, rows, 0, 1, bytes, w, 0);
}

// @ts-ignore: decorator
@inline
function multiplyTile(sums: usize, x: usize, rowStep: usize, rows: i32, tapStep: usize, taps: i32, bytes: usize, w: usize, wStep: usize): void {
  let s00 = i32x4.splat(0), s01 = i32x4.splat(0), s10 = i32x4.splat(0), s11 = i32x4.splat(0);
  let s20 = i32x4.splat(0), s21 = i32x4.splat(0), s30 = i32x4.splat(0), s31 = i32x4.splat(0);
  const step1 = rows > 1 ? rowStep : 0;
  const step2 = rows > 2 ? rowStep : 0;
  const step3 = rows > 3 ? rowStep : 0;
  for (; taps > 0; taps--, x += tapStep, w += wStep) {
    let p0 = x;
    let p1 = p0 + step1;
    let p2 = p1 + step2;
    let p3 = p2 + step3;
    let v = w;
    const end = p0 + bytes;
    const last = end - 4;
    do {
      let w0 = v128.load(v);
      let w1 = v128.load(v, 16);
      let u = v128.load32_splat(p0);
      s00 = added(s00, u, w0);
      s01 = added(s01, u, w1);
      u = v128.load32_splat(p1);
      s10 = added(s10, u, w0);
      s11 = added(s11, u, w1);
      u = v128.load32_splat(p2);
      s20 = added(s20, u, w0);
      s21 = added(s21, u, w1);
      u = v128.load32_splat(p3);
      s30 = added(s30, u, w0);
      s31 = added(s31, u, w1);
      if (p0 >= last) break;
      w0 = v128.load(v, 32);
      w1 = v128.load(v, 48);
      u = v128.load32_splat(p0, 4);
      s00 = added(s00, u, w0);
      s01 = added(s01, u, w1);
      u = v128.load32_splat(p1, 4);
      s10 = added(s10, u, w0);
      s11 = added(s11, u, w1);
      u = v128.load32_splat(p2, 4);
      s20 = added(s20, u, w0);
      s21 = added(s21, u, w1);
      u = v128.load32_splat(p3, 4);
      s30 = added(s30, u, w0);
      s31 = added(s31, u, w1);
      v += 64;
      p0 += 8;
      p1 += 8;
      p2 += 8;
      p3 += 8;
    } while (p0 < end);
  }
  storeTile(sums, s00, s01, s10, s11, s20, s21, s30, s31);
}

/**
 * Sums of the rows x and x1 for 16 outputs, only over the pairs in list … end: u16 byte offsets in a row. A tile's rows 0 and 1 are the
 * first eight outputs, 2 and 3 the others, whose panel is `next` bytes further.
 */
function multiplyListed(sums: usize, x: usize, x1: usize, list: usize, end: usize, w: usize, next: usize): void {
  let s00 = i32x4.splat(0), s01 = i32x4.splat(0), s10 = i32x4.splat(0), s11 = i32x4.splat(0);
  let s20 = i32x4.splat(0), s21 = i32x4.splat(0), s30 = i32x4.splat(0), s31 = i32x4.splat(0);
  for (; list < end; list += 2) {
    const i = <usize>load<u16>(list);
    const v = w + (i << 3);
    const y0 = v128.load32_splat(x + i);
    const y1 = v128.load32_splat(x1 + i);
    let u = v128.load(v);
    s00 = added(s00, y0, u);
    s10 = added(s10, y1, u);
    u = v128.load(v, 16);
    s01 = added(s01, y0, u);
    s11 = added(s11, y1, u);
    u = v128.load(v + next);
    s20 = added(s20, y0, u);
    s30 = added(s30, y1, u);
    u = v128.load(v + next, 16);
    s21 = added(s21, y0, u);
    s31 = added(s31, y1, u);
  }
  storeTile(sums, s00, s01, s10, s11, s20, s21, s30, s31);
}

/** Sixteen outputs from output `o` on, of two rows at a time. */
function listedPanel(out: usize, outStep: usize, x: usize, rowStep: usize, rows: i32, layer: Convolution, o: i32, lists: usize): void {
  const weights = layer.weights + packedBytes(o, 1, layer.run);
  const next = packedBytes(8, 1, layer.run);
  const gain = layer.gain + (<usize>o << 2);
  const bias = layer.bias + (<usize>o << 2);
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  for (; rows > 0; rows -= 2, x += rowStep << 1, lists += listBytes(layer.run)) {
    const end = lists + 2 + load<u16>(lists);
    if (rows > 1) multiplyListed(TILES, x, x + rowStep, lists + 2, end, weights, next);
    else multiplyListed(TILES, x, x, lists + 2, end, weights, next);
    for (let r: usize = 0; r < <usize>min(rows, 2); r++, out += outStep) {
      const sums = TILES + r * 32;
      emitPlain(out, v128.load(sums), v128.load(sums, 16), gain, bias, low, high);
      emitPlain(out + 16, v128.load(sums, 64), v128.load(sums, 80), gain + 32, bias + 32, low, high);
    }
  }
}

/** Eight outputs from output `o` on, for `rows` rows. `residual` (0 for none) is laid out as `out`, and may be `out`. */
function panel(out: usize, outStep: usize, x: usize, rowStep: usize, tapStep: usize, rows: i32, layer: Convolution, o: i32, gain: usize, residual: usize): void {
  const bytes = <usize>layer.run << 1;
  const weights = layer.weights + packedBytes(o, layer.taps, layer.run);
  const at = <usize>o << 2;
  const r = layer.residualGain + at;
  const g0 = v128.load(gain + at);
  const g1 = v128.load(gain + at, 16);
  const b0 = v128.load(layer.bias + at);
  const b1 = v128.load(layer.bias + at, 16);
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  for (; rows > 0; rows -= 4, x += rowStep << 2) {
    multiply(TILES, x, rowStep, rows, tapStep, layer.taps, bytes, weights);
    for (let sums = TILES, end = TILES + <usize>min(rows, 4) * 32; sums < end; sums += 32, out += outStep) {
      emit(out, residual, v128.load(sums), v128.load(sums, 16), g0, g1, b0, b1, r, low, high);
      if (residual) residual += outStep;
    }
  }
}

/**
 * out[t][o] = Σ x[t·stride + k·dilation][c] · w[o][k][c] for `frames` output frames, k taps of layer.run channels, through `gain`
 * (the layer's own, or the layer's times a mask). x points at the first frame that is read, including padding.
 * Steps between frames are bytes; out may be a slice of wider rows, so that concatenation costs nothing.
 */
export function convolveGained(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, layer: Convolution, gain: usize): void {
  for (let o = 0; o < layer.outputs; o += 8) {
    panel(out + (<usize>o << 1), outStep, x, xStep * layer.stride, xStep * layer.dilation, frames, layer, o, gain, 0);
  }
}

export function convolve(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, layer: Convolution): void {
  convolveGained(out, outStep, x, xStep, frames, layer, layer.gain);
}

/** Bytes of the list for two rows of `channels`: the byte count of the entries (u16), then the entries. */
// @ts-ignore: decorator
@inline
export function listBytes(channels: i32): usize {
  return <usize>channels + 16;
}

/** `convolve` for one tap and stride 1, on the output of `preactivateListed`; skips zeros. layer.outputs % 16 == 0. */
export function convolveListed(out: usize, outStep: usize, x: usize, xStep: usize, lists: usize, frames: i32, layer: Convolution): void {
  for (let o = 0; o < layer.outputs; o += 16) listedPanel(out + (<usize>o << 1), outStep, x, xStep, frames, layer, o, lists);
}

/**
 * From a plane of shape `from` to every frame and bin of one of shape `to`: layer.taps frames × layer.run / channels bins. x points
 * at the first frame and bin that is read; out and residual (0: none, laid out as out) at the first that is written.
 */
export function convolvePlane(out: usize, to: Plane, x: usize, from: Plane, layer: Convolution, residual: usize): void {
  convolvePlaneFrames(out, to, x, from, to.frames, layer, residual);
}

/** The same for `frames` frames only. */
export function convolvePlaneFrames(out: usize, to: Plane, x: usize, from: Plane, frames: i32, layer: Convolution, residual: usize): void {
  const xBin = from.bin * layer.binStride;
  for (let t = 0; t < frames; t++, out += to.row, x += from.row * layer.stride) {
    for (let o = 0; o < layer.outputs; o += 8) {
      const slice = <usize>o << 1;
      panel(out + slice, to.bin, x, xBin, from.row, to.bins, layer, o, layer.gain, residual ? residual + slice : 0);
    }
    if (residual) residual += to.row;
  }
}

/**
 * `convolvePlane` for one channel, bit for bit: 3 taps, runs of 4, strides of 1, bins % 4 == 0; frames of x are xStep bytes apart. A tile has only six pairs to sum, so its sums stay in
 * registers until they are written.
 */
export function convolveChannel(out: usize, to: Plane, x: usize, xStep: usize, layer: Convolution): void {
  const outBin = to.bin;
  const bins = to.bins;
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  for (let t = 0; t < to.frames; t++, out += to.row, x += xStep) {
    for (let o = 0; o < layer.outputs; o += 8) {
      const at = <usize>o << 2;
      const weights = layer.weights + packedBytes(o, 3, 4);
      let to = out + (<usize>o << 1);
      for (let p = x, end = x + (<usize>bins << 1); p < end; p += 8) {
        let s00 = i32x4.splat(0), s01 = i32x4.splat(0), s10 = i32x4.splat(0), s11 = i32x4.splat(0);
        let s20 = i32x4.splat(0), s21 = i32x4.splat(0), s30 = i32x4.splat(0), s31 = i32x4.splat(0);
        let q = p;
        let w = weights;
        const past = w + 192;
        do {
          let w0 = v128.load(w);
          let w1 = v128.load(w, 16);
          let u = v128.load32_splat(q);
          s00 = added(s00, u, w0);
          s01 = added(s01, u, w1);
          u = v128.load32_splat(q, 2);
          s10 = added(s10, u, w0);
          s11 = added(s11, u, w1);
          u = v128.load32_splat(q, 4);
          s20 = added(s20, u, w0);
          s21 = added(s21, u, w1);
          u = v128.load32_splat(q, 6);
          s30 = added(s30, u, w0);
          s31 = added(s31, u, w1);
          w0 = v128.load(w, 32);
          w1 = v128.load(w, 48);
          u = v128.load32_splat(q, 4);
          s00 = added(s00, u, w0);
          s01 = added(s01, u, w1);
          u = v128.load32_splat(q, 6);
          s10 = added(s10, u, w0);
          s11 = added(s11, u, w1);
          u = v128.load32_splat(q, 8);
          s20 = added(s20, u, w0);
          s21 = added(s21, u, w1);
          u = v128.load32_splat(q, 10);
          s30 = added(s30, u, w0);
          s31 = added(s31, u, w1);
          w += 64;
          q += xStep;
        } while (w < past);
        const g0 = v128.load(layer.gain + at);
        const g1 = v128.load(layer.gain + at, 16);
        const b0 = v128.load(layer.bias + at);
        const b1 = v128.load(layer.bias + at, 16);
        emit(to, 0, s00, s01, g0, g1, b0, b1, 0, low, high);
        to += outBin;
        emit(to, 0, s10, s11, g0, g1, b0, b1, 0, low, high);
        to += outBin;
        emit(to, 0, s20, s21, g0, g1, b0, b1, 0, low, high);
        to += outBin;
        emit(to, 0, s30, s31, g0, g1, b0, b1, 0, low, high);
        to += outBin;
      }
    }
  }
}

/**
 * Depthwise: out[t][c] = Σ x[t·stride + k·dilation][c] · w[k][c], weights i16 [taps][channels] in `layer.weights`, layer.run ignored.
 * channels = layer.outputs, % 8 == 0.
 */
export function convolveDepthwise(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, layer: Convolution): void {
  const channels = layer.outputs;
  const tapStep = xStep * layer.dilation;
  const low = f32x4.splat(layer.low);
  const high = f32x4.splat(layer.high);
  for (let t = 0; t < frames; t++, out += outStep, x += xStep * layer.stride) {
    for (let c = 0; c < channels; c += 8) {
      let s0 = i32x4.splat(0), s1 = i32x4.splat(0);
      let p = x + (<usize>c << 1);
      let w = layer.weights + (<usize>c << 1);
      for (let k = 0; k < layer.taps; k++, p += tapStep, w += <usize>channels << 1) {
        const a = v128.load(p);
        const b = v128.load(w);
        s0 = i32x4.add(s0, i32x4.extmul_low_i16x8_s(a, b));
        s1 = i32x4.add(s1, i32x4.extmul_high_i16x8_s(a, b));
      }
      const at = <usize>c << 2;
      emitPlain(out + (<usize>c << 1), s0, s1, layer.gain + at, layer.bias + at, low, high);
    }
  }
}
