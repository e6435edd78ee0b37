/** Rows of frames: their padding, and the sum of two. */
import { nearest } from "./convolution";

/** Writes zeros in `rows` rows of `bytes` before the first frame and after the last; rows are xStep bytes apart. */
export function padZeros(x: usize, xStep: usize, bytes: usize, frames: i32, rows: i32): void {
  const past = x + xStep * frames;
  for (let k = 1; k <= rows; k++) {
    memory.fill(x - xStep * k, 0, bytes);
    memory.fill(past + xStep * (k - 1), 0, bytes);
  }
}

/** The same with frames mirrored at the first and last frame, which are not repeated. rows < frames. */
export function padMirrored(x: usize, xStep: usize, bytes: usize, frames: i32, rows: i32): void {
  const last = x + xStep * (frames - 1);
  for (let k = 1; k <= rows; k++) {
    memory.copy(x - xStep * k, x + xStep * k, bytes);
    memory.copy(last + xStep * k, last - xStep * k, bytes);
  }
}

/** out[t][c] = round(x[t][c] · xGain[c] + y[t][c] · yGain[c]), clamped to low..32767; if y is 0, nothing is added. channels % 8 == 0. */
export function addFrames(out: usize, outStep: usize, x: usize, xStep: usize, xGain: usize, y: usize, yStep: usize, yGain: usize, frames: i32, channels: i32, low: i32): void {
  const least = f32x4.splat(<f32>low);
  const most = f32x4.splat(32767);
  const bytes = <usize>channels << 1;
  for (let t = 0; t < frames; t++, out += outStep, x += xStep) {
    for (let c: usize = 0; c < bytes; c += 16) {
      const at = c << 1;
      let s0 = f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(x + c)), v128.load(xGain + at));
      let s1 = f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(x + c, 8)), v128.load(xGain + at, 16));
      if (y) {
        s0 = f32x4.add(s0, f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(y + c)), v128.load(yGain + at)));
        s1 = f32x4.add(s1, f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(y + c, 8)), v128.load(yGain + at, 16)));
      }
      v128.store(out + c, i16x8.narrow_i32x4_s(nearest(s0, least, most), nearest(s1, least, most)));
    }
    if (y) y += yStep;
  }
}
