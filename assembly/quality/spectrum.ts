/**
 * Average spectra of speech and pauses: power for the signal-to-noise ratio, mel spectrum for the bandwidth.
 * Gets each frame with its voice-activity decision; sums are f64, precise enough for hours of audio.
 */
import { BINS, FRAME } from "../dsp/log-mel";
import { exp4 } from "../math/exponential";
import { log1, log4 } from "../math/logarithm";
import { wadaSnrDb } from "./wada";

/** Samples in the middle of a frame that no other frame shares, and their start. */
const OWN: i32 = 160;
const OWN_AT: i32 = 120;

/** Smallest sample passed to the logarithm: -100 dB. */
const QUIETEST: f32 = 1e-5;
/**
 * Pauses near speech: up to 250 ms after it, and at least as long before it. They alone show the noise under the speech if the others are louder:
 * music on hold, or a street before the door was closed.
 */
const NEAR: i32 = 25;
/** Frames of pauses needed before their power is used. */
const ENOUGH_NOISE: i64 = 20;
const ENOUGH_SPEECH: i64 = 20;
/** The powers of pauses are counted in steps of half a decibel from -110 dB up. The first step is digital silence. */
const STEPS: i32 = 224;
const LOWEST_DB: f32 = -110;
/** Pauses this far above the median are not counted as noise: they may be missed speech, or a door. */
const OUTLIER_STEPS: i32 = 12;
const BEST_DB: f64 = 60;
const WORST_DB: f64 = -20;
/**
 * A bin carries speech if its mean power is a decibel above the pauses' and at most 23 dB below the strongest bin. After pre-emphasis
 * the mean spectrum of wideband speech stays within 16 dB up to 7 kHz; beyond a channel's edge it falls by 25 dB and more.
 */
const ABOVE_NOISE: f64 = 1.26;
const BELOW_PEAK: f64 = 0.005;

/** Over the frame's own samples. */
@unmanaged
export class FrameSums {
  /** Relative to the mean of the whole frame: a constant offset is not noise. */
  power: f32;
  size: f32;
  logs: f32;
}

@unmanaged
export class Spectrum {
  speechFrames: i64;
  noiseFrames: i64;
  speechPower: f64;
  sizes: f64;
  logs: f64;
  samples: i64;
  /** Pauses since the last speech. */
  since: i64;
  // then BINS speech powers, BINS noise powers (f64), and counts of pauses by STEPS (i32): all, those near speech, and the older and the
  // newer of those that are near if speech follows
}

const HEAD: usize = (offsetof<Spectrum>() + 15) & ~15;
const COUNTS: usize = HEAD + BINS * 16;
const COUNTS_BYTES: usize = STEPS * 4;
const NEAR_COUNTS: usize = COUNTS + COUNTS_BYTES;
const OLDER_COUNTS: usize = NEAR_COUNTS + COUNTS_BYTES;
const NEWER_COUNTS: usize = OLDER_COUNTS + COUNTS_BYTES;
export const SPECTRUM_BYTES: i32 = <i32>(NEWER_COUNTS + COUNTS_BYTES);

// @ts-ignore: decorator
@inline
function across(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

/** Sums over a frame's own samples; x points to the frame's first sample. */
export function frameSums(out: FrameSums, x: usize): void {
  const own = x + OWN_AT * 4;
  let sum = f32x4.splat(0);
  for (let n: usize = 0; n < <usize>FRAME * 4; n += 16) sum = f32x4.add(sum, v128.load(x + n));
  const mean = f32x4.splat(across(sum) / <f32>FRAME);
  const quietest = f32x4.splat(QUIETEST);
  let squares = f32x4.splat(0);
  let sizes = f32x4.splat(0);
  let logs = f32x4.splat(0);
  for (let n: usize = 0; n < <usize>OWN * 4; n += 64) {
    // One logarithm of a product serves four samples; they are between 1e-5 and 16, so the product stays in range.
    let product = f32x4.splat(1);
    for (let k: usize = 0; k < 64; k += 16) {
      const y = f32x4.sub(v128.load(own + n + k), mean);
      squares = f32x4.add(squares, f32x4.mul(y, y));
      const size = f32x4.max(f32x4.abs(y), quietest);
      sizes = f32x4.add(sizes, size);
      product = f32x4.mul(product, size);
    }
    logs = f32x4.add(logs, log4(product));
  }
  out.power = across(squares) / <f32>OWN;
  out.size = across(sizes);
  out.logs = across(logs);
}

function accumulate(to: usize, logMel: usize): void {
  for (let m: usize = 0; m < <usize>BINS; m += 4) {
    const power = exp4(v128.load(logMel + m * 4));
    const at = to + m * 8;
    v128.store(at, f64x2.add(v128.load(at), f64x2.promote_low_f32x4(power)));
    const high = i64x2.shuffle(power, power, 1, 1);
    v128.store(at, f64x2.add(v128.load(at, 16), f64x2.promote_low_f32x4(high)), 16);
  }
}

export function spectrumPush(state: usize, sums: FrameSums, logMel: usize, speech: bool, pause: bool): void {
  const s = changetype<Spectrum>(state);
  if (sums.power > 0) {
    s.sizes += <f64>sums.size;
    s.logs += <f64>sums.logs;
    s.samples += OWN;
  }
  if (speech) {
    s.speechFrames++;
    s.speechPower += <f64>sums.power;
    accumulate(state + HEAD, logMel);
    if (s.since > 0) speechFollows(state);
  } else if (pause) {
    s.noiseFrames++;
    const db = <f32>4.3429448 * log1(max<f32>(sums.power, 1e-11));
    const step = max(0, min(STEPS - 1, <i32>((db - LOWEST_DB) * 2)));
    count(state + COUNTS, step);
    if (s.speechFrames > 0 && s.since < NEAR) count(state + NEAR_COUNTS, step);
    else {
      if (s.since % NEAR == 0) {
        memory.copy(state + OLDER_COUNTS, state + NEWER_COUNTS, COUNTS_BYTES);
        memory.fill(state + NEWER_COUNTS, 0, COUNTS_BYTES);
      }
      count(state + NEWER_COUNTS, step);
    }
    s.since++;
    // Digital silence says nothing about the noise under the speech.
    if (step > 0) accumulate(state + HEAD + BINS * 8, logMel);
  }
}

function count(counts: usize, step: i32): void {
  const at = counts + (<usize>step << 2);
  store<u32>(at, load<u32>(at) + 1);
}

/** The last pauses before this speech are near it. */
function speechFollows(state: usize): void {
  for (let i: usize = 0; i < COUNTS_BYTES; i += 4) {
    const near = state + NEAR_COUNTS + i;
    store<u32>(near, load<u32>(near) + load<u32>(state + OLDER_COUNTS + i) + load<u32>(state + NEWER_COUNTS + i));
  }
  memory.fill(state + OLDER_COUNTS, 0, 2 * COUNTS_BYTES);
  changetype<Spectrum>(state).since = 0;
}

/** Pauses that are not digital silence. */
function noisyFrames(state: usize): i64 {
  return changetype<Spectrum>(state).noiseFrames - <i64>load<u32>(state + COUNTS);
}

/** The same of those near speech. */
function nearFrames(state: usize): i64 {
  let frames: i64 = 0;
  for (let i: usize = 4; i < COUNTS_BYTES; i += 4) frames += <i64>load<u32>(state + NEAR_COUNTS + i);
  return frames;
}

/** Mean power of the counted pauses from step `first` up, `frames` of them, without those far above their median. */
function noisePower(counts: usize, first: i32, frames: i64): f64 {
  const half = frames / 2;
  let below: i64 = 0;
  let last = STEPS - 1;
  let sum: f64 = 0;
  for (let i = first; i <= last; i++) {
    const count = <i64>load<u32>(counts + (<usize>i << 2));
    if (below <= half && below + count > half) last = min(last, i + OUTLIER_STEPS);
    below += count;
    sum += <f64>count * Math.pow(10, (<f64>LOWEST_DB + (<f64>i + 0.5) * 0.5) / 10);
  }
  return sum / <f64>below;
}

/**
 * Power of speech over power of pauses, dB within -20..60; NaN without speech. From voice activity if there are pauses
 * (200 ms), otherwise from the amplitude distribution. Mixtures at known SNR of -5..30 dB: median error at most 1.5 dB.
 */
export function snrDb(state: usize): f64 {
  const s = changetype<Spectrum>(state);
  if (s.speechFrames < ENOUGH_SPEECH) return NaN;
  if (s.noiseFrames < ENOUGH_NOISE) return wadaDb(state);
  const near = nearFrames(state);
  const nearDb = near < ENOUGH_NOISE ? WORST_DB : ratioDb(s, noisePower(state + NEAR_COUNTS, 1, near));
  return max(nearDb, pausesDb(state));
}

function pausesDb(state: usize): f64 {
  const s = changetype<Spectrum>(state);
  const noisy = noisyFrames(state);
  if (2 * noisy >= s.noiseFrames || noisy < ENOUGH_NOISE)
    return ratioDb(s, noisePower(state + COUNTS, 0, s.noiseFrames));
  // Most pauses are digital silence, which a recorder, a mute key or a codec put in place of the noise. The other pauses show the noise, unless
  // they are the rests of words that a noise gate let through: then the amplitudes show that there is little.
  return max(ratioDb(s, noisePower(state + COUNTS, 1, noisy)), wadaDb(state));
}

function ratioDb(s: Spectrum, noise: f64): f64 {
  const speech = s.speechPower / <f64>s.speechFrames - noise;
  if (speech <= 0) return WORST_DB;
  return max(WORST_DB, min(BEST_DB, 10 * Math.log10(speech / noise)));
}

/** The second estimate, from the amplitude distribution of all audio; NaN without speech. */
export function wadaDb(state: usize): f64 {
  const s = changetype<Spectrum>(state);
  if (s.speechFrames < ENOUGH_SPEECH || s.samples == 0) return NaN;
  return wadaSnrDb(s.sizes / <f64>s.samples, s.logs / <f64>s.samples);
}

/** The upper edge of the highest bin that carries speech, Hz; NaN without speech. Steps are those of the mel scale: 52 Hz at 1 kHz, 237 at 7 kHz. */
export function bandwidthHz(state: usize): f64 {
  const s = changetype<Spectrum>(state);
  if (s.speechFrames < ENOUGH_SPEECH) return NaN;
  const speech = state + HEAD;
  const noise = speech + BINS * 8;
  let peak: f64 = 0;
  for (let m: usize = 0; m < <usize>BINS; m++) peak = max(peak, load<f64>(speech + m * 8));
  const noisy = noisyFrames(state);
  const noiseScale = noisy >= ENOUGH_NOISE ? <f64>s.speechFrames / <f64>noisy : 0.0;
  for (let m = BINS - 1; m >= 0; m--) {
    const power = load<f64>(speech + (<usize>m << 3));
    if (power < peak * BELOW_PEAK || power < ABOVE_NOISE * noiseScale * load<f64>(noise + (<usize>m << 3))) continue;
    return melEdge(m + 2);
  }
  return NaN;
}

/** Frequency of the front end's mel edge i of 0..81. */
function melEdge(i: i32): f64 {
  const low = 1127.0 * Math.log(1.0 + 20.0 / 700.0);
  const high = 1127.0 * Math.log(1.0 + 8000.0 / 700.0);
  return 700.0 * (Math.exp((low + ((high - low) * <f64>i) / <f64>(BINS + 1)) / 1127.0) - 1.0);
}
