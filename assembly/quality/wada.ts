/**
 * Waveform-amplitude-distribution SNR (Kim and Stern 2008): speech amplitudes are gamma-distributed (shape 0.4), noise is Gaussian, and
 * ln E|z| - E ln|z| of their sum gives the ratio. Needs no pauses. Noise that is not Gaussian causes errors of several dB.
 */

const FIRST_DB: f64 = -20;
const ENTRIES: i32 = 81;
// For -20, -19, … 60 dB, by training/dsp/wada-table.py.
const TABLE: usize = memory.data<f32>([
  0.40946, 0.40949, 0.40952, 0.40958, 0.40967, 0.4098, 0.41, 0.41029, 0.41071, 0.41132, 0.41217, 0.41336, 0.41499, 0.41719, 0.42009,
  0.42386, 0.42868, 0.43472, 0.44215, 0.45115, 0.46186, 0.47439, 0.48882, 0.50518, 0.52345, 0.54358, 0.56546, 0.58896, 0.61391, 0.64011,
  0.66737, 0.69548, 0.72422, 0.75339, 0.78281, 0.8123, 0.8417, 0.87087, 0.89968, 0.92804, 0.95585, 0.98305, 1.00957, 1.03537, 1.06042,
  1.08469, 1.10817, 1.13084, 1.15272, 1.1738, 1.1941, 1.21361, 1.23237, 1.25038, 1.26766, 1.28424, 1.30013, 1.31536, 1.32995, 1.34392,
  1.3573, 1.3701, 1.38234, 1.39406, 1.40526, 1.41597, 1.42622, 1.43601, 1.44537, 1.45432, 1.46287, 1.47104, 1.47885, 1.48631, 1.49344,
  1.50025, 1.50675, 1.51297, 1.5189, 1.52458, 1.52999,
]);

/** From the mean of |x| and the mean of ln|x|; within -20..60 dB. */
export function wadaSnrDb(meanSize: f64, meanLog: f64): f64 {
  const g = Math.log(meanSize) - meanLog;
  let i = 0;
  while (i < ENTRIES && <f64>load<f32>(TABLE + (<usize>i << 2)) < g) i++;
  if (i == 0) return FIRST_DB;
  if (i == ENTRIES) return FIRST_DB + <f64>(ENTRIES - 1);
  const below = <f64>load<f32>(TABLE + (<usize>(i - 1) << 2));
  const above = <f64>load<f32>(TABLE + (<usize>i << 2));
  return FIRST_DB + <f64>(i - 1) + (g - below) / (above - below);
}
