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

/** A weighted sum of two rows of frames, or one row with other steps. */
@unmanaged
export class Sum {
  /** % 8 == 0 */
  channels: i32;
  /** Bytes from frame to frame of the sum, and of what is added. */
  outStep: usize;
  xStep: usize;
  yStep: usize;
  /** f32[channels]: steps of each input in steps of the output. */
  xGain: usize;
  yGain: usize;
  /** The sum is clamped to low..32767. */
  low: f32;
}

/** out[t][c] = round(x[t][c] · xGain[c] + y[t][c] · yGain[c]) with `xGain` of the sum, or another; if y is 0, nothing is added. */
export function addFrames(out: usize, x: usize, y: usize, frames: i32, sum: Sum, xGain: usize): void {
  const least = f32x4.splat(sum.low);
  const most = f32x4.splat(32767);
  const yGain = sum.yGain;
  const bytes = <usize>sum.channels << 1;
  for (let t = 0; t < frames; t++, out += sum.outStep, x += sum.xStep) {
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
    if (y) y += sum.yStep;
  }
}
