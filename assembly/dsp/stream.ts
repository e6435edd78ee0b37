/**
 * One recording as it arrives: samples at the declared rate become 16 kHz audio, measures, voice activity and windows of features.
 *
 *   push ─► 256-sample blocks ─► saturation ─► resampler ─► speech level ─► log-mel ×4 ─► voice activity ─► decisions
 *                                                                                                 │
 *                              window [frames][bins] ◄── speech and what lies close around it ◄──┤
 *                                            spectrum (SNR, bandwidth)          ◄── all ◄─────────┘
 *
 * The rows of a window are log-mel's 80 bins, or on request the 288 of dsp/detail.ts, or log-mel with a Hamming window; everything else uses
 * log-mel in all cases.
 *
 * Everything works on blocks that begin at multiples of 256 samples and on batches of four frames, so results are bit-identical in any
 * chunking. Nothing is allocated and nothing grows with the length: counters have 64 bits or last for a year.
 *
 * All state is in one block, [streamStatePtr(), + streamStateBytes()): copy it out to save a stream, write it back to continue,
 * so many streams can share one instance. It contains no pointers; it is valid only for the binary that wrote it.
 *
 * How to process a recording:
 *
 *   streamStart(rateHz, windowFrames, limitFrames, rows, lowered)     // 0, or a negative refusal
 *   for each chunk of at most inputCapacity() samples, copied to inputPtr(), no more than is pushed:
 *     for (let at = 0; at < n; ) {
 *       at += streamPush(at, n - at)
 *       if (streamStatus() & WINDOW_FULL) { copy windowFrames() × windowBins() floats from windowPtr(), three doubles from windowTimesPtr(); streamTake() }
 *       if (streamStatus() & LIMIT_REACHED) break
 *     }
 *   streamPeek()                                             // any time: measures and the partial window, the stream continues
 *   streamFinish()                                           // at the end: the same, and the stream is over
 *
 * A window that became full in the last push must be taken before the next push, peek or finish. A peek or finish can itself fill the
 * window: the last window may be up to WINDOW_SLACK frames longer than requested, but there are never two.
 */
import { ANALYSIS, reserve, reserveVoice, wipe } from "../memory";
import { bandwidthHz, FrameSums, frameSums, SPECTRUM_BYTES, snrDb, spectrumPush, wadaDb } from "../quality/spectrum";
import { SPEECH_LEVEL_BYTES, speechLevelDb, speechLevelPush, speechLevelStart } from "../quality/speech-level";
import { audibleSamples, SATURATION_BYTES, saturatedRuns, saturatedSamples, saturationPush } from "../quality/saturation";
import {
  Activity,
  activityPush,
  activityStart,
  DELAY,
  isPause,
  isSpeech,
  PRE_ROLL,
  VOICE_ACTIVITY_BYTES,
  voiceActivity,
  voiceActivityStart,
} from "../quality/voice-activity";
import { DETAIL_BINS, detailOfSpectra } from "./detail";
import { BATCH, BATCH_SAMPLES, BINS, FRAME, hammingSpectra, HOP, logMelOfSpectra, SILENCE, spectra } from "./log-mel";
import { RESAMPLE_BLOCK, RESAMPLE_MOST, RESAMPLER_BYTES, rateIsSupported, resamplerPush, resamplerStart, resamplerWait } from "./resample";

/** Bits of streamStatus(). */
export const WINDOW_FULL: i32 = 1;
export const LIMIT_REACHED: i32 = 2;
export const FINISHED: i32 = 4;

/** Refusals of streamStart(). */
export const BAD_RATE: i32 = -1;
export const BAD_WINDOW: i32 = -2;

/** Kinds of rows in a window. */
export const MEL_ROWS: i32 = 0;
export const DETAIL_ROWS: i32 = 1;
export const HAMMING_ROWS: i32 = 2;

const INPUT: i32 = 16384;
const BLOCK: i32 = RESAMPLE_BLOCK;
const DEFAULT_WINDOW: i32 = 400;
const SHORTEST_WINDOW: i32 = 50;
const LONGEST_WINDOW: i32 = 1000;
const LONGEST_DETAIL_WINDOW: i32 = 400;
const WINDOW_SLACK: i32 = 64;
/**
 * Frames around speech that go into the window too: the pauses between words and their decay belong to a voice, and speech reduced to
 * the bare frames and spliced is recognized worse (training/LOG.md 12).
 */
const CONTEXT: i32 = 30;
/** Frames that wait for their decision, and those that may still become context; more than DELAY + PRE_ROLL + BATCH + CONTEXT. */
const RING: i32 = 48;
/** Log-mel is needed only until the decision; more than DELAY + PRE_ROLL + BATCH. */
const UNDECIDED: i32 = 16;
const MARKS: i32 = 512;
/** Beyond any scale; samples are clamped to it, so that squares and transforms stay finite. */
const LOUDEST: f32 = 8;
/** -240 dB: anything fainter becomes 0. Its products would be subnormal numbers, with which a stream takes many times as long. */
const FAINTEST: f32 = 1e-12;
const ROW: usize = BINS * 4;
const DETAIL_ROW: usize = DETAIL_BINS * 4;
const AUDIO: i32 = BATCH_SAMPLES + RESAMPLE_MOST + 8;

@unmanaged
class Stream {
  rateHz: i32;
  windowFrames: i32;
  status: i32;
  /** Samples in the current, incomplete block. */
  gathered: i32;
  /** 16 kHz samples that wait for their frame. */
  audio: i32;
  /** Frames in the window, and how many of them are speech. */
  collected: i32;
  collectedSpeech: i32;
  /** MEL_ROWS, DETAIL_ROWS or HAMMING_ROWS. */
  rows: i32;
  limitFrames: i64;
  samples: i64;
  invalidSamples: i64;
  /** Number of frames computed, passed to the network, scored, and decided. */
  computed: i64;
  passed: i64;
  scored: i64;
  decided: i64;
  speech: i64;
  /** The next frame to go into a window, and the first that does not, as known so far. */
  next: i64;
  until: i64;
  windowFirst: i64;
  windowLast: i64;
  // In memory, the parts of the stream follow; see below.
}

// @ts-ignore: decorator
@inline
function aligned(bytes: usize): usize {
  return (bytes + 63) & ~63;
}

// The parts of a stream's state, one after the other.
const ACTIVITY: usize = aligned(offsetof<Stream>());
const SATURATION: usize = ACTIVITY + aligned(offsetof<Activity>());
const LEVEL: usize = SATURATION + aligned(SATURATION_BYTES);
const SPECTRUM: usize = LEVEL + aligned(SPEECH_LEVEL_BYTES);
const NETWORK: usize = SPECTRUM + aligned(SPECTRUM_BYTES);
const BLOCK_AT: usize = NETWORK + aligned(VOICE_ACTIVITY_BYTES);
const RESAMPLER: usize = BLOCK_AT + aligned(BLOCK * 4);
const AUDIO_AT: usize = RESAMPLER + aligned(RESAMPLER_BYTES);
const SUMS: usize = AUDIO_AT + aligned(AUDIO * 4);
const SCORES: usize = SUMS + aligned(UNDECIDED * offsetof<FrameSums>());
const MARKS_AT: usize = SCORES + aligned(UNDECIDED * 4);
/** Ring of the rows that may go into the window. */
const ROWS: usize = MARKS_AT + aligned(MARKS);
/** If those are not log-mel, a ring of log-mel follows. The window is last: only its filled part needs to be saved. */
const LOG_MEL: usize = aligned(<usize>UNDECIDED * ROW);
const MEL_WINDOW: usize = ROWS + aligned(<usize>RING * ROW);
const HAMMING_WINDOW: usize = MEL_WINDOW + LOG_MEL;
const DETAIL_WINDOW: usize = ROWS + aligned(<usize>RING * DETAIL_ROW) + LOG_MEL;
const BYTES: usize = max(
  HAMMING_WINDOW + <usize>(LONGEST_WINDOW + WINDOW_SLACK) * ROW,
  DETAIL_WINDOW + <usize>(LONGEST_DETAIL_WINDOW + WINDOW_SLACK) * DETAIL_ROW,
);

// These are large, and a call is saved ten times a second: only the written part is wiped.
const input: usize = reserve(INPUT * 4);
const state: usize = reserve(BYTES);
const aside: usize = reserve(DETAIL_WINDOW);
let inputWritten: usize = 0;
let stateWritten: usize = 0;
const batch: usize = reserveVoice(<usize>BATCH * ROW, ANALYSIS);
const ownBatch: usize = reserveVoice(<usize>BATCH * DETAIL_ROW, ANALYSIS);
const silentFrame: usize = reserve(ROW);
const times: usize = reserveVoice(3 * 8, ANALYSIS);
const measures: usize = reserveVoice(16 * 8, ANALYSIS);
let reported: i32 = 0;

for (let m: usize = 0; m < ROW; m += 4) store<f32>(silentFrame + m, SILENCE);

// @ts-ignore: decorator
@inline
function stream(): Stream {
  return changetype<Stream>(state);
}

// @ts-ignore: decorator
@inline
function isDetailed(): bool {
  return stream().rows == DETAIL_ROWS;
}

/** Offset of the window, and the bytes of its rows. */
function windowAt(): usize {
  const rows = stream().rows;
  return rows == MEL_ROWS ? MEL_WINDOW : rows == DETAIL_ROWS ? DETAIL_WINDOW : HAMMING_WINDOW;
}

function windowRow(): usize {
  return isDetailed() ? DETAIL_ROW : ROW;
}

/** The slot for input samples, f32 in -1..1, and its capacity. */
export function inputPtr(): usize {
  return input;
}

export function inputCapacity(): i32 {
  return INPUT;
}

/** The features of a window, [windowFrames()][windowBins()] f32, before removal of the mean. */
export function windowPtr(): usize {
  return state + windowAt();
}

/** Values in a row of this stream's windows: featureBins() or detailBins(). */
export function windowBins(): i32 {
  return isDetailed() ? DETAIL_BINS : BINS;
}

/** Frames (10 ms each) in the window reported last: by a push that filled it, a peek or a finish. */
export function windowFrames(): i32 {
  return reported;
}

/** The most frames that a window of this stream's rows can have: the network must support it. */
export function windowCapacity(): i32 {
  return (isDetailed() ? LONGEST_DETAIL_WINDOW : LONGEST_WINDOW) + WINDOW_SLACK;
}

/** Values in a row of log-mel. */
export function featureBins(): i32 {
  return BINS;
}

/** Three f64 of the window reported last: seconds of speech in it, start and end in the recording. */
export function windowTimesPtr(): usize {
  return times;
}

/**
 * The measures that the last streamPeek() or streamFinish() wrote, f64 each:
 *   0 rateHz   1 grossSeconds   2 netSpeechSeconds
 *   3 speechLevelDb   4 snrDb   5 second estimate of the SNR (WADA), dB   6 bandwidthHz   (3..6 are valid only as 10 says)
 *   7 saturated runs   8 saturated samples   9 invalid samples (NaN, infinite: treated as 0)
 *   10 bits of the valid measures: 1 speechLevelDb, 2 snrDb, 4 WADA, 8 bandwidthHz   11 samples   12 frames decided   13 frames of speech
 *   14 audible samples
 */
export function measuresPtr(): usize {
  return measures;
}

export function measuresLength(): i32 {
  return 16;
}

export function streamStatePtr(): usize {
  return state;
}

/** Bytes needed to save the stream as it is now. */
export function streamStateBytes(): usize {
  return windowAt() + <usize>stream().collected * windowRow();
}

/** The largest value of streamStateBytes(). */
export function streamStateCapacity(): usize {
  return BYTES;
}

export function streamStatus(): i32 {
  return stream().status;
}

/** Frames of speech decided so far, 10 ms each. */
export function streamSpeechFrames(): f64 {
  return <f64>stream().speech;
}

/** Frames decided so far; frame f begins at f·10 ms. */
export function streamDecidedFrames(): f64 {
  return <f64>stream().decided;
}

/** 1 where frame f was speech, at byte f % marksCapacity(): the newest decisions. */
export function marksPtr(): usize {
  return state + MARKS_AT;
}

export function marksCapacity(): i32 {
  return MARKS;
}

/**
 * Starts a stream. windowFrames: 50..1000 (..400 for DETAIL_ROWS), or 0 for 400 (4 s). limitFrames: net speech after which nothing more is
 * read, 0 for no limit. rows: MEL_ROWS, DETAIL_ROWS or HAMMING_ROWS. lowered: by how much the voice-activity thresholds are lowered, 0 or more.
 * Returns 0, BAD_RATE (not 4,000..192,000 Hz) or BAD_WINDOW; on a refusal the previous stream is unchanged.
 */
export function streamStart(rateHz: i32, windowFrames: i32, limitFrames: i32, rows: i32, lowered: f32): i32 {
  if (!rateIsSupported(rateHz)) return BAD_RATE;
  if (rows != MEL_ROWS && rows != DETAIL_ROWS && rows != HAMMING_ROWS) return BAD_WINDOW;
  if (windowFrames == 0) windowFrames = DEFAULT_WINDOW;
  const longest = rows == DETAIL_ROWS ? LONGEST_DETAIL_WINDOW : LONGEST_WINDOW;
  if (windowFrames < SHORTEST_WINDOW || windowFrames > longest || limitFrames < 0) return BAD_WINDOW;
  wipeState();
  const s = stream();
  s.rateHz = rateHz;
  s.windowFrames = windowFrames;
  s.rows = rows;
  s.limitFrames = limitFrames == 0 ? i64.MAX_VALUE : <i64>limitFrames;
  resamplerStart(state + RESAMPLER, rateHz);
  speechLevelStart(state + LEVEL);
  voiceActivityStart(state + NETWORK);
  activityStart(changetype<Activity>(state + ACTIVITY), lowered >= 0 ? lowered : 0);
  reported = 0;
  return 0;
}

/** Wipes the stream, the input and everything reported: no voice stays in memory. */
export function streamWipe(): void {
  wipe(ANALYSIS);
  wipeState();
  memory.fill(input, 0, inputWritten);
  inputWritten = 0;
  stream().status = FINISHED;
  reported = 0;
}

/** Notes how far the stream writes: another one that is written back over it may take less room. */
function noteWritten(): void {
  stateWritten = max(stateWritten, min(BYTES, streamStateBytes()));
}

/** Clears what the current stream and those before it have written. */
function wipeState(): void {
  noteWritten();
  memory.fill(state, 0, stateWritten);
  stateWritten = 0;
}

/**
 * Reads n samples of the input slot from index `at` on; returns how many were taken. Fewer than n: a window is full or the limit is
 * reached, see streamStatus(). None are taken while a window waits, or after the end.
 */
export function streamPush(at: i32, n: i32): i32 {
  return streamPushUntil(at, n, f64.MAX_VALUE);
}

/**
 * Like streamPush, but stops at the end of the block in which the given number of speech frames is reached. Blocks do not depend on the
 * chunking, so neither does the result at that point.
 */
export function streamPushUntil(at: i32, n: i32, speechFrames: f64): i32 {
  at = max(0, min(at, INPUT));
  n = max(0, min(n, INPUT - at));
  inputWritten = max(inputWritten, <usize>(at + n) * 4);
  const s = stream();
  let taken = 0;
  noteWritten();
  pump(false);
  while (taken < n && s.status == 0 && <f64>s.speech < speechFrames) {
    const part = min(n - taken, BLOCK - s.gathered);
    memory.copy(state + BLOCK_AT + <usize>s.gathered * 4, input + <usize>(at + taken) * 4, <usize>part * 4);
    s.gathered += part;
    taken += part;
    if (s.gathered == BLOCK) {
      pushBlock(BLOCK);
      pump(false);
    }
  }
  if (s.status & WINDOW_FULL) report();
  return taken;
}

/** Confirms that the full window was copied: the next one begins. */
export function streamTake(): void {
  const s = stream();
  if (!(s.status & WINDOW_FULL)) return;
  s.status &= ~WINDOW_FULL;
  s.collected = 0;
  s.collectedSpeech = 0;
}

/** Measures and partial window as if the recording ended here; the stream continues unchanged. Returns the window's frames. */
export function streamPeek(): i32 {
  const kept = windowAt();
  memory.copy(aside, state, kept);
  conclude();
  // Frames added by the end are after the window's own; they stay there until the next push.
  memory.copy(state, aside, kept);
  memory.fill(aside, 0, kept);
  return reported;
}

/** Ends the recording: measures and last window. Returns the window's frames. */
export function streamFinish(): i32 {
  conclude();
  stream().status |= FINISHED;
  return reported;
}

/** Passes the collected samples to the measures and the resampler. */
function pushBlock(n: i32): void {
  const s = stream();
  const block = state + BLOCK_AT;
  // Values after the last block's samples are read too, and must not count.
  memory.fill(block + <usize>n * 4, 0, <usize>(BLOCK - n) * 4);
  for (let four = block; four < block + <usize>n * 4; four += 16) {
    const x = v128.load(four);
    const size = f32x4.abs(x);
    v128.store(four, v128.andnot(x, f32x4.lt(size, f32x4.splat(FAINTEST))));
    if (!i32x4.all_true(f32x4.le(size, f32x4.splat(LOUDEST)))) repair(four);
  }
  saturationPush(state + SATURATION, block, n, s.rateHz);
  s.samples += n;
  s.gathered = 0;
  resample(block, n);
}

/** Four samples, at least one of which is NaN, infinite, or beyond any scale. */
function repair(four: usize): void {
  for (let i: usize = 0; i < 16; i += 4) {
    const x = load<f32>(four + i);
    if (abs(x) <= LOUDEST) continue;
    if (!isFinite(x)) {
      stream().invalidSamples++;
      store<f32>(four + i, 0);
    } else store<f32>(four + i, x > 0 ? LOUDEST : -LOUDEST);
  }
}

function resample(x: usize, n: i32): void {
  const s = stream();
  const to = state + AUDIO_AT + <usize>s.audio * 4;
  const made = resamplerPush(state + RESAMPLER, to, x, n);
  speechLevelPush(state + LEVEL, to, made);
  s.audio += made;
}

/** Moves everything forward: first the window, then decisions, scores, features, until a window is full or nothing is left. */
function pump(ending: bool): void {
  const s = stream();
  const stops = ending ? LIMIT_REACHED : WINDOW_FULL | LIMIT_REACHED | FINISHED;
  while (!(s.status & stops)) {
    if (s.next < min(s.until, s.decided)) collect();
    else if (s.speech >= s.limitFrames) s.status |= LIMIT_REACHED;
    else if (s.decided < s.scored - PRE_ROLL) decide();
    else if (s.passed < s.computed) scoreNext(logMelOf(s.passed));
    else if (s.audio >= BATCH_SAMPLES) features(BATCH);
    else return;
  }
}

/** Features of the next frames; drops audio that no later frame needs. */
function features(frames: i32): void {
  const s = stream();
  const audio = state + AUDIO_AT;
  const row = windowRow();
  const own = s.rows != MEL_ROWS;
  spectra(audio);
  logMelOfSpectra(batch);
  if (s.rows == DETAIL_ROWS) detailOfSpectra(ownBatch);
  if (s.rows == HAMMING_ROWS) {
    hammingSpectra(audio);
    logMelOfSpectra(ownBatch);
  }
  for (let f = 0; f < frames; f++) {
    const frame = s.computed + f;
    memory.copy(logMelOf(frame), batch + <usize>f * ROW, ROW);
    if (own) memory.copy(rowOf(frame), ownBatch + <usize>f * row, row);
    frameSums(sumsOf(frame), audio + <usize>(f * HOP * 4));
  }
  s.computed += frames;
  const used = min(frames * HOP, s.audio);
  memory.copy(audio, audio + <usize>used * 4, <usize>(s.audio - used) * 4);
  s.audio -= used;
}

function logMelOf(frame: i64): usize {
  if (stream().rows == MEL_ROWS) return rowOf(frame);
  return state + windowAt() - LOG_MEL + <usize>(frame & (UNDECIDED - 1)) * ROW;
}

function sumsOf(frame: i64): FrameSums {
  return changetype<FrameSums>(state + SUMS + <usize>(frame & (UNDECIDED - 1)) * offsetof<FrameSums>());
}

function scoreOf(frame: i64): usize {
  return state + SCORES + (<usize>(frame & (UNDECIDED - 1)) << 2);
}

/** The source of a frame's row in the window. */
function rowOf(frame: i64): usize {
  return state + ROWS + <usize>(frame % RING) * windowRow();
}

/** Passes the next frame to the network, which scores the frame DELAY before it. */
function scoreNext(logMel: usize): void {
  const s = stream();
  const score = voiceActivity(state + NETWORK, logMel);
  s.passed++;
  if (s.passed <= DELAY) return;
  store<f32>(scoreOf(s.scored), score);
  activityPush(changetype<Activity>(state + ACTIVITY), s.scored, score);
  s.scored++;
}

function decide(): void {
  const s = stream();
  const frame = s.decided;
  const speech = isSpeech(changetype<Activity>(state + ACTIVITY), frame);
  const pause = isPause(load<f32>(scoreOf(frame)));
  spectrumPush(state + SPECTRUM, sumsOf(frame), logMelOf(frame), speech, pause);
  store<u8>(state + MARKS_AT + <usize>(frame & (MARKS - 1)), speech ? 1 : 0);
  s.decided++;
  if (!speech) return;
  s.speech++;
  s.next = max(s.next, frame - CONTEXT);
  s.until = frame + 1 + CONTEXT;
}

/** Adds the next frame to the window. */
function collect(): void {
  const s = stream();
  const frame = s.next++;
  if (s.collected == 0) s.windowFirst = frame;
  s.windowLast = frame;
  s.collectedSpeech += load<u8>(state + MARKS_AT + <usize>(frame & (MARKS - 1)));
  if (s.collected < windowCapacity()) {
    const row = windowRow();
    memory.copy(windowPtr() + <usize>s.collected * row, rowOf(frame), row);
    s.collected++;
    noteWritten();
  }
  if (s.collected == s.windowFrames) s.status |= WINDOW_FULL;
}

/** Ends a recording: processes the tail, scores the last frames as if silence followed, and reports. */
function conclude(): void {
  const s = stream();
  noteWritten();
  if (s.status & (LIMIT_REACHED | FINISHED)) {
    report();
    measure();
    return;
  }
  // There is room for the audio of one block, which must be processed before the next.
  if (s.gathered > 0) {
    pushBlock(s.gathered);
    pump(true);
  }
  // Zeros after the last sample, for the second half of the filter.
  const block = state + BLOCK_AT;
  memory.fill(block, 0, BLOCK * 4);
  for (let wait = resamplerWait(state + RESAMPLER); wait > 0 && !(s.status & LIMIT_REACHED); wait -= BLOCK) {
    const zeros = min(wait, BLOCK);
    resample(block, zeros);
    pump(true);
  }
  pump(true);
  const frames = s.audio < FRAME || s.status & LIMIT_REACHED ? 0 : (s.audio - FRAME) / HOP + 1;
  if (frames > 0) {
    memory.fill(state + AUDIO_AT + <usize>s.audio * 4, 0, <usize>max(0, BATCH_SAMPLES - s.audio) * 4);
    features(frames);
  }
  pump(true);
  // The network gets silence after the last frame.
  while (s.scored < s.computed && !(s.status & LIMIT_REACHED)) {
    scoreNext(silentFrame);
    pump(true);
  }
  // No later score can turn the last frames into speech.
  while (s.decided < s.computed && !(s.status & LIMIT_REACHED)) {
    decide();
    pump(true);
  }
  report();
  measure();
}

function report(): void {
  const s = stream();
  reported = s.collected;
  store<f64>(times, <f64>s.collectedSpeech * 0.01);
  store<f64>(times, s.collected > 0 ? <f64>s.windowFirst * 0.01 : 0, 8);
  store<f64>(times, s.collected > 0 ? <f64>s.windowLast * 0.01 + 0.025 : 0, 16);
}

function put(index: usize, value: f64, bit: i32): i32 {
  const there = isFinite(value);
  store<f64>(measures + (index << 3), there ? value : 0);
  return there ? bit : 0;
}

function measure(): void {
  const s = stream();
  const saturation = state + SATURATION;
  put(0, <f64>s.rateHz, 0);
  put(1, s.rateHz > 0 ? <f64>s.samples / <f64>s.rateHz : 0, 0);
  put(2, <f64>s.speech * 0.01, 0);
  const spoke = s.speech > 0;
  let bits = put(3, spoke ? speechLevelDb(state + LEVEL) : NaN, 1);
  bits |= put(4, spoke ? snrDb(state + SPECTRUM) : NaN, 2);
  bits |= put(5, spoke ? wadaDb(state + SPECTRUM) : NaN, 4);
  bits |= put(6, spoke ? bandwidthHz(state + SPECTRUM) : NaN, 8);
  put(7, <f64>saturatedRuns(saturation), 0);
  put(8, <f64>saturatedSamples(saturation), 0);
  put(9, <f64>s.invalidSamples, 0);
  put(10, <f64>bits, 0);
  put(11, <f64>s.samples, 0);
  put(12, <f64>s.decided, 0);
  put(13, <f64>s.speech, 0);
  put(14, <f64>audibleSamples(saturation), 0);
}
