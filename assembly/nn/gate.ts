/** Gates: the average over time decides, per channel, how much of the detail passes. */
import { sigmoid } from "../math/elementwise";
import { Dense, dense, rectify } from "./dense";

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
