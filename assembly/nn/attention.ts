/** Attentive statistics: each channel weights its frames by its own scores, then mean and deviation over time. */
import { exp4, tanh4 } from "../math/exponential";
import { nearest } from "./convolution";

/** The value of 1 in the activations that `squash` produces. */
const SQUASHED: f32 = 32767;

/** x[t][c] = round(32767 · tanh(x[t][c] · step[c])). channels % 8 == 0; rows are contiguous. */
export function squash(x: usize, frames: i32, channels: i32, step: usize): void {
  const one = f32x4.splat(SQUASHED);
  const low = f32x4.splat(-SQUASHED);
  for (let t = 0; t < frames; t++) {
    for (let c: usize = 0, bytes = <usize>channels << 2; c < bytes; c += 32, x += 16) {
      const y0 = tanh4(f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(x)), v128.load(step + c)));
      const y1 = tanh4(f32x4.mul(f32x4.convert_i32x4_s(v128.load16x4_s(x, 8)), v128.load(step + c, 16)));
      v128.store(x, i16x8.narrow_i32x4_s(nearest(f32x4.mul(y0, one), low, one), nearest(f32x4.mul(y1, one), low, one)));
    }
  }
}

/** Bytes of the scores and scratch of `attend`. */
export function attentionBytes(frames: i32, channels: i32): usize {
  return (<usize>channels << 2) * 3 + (<usize>channels << 1) * (frames + 1);
}

/**
 * out[0..channels) = Σ w[t][c] · x[t][c] and out[channels..2·channels) = the deviation from it, in steps of x, where w = softmax over time of
 * scores[t][c] · step[c]. Before, out[0..channels) is the mean of x: sums are of x - mean, to avoid cancellation. channels % 8 == 0; rows
 * of x are xStep bytes apart, those of the scores are contiguous, with scratch behind them up to attentionBytes(frames, channels).
 */
export function attend(out: usize, x: usize, xStep: usize, scores: usize, step: usize, frames: i32, channels: i32): void {
  const bytes = <usize>channels << 1;
  const weights = scores + bytes * frames;
  const firsts = weights + (bytes << 1);
  const squares = firsts + (bytes << 1);
  const top = squares + (bytes << 1);
  memory.copy(top, scores, bytes);
  for (let t = 1, p = scores + bytes; t < frames; t++, p += bytes) {
    for (let c: usize = 0; c < bytes; c += 16) v128.store(top + c, i16x8.max_s(v128.load(top + c), v128.load(p + c)));
  }
  memory.fill(weights, 0, (bytes << 1) * 3);
  for (let t = 0; t < frames; t++, scores += bytes, x += xStep) {
    for (let c: usize = 0; c < bytes; c += 8) {
      const at = c << 1;
      const below = i32x4.sub(v128.load16x4_s(scores + c), v128.load16x4_s(top + c));
      const w = exp4(f32x4.mul(f32x4.convert_i32x4_s(below), v128.load(step + at)));
      const d = f32x4.sub(f32x4.convert_i32x4_s(v128.load16x4_s(x + c)), v128.load(out + at));
      const wd = f32x4.mul(w, d);
      v128.store(weights + at, f32x4.add(v128.load(weights + at), w));
      v128.store(firsts + at, f32x4.add(v128.load(firsts + at), wd));
      v128.store(squares + at, f32x4.add(v128.load(squares + at), f32x4.mul(wd, d)));
    }
  }
  const deviations = out + (bytes << 1);
  for (let at: usize = 0; at < bytes << 1; at += 16) {
    const total = v128.load(weights + at);
    const m = f32x4.div(v128.load(firsts + at), total);
    const variance = f32x4.sub(f32x4.div(v128.load(squares + at), total), f32x4.mul(m, m));
    v128.store(out + at, f32x4.add(v128.load(out + at), m));
    v128.store(deviations + at, f32x4.sqrt(f32x4.pmax(f32x4.splat(0), variance)));
  }
}
