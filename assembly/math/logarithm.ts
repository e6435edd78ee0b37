/** Natural logarithm of four floats at once, in a fixed order of operations: the same bits on every engine. */

// The coefficients live in memory, because engines copy a vector constant to each of its uses.
// Cephes logf: ln(1+m) - m + m²/2 over m³, then ln 2 in two parts so that the larger one is exact.
const C: usize = memory.data<f32>([
  7.0376836292e-2, -1.151461031e-1, 1.167699874e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
  -2.4999993993e-1, 3.3333331174e-1, 0.70710678, 1.0, 0.5, -2.1219444e-4, 0.693359375,
]);

// @ts-ignore: decorator
@inline
function step(y: v128, m: v128, at: usize): v128 {
  return f32x4.add(f32x4.mul(y, m), v128.load32_splat(C + at));
}

/**
 * ln x in each lane, for positive normal x. Error: at most 1 unit in the last place.
 * Zero and subnormals give -88.03 to -87.34, negatives and NaN give garbage: clamp before.
 */
// @ts-ignore: decorator
@inline
export function log4(x: v128): v128 {
  let e = i32x4.sub(i32x4.shr_u(x, 23), i32x4.splat(126));
  let m = v128.or(v128.and(x, i32x4.splat(0x007fffff)), i32x4.splat(0x3f000000)); // 0.5..1
  const low = f32x4.lt(m, v128.load32_splat(C, 36));
  e = i32x4.add(e, low); // minus one where low
  m = f32x4.sub(f32x4.add(m, v128.and(m, low)), v128.load32_splat(C, 40));
  const exponent = f32x4.convert_i32x4_s(e);
  const z = f32x4.mul(m, m);
  let y = step(v128.load32_splat(C), m, 4);
  y = step(y, m, 8);
  y = step(y, m, 12);
  y = step(y, m, 16);
  y = step(y, m, 20);
  y = step(y, m, 24);
  y = step(y, m, 28);
  y = step(y, m, 32);
  y = f32x4.mul(f32x4.mul(y, m), z);
  y = f32x4.add(y, f32x4.mul(exponent, v128.load32_splat(C, 48)));
  y = f32x4.sub(y, f32x4.mul(z, v128.load32_splat(C, 44)));
  return f32x4.add(f32x4.add(m, y), f32x4.mul(exponent, v128.load32_splat(C, 52)));
}

/** ln x of one float: lane 0 of `log4`, hence the same bits. */
export function log1(x: f32): f32 {
  return f32x4.extract_lane(log4(f32x4.splat(x)), 0);
}
