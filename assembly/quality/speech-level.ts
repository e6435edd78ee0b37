/**
 * Active speech level, ITU-T P.56 method B, at 16 kHz: an envelope of two 30 ms stages is held against thresholds 6 dB apart;
 * how long it lies above each, with 200 ms of hang-over, gives the activity; the level sought is the one whose threshold lies 15.9 dB
 * below it, found between two thresholds by interpolation. Level in dB relative to overload (a full-scale square wave is 0 dB).
 * Error against the definition: the interpolation's, under 0.1 dB. A constant offset is removed first (a pole at 0.995).
 */
import { reserve } from "../memory";

const THRESHOLDS: i32 = 16;
const HANG_OVER: i32 = 3200;
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
  // then THRESHOLDS counts of active samples, then THRESHOLDS counts of samples since the envelope was above
}

const HEAD: usize = (offsetof<SpeechLevel>() + 15) & ~15;
export const SPEECH_LEVEL_BYTES: i32 = <i32>HEAD + THRESHOLDS * 8;

const limits: usize = reserve(THRESHOLDS * 4);
for (let j = 0; j < THRESHOLDS; j++) store<f32>(limits + (<usize>j << 2), <f32>(1.0 / <f64>(1 << (j + 1))));

export function speechLevelStart(state: usize): void {
  memory.fill(state, 0, SPEECH_LEVEL_BYTES);
  // Nothing was active before the first sample: no hang-over to begin with.
  for (let j = 0; j < THRESHOLDS; j++) store<i32>(state + HEAD + <usize>(THRESHOLDS + j) * 4, HANG_OVER + 1);
}

/** Silence must not decay into subnormal numbers, which are slow. */
// @ts-ignore: decorator
@inline
function settled(x: f64): f64 {
  return abs(x) < 1e-30 ? 0 : x;
}

export function speechLevelPush(state: usize, x: usize, n: i32): void {
  const s = changetype<SpeechLevel>(state);
  let energy = s.energy;
  let stage1 = s.stage1;
  let stage2 = s.stage2;
  let input1 = s.input1;
  let output1 = s.output1;
  const active = state + HEAD;
  const since = active + THRESHOLDS * 4;
  const one = i32x4.splat(1);
  const hang = i32x4.splat(HANG_OVER);
  for (let i = 0; i < n; i++) {
    const input = <f64>load<f32>(x + (<usize>i << 2));
    const y = input - input1 + DC_POLE * output1;
    input1 = input;
    output1 = settled(y);
    energy += y * y;
    stage1 = settled(SMOOTH * stage1 + (1 - SMOOTH) * abs(y));
    stage2 = settled(SMOOTH * stage2 + (1 - SMOOTH) * stage1);
    const envelope = f32x4.splat(<f32>stage2);
    for (let j: usize = 0; j < <usize>THRESHOLDS * 4; j += 16) {
      const above = f32x4.ge(envelope, v128.load(limits + j));
      // Samples since the envelope was last above, kept from overflowing.
      const waited = i32x4.min_s(v128.andnot(i32x4.add(v128.load(since + j), one), above), i32x4.splat(HANG_OVER + 1));
      v128.store(since + j, waited);
      v128.store(active + j, i32x4.sub(v128.load(active + j), i32x4.le_s(waited, hang)));
    }
  }
  s.energy = energy;
  s.stage1 = stage1;
  s.stage2 = stage2;
  s.input1 = input1;
  s.output1 = output1;
}

function decibels(power: f64): f64 {
  return 10 * Math.log10(power);
}

/** The level in dBov, or NaN where nothing was active. */
export function speechLevelDb(state: usize): f64 {
  const s = changetype<SpeechLevel>(state);
  if (!(s.energy > 0)) return NaN;
  let levelBefore: f64 = 0;
  let marginBefore: f64 = 0;
  for (let j = 0; j < THRESHOLDS; j++) {
    const count = load<i32>(state + HEAD + (<usize>j << 2));
    if (count == 0) continue;
    const level = decibels(s.energy / <f64>count);
    const margin = level - 20 * Math.log10(<f64>load<f32>(limits + (<usize>j << 2))) - MARGIN_DB;
    if (margin >= 0) {
      // The thresholds fall, the margin grows: it crosses zero between the last threshold and this one.
      if (marginBefore >= 0 || j == 0) return level;
      const between = -marginBefore / (margin - marginBefore);
      return levelBefore + (level - levelBefore) * between;
    }
    levelBefore = level;
    marginBefore = margin;
  }
  return NaN;
}
