/**
 * Kaldi's log-mel filter bank: 25 ms frames every 10 ms at 16 kHz, no padding at the edges ("snip_edges"), mean removed per frame,
 * pre-emphasis 0.97, Povey or Hamming window, 512-point FFT, 80 triangles from 20 to 8,000 Hz on the mel scale, natural logarithm of the
 * power, floored. Samples in -1..1. Four frames at once, one per lane.
 *
 * Voice activity, measures and attack networks use the Povey window; a speaker network uses the window it was trained with.
 *
 *   samples  |<------------- 880 = 400 + 3·160 ------------->|
 *   frame 0  |<------ 400 ------>|
 *   frame 1       |<------ 400 ------>|
 *   frame 2            |<------ 400 ------>|
 *   frame 3                 |<------ 400 ------>|
 *
 * Against kaldi-native-fbank: at most 2e-4 in the logarithm where a bin is above the floor (f32 on both sides).
 */
import { ANALYSIS, reserve, reserveVoice } from "../memory";
import { BINS, createFilterBank, FFT, filterLogs } from "./filter-bank";
import { storeColumns } from "./lanes";

export { BINS };
export const FRAME: i32 = 400;
export const HOP: i32 = 160;
/** Frames computed at once, and the samples they span. */
export const BATCH: i32 = 4;
export const BATCH_SAMPLES: i32 = FRAME + (BATCH - 1) * HOP;
/** ln of the smallest bin: the value for silence. */
export const SILENCE: f32 = -15.942385;

/** The powers below are this many times the true ones: the split of the transform leaves out two halvings. */
export const POWER_GAIN: f64 = 4;

const EMPHASIS: f32 = 0.97;

const work: usize = reserveVoice(256 * 32, ANALYSIS); // 256 complex values, real and imaginary vector side by side
/** Results of spectra(): the powers of four frames, a vector per frequency, and the batch's samples after pre-emphasis (except the first). */
export const power: usize = reserveVoice(257 * 16, ANALYSIS);
export const emphasized: usize = reserveVoice(BATCH_SAMPLES * 4, ANALYSIS);
const tail: usize = reserveVoice(BATCH_SAMPLES * 4, ANALYSIS);
const tailMels: usize = reserveVoice(BATCH * BINS * 4, ANALYSIS);

const povey: usize = reserve(FRAME * 4);
const hamming: usize = reserve(FRAME * 4);
const twiddles: usize = reserve((64 + 16 + 4) * 24); // per butterfly: w, w², w³
const splits: usize = reserve(128 * 8);
const order: usize = reserve(256 * 4); // byte offset in `work` of each frequency: base-4 digit reversal

function mel(hz: f64): f64 {
  return 1127.0 * Math.log(1.0 + hz / 700.0);
}
const bank = createFilterBank(mel, 1.0 / POWER_GAIN);

function makeTables(): void {
  for (let i = 0; i < FRAME; i++) {
    const turn = Math.cos((2.0 * Math.PI * <f64>i) / <f64>(FRAME - 1));
    store<f32>(povey + (<usize>i << 2), <f32>Math.pow(0.5 - 0.5 * turn, 0.85));
    store<f32>(hamming + (<usize>i << 2), <f32>(0.54 - 0.46 * turn));
  }
  let at = twiddles;
  for (let quarter = 64; quarter >= 4; quarter >>= 2) {
    for (let j = 0; j < quarter; j++) {
      for (let k = 1; k <= 3; k++) {
        const angle = (-2.0 * Math.PI * <f64>(j * k)) / <f64>(4 * quarter);
        store<f32>(at, <f32>Math.cos(angle));
        store<f32>(at + 4, <f32>Math.sin(angle));
        at += 8;
      }
    }
  }
  for (let k = 0; k < 128; k++) {
    const angle = (-2.0 * Math.PI * <f64>k) / <f64>FFT;
    store<f32>(splits + (<usize>k << 3), <f32>Math.cos(angle));
    store<f32>(splits + (<usize>k << 3), <f32>Math.sin(angle), 4);
  }
  for (let k = 0; k < 256; k++) {
    const reversed = ((k & 3) << 6) | ((k & 12) << 2) | ((k & 48) >> 2) | (k >> 6);
    store<u32>(order + (<usize>k << 2), reversed * 32);
  }
}
makeTables();

/** One radix-4 butterfly (decimation in frequency) of complex vectors `stride` bytes apart, times w, w², w³. */
// @ts-ignore: decorator
@inline
function butterfly(p: usize, stride: usize, w: usize): void {
  const p1 = p + stride;
  const p2 = p1 + stride;
  const p3 = p2 + stride;
  const ar = v128.load(p);
  const ai = v128.load(p, 16);
  const br = v128.load(p1);
  const bi = v128.load(p1, 16);
  const cr = v128.load(p2);
  const ci = v128.load(p2, 16);
  const dr = v128.load(p3);
  const di = v128.load(p3, 16);
  const t0r = f32x4.add(ar, cr);
  const t0i = f32x4.add(ai, ci);
  const t1r = f32x4.sub(ar, cr);
  const t1i = f32x4.sub(ai, ci);
  const t2r = f32x4.add(br, dr);
  const t2i = f32x4.add(bi, di);
  const t3r = f32x4.sub(bi, di); // -i (b - d)
  const t3i = f32x4.sub(dr, br);
  v128.store(p, f32x4.add(t0r, t2r));
  v128.store(p, f32x4.add(t0i, t2i), 16);
  rotate(p1, f32x4.add(t1r, t3r), f32x4.add(t1i, t3i), w);
  rotate(p2, f32x4.sub(t0r, t2r), f32x4.sub(t0i, t2i), w + 8);
  rotate(p3, f32x4.sub(t1r, t3r), f32x4.sub(t1i, t3i), w + 16);
}

/** The same with a zero fourth input: the frame ends before it. */
// @ts-ignore: decorator
@inline
function butterflyOfThree(p: usize, stride: usize, w: usize): void {
  const p1 = p + stride;
  const p2 = p1 + stride;
  const p3 = p2 + stride;
  const ar = v128.load(p);
  const ai = v128.load(p, 16);
  const br = v128.load(p1);
  const bi = v128.load(p1, 16);
  const cr = v128.load(p2);
  const ci = v128.load(p2, 16);
  const t0r = f32x4.add(ar, cr);
  const t0i = f32x4.add(ai, ci);
  const t1r = f32x4.sub(ar, cr);
  const t1i = f32x4.sub(ai, ci);
  v128.store(p, f32x4.add(t0r, br));
  v128.store(p, f32x4.add(t0i, bi), 16);
  rotate(p1, f32x4.add(t1r, bi), f32x4.sub(t1i, br), w);
  rotate(p2, f32x4.sub(t0r, br), f32x4.sub(t0i, bi), w + 8);
  rotate(p3, f32x4.sub(t1r, bi), f32x4.add(t1i, br), w + 16);
}

// @ts-ignore: decorator
@inline
function rotate(to: usize, re: v128, im: v128, w: usize): void {
  const wr = v128.load32_splat(w);
  const wi = v128.load32_splat(w, 4);
  v128.store(to, f32x4.sub(f32x4.mul(re, wr), f32x4.mul(im, wi)));
  v128.store(to, f32x4.add(f32x4.mul(re, wi), f32x4.mul(im, wr)), 16);
}

/** The last stage: adjacent values, no rotation. */
// @ts-ignore: decorator
@inline
function lastButterfly(p: usize): void {
  const ar = v128.load(p);
  const ai = v128.load(p, 16);
  const br = v128.load(p, 32);
  const bi = v128.load(p, 48);
  const cr = v128.load(p, 64);
  const ci = v128.load(p, 80);
  const dr = v128.load(p, 96);
  const di = v128.load(p, 112);
  const t0r = f32x4.add(ar, cr);
  const t0i = f32x4.add(ai, ci);
  const t1r = f32x4.sub(ar, cr);
  const t1i = f32x4.sub(ai, ci);
  const t2r = f32x4.add(br, dr);
  const t2i = f32x4.add(bi, di);
  const t3r = f32x4.sub(bi, di);
  const t3i = f32x4.sub(dr, br);
  v128.store(p, f32x4.add(t0r, t2r));
  v128.store(p, f32x4.add(t0i, t2i), 16);
  v128.store(p, f32x4.add(t1r, t3r), 32);
  v128.store(p, f32x4.add(t1i, t3i), 48);
  v128.store(p, f32x4.sub(t0r, t2r), 64);
  v128.store(p, f32x4.sub(t0i, t2i), 80);
  v128.store(p, f32x4.sub(t1r, t3r), 96);
  v128.store(p, f32x4.sub(t1i, t3i), 112);
}

/** 0.03 times the mean of a frame, from its four sums: the rest of its constant part after pre-emphasis. */
// @ts-ignore: decorator
@inline
function offset(sums: v128): v128 {
  const total =
    f32x4.extract_lane(sums, 0) + f32x4.extract_lane(sums, 1) + (f32x4.extract_lane(sums, 2) + f32x4.extract_lane(sums, 3));
  return f32x4.splat((total / <f32>FRAME) * (<f32>1.0 - EMPHASIS));
}

/**
 * Mean removal, pre-emphasis and window of four frames, then transposed so that a vector holds one sample of each.
 * Loops test at their end: if they could be skipped entirely, V8 would recompute their invariants in each round.
 */
function windowed(x: usize, window: usize): void {
  const e = emphasized;
  store<f32>(e, 0);
  for (let n: usize = 4; n < 16; n += 4) store<f32>(e + n, load<f32>(x + n) - EMPHASIS * load<f32>(x + n - 4));
  const emphasis = f32x4.splat(EMPHASIS);
  let n: usize = 16;
  do {
    v128.store(e + n, f32x4.sub(v128.load(x + n), f32x4.mul(emphasis, v128.load(x + n - 4))));
    n += 16;
  } while (n < <usize>BATCH_SAMPLES * 4);
  let sa = v128.load(x);
  let sb = v128.load(x, HOP * 4);
  let sc = v128.load(x, HOP * 8);
  let sd = v128.load(x, HOP * 12);
  n = 16;
  do {
    sa = f32x4.add(sa, v128.load(x + n));
    sb = f32x4.add(sb, v128.load(x + n, HOP * 4));
    sc = f32x4.add(sc, v128.load(x + n, HOP * 8));
    sd = f32x4.add(sd, v128.load(x + n, HOP * 12));
    n += 16;
  } while (n < <usize>FRAME * 4);
  const ma = offset(sa);
  const mb = offset(sb);
  const mc = offset(sc);
  const md = offset(sd);
  let to = work;
  n = 0;
  do {
    const w = v128.load(window + n);
    const a = f32x4.mul(f32x4.sub(v128.load(e + n), ma), w);
    const b = f32x4.mul(f32x4.sub(v128.load(e + n, HOP * 4), mb), w);
    const c = f32x4.mul(f32x4.sub(v128.load(e + n, HOP * 8), mc), w);
    const d = f32x4.mul(f32x4.sub(v128.load(e + n, HOP * 12), md), w);
    storeColumns(to, 16, a, b, c, d);
    to += 64;
    n += 16;
  } while (n < <usize>FRAME * 4);
  // In Kaldi the first sample of a frame is its own predecessor. The Povey window is zero there, so any predecessor works.
  if (window == hamming) {
    const first = f32x4(load<f32>(x), load<f32>(x, HOP * 4), load<f32>(x, HOP * 8), load<f32>(x, HOP * 12));
    const means = i64x2.shuffle(i32x4.shuffle(ma, mb, 0, 4, 0, 4), i32x4.shuffle(mc, md, 0, 4, 0, 4), 0, 2);
    const emphasis = f32x4.splat(<f32>1.0 - EMPHASIS);
    v128.store(work, f32x4.mul(f32x4.sub(f32x4.mul(first, emphasis), means), v128.load32_splat(window)));
  }
}

/** 512 real samples as 256 complex ones through four radix-4 stages, then split into the real spectrum's power (times four). */
function transform(): void {
  const z = work;
  const end = z + 8192;
  let w = twiddles;
  let p = z;
  for (; p < z + 8 * 32; p += 32, w += 24) butterfly(p, 64 * 32, w);
  for (; p < z + 64 * 32; p += 32, w += 24) butterflyOfThree(p, 64 * 32, w);
  for (let j = z; j < z + 16 * 32; j += 32, w += 24) {
    for (p = j; p < end; p += 2048) butterfly(p, 16 * 32, w);
  }
  for (let j = z; j < z + 4 * 32; j += 32, w += 24) {
    for (p = j; p < end; p += 512) butterfly(p, 4 * 32, w);
  }
  for (p = z; p < end; p += 128) lastButterfly(p);

  const zr = v128.load(z);
  const zi = v128.load(z, 16);
  const first = f32x4.add(zr, zi);
  let low = power;
  v128.store(low, f32x4.mul(f32x4.splat(4), f32x4.mul(first, first)));
  const middle = z + <usize>load<u32>(order + 128 * 4);
  const hr = v128.load(middle);
  const hi = v128.load(middle, 16);
  v128.store(low, f32x4.mul(f32x4.splat(4), f32x4.add(f32x4.mul(hr, hr), f32x4.mul(hi, hi))), 128 * 16);
  let up = order;
  let down = up + 256 * 4;
  let high = low + 256 * 16;
  let split = splits;
  const last = up + 127 * 4;
  do {
    up += 4;
    down -= 4;
    low += 16;
    high -= 16;
    split += 8;
    const p = z + <usize>load<u32>(up);
    const q = z + <usize>load<u32>(down);
    const pr = v128.load(p);
    const pi = v128.load(p, 16);
    const qr = v128.load(q);
    const qi = v128.load(q, 16);
    const er = f32x4.add(pr, qr);
    const ei = f32x4.sub(pi, qi);
    const or = f32x4.add(pi, qi);
    const oi = f32x4.sub(qr, pr);
    const wr = v128.load32_splat(split);
    const wi = v128.load32_splat(split, 4);
    const vr = f32x4.sub(f32x4.mul(or, wr), f32x4.mul(oi, wi));
    const vi = f32x4.add(f32x4.mul(or, wi), f32x4.mul(oi, wr));
    let re = f32x4.add(er, vr);
    let im = f32x4.add(ei, vi);
    v128.store(low, f32x4.add(f32x4.mul(re, re), f32x4.mul(im, im)));
    re = f32x4.sub(er, vr);
    im = f32x4.sub(ei, vi);
    v128.store(high, f32x4.add(f32x4.mul(re, re), f32x4.mul(im, im)));
  } while (up < last);
}

/** Power spectra of the four frames in x[880]: input of log-mel and of the detail features. */
export function spectra(x: usize): void {
  windowed(x, povey);
  transform();
}

/** The same under a Hamming window. */
export function hammingSpectra(x: usize): void {
  windowed(x, hamming);
  transform();
}

/** out[4][80] of the four frames whose spectra were computed last. */
export function logMelOfSpectra(out: usize, row: usize = BINS * 4): void {
  filterLogs(bank, out, row, power);
}

function logMelBatch(out: usize, x: usize, window: usize): void {
  windowed(x, window);
  transform();
  logMelOfSpectra(out);
}

/** Frames in a number of samples: none under 25 ms. */
export function logMelFrames(samples: i32): i32 {
  return samples < FRAME ? 0 : (samples - FRAME) / HOP + 1;
}

/** out[frames][80] of x[samples] at 16 kHz; returns frames. Bit-identical to the stream. */
export function logMel(out: usize, x: usize, samples: i32): i32 {
  return logMelUnder(povey, out, x, samples);
}

/** The same under a Hamming window. */
export function hammingLogMel(out: usize, x: usize, samples: i32): i32 {
  return logMelUnder(hamming, out, x, samples);
}

function logMelUnder(window: usize, out: usize, x: usize, samples: i32): i32 {
  const frames = logMelFrames(samples);
  let f = 0;
  for (; f + BATCH <= frames; f += BATCH) logMelBatch(out + <usize>(f * BINS * 4), x + <usize>(f * HOP * 4), window);
  if (f < frames) {
    const rest = min(samples - f * HOP, BATCH_SAMPLES);
    memory.copy(tail, x + <usize>(f * HOP * 4), <usize>rest * 4);
    memory.fill(tail + <usize>rest * 4, 0, <usize>(BATCH_SAMPLES - rest) * 4);
    logMelBatch(tailMels, tail, window);
    memory.copy(out + <usize>(f * BINS * 4), tailMels, <usize>((frames - f) * BINS * 4));
  }
  return frames;
}
