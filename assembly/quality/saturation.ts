/**
 * Saturation, counted on the samples as they came.
 *
 * Two kinds of run count: two or more samples in a row at full scale (0.998 and up, same sign), and flat tops below it: three or more
 * samples in a row that equal the highest peak so far (within 2^-14) with a corner on both sides, because a source may have been clipped
 * before its gain was turned down. A smooth crest has no corner, and a later, higher peak proves that the level was no limit: it
 * resets the flat-top count. One flat top alone is chance, so three are needed before they are believed.
 */

const FULL_SCALE: f32 = 0.998;
const FULL_SCALE_RUN: i32 = 2;
const FLAT: f32 = 6.1e-5;
const FLAT_RUN: i32 = 3;
/** Fall from a flat top over two samples that makes a corner. */
const CORNER: f32 = 1e-3;
const QUIETEST_FLAT: f32 = 0.02;
const BELIEVED_FLATS: i32 = 3;

@unmanaged
export class Saturation {
  fullSamples: i64;
  fullRuns: i64;
  /** Of the positive and the negative peak. */
  flatSamplesHigh: i64;
  flatSamplesLow: i64;
  flatRunsHigh: i64;
  flatRunsLow: i64;
  peakHigh: f32;
  peakLow: f32;
  /** The last two samples, newest first. */
  x1: f32;
  x2: f32;
  fullRun: i32;
  flatRun: i32;
  flatCorner: bool;
  /** A flat top that ended one sample ago and waits for its second corner sample. */
  endedRun: i32;
  endedAt: f32;
}

export function saturationPush(s: Saturation, x: f32): void {
  const size = abs(x);
  // Full scale.
  if (size >= FULL_SCALE && (s.fullRun == 0 || x > 0 == s.x1 > 0)) s.fullRun++;
  else s.fullRun = size >= FULL_SCALE ? 1 : 0;
  if (s.fullRun == FULL_SCALE_RUN) {
    s.fullRuns++;
    s.fullSamples += FULL_SCALE_RUN;
  } else if (s.fullRun > FULL_SCALE_RUN) s.fullSamples++;

  // The second corner of a flat top that ended with the last sample.
  if (s.endedRun != 0) {
    const fall = s.endedAt > 0 ? s.endedAt - x : x - s.endedAt;
    if (fall >= CORNER) {
      if (s.endedAt > 0 && s.endedAt >= s.peakHigh - FLAT) {
        s.flatRunsHigh++;
        s.flatSamplesHigh += s.endedRun;
      } else if (s.endedAt < 0 && s.endedAt <= s.peakLow + FLAT) {
        s.flatRunsLow++;
        s.flatSamplesLow += s.endedRun;
      }
    }
    s.endedRun = 0;
  }

  if (x > s.peakHigh + FLAT) {
    s.flatRunsHigh = 0;
    s.flatSamplesHigh = 0;
  }
  if (x < s.peakLow - FLAT) {
    s.flatRunsLow = 0;
    s.flatSamplesLow = 0;
  }
  s.peakHigh = max(s.peakHigh, x);
  s.peakLow = min(s.peakLow, x);

  const atPeak =
    size >= QUIETEST_FLAT && size < FULL_SCALE && (x > 0 ? x >= s.peakHigh - FLAT : x <= s.peakLow + FLAT);
  if (s.flatRun > 0 && atPeak && abs(x - s.x1) <= FLAT) s.flatRun++;
  else {
    if (s.flatRun >= FLAT_RUN && s.flatCorner) {
      s.endedRun = s.flatRun;
      s.endedAt = s.x1;
    }
    s.flatRun = atPeak ? 1 : 0;
    s.flatCorner = x > 0 ? x - s.x2 >= CORNER : s.x2 - x >= CORNER;
  }
  s.x2 = s.x1;
  s.x1 = x;
}

export function saturatedSamples(s: Saturation): i64 {
  return (
    s.fullSamples +
    (s.flatRunsHigh >= BELIEVED_FLATS ? s.flatSamplesHigh : 0) +
    (s.flatRunsLow >= BELIEVED_FLATS ? s.flatSamplesLow : 0)
  );
}

export function saturatedRuns(s: Saturation): i64 {
  return (
    s.fullRuns +
    (s.flatRunsHigh >= BELIEVED_FLATS ? s.flatRunsHigh : 0) +
    (s.flatRunsLow >= BELIEVED_FLATS ? s.flatRunsLow : 0)
  );
}
