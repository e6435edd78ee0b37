/** Statistics over time of 16-bit activations [frames][channels]. Integer sums: exact, so the order does not matter. */
import { softmaxFrames } from "./softmax";

/** sums[c] = Σ x[t][c] as i32, for at most 65,535 frames. channels % 8 == 0. */
export function sumFrames(sums: usize, x: usize, xStep: usize, frames: i32, channels: i32): void {
  for (let c: usize = 0, bytes = <usize>channels << 1; c < bytes; c += 16) {
    let s0 = i32x4.splat(0), s1 = i32x4.splat(0);
    let p = x + c;
    for (let t = 0; t < frames; t++, p += xStep) {
      s0 = i32x4.add(s0, v128.load16x4_s(p));
      s1 = i32x4.add(s1, v128.load16x4_s(p, 8));
    }
    v128.store(sums + (c << 1), s0);
    v128.store(sums + (c << 1), s1, 16);
  }
}

/**
 * out[0..channels) = mean over time, out[channels..2·channels) = deviation with frames - 1 in the denominator (0 for one frame), f32 in
 * steps of x.
 */
export function meanDeviation(out: usize, x: usize, xStep: usize, frames: i32, channels: i32): void {
  const deviations = out + (<usize>channels << 2);
  for (let c: usize = 0; c < <usize>channels; c++) {
    let total: i64 = 0;
    let squares: i64 = 0;
    let p = x + (c << 1);
    for (let t = 0; t < frames; t++, p += xStep) {
      const v = <i64>load<i16>(p);
      total += v;
      squares += v * v;
    }
    const mean = <f64>total / <f64>frames;
    const variance = (<f64>squares - <f64>total * mean) / <f64>max(frames - 1, 1);
    store<f32>(out + (c << 2), <f32>mean);
    store<f32>(deviations + (c << 2), <f32>sqrt<f64>(max<f64>(variance, 0)));
  }
}

/**
 * Attentive statistics: weights over time are the softmax of f32 `logits` [frames][channels] in each channel; out is the weighted
 * mean, then the weighted deviation, f32 in steps of x. The logits become the weights. channels % 4 == 0.
 */
export function attentiveStatistics(out: usize, x: usize, xStep: usize, logits: usize, logitStep: usize, frames: i32, channels: i32): void {
  const bytes = <usize>channels << 2;
  for (let c: usize = 0; c < bytes; c += 16) {
    softmaxFrames(logits + c, logitStep, frames);
    let mean = f32x4.splat(0);
    for (let t = 0, p = x + (c >> 1), w = logits + c; t < frames; t++, p += xStep, w += logitStep) {
      mean = f32x4.add(mean, f32x4.mul(v128.load(w), f32x4.convert_i32x4_s(v128.load16x4_s(p))));
    }
    let s = f32x4.splat(0);
    for (let t = 0, p = x + (c >> 1), w = logits + c; t < frames; t++, p += xStep, w += logitStep) {
      const d = f32x4.sub(f32x4.convert_i32x4_s(v128.load16x4_s(p)), mean);
      s = f32x4.add(s, f32x4.mul(v128.load(w), f32x4.mul(d, d)));
    }
    v128.store(out + c, mean);
    v128.store(out + bytes + c, f32x4.sqrt(s));
  }
}
