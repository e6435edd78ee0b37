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

/** out[c] = sums[c] / frames. channels % 4 == 0. */
export function meanOfSums(out: usize, sums: usize, frames: i32, channels: i32): void {
  const count = f32x4.splat(<f32>frames);
  for (let c: usize = 0, bytes = <usize>channels << 2; c < bytes; c += 16) {
    v128.store(out + c, f32x4.div(f32x4.convert_i32x4_s(v128.load(sums + c)), count));
  }
}
