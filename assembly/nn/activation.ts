/** Elementwise passes over rows of 16-bit activations. */
import { listBytes, nearest } from "./convolution";

/** Activations are i16; a logarithm of power is stored in steps of 1/1024, so ±32: wider than the range of 16-bit speech. */
export const FEATURE_GAIN: f32 = 1024;
/** Inputs of a convolution pass a ReLU and are clamped to this: 12 bits. */
export const ACTIVATION_HIGH = 4095;

/** A folded batch norm: gains are Q15 (i16, 32768 = 1), biases i16 in steps of the output. channels % 8 == 0. */
@unmanaged
export class Norm {
  channels: i32;
  gain: usize;
  bias: usize;
}

// @ts-ignore: decorator
@inline
function activated(x: v128, gain: v128, bias: v128, top: v128): v128 {
  return i16x8.min_s(top, i16x8.max_s(i16x8.splat(0), i16x8.add_sat_s(i16x8.q15mulr_sat_s(x, gain), bias)));
}

/**
 * out[t][c] = min(high, max(0, x[t][c] · gain[c] + bias[c])): a batch norm and a ReLU before a convolution. Rows of out are contiguous,
 * those of x are xStep bytes apart: x is read in place, so a dense block's concatenation is never copied.
 */
export function preactivate(out: usize, x: usize, xStep: usize, frames: i32, norm: Norm, high: i32): void {
  const bytes = <usize>norm.channels << 1;
  const gain = norm.gain;
  const bias = norm.bias;
  const top = i16x8.splat(<i16>high);
  for (let t = 0; t < frames; t++, out += bytes, x += xStep) {
    for (let c: usize = 0; c < bytes; c += 16) {
      v128.store(out + c, activated(v128.load(x + c), v128.load(gain + c), v128.load(bias + c), top));
    }
  }
}

// For each set of four pairs: the byte offsets of its members, packed from the start.
const OFFSETS: usize = memory.data<u16>([
  0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 4, 0, 0, 8, 0, 0, 0, 0, 8, 0, 0, 4, 8, 0, 0, 0, 4, 8, 0,
  12, 0, 0, 0, 0, 12, 0, 0, 4, 12, 0, 0, 0, 4, 12, 0, 8, 12, 0, 0, 0, 8, 12, 0, 4, 8, 12, 0, 0, 4, 8, 12,
], 16);

/**
 * `preactivate` that also lists, for every two frames, the pairs of channels that are not zero in both: `listBytes(channels)` each, as
 * `convolveListed` reads them. With speech, about a sixth is skipped.
 */
export function preactivateListed(out: usize, lists: usize, x: usize, xStep: usize, frames: i32, norm: Norm, high: i32): void {
  const bytes = <usize>norm.channels << 1;
  const gain = norm.gain;
  const bias = norm.bias;
  const top = i16x8.splat(<i16>high);
  for (; frames > 0; frames -= 2, lists += listBytes(norm.channels), out += bytes << 1, x += xStep << 1) {
    // If the second frame is missing, the first is used again.
    const x1 = frames > 1 ? xStep : 0;
    const out1 = frames > 1 ? bytes : 0;
    let list = lists + 2;
    let c: usize = 0;
    do {
      const g = v128.load(gain + c);
      const b = v128.load(bias + c);
      const y0 = activated(v128.load(x + c), g, b, top);
      const y1 = activated(v128.load(x + x1 + c), g, b, top);
      v128.store(out + c, y0);
      v128.store(out + out1 + c, y1);
      const pairs = i32x4.bitmask(i32x4.ne(v128.or(y0, y1), i32x4.splat(0)));
      v128.store_lane<i64>(list, i16x8.add(v128.load64_zero(OFFSETS + (<usize>pairs << 3)), i16x8.splat(<i16>c)), 0);
      list += <usize>popcnt(pairs) << 1;
      c += 16;
    } while (c < bytes);
    store<u16>(lists, <u16>(list - lists - 2));
  }
}

/** out[i] = round(x[i] · gain), saturated: floats to activations. n % 8 == 0. NaN gives 0. */
export function quantize(out: usize, x: usize, n: i32, gain: f32): void {
  const g = f32x4.splat(gain);
  for (let end = out + (<usize>n << 1); out < end; out += 16, x += 32) {
    const y0 = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(x), g)));
    const y1 = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(x, 16), g)));
    v128.store(out, i16x8.narrow_i32x4_s(y0, y1));
  }
}

// The range of 16 bits, in memory because engines copy a vector constant to each of its uses.
const LOWEST: usize = memory.data<f32>([-32768, -32768, -32768, -32768], 16);
const HIGHEST: usize = memory.data<f32>([32767, 32767, 32767, 32767], 16);

/** out[i] = round((max(x[i], least) - mean[i]) · gain), saturated; n % 8 == 0; x is finite. */
export function quantizeAbove(out: usize, x: usize, least: f32, mean: usize, n: i32, gain: f32): void {
  const g = f32x4.splat(gain);
  const floor = f32x4.splat(least);
  for (let end = out + (<usize>n << 1); out < end; out += 16, x += 32, mean += 32) {
    const y0 = f32x4.mul(f32x4.sub(f32x4.pmax(floor, v128.load(x)), v128.load(mean)), g);
    const y1 = f32x4.mul(f32x4.sub(f32x4.pmax(floor, v128.load(x, 16)), v128.load(mean, 16)), g);
    v128.store(out, i16x8.narrow_i32x4_s(saturated(y0), saturated(y1)));
  }
}

// @ts-ignore: decorator
@inline
function saturated(y: v128): v128 {
  return nearest(y, v128.load(LOWEST), v128.load(HIGHEST));
}
