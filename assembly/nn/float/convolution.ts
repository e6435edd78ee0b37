/**
 * The convolutions of ../convolution.ts on f32: the same rows, taps and steps, half the speed. For networks that are too small or
 * too delicate to quantise. Panels hold 8 outputs for each input; sums run over taps, then over the run, in that order.
 */

@unmanaged
export class Convolution {
  outputs: i32;
  taps: i32;
  /** Elements of a tap. */
  run: i32;
  /** Panels, f32. */
  weights: usize;
  /** f32[outputs] */
  bias: usize;
  /** The output is max(low, …): 0 is the rectifier, -Infinity none. */
  low: f32;
}

/** Packs [outputs][taps][run] into panels of the same size; outputs % 8 == 0. */
export function pack(panels: usize, weights: usize, outputs: i32, taps: i32, run: i32): void {
  const inputs = taps * run;
  for (let o = 0; o < outputs; o += 8) {
    for (let i = 0; i < inputs; i++) {
      for (let j = 0; j < 8; j++, panels += 4) store<f32>(panels, load<f32>(weights + (<usize>((o + j) * inputs + i) << 2)));
    }
  }
}

function panel(out: usize, outStep: usize, x: usize, rowStep: usize, tapStep: usize, rows: i32, layer: Convolution, o: i32, residual: usize): void {
  const taps = layer.taps;
  const bytes = <usize>layer.run << 2;
  const weights = layer.weights + (<usize>(o * taps * layer.run) << 2);
  const b0 = v128.load(layer.bias + (<usize>o << 2));
  const b1 = v128.load(layer.bias + (<usize>o << 2), 16);
  const low = f32x4.splat(layer.low);
  for (; rows >= 4; rows -= 4) {
    let s00 = b0, s01 = b1, s10 = b0, s11 = b1, s20 = b0, s21 = b1, s30 = b0, s31 = b1;
    let w = weights;
    let tap = x;
    for (let k = 0; k < taps; k++, tap += tapStep) {
      let p0 = tap;
      let p1 = p0 + rowStep;
      let p2 = p1 + rowStep;
      let p3 = p2 + rowStep;
      const end = p0 + bytes;
      do {
        const w0 = v128.load(w);
        const w1 = v128.load(w, 16);
        const x0 = v128.load32_splat(p0);
        s00 = f32x4.add(s00, f32x4.mul(x0, w0));
        s01 = f32x4.add(s01, f32x4.mul(x0, w1));
        const x1 = v128.load32_splat(p1);
        s10 = f32x4.add(s10, f32x4.mul(x1, w0));
        s11 = f32x4.add(s11, f32x4.mul(x1, w1));
        const x2 = v128.load32_splat(p2);
        s20 = f32x4.add(s20, f32x4.mul(x2, w0));
        s21 = f32x4.add(s21, f32x4.mul(x2, w1));
        const x3 = v128.load32_splat(p3);
        s30 = f32x4.add(s30, f32x4.mul(x3, w0));
        s31 = f32x4.add(s31, f32x4.mul(x3, w1));
        w += 32;
        p0 += 4;
        p1 += 4;
        p2 += 4;
        p3 += 4;
      } while (p0 < end);
    }
    x += rowStep << 2;
    emit(out, residual, s00, s01, low);
    out += outStep;
    if (residual) residual += outStep;
    emit(out, residual, s10, s11, low);
    out += outStep;
    if (residual) residual += outStep;
    emit(out, residual, s20, s21, low);
    out += outStep;
    if (residual) residual += outStep;
    emit(out, residual, s30, s31, low);
    out += outStep;
    if (residual) residual += outStep;
  }
  for (; rows > 0; rows--) {
    let s0 = b0, s1 = b1;
    let w = weights;
    let tap = x;
    for (let k = 0; k < taps; k++, tap += tapStep) {
      for (let p = tap, end = tap + bytes; p < end; p += 4, w += 32) {
        const x0 = v128.load32_splat(p);
        s0 = f32x4.add(s0, f32x4.mul(x0, v128.load(w)));
        s1 = f32x4.add(s1, f32x4.mul(x0, v128.load(w, 16)));
      }
    }
    x += rowStep;
    emit(out, residual, s0, s1, low);
    out += outStep;
    if (residual) residual += outStep;
  }
}

// @ts-ignore: decorator
@inline
function emit(out: usize, residual: usize, s0: v128, s1: v128, low: v128): void {
  if (residual) {
    s0 = f32x4.add(s0, v128.load(residual));
    s1 = f32x4.add(s1, v128.load(residual, 16));
  }
  v128.store(out, f32x4.pmax(low, s0));
  v128.store(out, f32x4.pmax(low, s1), 16);
}

/** As `convolve` of ../convolution.ts. */
export function convolve(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, stride: i32, dilation: i32, layer: Convolution): void {
  for (let o = 0; o < layer.outputs; o += 8) {
    panel(out + (<usize>o << 2), outStep, x, xStep * stride, xStep * dilation, frames, layer, o, 0);
  }
}

/** As `convolvePlane` of ../convolution.ts. */
export function convolvePlane(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, bins: i32, channels: i32, binStride: i32, layer: Convolution, residual: usize): void {
  const outBin = <usize>layer.outputs << 2;
  const xBin = <usize>(channels * binStride) << 2;
  for (let t = 0; t < frames; t++, out += outStep, x += xStep) {
    for (let o = 0; o < layer.outputs; o += 8) {
      const slice = <usize>o << 2;
      panel(out + slice, outBin, x, xBin, xStep, bins, layer, o, residual ? residual + slice : 0);
    }
    if (residual) residual += outStep;
  }
}

/** Depthwise: out[t][c] = Σ x[t·stride + k·dilation][c] · w[k][c] + bias[c]; weights f32 [taps][outputs] as they are, outputs % 4 == 0. */
export function convolveDepthwise(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, stride: i32, dilation: i32, layer: Convolution): void {
  const bytes = <usize>layer.outputs << 2;
  const low = f32x4.splat(layer.low);
  for (let t = 0; t < frames; t++, out += outStep, x += xStep * stride) {
    for (let c: usize = 0; c < bytes; c += 16) {
      let s = v128.load(layer.bias + c);
      let p = x + c;
      let w = layer.weights + c;
      for (let k = 0; k < layer.taps; k++, p += xStep * dilation, w += bytes) s = f32x4.add(s, f32x4.mul(v128.load(p), v128.load(w)));
      v128.store(out + c, f32x4.pmax(low, s));
    }
  }
}
