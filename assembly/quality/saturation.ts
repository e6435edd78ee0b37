/**
 * Saturation, counted on the original samples.
 *
 * A sample at full scale (0.999 and up) is saturated. So is one at a limit below full scale, because a source may have been clipped before
 * its gain was turned down: the limit is the highest peak so far, once it has shown three flat tops, each of three or more samples within
 * 2^-14 of it with a corner on both sides. A smooth crest has no corner, and a later, higher peak proves that the level was not a limit:
 * the count restarts.
 */

const FULL_SCALE: f32 = 0.999;
const FLAT: f32 = 6.1e-5;
const FLAT_RUN: i32 = 3;
/** A fall of this much from a flat top, over two samples, is a corner. */
const CORNER: f32 = 1e-3;
const QUIETEST_FLAT: f32 = 0.02;
const BELIEVED_FLATS: i32 = 3;
/** Audio counts as audible up to this long after a sample of at least QUIETEST_FLAT. */
const AUDIBLE_SECONDS: f64 = 0.2;

/** One side of the signal: positive or negative. */
@unmanaged
class Side {
  /** Samples at the peak, their runs, and the flat tops among these. */
  samples: i64;
  runs: i64;
  flats: i64;
  peak: f32;
}

@unmanaged
export class Saturation {
  fullSamples: i64;
  fullRuns: i64;
  audible: i64;
  /** Samples since the last block with a loud one. */
  quietFor: i64;
  /** The last two samples, newest first. */
  x1: f32;
  x2: f32;
  /** Length of the current run at the peak, up to FLAT_RUN. */
  run: i32;
  /** A flat top began with a corner. */
  corner: bool;
  /** It ended with the last sample and waits for its second corner; its value. */
  ended: bool;
  endedAt: f32;
  // then two sides
}

const SIDES: usize = (offsetof<Saturation>() + 15) & ~15;
export const SATURATION_BYTES: i32 = <i32>(SIDES + 2 * offsetof<Side>());

// @ts-ignore: decorator
@inline
function side(state: usize, positive: bool): Side {
  return changetype<Side>(state + SIDES + (positive ? 0 : offsetof<Side>()));
}

function next(state: usize, x: f32): void {
  const s = changetype<Saturation>(state);
  const size = abs(x);
  if (s.ended) {
    const at = s.endedAt;
    if (at > 0 ? at - x >= CORNER : x - at >= CORNER) {
      const ended = side(state, at > 0);
      if (abs(at) >= ended.peak - FLAT) ended.flats++;
    }
    s.ended = false;
  }
  if (size >= FULL_SCALE) {
    s.fullSamples++;
    if (abs(s.x1) < FULL_SCALE || x > 0 != s.x1 > 0) s.fullRuns++;
  }
  const here = side(state, x > 0);
  if (size > here.peak + FLAT) {
    here.samples = 0;
    here.runs = 0;
    here.flats = 0;
  }
  here.peak = max(here.peak, size);

  const atPeak = size >= QUIETEST_FLAT && size < FULL_SCALE && size >= here.peak - FLAT;
  const goesOn = atPeak && s.run > 0 && abs(x - s.x1) <= 2 * FLAT;
  if (goesOn) s.run = min(s.run + 1, FLAT_RUN);
  else {
    if (s.run >= FLAT_RUN && s.corner) {
      s.ended = true;
      s.endedAt = s.x1;
    }
    s.run = atPeak ? 1 : 0;
    s.corner = x > 0 ? x - s.x2 >= CORNER : s.x2 - x >= CORNER;
  }
  if (atPeak) {
    here.samples++;
    if (!goesOn) here.runs++;
  }
  s.x2 = s.x1;
  s.x1 = x;
}

export function saturationPush(state: usize, x: usize, n: i32, rateHz: i32): void {
  const s = changetype<Saturation>(state);
  const end = x + <usize>n * 4;
  let isLoud = false;
  for (; x + 16 <= end; x += 16) {
    // Four samples below both peaks, outside any run, change nothing.
    const quiet = min<f32>(min(side(state, true).peak, side(state, false).peak) - FLAT, FULL_SCALE);
    const four = v128.load(x);
    const sizes = f32x4.abs(four);
    isLoud = isLoud || v128.any_true(f32x4.ge(sizes, f32x4.splat(QUIETEST_FLAT)));
    if (s.run == 0 && !s.ended && !v128.any_true(f32x4.ge(sizes, f32x4.splat(quiet)))) {
      s.x2 = f32x4.extract_lane(four, 2);
      s.x1 = f32x4.extract_lane(four, 3);
    } else for (let i: usize = 0; i < 16; i += 4) next(state, load<f32>(x + i));
  }
  for (; x < end; x += 4) next(state, load<f32>(x));
  s.quietFor = isLoud ? 0 : s.quietFor + n;
  if (<f64>s.quietFor <= AUDIBLE_SECONDS * <f64>rateHz) s.audible += n;
}

export function saturatedSamples(state: usize): i64 {
  let samples = changetype<Saturation>(state).fullSamples;
  for (let i = 0; i < 2; i++) if (side(state, i == 0).flats >= BELIEVED_FLATS) samples += side(state, i == 0).samples;
  return samples;
}

/** Samples that are not silence: a share of them does not depend on how long nobody spoke. */
export function audibleSamples(state: usize): i64 {
  return changetype<Saturation>(state).audible;
}

/** Runs of saturated samples in a row. */
export function saturatedRuns(state: usize): i64 {
  let runs = changetype<Saturation>(state).fullRuns;
  for (let i = 0; i < 2; i++) if (side(state, i == 0).flats >= BELIEVED_FLATS) runs += side(state, i == 0).runs;
  return runs;
}
