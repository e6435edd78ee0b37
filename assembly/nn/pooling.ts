/** Statistics over time of 16-bit activations [frames][channels]. Integer sums: exact, so the order does not matter. */

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

/** `meanDeviationOver` with frames - 1 in the denominator; the deviation of one frame is 0. */
export function meanDeviation(out: usize, x: usize, xStep: usize, frames: i32, channels: i32): void {
  meanDeviationOver(out, x, xStep, frames, channels, max(frames - 1, 1));
}

/**
 * out[0..channels) = mean over time, out[channels..2·channels) = deviation, the root of the sum of squares over `denominator`, f32 in steps
 * of x. For at most 65,535 frames. channels % 8 == 0.
 */
export function meanDeviationOver(out: usize, x: usize, xStep: usize, frames: i32, channels: i32, denominator: i32): void {
  const deviations = <usize>channels << 2;
  for (let c: usize = 0, bytes = <usize>channels << 1; c < bytes; c += 16, out += 32) {
    let t0 = i32x4.splat(0), t1 = i32x4.splat(0);
    let q0 = i64x2.splat(0), q1 = i64x2.splat(0), q2 = i64x2.splat(0), q3 = i64x2.splat(0);
    let p = x + c;
    for (let t = 0; t < frames; t++, p += xStep) {
      const v = v128.load(p);
      t0 = i32x4.add(t0, i32x4.extend_low_i16x8_s(v));
      t1 = i32x4.add(t1, i32x4.extend_high_i16x8_s(v));
      const low = i32x4.extmul_low_i16x8_s(v, v);
      const high = i32x4.extmul_high_i16x8_s(v, v);
      q0 = i64x2.add(q0, i64x2.extend_low_i32x4_u(low));
      q1 = i64x2.add(q1, i64x2.extend_high_i32x4_u(low));
      q2 = i64x2.add(q2, i64x2.extend_low_i32x4_u(high));
      q3 = i64x2.add(q3, i64x2.extend_high_i32x4_u(high));
    }
    storeMeanDeviation(out, deviations, i32x4.extract_lane(t0, 0), i64x2.extract_lane(q0, 0), frames, denominator);
    storeMeanDeviation(out + 4, deviations, i32x4.extract_lane(t0, 1), i64x2.extract_lane(q0, 1), frames, denominator);
    storeMeanDeviation(out + 8, deviations, i32x4.extract_lane(t0, 2), i64x2.extract_lane(q1, 0), frames, denominator);
    storeMeanDeviation(out + 12, deviations, i32x4.extract_lane(t0, 3), i64x2.extract_lane(q1, 1), frames, denominator);
    storeMeanDeviation(out + 16, deviations, i32x4.extract_lane(t1, 0), i64x2.extract_lane(q2, 0), frames, denominator);
    storeMeanDeviation(out + 20, deviations, i32x4.extract_lane(t1, 1), i64x2.extract_lane(q2, 1), frames, denominator);
    storeMeanDeviation(out + 24, deviations, i32x4.extract_lane(t1, 2), i64x2.extract_lane(q3, 0), frames, denominator);
    storeMeanDeviation(out + 28, deviations, i32x4.extract_lane(t1, 3), i64x2.extract_lane(q3, 1), frames, denominator);
  }
}

/** The mean at `out`, the deviation `deviations` bytes behind it. */
// @ts-ignore: decorator
@inline
function storeMeanDeviation(out: usize, deviations: usize, total: i32, squares: i64, frames: i32, denominator: i32): void {
  const mean = <f64>total / <f64>frames;
  const variance = (<f64>squares - <f64>total * mean) / <f64>denominator;
  store<f32>(out, <f32>mean);
  store<f32>(out + deviations, <f32>sqrt<f64>(max<f64>(variance, 0)));
}

/** out[c] = sums[c] / frames. channels % 4 == 0. */
export function meanOfSums(out: usize, sums: usize, frames: i32, channels: i32): void {
  const count = f32x4.splat(<f32>frames);
  for (let c: usize = 0, bytes = <usize>channels << 2; c < bytes; c += 16) {
    v128.store(out + c, f32x4.div(f32x4.convert_i32x4_s(v128.load(sums + c)), count));
  }
}
