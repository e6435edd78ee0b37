/**
 * Voice activity: a small network on the log-mel frames scores how likely each is speech; hysteresis, hang-over and pre-roll decide.
 *
 *   log-mel 80 ──► dense + ReLU ──► gated recurrent unit ──► dense 1 ──► score (logarithm of the odds)
 *
 * It was trained with Silero as teacher on speech in noise, over telephones and in rooms, and on noise, tones and music without speech
 * (training/vad). `npm run bench:accuracy -- --activity` compares it with Silero on unseen speech. A frame's score comes
 * DELAY frames later, so that the start of a word is judged with what follows.
 */
import { BINS } from "../dsp/log-mel";
import { sigmoid4, tanh4 } from "../math/exponential";
import { ANALYSIS, reserve, reserveVoice } from "../memory";
import { BIASES, HIDDEN, SCALES, WEIGHTS } from "./voice-activity-weights";

/** Frames after which a frame's score is known. */
export const DELAY: i32 = 8;

export const VOICE_ACTIVITY_BYTES: i32 = HIDDEN * 4;

const GATES: i32 = 3 * HIDDEN;
const dense: usize = reserve(HIDDEN * BINS * 4);
const input: usize = reserve(GATES * HIDDEN * 4);
const recurrent: usize = reserve(GATES * HIDDEN * 4);
const normalized: usize = reserveVoice(BINS * 4, ANALYSIS);
const features: usize = reserveVoice(HIDDEN * 4, ANALYSIS);
const fromInput: usize = reserveVoice(GATES * 4, ANALYSIS);
const fromState: usize = reserveVoice(GATES * 4, ANALYSIS);

// BIASES: dense, input, recurrent, the output's weights, the output's bias.
const denseBias: usize = BIASES;
const inputBias: usize = denseBias + HIDDEN * 4;
const recurrentBias: usize = inputBias + GATES * 4;
const outWeights: usize = recurrentBias + GATES * 4;
const outBias: usize = outWeights + HIDDEN * 4;

/** The matrices ship as int8 with one scale per row: dense, input, recurrent. They are stored by columns, to multiply rows in parallel. */
function unpack(to: usize, from: usize, scales: usize, rows: i32, columns: i32): void {
  for (let r = 0; r < rows; r++) {
    const scale = load<f32>(scales + (<usize>r << 2));
    for (let c = 0; c < columns; c++) {
      store<f32>(to + (<usize>(c * rows + r) << 2), <f32>load<i8>(from + <usize>(r * columns + c)) * scale);
    }
  }
}
unpack(dense, WEIGHTS, SCALES, HIDDEN, BINS);
unpack(input, WEIGHTS + HIDDEN * BINS, SCALES + HIDDEN * 4, GATES, HIDDEN);
unpack(recurrent, WEIGHTS + HIDDEN * BINS + GATES * HIDDEN, SCALES + (HIDDEN + GATES) * 4, GATES, HIDDEN);

/** out[d] = W[n,d]ᵀ·x[n] + b[d]. d % 16 == 0. */
function affine(out: usize, x: usize, w: usize, b: usize, n: i32, d: i32): void {
  const row = <usize>d * 4;
  const end = x + <usize>n * 4;
  for (let r: usize = 0; r < row; r += 64) {
    let s0 = v128.load(b + r);
    let s1 = v128.load(b + r, 16);
    let s2 = v128.load(b + r, 32);
    let s3 = v128.load(b + r, 48);
    let column = w + r;
    for (let p = x; p < end; p += 4) {
      const v = v128.load32_splat(p);
      s0 = f32x4.add(s0, f32x4.mul(v, v128.load(column)));
      s1 = f32x4.add(s1, f32x4.mul(v, v128.load(column, 16)));
      s2 = f32x4.add(s2, f32x4.mul(v, v128.load(column, 32)));
      s3 = f32x4.add(s3, f32x4.mul(v, v128.load(column, 48)));
      column += row;
    }
    v128.store(out + r, s0);
    v128.store(out + r, s1, 16);
    v128.store(out + r, s2, 32);
    v128.store(out + r, s3, 48);
  }
}

/** Processes one frame's log-mel[80]; returns the score of the frame DELAY frames before it. `state` is HIDDEN floats. */
export function voiceActivity(state: usize, logMel: usize): f32 {
  for (let m: usize = 0; m < <usize>BINS * 4; m += 16) {
    v128.store(normalized + m, f32x4.mul(f32x4.add(v128.load(logMel + m), f32x4.splat(8)), f32x4.splat(0.25)));
  }
  affine(features, normalized, dense, denseBias, BINS, HIDDEN);
  for (let i: usize = 0; i < <usize>HIDDEN * 4; i += 16) {
    v128.store(features + i, f32x4.max(v128.load(features + i), f32x4.splat(0)));
  }
  affine(fromInput, features, input, inputBias, HIDDEN, GATES);
  affine(fromState, state, recurrent, recurrentBias, HIDDEN, GATES);
  const keepAt: usize = HIDDEN * 4;
  const newAt: usize = HIDDEN * 8;
  let score = f32x4.splat(0);
  for (let i: usize = 0; i < <usize>HIDDEN * 4; i += 16) {
    const reset = sigmoid4(f32x4.add(v128.load(fromInput + i), v128.load(fromState + i)));
    const keep = sigmoid4(f32x4.add(v128.load(fromInput + keepAt + i), v128.load(fromState + keepAt + i)));
    const fresh = tanh4(f32x4.add(v128.load(fromInput + newAt + i), f32x4.mul(reset, v128.load(fromState + newAt + i))));
    // keep·h + (1 - keep)·fresh
    const h = f32x4.add(fresh, f32x4.mul(keep, f32x4.sub(v128.load(state + i), fresh)));
    v128.store(state + i, h);
    score = f32x4.add(score, f32x4.mul(h, v128.load(outWeights + i)));
  }
  return (
    f32x4.extract_lane(score, 0) +
    f32x4.extract_lane(score, 1) +
    (f32x4.extract_lane(score, 2) + f32x4.extract_lane(score, 3)) +
    load<f32>(outBias)
  );
}

/** Score at which speech begins, and below which it ends. */
const BEGIN: f32 = 0.5;
const END: f32 = 0.2;
/** Frames kept after the end and before the beginning; the network itself adds about 80 ms at the end, like its teacher. */
const HANG_OVER: i32 = 1;
export const PRE_ROLL: i32 = 2;
/** Below this score a frame is a pause whose power is noise. */
const PAUSE: f32 = -2;

/** ln of the bins of a quiet line. After digital silence, the network takes faint sounds for speech. */
const QUIET: f32 = -13;
/** The network's state after a second of a quiet line. */
const afterQuiet: usize = reserve(VOICE_ACTIVITY_BYTES);
const quietFrame: usize = reserve(BINS * 4);
for (let m: usize = 0; m < <usize>BINS * 4; m += 4) store<f32>(quietFrame + m, QUIET);
for (let frame = 0; frame < 100; frame++) voiceActivity(afterQuiet, quietFrame);

/**
 * Starts as if a quiet line came before the first sample. From a state of zeros, the network misses up to a second of a recording that
 * begins in the middle of speech.
 */
export function voiceActivityStart(state: usize): void {
  memory.copy(state, afterQuiet, VOICE_ACTIVITY_BYTES);
}

/** Turns scores into decisions; frame numbers are 64 bits wide. */
@unmanaged
export class Activity {
  speaking: bool;
  /** The last frame that was speech or hang-over. */
  lastActive: i64;
  hangOver: i32;
  /** How much lower than BEGIN and END a score may be: speech in a hall resembles speech less. */
  lowered: f32;
}

export function activityStart(a: Activity, lowered: f32): void {
  a.lowered = lowered;
  a.speaking = false;
  a.lastActive = -1000;
  a.hangOver = 0;
}

/** Takes frame t's score; afterwards frame t - PRE_ROLL is decided, see `isSpeech`. */
export function activityPush(a: Activity, t: i64, score: f32): void {
  score += a.lowered;
  if (score >= BEGIN || (a.speaking && score >= END)) {
    a.speaking = true;
    a.hangOver = HANG_OVER;
    a.lastActive = t;
  } else {
    a.speaking = false;
    if (a.hangOver > 0) {
      a.hangOver--;
      a.lastActive = t;
    }
  }
}

/** Whether frame f is speech, once frame f + PRE_ROLL was pushed and before the next one is. */
export function isSpeech(a: Activity, f: i64): bool {
  return a.lastActive >= f;
}

export function isPause(score: f32): bool {
  return score < PAUSE;
}

