/**
 * One block of a gallery: rows of unit vectors in 8 bits with a scale each, or in f32, searched in batches.
 * A block is an instance of its own, so that galleries grow without touching the sealed memory of the engine.
 *
 *   rows    [capacity][d]  i8 or f32        input  [d] f32     one vector in: a new row, or the query
 *   scales  [capacity]     f32 (8 bits)     query  [d] i16     the query in 16 bits (8 bits)
 *   scores  [batch]        f32              listed [batch] i32 rows to look at, instead of a range
 *   hits    [batch]        { row i32, score f32 }
 */
import { reserve } from "../memory";
import { cosine, cosine8, cosines, cosines8, quantize16, quantize8 } from "./cosine";

/** Rows scored between two looks at the threshold: the scores stay in the first-level cache. */
const batch: i32 = 4096;

let dimensions: i32 = 0;
let inBytes: bool = false;
let rows: usize = 0;
let scales: usize = 0;
let input: usize = 0;
let query: usize = 0;
let queryScale: f32 = 0;
let scores: usize = 0;
let listed: usize = 0;
let hits: usize = 0;

/** Lays the block out for `capacity` rows of `d` numbers (d % 16 == 0, at most 512). Once, while loading. */
export function reserveGallery(capacity: i32, d: i32, eightBits: bool): void {
  dimensions = d;
  inBytes = eightBits;
  const room = <usize>((capacity + 3) & ~3);
  rows = reserve(room * (eightBits ? <usize>d : <usize>d << 2));
  scales = eightBits ? reserve(room << 2) : 0;
  input = reserve(<usize>d << 2);
  query = reserve(<usize>d << 1);
  scores = reserve(<usize>batch << 2);
  listed = reserve(<usize>batch << 2);
  hits = reserve(<usize>batch << 3);
}

export function galleryBatch(): i32 {
  return batch;
}
export function galleryInput(): usize {
  return input;
}
export function galleryListed(): usize {
  return listed;
}
export function galleryHits(): usize {
  return hits;
}

// @ts-ignore: decorator
@inline
function rowAt(row: i32): usize {
  return rows + <usize>row * (inBytes ? <usize>dimensions : <usize>dimensions << 2);
}

/** rows[row] = input. */
export function galleryStore(row: i32): void {
  if (inBytes) store<f32>(scales + (<usize>row << 2), quantize8(rowAt(row), input, dimensions));
  else memory.copy(rowAt(row), input, <usize>dimensions << 2);
}

/** The row leaves the memory; it scores 0 until it is stored again. */
export function galleryWipe(row: i32): void {
  memory.fill(rowAt(row), 0, inBytes ? <usize>dimensions : <usize>dimensions << 2);
  if (inBytes) store<f32>(scales + (<usize>row << 2), 0);
}

/** The query of the searches that follow is `input`. */
export function galleryQuery(): void {
  if (inBytes) queryScale = quantize16(query, input, dimensions);
}

/** hits = the rows of first..first+n with a score of at least `floor`, in order; returns how many. n <= batch, first % 4 == 0. */
export function gallerySearch(first: i32, n: i32, floor: f32): i32 {
  const scaleOfFirst = scales + (<usize>first << 2);
  if (inBytes) cosines8(scores, query, queryScale, rowAt(first), scaleOfFirst, n, dimensions);
  else cosines(scores, input, rowAt(first), n, dimensions);
  const lowest = f32x4.splat(floor);
  let found = 0;
  for (let i = 0; i < n; i += 4) {
    if (!v128.any_true(f32x4.ge(v128.load(scores + (<usize>i << 2)), lowest))) continue;
    for (let j = i; j < min(i + 4, n); j++) {
      const score = load<f32>(scores + (<usize>j << 2));
      if (score < floor) continue;
      store<i32>(hits + (<usize>found << 3), first + j);
      store<f32>(hits + (<usize>found << 3), score, 4);
      found++;
    }
  }
  return found;
}

/** The same for the rows listed[0..n). */
export function gallerySearchListed(n: i32, floor: f32): i32 {
  let found = 0;
  for (let i = 0; i < n; i++) {
    const row = load<i32>(listed + (<usize>i << 2));
    const score = inBytes
      ? cosine8(query, queryScale, rowAt(row), load<f32>(scales + (<usize>row << 2)), dimensions)
      : cosine(input, rowAt(row), dimensions);
    if (score < floor) continue;
    store<i32>(hits + (<usize>found << 3), row);
    store<f32>(hits + (<usize>found << 3), score, 4);
    found++;
  }
  return found;
}

/** The query, and what was found, leave the memory. */
export function galleryForgetQuery(): void {
  memory.fill(input, 0, <usize>dimensions << 2);
  memory.fill(query, 0, <usize>dimensions << 1);
  memory.fill(hits, 0, <usize>batch << 3);
  memory.fill(scores, 0, <usize>batch << 2);
}
