/** From log-mel features to the activations that the first convolution reads. */
import { exp4 } from "../math/exponential";
import { log4 } from "../math/logarithm";
import { FEATURE_GAIN, quantize } from "../nn/activation";
import { sum } from "../nn/dense";
import { BINS } from "./config";
import { PLANE_ROW, State } from "./state";

/**
 * Log-mel values above a floor, minus their mean over time, as activations in the zero-padded input plane. The floor is a share of the window's
 * mean power, so that an empty band (such as that of a telephone above 4 kHz) has no influence, whatever rounding or filter noise
 * it contains.
 */
export function prepare(s: State, frames: i32): void {
  const row: usize = BINS << 2;
  const end = s.features + <usize>frames * row;
  let power = f32x4.splat(0);
  for (let p = s.features; p < end; p += 16) power = f32x4.add(power, exp4(v128.load(p)));
  const floor = f32x4.splat((s.floor * sum(power)) / <f32>(frames * BINS));
  for (let b: usize = 0; b < row; b += 16) {
    let total = f32x4.splat(0);
    for (let p = s.features + b; p < end; p += row) {
      const x = log4(f32x4.add(exp4(v128.load(p)), floor));
      v128.store(p, x);
      total = f32x4.add(total, x);
    }
    const mean = f32x4.div(total, f32x4.splat(<f32>frames));
    for (let p = s.features + b; p < end; p += row) v128.store(p, f32x4.sub(v128.load(p), mean));
  }
  memory.fill(s.plane, 0, <usize>((frames + 2) * PLANE_ROW) << 1);
  for (let t = 0; t < frames; t++) {
    quantize(s.plane + (<usize>((t + 1) * PLANE_ROW + 1) << 1), s.features + <usize>t * row, BINS, FEATURE_GAIN);
  }
}

// Added to each standard deviation, so that a bin that hardly changes is not divided by almost zero.
const LEAST_DEVIATION: f32 = 1e-5;

/** Features without mean, [frames][BINS], each bin divided by its deviation (frames - 1 in the denominator). */
export function standardize(features: usize, frames: i32): void {
  const row: usize = BINS << 2;
  const end = features + <usize>frames * row;
  for (let b: usize = 0; b < row; b += 16) {
    let squares = f32x4.splat(0);
    for (let p = features + b; p < end; p += row) squares = f32x4.add(squares, f32x4.mul(v128.load(p), v128.load(p)));
    const deviation = f32x4.sqrt(f32x4.div(squares, f32x4.splat(<f32>(frames - 1))));
    const scale = f32x4.div(f32x4.splat(1), f32x4.add(deviation, f32x4.splat(LEAST_DEVIATION)));
    for (let p = features + b; p < end; p += row) v128.store(p, f32x4.mul(v128.load(p), scale));
  }
}
