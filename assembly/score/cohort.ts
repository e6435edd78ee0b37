/** Adaptive s-norm: a voice's scores against the cohort voices nearest to it say what a score of it is worth. */
import { cosines8, quantize16 } from "./cosine";
import { best, cohort, cohortScores, cohortSize, dimensions, probe16 } from "./workspace";

let nearestMean: f64 = 0;
let nearestDeviation: f64 = 1;

/** Mean of the scores of the last `nearCohort`. */
export function cohortMean(): f64 {
  return nearestMean;
}
/** Deviation (over n - 1) of the scores of the last `nearCohort`; never 0. */
export function cohortDeviation(): f64 {
  return nearestDeviation;
}

/** Scores x[d] (f32, unit length) against the cohort and keeps the `nearest` best of them. No cohort: mean 0, deviation 1. */
export function nearCohort(x: usize, nearest: i32): void {
  const n = min(nearest, cohortSize);
  nearestMean = 0;
  nearestDeviation = 1;
  if (n < 2) return;
  const scale = quantize16(probe16, x, dimensions);
  cosines8(cohortScores, probe16, scale, cohort, cohortSize, dimensions);
  keepBest(n);
  let total: f64 = 0;
  for (let i = 0; i < n; i++) total += load<f32>(best + (<usize>i << 2));
  nearestMean = total / n;
  let square: f64 = 0;
  for (let i = 0; i < n; i++) {
    const difference = <f64>load<f32>(best + (<usize>i << 2)) - nearestMean;
    square += difference * difference;
  }
  nearestDeviation = max<f64>(sqrt<f64>(square / (n - 1)), 1e-4);
}

/** best[n] = the n largest cohort scores, as a heap with the smallest on top: its order follows from the scores alone. */
function keepBest(n: i32): void {
  memory.copy(best, cohortScores, <usize>n << 2);
  for (let i = (n >> 1) - 1; i >= 0; i--) sink(i, n);
  for (let i = n; i < cohortSize; i++) {
    const score = load<f32>(cohortScores + (<usize>i << 2));
    if (score <= load<f32>(best)) continue;
    store<f32>(best, score);
    sink(0, n);
  }
}

function sink(at: i32, n: i32): void {
  const value = load<f32>(best + (<usize>at << 2));
  while (true) {
    let child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && load<f32>(best + (<usize>(child + 1) << 2)) < load<f32>(best + (<usize>child << 2))) child++;
    const smaller = load<f32>(best + (<usize>child << 2));
    if (smaller >= value) break;
    store<f32>(best + (<usize>at << 2), smaller);
    at = child;
  }
  store<f32>(best + (<usize>at << 2), value);
}
