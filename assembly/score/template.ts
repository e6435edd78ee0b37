/** A voice from its segments: consistency, outlier rejection, speech-weighted mean. */
import { cosine } from "./cosine";
import { dimensions, kept, matrix, mean, mostRows, order, rowOf, scores, sum, weights } from "./workspace";

// @ts-ignore: decorator
@inline
function orderAt(i: i32): i32 {
  return load<i32>(order + (<usize>i << 2));
}

// @ts-ignore: decorator
@inline
function similarity(i: i32, j: i32): f32 {
  return load<f32>(matrix + (<usize>(i * mostRows + j) << 2));
}

// @ts-ignore: decorator
@inline
function isKept(i: i32): bool {
  return load<i32>(kept + (<usize>i << 2)) != 0;
}

/** Negative, zero or positive: rows compared number by number, then by weight. Equal rows are interchangeable. */
function compare(i: i32, j: i32): f32 {
  const a = rowOf(i);
  const b = rowOf(j);
  for (let k: usize = 0; k < <usize>dimensions << 2; k += 4) {
    const difference = load<f32>(a + k) - load<f32>(b + k);
    if (difference != 0) return difference;
  }
  return load<f32>(weights + (<usize>i << 2)) - load<f32>(weights + (<usize>j << 2));
}

/** order = the n rows sorted by content, so that the sums below do not depend on the order of the segments. */
function sort(n: i32): void {
  for (let i = 0; i < n; i++) {
    let at = i;
    for (; at > 0 && compare(i, orderAt(at - 1)) < 0; at--) store<i32>(order + (<usize>at << 2), orderAt(at - 1));
    store<i32>(order + (<usize>at << 2), i);
  }
}

/** Mean cosine of row i to the other kept rows; 1 if there is no other. */
function agreement(i: i32, n: i32): f32 {
  let total: f64 = 0;
  let others = 0;
  for (let k = 0; k < n; k++) {
    const j = orderAt(k);
    if (j == i || !isKept(j)) continue;
    total += similarity(i, j);
    others++;
  }
  return others == 0 ? 1 : <f32>(total / others);
}

/**
 * rows[n] with weights → kept[n], scores[n], mean: while the least consistent row agrees with the others by less than
 * `floor`, it is removed. Returns how many rows remain; 0 when no two agree (a single row agrees with itself).
 */
export function trainTemplate(n: i32, floor: f32): i32 {
  sort(n);
  for (let i = 0; i < n; i++) {
    store<i32>(kept + (<usize>i << 2), 1);
    for (let j = 0; j <= i; j++) {
      const value = cosine(rowOf(i), rowOf(j), dimensions);
      store<f32>(matrix + (<usize>(i * mostRows + j) << 2), value);
      store<f32>(matrix + (<usize>(j * mostRows + i) << 2), value);
    }
  }
  let remaining = n;
  while (remaining > 1) {
    let worst = -1;
    let least: f32 = floor;
    for (let k = 0; k < n; k++) {
      const i = orderAt(k);
      if (!isKept(i)) continue;
      const value = agreement(i, n);
      if (value < least) {
        least = value;
        worst = i;
      }
    }
    if (worst < 0) break;
    store<i32>(kept + (<usize>worst << 2), 0);
    remaining--;
  }
  for (let i = 0; i < n; i++) store<f32>(scores + (<usize>i << 2), agreement(i, n));
  if (n > 1 && remaining < 2) {
    // No row is left to agree with: the score of each is its agreement with all others.
    for (let i = 0; i < n; i++) store<i32>(kept + (<usize>i << 2), 1);
    for (let i = 0; i < n; i++) store<f32>(scores + (<usize>i << 2), agreement(i, n));
    memory.fill(kept, 0, <usize>n << 2);
    return 0;
  }
  clearMean();
  for (let k = 0; k < n; k++) if (isKept(orderAt(k))) addToMean(orderAt(k));
  return finishMean() ? remaining : 0;
}

export function clearMean(): void {
  memory.fill(sum, 0, <usize>dimensions << 3);
}

/** sum += weights[i]·rows[i], in f64: rows may be added in several calls, always in the same order. */
export function addToMean(i: i32): void {
  const weight = <f64>load<f32>(weights + (<usize>i << 2));
  for (let k: usize = 0; k < <usize>dimensions; k++) {
    const at = sum + (k << 3);
    store<f64>(at, load<f64>(at) + weight * load<f32>(rowOf(i) + (k << 2)));
  }
}

/** The first n rows, in order. */
export function addRowsToMean(n: i32): void {
  for (let i = 0; i < n; i++) addToMean(i);
}

/** mean = sum at unit length; false when the sum is zero. */
export function finishMean(): bool {
  let square: f64 = 0;
  for (let k: usize = 0; k < <usize>dimensions; k++) {
    const value = load<f64>(sum + (k << 3));
    square += value * value;
  }
  if (!(square > 1e-24) || square == Infinity) return false;
  const length = sqrt<f64>(square);
  for (let k: usize = 0; k < <usize>dimensions; k++) store<f32>(mean + (k << 2), <f32>(load<f64>(sum + (k << 3)) / length));
  return true;
}
