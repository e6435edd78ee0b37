/**
 * A gallery: unit vectors as 8-bit rows with a scale each, or as f32, searched in batches. It has its own instance that is
 * never sealed, so that it can grow without touching the memory of the engine; the rows are last.
 *
 *   input  [d] f32        one vector in: a new row, or the query     hits  [batch] { row i32, score f32 }
 *   query  [d] i16        the query in 16 bits                       listed [batch] i32  rows to look at, instead of a range
 *   scores [batch] f32                                               rows   [capacity][d] f32, or as `row8` says
 */
import { GALLERY, reserve, reserveVoice, wipe } from "../memory";
import { bytes8, cosine, cosine8, cosines, cosines8, quantize16, quantize8, row8, scale8 } from "./cosine";

/** Rows scored between two comparisons with the threshold: the scores stay in the first-level cache. */
const batch: i32 = 4096;

let dimensions: i32 = 0;
let inBytes: bool = false;
let rows: usize = 0;
let capacity: i32 = 0;
let input: usize = 0;
let query: usize = 0;
let queryScale: f32 = 0;
let scores: usize = 0;
let listed: usize = 0;
let hits: usize = 0;

/** Creates an empty gallery of vectors of `d` numbers (d % 16 == 0, at most 512). Once, after all other reservations. */
export function reserveGallery(d: i32, eightBits: bool): void {
  dimensions = d;
  inBytes = eightBits;
  input = reserveVoice(<usize>d << 2, GALLERY);
  query = reserveVoice(<usize>d << 1, GALLERY);
  scores = reserveVoice(<usize>batch << 2, GALLERY);
  listed = reserve(<usize>batch << 2);
  hits = reserveVoice(<usize>batch << 3, GALLERY);
  rows = reserve(0);
}

/** Makes room for `more` rows after the existing ones; more % 64 == 0. */
export function galleryGrow(more: i32): void {
  reserve(inBytes ? bytes8(more, dimensions) : <usize>(more * dimensions) << 2);
  capacity += more;
}

export function galleryCapacity(): i32 {
  return capacity;
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
  return inBytes ? row8(rows, row, dimensions) : rows + (<usize>row * <usize>dimensions << 2);
}

/** rows[row] = input. The input is cleared, so that a row wiped later leaves no copy. */
export function galleryStore(row: i32): void {
  if (inBytes) store<f32>(scale8(rows, row, dimensions), quantize8(rowAt(row), input, dimensions));
  else memory.copy(rowAt(row), input, <usize>dimensions << 2);
  memory.fill(input, 0, <usize>dimensions << 2);
}

/** Wipes the row; it scores 0 until it is stored again. */
export function galleryWipe(row: i32): void {
  memory.fill(rowAt(row), 0, <usize>dimensions << (inBytes ? 0 : 2));
  if (inBytes) store<f32>(scale8(rows, row, dimensions), 0);
}

/** Makes `input` the query of the searches that follow. */
export function galleryQuery(): void {
  if (inBytes) queryScale = quantize16(query, input, dimensions);
}

/** hits = the rows of first..first+n with a score of at least `floor`, in order; returns how many. n <= batch, first % 64 == 0. */
export function gallerySearch(first: i32, n: i32, floor: f32): i32 {
  if (inBytes) cosines8(scores, query, queryScale, scale8(rows, first, dimensions), n, dimensions);
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
    const x = rowAt(row);
    const score = inBytes ? cosine8(query, queryScale, x, load<f32>(scale8(rows, row, dimensions)), dimensions) : cosine(input, x, dimensions);
    if (score < floor) continue;
    store<i32>(hits + (<usize>found << 3), row);
    store<f32>(hits + (<usize>found << 3), score, 4);
    found++;
  }
  return found;
}

/** Wipes the query and the results. */
export function galleryForgetQuery(): void {
  queryScale = 0;
  wipe(GALLERY);
}
