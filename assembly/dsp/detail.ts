/**
 * Features for the detection of synthetic speech, log-mel and what it hides: per frame 288 values, natural logarithms of power, floored like log-mel.
 *
 *   0 ..  79   80 bands of equal width, 20 to 8,000 Hz, of the frame's power spectrum: the upper half in as much detail as the lower
 *  80 .. 207   4 columns × 32 bins: the middle of the frame again as four short frames, which show single glottal pulses
 * 208 .. 287   log-mel
 *
 *   frame    |<---------------------- 400 ---------------------->|
 *   columns  |<-- 100 -->|<-- 64 -->|
 *            |                |<-- 64 -->|        every 40 samples
 *
 * A column is 4 ms of the pre-emphasized audio under a symmetric Hann window: the power of bins 1..32 of its 64-point transform, 250 Hz
 * each. Four frames at once, one per lane. Against f64: amplitudes of a column within 5e-7 of the sum of its windowed magnitudes.
 */
import { ANALYSIS, reserve, reserveVoice } from "../memory";
import { createFilterBank, filterLogs } from "./filter-bank";
import { storeColumns, storeLogs } from "./lanes";
import { BATCH, BATCH_SAMPLES, BINS, emphasized, HOP, logMelFrames, logMelOfSpectra, power, POWER_GAIN, spectra } from "./log-mel";

const COLUMNS: i32 = 4;
const COLUMN_BINS: i32 = 32;
/** Samples per column, from column to column, and before the first column. */
const LENGTH: i32 = 64;
const COLUMN_HOP: i32 = 40;
const LEAD: i32 = 100;

export const DETAIL_BINS: i32 = BINS + COLUMNS * COLUMN_BINS + BINS;
const ROW: usize = DETAIL_BINS * 4;

const bands = createFilterBank((hz: f64) => hz, 1.0 / POWER_GAIN);
const window: usize = reserve(LENGTH * 4);
const turns: usize = reserve(17 * 32 * 8); // cosine and sine of each frequency 0..16 at the samples 1..32
const samples: usize = reserveVoice(LENGTH * 16, ANALYSIS);
const folded: usize = reserveVoice(32 * 32, ANALYSIS); // for the samples 1..32: sum and difference of two samples symmetric about the middle
const powers: usize = reserveVoice((COLUMN_BINS + 1) * 16, ANALYSIS); // the first is the constant part, which is not output
const tail: usize = reserveVoice(BATCH_SAMPLES * 4, ANALYSIS);
const tailRows: usize = reserveVoice(<usize>BATCH * ROW, ANALYSIS);

function makeTables(): void {
  for (let n = 0; n < LENGTH; n++) {
    store<f32>(window + (<usize>n << 2), <f32>(0.5 - 0.5 * Math.cos((2.0 * Math.PI * <f64>n) / <f64>(LENGTH - 1))));
  }
  let at = turns;
  for (let k = 0; k <= 16; k++) {
    for (let n = 1; n <= 32; n++, at += 8) {
      const angle = (2.0 * Math.PI * <f64>((n * k) % LENGTH)) / <f64>LENGTH;
      store<f32>(at, <f32>Math.cos(angle));
      store<f32>(at, <f32>Math.sin(angle), 4);
    }
  }
}
makeTables();

/** One column of four frames, windowed and folded about sample 32; e points at its first sample in the first frame. */
function fold(e: usize): void {
  const weights = window;
  let to = samples;
  let n: usize = 0;
  do {
    const w = v128.load(weights + n);
    const a = f32x4.mul(v128.load(e + n), w);
    const b = f32x4.mul(v128.load(e + n, HOP * 4), w);
    const c = f32x4.mul(v128.load(e + n, HOP * 8), w);
    const d = f32x4.mul(v128.load(e + n, HOP * 12), w);
    storeColumns(to, 16, a, b, c, d);
    to += 64;
    n += 16;
  } while (n < <usize>LENGTH * 4);
  // Sample 0 is zero under the window; sample 32 has no counterpart.
  let up = samples + 16;
  let down = samples + (LENGTH - 1) * 16;
  to = folded;
  do {
    const x = v128.load(up);
    const y = v128.load(down);
    v128.store(to, f32x4.add(x, y));
    v128.store(to, f32x4.sub(x, y), 16);
    up += 16;
    down -= 16;
    to += 32;
  } while (up < down);
  v128.store(to, v128.load(up));
  v128.store(to, f32x4.splat(0), 16);
}

/** The power of bins 0..32. Bin 32 - k has the twiddles of bin k with the sign flipped at every second sample: one pass gives both. */
function transform(): void {
  let turn = turns;
  let low = powers;
  let high = low + COLUMN_BINS * 16;
  do {
    let oddRe = f32x4.splat(0);
    let oddIm = f32x4.splat(0);
    let evenRe = f32x4.splat(0);
    let evenIm = f32x4.splat(0);
    let p = folded;
    const past = p + 32 * 32;
    do {
      oddRe = f32x4.add(oddRe, f32x4.mul(v128.load(p), v128.load32_splat(turn)));
      oddIm = f32x4.add(oddIm, f32x4.mul(v128.load(p, 16), v128.load32_splat(turn, 4)));
      evenRe = f32x4.add(evenRe, f32x4.mul(v128.load(p, 32), v128.load32_splat(turn, 8)));
      evenIm = f32x4.add(evenIm, f32x4.mul(v128.load(p, 48), v128.load32_splat(turn, 12)));
      p += 64;
      turn += 16;
    } while (p < past);
    let re = f32x4.sub(evenRe, oddRe);
    let im = f32x4.sub(evenIm, oddIm);
    v128.store(high, f32x4.add(f32x4.mul(re, re), f32x4.mul(im, im)));
    re = f32x4.add(evenRe, oddRe);
    im = f32x4.add(evenIm, oddIm);
    v128.store(low, f32x4.add(f32x4.mul(re, re), f32x4.mul(im, im)));
    low += 16;
    high -= 16;
  } while (low <= high);
}

/** out[4][288] of the four frames whose spectra were computed last. */
export function detailOfSpectra(out: usize): void {
  filterLogs(bands, out, ROW, power);
  for (let column = 0; column < COLUMNS; column++) {
    fold(emphasized + (<usize>(LEAD + column * COLUMN_HOP) << 2));
    transform();
    storeLogs(out + (<usize>(BINS + column * COLUMN_BINS) << 2), ROW, powers + 16, COLUMN_BINS);
  }
  logMelOfSpectra(out + (<usize>(BINS + COLUMNS * COLUMN_BINS) << 2), ROW);
}

export function detailBins(): i32 {
  return DETAIL_BINS;
}

/** out[frames][288] of x[samples] at 16 kHz; returns frames, the same number as log-mel. Bit-identical to the stream. */
export function detail(out: usize, x: usize, samples: i32): i32 {
  const frames = logMelFrames(samples);
  let f = 0;
  for (; f + BATCH <= frames; f += BATCH) {
    spectra(x + <usize>(f * HOP * 4));
    detailOfSpectra(out + <usize>f * ROW);
  }
  if (f < frames) {
    const rest = min(samples - f * HOP, BATCH_SAMPLES);
    memory.copy(tail, x + <usize>(f * HOP * 4), <usize>rest * 4);
    memory.fill(tail + <usize>rest * 4, 0, <usize>(BATCH_SAMPLES - rest) * 4);
    spectra(tail);
    detailOfSpectra(tailRows);
    memory.copy(out + <usize>f * ROW, tailRows, <usize>(frames - f) * ROW);
  }
  return frames;
}
