/** Statistics over time on f32 [frames][channels], in two passes: the mean first, then what deviates from it. */
import { softmaxFrames } from "../softmax";

/** means[c] = Σ x[t][c] / frames. channels % 4 == 0. */
export function meanFrames(means: usize, x: usize, xStep: usize, frames: i32, channels: i32): void {
  const count = f32x4.splat(<f32>frames);
  for (let c: usize = 0, bytes = <usize>channels << 2; c < bytes; c += 16) {
    let s = f32x4.splat(0);
    for (let t = 0, p = x + c; t < frames; t++, p += xStep) s = f32x4.add(s, v128.load(p));
    v128.store(means + c, f32x4.div(s, count));
  }
}

/** out[0..channels) = mean, out[channels..2·channels) = deviation with frames - 1 in the denominator (0 for one frame). channels % 4 == 0. */
export function meanDeviation(out: usize, x: usize, xStep: usize, frames: i32, channels: i32): void {
  const bytes = <usize>channels << 2;
  const freedom = f32x4.splat(<f32>max(frames - 1, 1));
  meanFrames(out, x, xStep, frames, channels);
  for (let c: usize = 0; c < bytes; c += 16) {
    const mean = v128.load(out + c);
    let s = f32x4.splat(0);
    for (let t = 0, p = x + c; t < frames; t++, p += xStep) {
      const d = f32x4.sub(v128.load(p), mean);
      s = f32x4.add(s, f32x4.mul(d, d));
    }
    v128.store(out + bytes + c, f32x4.sqrt(f32x4.div(s, freedom)));
  }
}

/**
 * Attentive statistics: weights over time are the softmax of `logits` [frames][channels] in each channel; out is the weighted mean,
 * then the weighted deviation. The logits become the weights. channels % 4 == 0.
 */
export function attentiveStatistics(out: usize, x: usize, xStep: usize, logits: usize, logitStep: usize, frames: i32, channels: i32): void {
  const bytes = <usize>channels << 2;
  for (let c: usize = 0; c < bytes; c += 16) {
    softmaxFrames(logits + c, logitStep, frames);
    let mean = f32x4.splat(0);
    for (let t = 0, p = x + c, w = logits + c; t < frames; t++, p += xStep, w += logitStep) {
      mean = f32x4.add(mean, f32x4.mul(v128.load(w), v128.load(p)));
    }
    let s = f32x4.splat(0);
    for (let t = 0, p = x + c, w = logits + c; t < frames; t++, p += xStep, w += logitStep) {
      const d = f32x4.sub(v128.load(p), mean);
      s = f32x4.add(s, f32x4.mul(v128.load(w), f32x4.mul(d, d)));
    }
    v128.store(out + c, mean);
    v128.store(out + bytes + c, f32x4.sqrt(s));
  }
}
