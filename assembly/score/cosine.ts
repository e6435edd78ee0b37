/** Inner products of unit vectors. d % 16 == 0; vectors lie 16-byte aligned; the order of summation is fixed. */

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
 * Four rows at a time, one of each quarter of the rows: neighbours share a page, and the machine reads ahead along one path a page.
 */
export function cosines(out: usize, x: usize, rows: usize, n: i32, d: i32): void {
  const end = x + (<usize>d << 2);
  const quarter = <usize>((n + 3) >> 2);
  const far = quarter * (<usize>d << 2);
  let p0 = rows;
  let p1 = p0 + far;
  let p2 = p1 + far;
  let p3 = p2 + far;
  for (const last = out + (quarter << 2); out < last; out += 4) {
    let a = f32x4.splat(0);
    let b = a;
    let c = a;
    let e = a;
    for (let p = x; p < end; p += 32) {
      const v = v128.load(p);
      const w = v128.load(p, 16);
      a = f32x4.add(a, f32x4.mul(v, v128.load(p0)));
      b = f32x4.add(b, f32x4.mul(v, v128.load(p1)));
      c = f32x4.add(c, f32x4.mul(v, v128.load(p2)));
      e = f32x4.add(e, f32x4.mul(v, v128.load(p3)));
      a = f32x4.add(a, f32x4.mul(w, v128.load(p0, 16)));
      b = f32x4.add(b, f32x4.mul(w, v128.load(p1, 16)));
      c = f32x4.add(c, f32x4.mul(w, v128.load(p2, 16)));
      e = f32x4.add(e, f32x4.mul(w, v128.load(p3, 16)));
      p0 += 32;
      p1 += 32;
      p2 += 32;
      p3 += 32;
    }
    const ab = f32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
    const ce = f32x4.add(i32x4.shuffle(c, e, 0, 4, 1, 5), i32x4.shuffle(c, e, 2, 6, 3, 7));
    storeFar(out, quarter, f32x4.add(i64x2.shuffle(ab, ce, 0, 2), i64x2.shuffle(ab, ce, 1, 3)));
  }
}

/** out[k · quarter] = lane k. */
// @ts-ignore: decorator
@inline
function storeFar(out: usize, quarter: usize, lanes: v128): void {
  v128.store_lane<f32>(out, lanes, 0);
  v128.store_lane<f32>(out + quarter * 4, lanes, 1);
  v128.store_lane<f32>(out + quarter * 8, lanes, 2);
  v128.store_lane<f32>(out + quarter * 12, lanes, 3);
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

/**
 * Rows in 8 bits lie in blocks of 16, their scales in front: f32 [16], i8 [16][d]. Loads that skip from row to row, or ahead, mislead the
 * machine's reading ahead: with the scale behind each row a search took half as long again.
 */
const BLOCK: i32 = 16;

/** Bytes of n rows in 8 bits, whole blocks. */
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
 * Quarters as in `cosines`; `rows` is the start of a block, and n is rounded up to four blocks: rows and out have room for it. Error
 * against f32: under 0.004 for d = 256.
 */
export function cosines8(out: usize, x: usize, scale: f32, rows: usize, n: i32, d: i32): void {
  const end = x + (<usize>d << 1);
  const blocks = (n + 4 * BLOCK - 1) / (4 * BLOCK);
  const quarter = <usize>(blocks * BLOCK);
  const far = bytes8(blocks * BLOCK, d);
  let p0 = rows;
  let p1 = p0 + far;
  let p2 = p1 + far;
  let p3 = p2 + far;
  const factor = f32x4.splat(scale);
  for (const last = out + (quarter << 2); out < last; ) {
    let scales = p0;
    p0 += BLOCK * 4;
    p1 += BLOCK * 4;
    p2 += BLOCK * 4;
    p3 += BLOCK * 4;
    for (const next = out + BLOCK * 4; out < next; out += 4, scales += 4) {
      let a = i32x4.splat(0);
      let b = a;
      let c = a;
      let e = a;
      for (let p = x; p < end; p += 32) {
        const v = v128.load(p);
        const w = v128.load(p, 16);
        a = i32x4.add(a, i32x4.dot_i16x8_s(v, v128.load8x8_s(p0)));
        b = i32x4.add(b, i32x4.dot_i16x8_s(v, v128.load8x8_s(p1)));
        c = i32x4.add(c, i32x4.dot_i16x8_s(v, v128.load8x8_s(p2)));
        e = i32x4.add(e, i32x4.dot_i16x8_s(v, v128.load8x8_s(p3)));
        a = i32x4.add(a, i32x4.dot_i16x8_s(w, v128.load8x8_s(p0, 8)));
        b = i32x4.add(b, i32x4.dot_i16x8_s(w, v128.load8x8_s(p1, 8)));
        c = i32x4.add(c, i32x4.dot_i16x8_s(w, v128.load8x8_s(p2, 8)));
        e = i32x4.add(e, i32x4.dot_i16x8_s(w, v128.load8x8_s(p3, 8)));
        p0 += 16;
        p1 += 16;
        p2 += 16;
        p3 += 16;
      }
      let own = v128.load32_zero(scales);
      own = v128.load_lane<f32>(scales + far, own, 1);
      own = v128.load_lane<f32>(scales + far * 2, own, 2);
      own = v128.load_lane<f32>(scales + far * 3, own, 3);
      const ab = i32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
      const ce = i32x4.add(i32x4.shuffle(c, e, 0, 4, 1, 5), i32x4.shuffle(c, e, 2, 6, 3, 7));
      const products = f32x4.convert_i32x4_s(i32x4.add(i64x2.shuffle(ab, ce, 0, 2), i64x2.shuffle(ab, ce, 1, 3)));
      storeFar(out, quarter, f32x4.mul(f32x4.mul(products, factor), own));
    }
  }
}

/** One row of `cosines8`, with the same bits. */
export function cosine8(x: usize, scale: f32, row: usize, rowScale: f32, d: i32): f32 {
  let a = i32x4.splat(0);
  for (const end = x + (<usize>d << 1); x < end; x += 16, row += 8) {
    a = i32x4.add(a, i32x4.dot_i16x8_s(v128.load(x), v128.load8x8_s(row)));
  }
  const sum = i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
  return <f32>sum * scale * rowScale;
}
