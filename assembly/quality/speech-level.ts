/**
 * Active speech level, ITU-T P.56 method B, at 16 kHz: an envelope of two 30 ms stages is compared with thresholds 6 dB apart;
 * the time above each, with 200 ms of hang-over, gives the activity; the result is the level whose threshold is 15.9 dB
 * below it, interpolated between two thresholds. Level in dB relative to overload (a full-scale square wave is 0 dB).
 * Within 0.05 dB of ITU-T G.191's actlevel. A constant offset is removed first (a pole at 0.995).
 */

/** Thresholds 2^-1 … 2^-16; level l of 1..16 is an envelope of at least 2^(l-17), level 0 is below all. */
const THRESHOLDS: i32 = 16;
const HANG_OVER: i64 = 3200;
const MARGIN_DB: f64 = 15.9;
/** exp(-1 / (16,000 · 0.03)) */
const SMOOTH: f64 = 0.9979188345774587;
const DC_POLE: f64 = 0.995;

@unmanaged
export class SpeechLevel {
  energy: f64;
  stage1: f64;
  stage2: f64;
  input1: f64;
  output1: f64;
  samples: i64;
  /** The highest level of the last 200 ms. */
  held: i64;
  // then for each level: samples during which it was the highest of the last 200 ms, and the number of the last sample that reached it
}

const HEAD: usize = (offsetof<SpeechLevel>() + 15) & ~15;
export const SPEECH_LEVEL_BYTES: i32 = <i32>HEAD + (THRESHOLDS + 1) * 16;

export function speechLevelStart(state: usize): void {
  memory.fill(state, 0, SPEECH_LEVEL_BYTES);
  // Nothing was active before the first sample, so there is no hang-over at the start.
  for (let l = 0; l <= THRESHOLDS; l++) store<i64>(state + HEAD + (<usize>l << 4), -HANG_OVER - 1, 8);
}

/** Added to every sample, so that silence does not decay into subnormal numbers, which are slow. */
const FAINT: f64 = 1e-30;

export function speechLevelPush(state: usize, x: usize, n: i32): void {
  const s = changetype<SpeechLevel>(state);
  let energy = s.energy;
  let stage1 = s.stage1;
  let stage2 = s.stage2;
  let input1 = s.input1;
  let output1 = s.output1;
  let now = s.samples;
  let held = <usize>s.held;
  const levels = state + HEAD;
  for (let i = 0; i < n; i++) {
    const input = <f64>load<f32>(x + (<usize>i << 2));
    const y = input - input1 + FAINT + DC_POLE * output1;
    input1 = input;
    output1 = y;
    energy += y * y;
    stage1 = SMOOTH * stage1 + (1 - SMOOTH) * abs(y);
    stage2 = SMOOTH * stage2 + (1 - SMOOTH) * stage1;
    const exponent = <i32>((reinterpret<i64>(stage2) >> 52) & 0x7ff) - 1023;
    const level = <usize>max(0, min(THRESHOLDS, exponent + 17));
    store<i64>(levels + (level << 4), now, 8);
    if (level >= held) held = level;
    else while (now - load<i64>(levels + (held << 4), 8) > HANG_OVER) held--;
    store<i64>(levels + (held << 4), load<i64>(levels + (held << 4)) + 1);
    now++;
  }
  s.samples = now;
  s.held = held;
  s.energy = energy;
  s.stage1 = stage1;
  s.stage2 = stage2;
  s.input1 = input1;
  s.output1 = output1;
}

/** The level in dBov, or NaN if nothing was active. */
export function speechLevelDb(state: usize): f64 {
  const s = changetype<SpeechLevel>(state);
  let active: i64 = 0;
  for (let l = THRESHOLDS; l > 0; l--) active += activeAt(state, l);
  let levelBefore: f64 = NaN;
  let marginBefore: f64 = 0;
  // From below: of a short loud sound in a long recording, the energy of all other sounds would make an impossible level.
  for (let l = 1; l <= THRESHOLDS && active > 0; l++) {
    const level = 10 * Math.log10(s.energy / <f64>active);
    const margin = level - 20 * Math.log10(2) * <f64>(l - 17) - MARGIN_DB;
    if (margin <= 0) return levelBefore + (level - levelBefore) * (marginBefore / (marginBefore - margin));
    levelBefore = level;
    marginBefore = margin;
    active -= activeAt(state, l);
  }
  return levelBefore;
}

/** Samples during which `l` was the highest level of the last 200 ms. */
function activeAt(state: usize, l: i32): i64 {
  return load<i64>(state + HEAD + (<usize>l << 4));
}
