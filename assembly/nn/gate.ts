/** Gates: what is heard on average decides, channel by channel, how much of the detail passes. */
import { sigmoid } from "../math/elementwise";
import { Dense, dense, rectify } from "./dense";
import { sumFrames } from "./pooling";

/** mask = sigmoid(excite · max(0, squeeze · context)), f32[excite.outputs]; hidden is scratch for squeeze.outputs, % 4 == 0. */
export function gate(mask: usize, hidden: usize, context: usize, squeeze: Dense, excite: Dense): void {
  dense(hidden, context, squeeze);
  rectify(hidden, squeeze.outputs);
  dense(mask, hidden, excite);
  sigmoid(mask, mask, excite.outputs);
}

/** out[c] = a[c]/aFrames + b[c]/bFrames of two integer sums over time: the mean of all and of a segment. channels % 4 == 0. */
export function addMeans(out: usize, a: usize, aFrames: i32, b: usize, bFrames: i32, channels: i32): void {
  const aCount = f32x4.splat(<f32>aFrames);
  const bCount = f32x4.splat(<f32>bFrames);
  for (let c: usize = 0, bytes = <usize>channels << 2; c < bytes; c += 16) {
    const mean = f32x4.div(f32x4.convert_i32x4_s(v128.load(a + c)), aCount);
    v128.store(out + c, f32x4.add(mean, f32x4.div(f32x4.convert_i32x4_s(v128.load(b + c)), bCount)));
  }
}

/** out[i] = a[i] · b[i]. n % 4 == 0. */
export function multiply(out: usize, a: usize, b: usize, n: i32): void {
  for (let i: usize = 0, bytes = <usize>n << 2; i < bytes; i += 16) v128.store(out + i, f32x4.mul(v128.load(a + i), v128.load(b + i)));
}

/**
 * Squeeze-excitation: out[t][c] = round(x[t][c] · mask[c]), the mask from the mean of x over time through squeeze and excite.
 * sums (i32), context, hidden and mask (f32) are scratch. channels % 8 == 0; steps between frames are bytes; out may be x.
 */
export function squeezeExcite(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, channels: i32, squeeze: Dense, excite: Dense, sums: usize, context: usize, hidden: usize, mask: usize): void {
  sumFrames(sums, x, xStep, frames, channels);
  const count = f32x4.splat(<f32>frames);
  for (let c: usize = 0, bytes = <usize>channels << 2; c < bytes; c += 16) {
    v128.store(context + c, f32x4.div(f32x4.convert_i32x4_s(v128.load(sums + c)), count));
  }
  gate(mask, hidden, context, squeeze, excite);
  const row = <usize>channels << 1;
  for (let t = 0; t < frames; t++, out += outStep, x += xStep) {
    for (let c: usize = 0; c < row; c += 16) {
      const y0 = masked(x + c, mask + (c << 1));
      const y1 = masked(x + c + 8, mask + (c << 1) + 16);
      v128.store(out + c, i16x8.narrow_i32x4_s(y0, y1));
    }
  }
}

// @ts-ignore: decorator
@inline
function masked(x: usize, mask: usize): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(x)), v128.load(mask))));
}
