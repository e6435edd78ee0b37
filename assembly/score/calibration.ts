/**
 * From a score and the quality of both sides to a log-likelihood ratio. The model's calibration is a list of terms,
 *
 *     llr = Σ weight · feature[a] · feature[b]
 *
 * so that any score can count more or less where quality says so (the s-norm only in wideband, say), and the
 * training chooses which terms there are. Reliability is the logistic function of such a sum. What one in ten and one in a hundred
 * of different people exceed who are heard this well are such sums too, of the quality alone: a threshold for a false-accept rate
 * is measured in steps from the one to the other, because one ratio for all would let many strangers pass where voices are hard to tell apart.
 *
 * Features, by number (names in src/engine/calibration.ts). t is the template's side, p the probe's:
 *    0  1                              6  ln speech of p                     12  wideness of p
 *    1  cosine                         7  smaller of 5 and 6                 13  smaller of 11 and 12
 *    2  adaptive s-norm                8  SNR of t in 10 dB                  14  |wideness of t - wideness of p|
 *    3  (cosine - μt)/σt (z-norm)      9  SNR of p in 10 dB
 *    4  (cosine - μp)/σp (t-norm)     10  smaller of 8 and 9
 *    5  ln speech of t                11  wideness of t
 * Speech is in seconds, clamped to 0.5..16, what the calibration was fitted on; SNR to -5..20 dB; wideness is 0 at 4 kHz and below, 1 at 7 kHz and above.
 * What could not be measured is passed as NaN and taken as 15 dB, 4 kHz.
 */
import { reserve } from "../memory";

export const features: i32 = 15;
const mostTerms: i32 = 64;

let feature: usize = 0;
/** { a i32, b i32, weight f64 }[]: the ratio's terms, the reliability's, those of one stranger in ten and of one in a hundred. */
let terms: usize = 0;

export function reserveCalibration(): void {
  feature = reserve(<usize>features << 3);
  terms = reserve(<usize>mostTerms << 4);
}
export function calibrationMostTerms(): i32 {
  return mostTerms;
}
export function calibrationTerms(): usize {
  return terms;
}

// @ts-ignore: decorator
@inline
function set(i: i32, value: f64): void {
  store<f64>(feature + (<usize>i << 3), value);
}

// @ts-ignore: decorator
@inline
function get(i: i32): f64 {
  return load<f64>(feature + (<usize>i << 3));
}

function clamped(value: f64, low: f64, high: f64, missing: f64): f64 {
  return isNaN(value) ? missing : min<f64>(high, max<f64>(low, value));
}

function wideness(bandwidthHz: f64): f64 {
  return clamped((bandwidthHz - 4000) / 3000, 0, 1, 0);
}

/** The quality of both sides; NaN where it could not be measured. */
export function setQuality(tSpeech: f64, tSnr: f64, tBandwidth: f64, pSpeech: f64, pSnr: f64, pBandwidth: f64): void {
  set(0, 1);
  set(5, Math.log(clamped(tSpeech, 0.5, 16, 0.5)));
  set(6, Math.log(clamped(pSpeech, 0.5, 16, 0.5)));
  set(7, min<f64>(get(5), get(6)));
  set(8, clamped(tSnr, -5, 20, 15) / 10);
  set(9, clamped(pSnr, -5, 20, 15) / 10);
  set(10, min<f64>(get(8), get(9)));
  set(11, wideness(tBandwidth));
  set(12, wideness(pBandwidth));
  set(13, min<f64>(get(11), get(12)));
  set(14, abs<f64>(get(11) - get(12)));
}

/** The score, with mean and deviation of each side's nearest cohort scores. */
export function setScores(cosine: f64, tMean: f64, tDeviation: f64, pMean: f64, pDeviation: f64): void {
  set(1, cosine);
  set(3, (cosine - tMean) / tDeviation);
  set(4, (cosine - pMean) / pDeviation);
  set(2, 0.5 * (get(3) + get(4)));
}

function sumOf(first: i32, n: i32): f64 {
  let total: f64 = 0;
  for (let i = first; i < first + n; i++) {
    const term = terms + (<usize>i << 4);
    total += load<f64>(term, 8) * (get(load<i32>(term)) * get(load<i32>(term, 4)));
  }
  return total;
}

/** A log-likelihood ratio from terms[first..first+n): the pair's own, or one that so many strangers exceed. */
export function calibratedRatio(first: i32, n: i32): f64 {
  return sumOf(first, n);
}

/** 0..1 from terms[first..first+n). */
export function calibratedReliability(first: i32, n: i32): f64 {
  return 1 / (1 + Math.exp(-sumOf(first, n)));
}

/** y at x on the line through (x0, y0) and (x1, y1), x on a logarithmic scale. */
export function logInterpolate(x: f64, x0: f64, y0: f64, x1: f64, y1: f64): f64 {
  return y0 + (y1 - y0) * ((Math.log(x) - Math.log(x0)) / (Math.log(x1) - Math.log(x0)));
}

/** -ln rate: a calibrated ratio exceeds it for different people at most at this rate, whatever the distribution. */
export function boundOfRate(rate: f64): f64 {
  return -Math.log(rate);
}
