/** Inner products of unit vectors. d % 16 == 0; vectors are 16-byte aligned; the order of summation is fixed. */

/** x[d]·y[d]. */
export function cosine(x: usize, y: usize, d: i32): f32 {
  let a = f32x4.splat(0);
  for (const end = x + (<usize>d << 2); x < end; x += 16, y += 16) {
    a = f32x4.add(a, f32x4.mul(v128.load(x), v128.load(y)));
  }
  return f32x4.extract_lane(a, 0) + f32x4.extract_lane(a, 2) + (f32x4.extract_lane(a, 1) + f32x4.extract_lane(a, 3));
}

/**
 * out[i] = x[d]·rows[i][d] for i < n, bit-identical to `cosine`; n is rounded up to 8: rows and out must have room for it.
 * Eight rows at a time, one from each eighth of the rows: adjacent rows share a page, and the prefetcher follows one stream per page.
 */
export function cosines(out: usize, x: usize, rows: usize, n: i32, d: i32): void {
  const end = x + (<usize>d << 2);
  const eighth = <usize>((n + 7) >> 3);
  const far = eighth * (<usize>d << 2);
  let p0 = rows;
  let p1 = p0 + far;
  let p2 = p1 + far;
  let p3 = p2 + far;
  let p4 = p3 + far;
  let p5 = p4 + far;
  let p6 = p5 + far;
  let p7 = p6 + far;
  for (const last = out + (eighth << 2); out < last; out += 4) {
    let a = f32x4.splat(0);
    let b = a;
    let c = a;
    let e = a;
    let f = a;
    let g = a;
    let h = a;
    let j = a;
    for (let p = x; p < end; p += 16) {
      const v = v128.load(p);
      a = f32x4.add(a, f32x4.mul(v, v128.load(p0)));
      b = f32x4.add(b, f32x4.mul(v, v128.load(p1)));
      c = f32x4.add(c, f32x4.mul(v, v128.load(p2)));
      e = f32x4.add(e, f32x4.mul(v, v128.load(p3)));
      f = f32x4.add(f, f32x4.mul(v, v128.load(p4)));
      g = f32x4.add(g, f32x4.mul(v, v128.load(p5)));
      h = f32x4.add(h, f32x4.mul(v, v128.load(p6)));
      j = f32x4.add(j, f32x4.mul(v, v128.load(p7)));
      p0 += 16;
      p1 += 16;
      p2 += 16;
      p3 += 16;
      p4 += 16;
      p5 += 16;
      p6 += 16;
      p7 += 16;
    }
    storeFar(out, eighth, floatSums(a, b, c, e));
    storeFar(out + eighth * 16, eighth, floatSums(f, g, h, j));
  }
}

/** The sums of the lanes of four vectors, in the order of `cosine`. */
// @ts-ignore: decorator
@inline
function floatSums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(i32x4.shuffle(c, d, 0, 4, 1, 5), i32x4.shuffle(c, d, 2, 6, 3, 7));
  return f32x4.add(i64x2.shuffle(ab, cd, 0, 2), i64x2.shuffle(ab, cd, 1, 3));
}

// @ts-ignore: decorator
@inline
function integerSums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(i32x4.shuffle(c, d, 0, 4, 1, 5), i32x4.shuffle(c, d, 2, 6, 3, 7));
  return i32x4.add(i64x2.shuffle(ab, cd, 0, 2), i64x2.shuffle(ab, cd, 1, 3));
}

/** out[k · step] = lane k. */
// @ts-ignore: decorator
@inline
function storeFar(out: usize, step: usize, lanes: v128): void {
  v128.store_lane<f32>(out, lanes, 0);
  v128.store_lane<f32>(out + step * 4, lanes, 1);
  v128.store_lane<f32>(out + step * 8, lanes, 2);
  v128.store_lane<f32>(out + step * 12, lanes, 3);
}

/**
 * 8-bit numbers are stored in pairs, the even one raised by 128: 0 to 255. One instruction then extracts the low or the high half of a word.
 *
 *   | even + 128 | odd |  u8, i8          a 16-bit query, 16 numbers at a time: | 8 even ones | 8 odd ones |
 */
// @ts-ignore: decorator
@inline
function in8(value: i32, i: i32): u8 {
  return <u8>(i & 1 ? value : value + 128);
}

// @ts-ignore: decorator
@inline
function in16(i: i32): usize {
  return <usize>((i & ~15) | ((i & 1) << 3) | ((i & 15) >> 1)) << 1;
}

/** out[d] = x[d] in 8 bits, as a row; returns the scale: x ≈ scale·out. A row of zeros has scale 0. */
export function quantize8(out: usize, x: usize, d: i32): f32 {
  const largest = largestMagnitude(x, d);
  const most: f32 = largest == 0 ? 1 : largest;
  for (let i = 0; i < d; i++) store<u8>(out + i, in8(<i32>nearest<f32>((load<f32>(x + (<usize>i << 2)) / most) * 127), i));
  return largest / 127;
}

/** out[d] = x[d] in 16 bits, as a query; returns the scale. 512 products of 15 by 7 bits still fit an i32. */
export function quantize16(out: usize, x: usize, d: i32): f32 {
  const largest = largestMagnitude(x, d);
  const most: f32 = largest == 0 ? 1 : largest;
  for (let i = 0; i < d; i++) {
    store<i16>(out + in16(i), <i16>nearest<f32>((load<f32>(x + (<usize>i << 2)) / most) * 32767));
  }
  return largest / 32767;
}

/** Correction for the 128 added to a row's even numbers, for this query. */
function excess(x: usize, d: i32): i32 {
  let a = i32x4.splat(0);
  for (const end = x + (<usize>d << 1); x < end; x += 32) a = i32x4.add(a, i32x4.dot_i16x8_s(v128.load(x), i16x8.splat(128)));
  return i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
}

function largestMagnitude(x: usize, d: i32): f32 {
  let largest: f32 = 0;
  for (let i = 0; i < d; i++) largest = max<f32>(largest, abs<f32>(load<f32>(x + (<usize>i << 2))));
  return largest;
}

/**
 * 8-bit rows are stored in blocks of 8, after their scales: f32 [8], u8 [8][d]. Loads that skip from row to row, or ahead, confuse the
 * prefetcher: with the scale after each row, a search took half as long again.
 */
const BLOCK: i32 = 8;

/** Bytes of n rows in 8 bits, in complete blocks. */
export function bytes8(n: i32, d: i32): usize {
  return <usize>((n + BLOCK - 1) / BLOCK) * <usize>(BLOCK * (d + 4));
}

export function row8(rows: usize, i: i32, d: i32): usize {
  return rows + bytes8(i - (i % BLOCK), d) + <usize>(BLOCK * 4 + (i % BLOCK) * d);
}

export function scale8(rows: usize, i: i32, d: i32): usize {
  return rows + bytes8(i - (i % BLOCK), d) + <usize>((i % BLOCK) * 4);
}

/**
 * out[i] = scale·(x[d]·rows[i][d]) for i < n: x in 16 bits with its scale, rows in 8 with theirs; exact until the last two products.
 * Eighths as in `cosines`; `rows` is the start of a block, and n is rounded up to eight blocks: rows and out must have room for it. Error
 * against f32: under 0.004 for d = 256.
 */
export function cosines8(out: usize, x: usize, scale: f32, rows: usize, n: i32, d: i32): void {
  const end = x + (<usize>d << 1);
  const blocks = (n + 8 * BLOCK - 1) / (8 * BLOCK);
  const eighth = <usize>(blocks * BLOCK);
  const far = bytes8(blocks * BLOCK, d);
  const low = i16x8.splat(255);
  const factor = f32x4.splat(scale);
  const higher = i32x4.splat(excess(x, d));
  let p0 = rows;
  let p1 = p0 + far;
  let p2 = p1 + far;
  let p3 = p2 + far;
  let p4 = p3 + far;
  let p5 = p4 + far;
  let p6 = p5 + far;
  let p7 = p6 + far;
  for (const last = out + (eighth << 2); out < last; ) {
    let scales = p0;
    p0 += BLOCK * 4;
    p1 += BLOCK * 4;
    p2 += BLOCK * 4;
    p3 += BLOCK * 4;
    p4 += BLOCK * 4;
    p5 += BLOCK * 4;
    p6 += BLOCK * 4;
    p7 += BLOCK * 4;
    for (const next = out + BLOCK * 4; out < next; out += 4, scales += 4) {
      let a = i32x4.splat(0);
      let b = a;
      let c = a;
      let e = a;
      let f = a;
      let g = a;
      let h = a;
      let j = a;
      let p = x;
      do {
        const v = v128.load(p);
        const w = v128.load(p, 16);
        a = i32x4.add(a, products8(v, w, v128.load(p0), low));
        b = i32x4.add(b, products8(v, w, v128.load(p1), low));
        c = i32x4.add(c, products8(v, w, v128.load(p2), low));
        e = i32x4.add(e, products8(v, w, v128.load(p3), low));
        f = i32x4.add(f, products8(v, w, v128.load(p4), low));
        g = i32x4.add(g, products8(v, w, v128.load(p5), low));
        h = i32x4.add(h, products8(v, w, v128.load(p6), low));
        j = i32x4.add(j, products8(v, w, v128.load(p7), low));
        p += 32;
        p0 += 16;
        p1 += 16;
        p2 += 16;
        p3 += 16;
        p4 += 16;
        p5 += 16;
        p6 += 16;
        p7 += 16;
      } while (p < end);
      const first = f32x4.convert_i32x4_s(i32x4.sub(integerSums(a, b, c, e), higher));
      const second = f32x4.convert_i32x4_s(i32x4.sub(integerSums(f, g, h, j), higher));
      storeFar(out, eighth, f32x4.mul(f32x4.mul(first, factor), loadFar(scales, far)));
      storeFar(out + eighth * 16, eighth, f32x4.mul(f32x4.mul(second, factor), loadFar(scales + far * 4, far)));
    }
  }
}

/** The even and the odd numbers of 16 of a query, v and w, times those of a row; `low` is 255 in each word. */
// @ts-ignore: decorator
@inline
function products8(v: v128, w: v128, row: v128, low: v128): v128 {
  return i32x4.add(i32x4.dot_i16x8_s(v, v128.and(row, low)), i32x4.dot_i16x8_s(w, i16x8.shr_s(row, 8)));
}

/** Lane k = x[k · step bytes]. */
// @ts-ignore: decorator
@inline
function loadFar(x: usize, step: usize): v128 {
  let lanes = v128.load32_zero(x);
  lanes = v128.load_lane<f32>(x + step, lanes, 1);
  lanes = v128.load_lane<f32>(x + step * 2, lanes, 2);
  return v128.load_lane<f32>(x + step * 3, lanes, 3);
}

/** One row of `cosines8`, bit-identical. */
export function cosine8(x: usize, scale: f32, row: usize, rowScale: f32, d: i32): f32 {
  const higher = excess(x, d);
  const low = i16x8.splat(255);
  let a = i32x4.splat(0);
  for (const end = x + (<usize>d << 1); x < end; x += 32, row += 16) {
    a = i32x4.add(a, products8(v128.load(x), v128.load(x, 16), v128.load(row), low));
  }
  const sum = i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
  return <f32>(sum - higher) * scale * rowScale;
}
