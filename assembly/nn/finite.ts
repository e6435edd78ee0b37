/** Whether n values are all finite. n % 4 == 0. x - x is 0 for finite x, otherwise NaN. */
export function finite(x: usize, n: i32): bool {
  let bad = i32x4.splat(0);
  for (let end = x + (<usize>n << 2); x < end; x += 16) {
    const v = v128.load(x);
    const d = f32x4.sub(v, v);
    bad = v128.or(bad, f32x4.ne(d, d));
  }
  return !v128.any_true(bad);
}
