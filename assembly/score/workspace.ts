/**
 * Memory of the scoring kernels, reserved once while loading:
 *
 *   rows     [mostRows][d] f32   embeddings in: segments to train from, windows, or templates
 *   weights  [mostRows] f32      their seconds of speech
 *   order    [mostRows] i32      the rows in an order that does not depend on the input order
 *   matrix   [mostRows][mostRows] f32
 *   scores   [mostRows] f32      kept [mostRows] i32
 *   sum      [d] f64             mean [d] f32        probe [d] f32
 *   smaller  f64                 seconds of speech of the smaller of two groups
 */
import { SCORING, reserveVoice, wipe } from "../memory";

export const mostRows: i32 = 256;

export let dimensions: i32 = 0;
export let rows: usize = 0;
export let weights: usize = 0;
export let order: usize = 0;
export let matrix: usize = 0;
export let scores: usize = 0;
export let kept: usize = 0;
export let sum: usize = 0;
export let mean: usize = 0;
export let probe: usize = 0;
export let smaller: usize = 0;

/** d % 16 == 0. */
export function reserveScoring(d: i32): void {
  dimensions = d;
  rows = reserveVoice(<usize>(mostRows * d) << 2, SCORING);
  weights = reserveVoice(<usize>mostRows << 2, SCORING);
  order = reserveVoice(<usize>mostRows << 2, SCORING);
  matrix = reserveVoice(<usize>(mostRows * mostRows) << 2, SCORING);
  scores = reserveVoice(<usize>mostRows << 2, SCORING);
  kept = reserveVoice(<usize>mostRows << 2, SCORING);
  sum = reserveVoice(<usize>d << 3, SCORING);
  mean = reserveVoice(<usize>d << 2, SCORING);
  probe = reserveVoice(<usize>d << 2, SCORING);
  smaller = reserveVoice(8, SCORING);
}

export function scoringMostRows(): i32 {
  return mostRows;
}
export function scoringRows(): usize {
  return rows;
}
export function scoringWeights(): usize {
  return weights;
}
export function scoringOrder(): usize {
  return order;
}
export function scoringScores(): usize {
  return scores;
}
export function scoringKept(): usize {
  return kept;
}
export function scoringMean(): usize {
  return mean;
}
export function scoringProbe(): usize {
  return probe;
}

// @ts-ignore: decorator
@inline
export function rowOf(i: i32): usize {
  return rows + (<usize>(i * dimensions) << 2);
}

/** Clears all voice data. */
export function wipeScoring(): void {
  wipe(SCORING);
}
