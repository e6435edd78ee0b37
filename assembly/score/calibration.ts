/**
 * Turns a score and the quality of both sides into a log-likelihood ratio. The model's calibration is a list of terms,
 *
 *     llr = Σ weight · feature[a] · feature[b]
 *
 * and the training chooses the terms; the cosine occurs at most once in a product, so that the ratio is
 * linear in the cosine. Reliability is the logistic function of such a sum.
 *
 * Two such sums of quality features alone describe the impostors: atanh of their cosine is normal in its upper tail, with this center and
 * spread. So the cosine that they exceed at a rate is tanh(center + spread · probit(1 - rate)): below 1 at any rate.
 *
 * Features, by number (names in src/engine/calibration.ts). t is the template's side, p the probe's:
 *    0  1                              4  smaller of 2 and 3                  8  bandwidth of t
 *    1  cosine                         5  SNR of t in 10 dB                   9  bandwidth of p
 *    2  ln speech of t                 6  SNR of p in 10 dB                  10  smaller of 8 and 9
 *    3  ln speech of p                 7  smaller of 5 and 6                 11  |bandwidth of t - bandwidth of p|
 * Speech is in seconds, clamped to 0.5..16, the range it was fitted on; SNR to -5..20 dB; bandwidth is 0 at 4 kHz and below, 1 at 7 kHz and above.
 * A value that could not be measured is passed as NaN and replaced by 15 dB, 4 kHz.
 */
import { SCORING, reserve, reserveVoice } from "../memory";

const features: i32 = 12;
const maxTerms: i32 = 64;

let feature: usize = 0;
/** { a i32, b i32, weight f64 }[]: the ratio's terms, the reliability's, those of the impostors' center and of their spread. */
let terms: usize = 0;

export function reserveCalibration(): void {
  feature = reserveVoice(<usize>features << 3, SCORING);
  terms = reserve(<usize>maxTerms << 4);
}
export function calibrationMaxTerms(): i32 {
  return maxTerms;
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

function bandwidth(hz: f64): f64 {
  return clamped((hz - 4000) / 3000, 0, 1, 0);
}

/** The quality of both sides; NaN where it could not be measured. */
export function setQuality(tSpeech: f64, tSnr: f64, tBandwidth: f64, pSpeech: f64, pSnr: f64, pBandwidth: f64): void {
  set(0, 1);
  set(2, Math.log(clamped(tSpeech, 0.5, 16, 0.5)));
  set(3, Math.log(clamped(pSpeech, 0.5, 16, 0.5)));
  set(4, min<f64>(get(2), get(3)));
  set(5, clamped(tSnr, -5, 20, 15) / 10);
  set(6, clamped(pSnr, -5, 20, 15) / 10);
  set(7, min<f64>(get(5), get(6)));
  set(8, bandwidth(tBandwidth));
  set(9, bandwidth(pBandwidth));
  set(10, min<f64>(get(8), get(9)));
  set(11, abs<f64>(get(8) - get(9)));
}

function sumOf(first: i32, n: i32): f64 {
  let total: f64 = 0;
  for (let i = first; i < first + n; i++) {
    const term = terms + (<usize>i << 4);
    total += load<f64>(term, 8) * (get(load<i32>(term)) * get(load<i32>(term, 4)));
  }
  return total;
}

/** The log-likelihood ratio of this cosine from terms[first..first+n). */
export function calibratedRatio(cosine: f64, first: i32, n: i32): f64 {
  set(1, cosine);
  return sumOf(first, n);
}

/** A sum of the quality from terms[first..first+n). */
export function calibratedQuality(first: i32, n: i32): f64 {
  return sumOf(first, n);
}

/** 0..1 from terms[first..first+n). */
export function calibratedReliability(first: i32, n: i32): f64 {
  return 1 / (1 + Math.exp(-sumOf(first, n)));
}

/** The cosine that impostors exceed at this rate. */
export function impostorCosine(rate: f64, center: f64, spread: f64): f64 {
  return Math.tanh(center - spread * probit(rate));
}

// Acklam's rational approximation of the inverse of the normal distribution: relative error below 1.2e-9.
const edge: f64 = 0.02425;

/** z with P(Z < z) = p, 0 < p < 1. */
function probit(p: f64): f64 {
  if (p < edge) return tail(p);
  if (p > 1 - edge) return -tail(1 - p);
  const q = p - 0.5;
  const r = q * q;
  const above =
    ((((-3.969683028665376e1 * r + 2.209460984245205e2) * r - 2.759285104469687e2) * r + 1.38357751867269e2) * r - 3.066479806614716e1) * r +
    2.506628277459239;
  const below =
    ((((-5.447609879822406e1 * r + 1.615858368580409e2) * r - 1.556989798598866e2) * r + 6.680131188771972e1) * r - 1.328068155288572e1) * r + 1;
  return (q * above) / below;
}

function tail(p: f64): f64 {
  const q = Math.sqrt(-2 * Math.log(p));
  const above =
    ((((-7.784894002430293e-3 * q - 3.223964580411365e-1) * q - 2.400758277161838) * q - 2.549732539343734) * q + 4.374664141464968) * q +
    2.938163982698783;
  const below = (((7.784695709041462e-3 * q + 3.224671290700398e-1) * q + 2.445134137142996) * q + 3.754408661907416) * q + 1;
  return above / below;
}
