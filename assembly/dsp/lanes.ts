/** Four frames at once, one per lane: values stored as rows (one per frame), or as vectors with one value of each frame. */
import { log4 } from "../math/logarithm";
import { reserve } from "../memory";

/** The smallest power whose logarithm is taken: the value for silence. */
const FLOOR: f32 = 1.1920929e-7;
const floors: usize = reserve(16); // in memory, because engines copy a vector constant to each of its uses
v128.store(floors, f32x4.splat(FLOOR));

/** The columns of the 4 × 4 values in the rows a..d, `stride` bytes apart. */
// @ts-ignore: decorator
@inline
export function storeColumns(to: usize, stride: usize, a: v128, b: v128, c: v128, d: v128): void {
  const t0 = i32x4.shuffle(a, b, 0, 4, 1, 5);
  const t1 = i32x4.shuffle(c, d, 0, 4, 1, 5);
  const t2 = i32x4.shuffle(a, b, 2, 6, 3, 7);
  const t3 = i32x4.shuffle(c, d, 2, 6, 3, 7);
  v128.store(to, i64x2.shuffle(t0, t1, 0, 2));
  v128.store(to + stride, i64x2.shuffle(t0, t1, 1, 3));
  v128.store(to + 2 * stride, i64x2.shuffle(t2, t3, 0, 2));
  v128.store(to + 3 * stride, i64x2.shuffle(t2, t3, 1, 3));
}

/** The floored logarithms of powers[n] of four frames (in place), then as four rows of n values, `row` bytes apart. n % 4 == 0, n > 0. */
export function storeLogs(out: usize, row: usize, powers: usize, n: i32): void {
  const floor = v128.load(floors);
  const past = powers + (<usize>n << 4);
  let p = powers;
  do {
    v128.store(p, log4(f32x4.max(v128.load(p), floor)));
    p += 16;
  } while (p < past);
  for (p = powers; p < past; p += 64, out += 16) {
    storeColumns(out, row, v128.load(p), v128.load(p, 16), v128.load(p, 32), v128.load(p, 48));
  }
}
