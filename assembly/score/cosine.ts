/** Inner products of unit vectors. d % 16 == 0; every pointer 16-byte aligned; the order of summation is fixed. */

// @ts-ignore: decorator
@inline
function integerSums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(i32x4.shuffle(c, d, 0, 4, 1, 5), i32x4.shuffle(c, d, 2, 6, 3, 7));
  return i32x4.add(i64x2.shuffle(ab, cd, 0, 2), i64x2.shuffle(ab, cd, 1, 3));
}

/** x[d]·y[d]. */
export function cosine(x: usize, y: usize, d: i32): f32 {
  let a = f32x4.splat(0);
  for (const end = x + (<usize>d << 2); x < end; x += 16, y += 16) {
    a = f32x4.add(a, f32x4.mul(v128.load(x), v128.load(y)));
  }
  return f32x4.extract_lane(a, 0) + f32x4.extract_lane(a, 2) + (f32x4.extract_lane(a, 1) + f32x4.extract_lane(a, 3));
}

/**
 * out[i] = x[d]·rows[i][d] for i < n, with the bits of `cosine`; n is rounded up to 4: rows and out have room for it.
 * Four rows side by side under one pointer. Reading alone is up to a third faster (`npm run bench -- --only gallery`).
 */
export function cosines(out: usize, x: usize, rows: usize, n: i32, d: i32): void {
  const one = <usize>d << 2;
  const two = one << 1;
  const three = one + two;
  const end = x + one;
  for (let i = 0; i < n; i += 4, out += 16, rows += three) {
    let a = f32x4.splat(0);
    let b = a;
    let c = a;
    let e = a;
    for (let p = x; p < end; p += 32, rows += 32) {
      const v = v128.load(p);
      const w = v128.load(p, 16);
      a = f32x4.add(a, f32x4.mul(v, v128.load(rows)));
      b = f32x4.add(b, f32x4.mul(v, v128.load(rows + one)));
      c = f32x4.add(c, f32x4.mul(v, v128.load(rows + two)));
      e = f32x4.add(e, f32x4.mul(v, v128.load(rows + three)));
      a = f32x4.add(a, f32x4.mul(w, v128.load(rows, 16)));
      b = f32x4.add(b, f32x4.mul(w, v128.load(rows + one, 16)));
      c = f32x4.add(c, f32x4.mul(w, v128.load(rows + two, 16)));
      e = f32x4.add(e, f32x4.mul(w, v128.load(rows + three, 16)));
    }
    const ab = f32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
    const ce = f32x4.add(i32x4.shuffle(c, e, 0, 4, 1, 5), i32x4.shuffle(c, e, 2, 6, 3, 7));
    v128.store(out, f32x4.add(i64x2.shuffle(ab, ce, 0, 2), i64x2.shuffle(ab, ce, 1, 3)));
  }
}

/** out[d] = x[d] in 8 bits; returns the scale that gives x back: x ≈ scale·out. A row of zeros has scale 0. */
export function quantize8(out: usize, x: usize, d: i32): f32 {
  const largest = largestMagnitude(x, d);
  if (largest == 0) {
    memory.fill(out, 0, d);
    return 0;
  }
  for (let i = 0; i < d; i++) store<i8>(out + i, <i8>nearest<f32>((load<f32>(x + (<usize>i << 2)) / largest) * 127));
  return largest / 127;
}

/** out[d] = x[d] in 16 bits; returns the scale. 512 products of 15 by 7 bits still fit an i32. */
export function quantize16(out: usize, x: usize, d: i32): f32 {
  const largest = largestMagnitude(x, d);
  if (largest == 0) {
    memory.fill(out, 0, <usize>d << 1);
    return 0;
  }
  for (let i = 0; i < d; i++) {
    store<i16>(out + (<usize>i << 1), <i16>nearest<f32>((load<f32>(x + (<usize>i << 2)) / largest) * 32767));
  }
  return largest / 32767;
}

function largestMagnitude(x: usize, d: i32): f32 {
  let largest: f32 = 0;
  for (let i = 0; i < d; i++) largest = max<f32>(largest, abs<f32>(load<f32>(x + (<usize>i << 2))));
  return largest;
}

/** Bytes of a row of d numbers in 8 bits: the numbers, then its scale (f32), padded to 16. */
// @ts-ignore: decorator
@inline
export function stride8(d: i32): usize {
  return <usize>d + 16;
}

/** row = x[d] in 8 bits with its scale. */
export function storeRow8(row: usize, x: usize, d: i32): void {
  store<f32>(row + <usize>d, quantize8(row, x, d));
}

/**
 * out[i] = scale·(x[d]·rows[i][d]) for i < n: x in 16 bits with its scale, rows in 8 with theirs; exact until the last two
 * products. n is rounded up to 4: rows and out have room for it. Error against f32: under 0.004 for d = 256.
 */
export function cosines8(out: usize, x: usize, scale: f32, rows: usize, n: i32, d: i32): void {
  const stride = stride8(d);
  const two = stride << 1;
  const three = stride + two;
  const end = x + (<usize>d << 1);
  const factor = f32x4.splat(scale);
  for (let i = 0; i < n; i += 4, out += 16, rows += three + 16) {
    let a = i32x4.splat(0);
    let b = a;
    let c = a;
    let e = a;
    for (let p = x; p < end; p += 32, rows += 16) {
      const v = v128.load(p);
      const w = v128.load(p, 16);
      a = i32x4.add(a, i32x4.dot_i16x8_s(v, v128.load8x8_s(rows)));
      b = i32x4.add(b, i32x4.dot_i16x8_s(v, v128.load8x8_s(rows + stride)));
      c = i32x4.add(c, i32x4.dot_i16x8_s(v, v128.load8x8_s(rows + two)));
      e = i32x4.add(e, i32x4.dot_i16x8_s(v, v128.load8x8_s(rows + three)));
      a = i32x4.add(a, i32x4.dot_i16x8_s(w, v128.load8x8_s(rows, 8)));
      b = i32x4.add(b, i32x4.dot_i16x8_s(w, v128.load8x8_s(rows + stride, 8)));
      c = i32x4.add(c, i32x4.dot_i16x8_s(w, v128.load8x8_s(rows + two, 8)));
      e = i32x4.add(e, i32x4.dot_i16x8_s(w, v128.load8x8_s(rows + three, 8)));
    }
    // The pointer now stands at the rows' scales.
    let scales = v128.load32_zero(rows);
    scales = v128.load_lane<f32>(rows + stride, scales, 1);
    scales = v128.load_lane<f32>(rows + two, scales, 2);
    scales = v128.load_lane<f32>(rows + three, scales, 3);
    const products = f32x4.convert_i32x4_s(integerSums(a, b, c, e));
    v128.store(out, f32x4.mul(f32x4.mul(products, factor), scales));
  }
}

/** One row of `cosines8`, with the same bits. */
export function cosine8(x: usize, scale: f32, row: usize, d: i32): f32 {
  let a = i32x4.splat(0);
  for (const end = x + (<usize>d << 1); x < end; x += 16, row += 8) {
    a = i32x4.add(a, i32x4.dot_i16x8_s(v128.load(x), v128.load8x8_s(row)));
  }
  const sum = i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
  return <f32>sum * scale * load<f32>(row);
}
