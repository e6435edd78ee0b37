/**
 * Kaldi's log-mel filter bank: 25 ms frames every 10 ms at 16 kHz, no padding at the edges ("snip_edges"), mean removed per frame,
 * pre-emphasis 0.97, Povey window, 512-point FFT, 80 triangles from 20 to 8,000 Hz on the mel scale, natural logarithm of the
 * power, floored. Samples in -1..1. Four frames at once, one per lane.
 *
 *   samples  |<------------- 880 = 400 + 3·160 ------------->|
 *   frame 0  |<------ 400 ------>|
 *   frame 1       |<------ 400 ------>|
 *   frame 2            |<------ 400 ------>|
 *   frame 3                 |<------ 400 ------>|
 *
 * Against kaldi-native-fbank: at most 2e-4 in the logarithm where a bin is above the floor (f32 on both sides).
 */
import { log4 } from "../math/logarithm";
import { reserve } from "../memory";

export const BINS: i32 = 80;
export const FRAME: i32 = 400;
export const HOP: i32 = 160;
/** Frames computed at once, and the samples they span. */
export const BATCH: i32 = 4;
export const BATCH_SAMPLES: i32 = FRAME + (BATCH - 1) * HOP;
/** ln of the smallest bin: what silence reads. */
export const SILENCE: f32 = -15.942385;

const FLOOR: f32 = 1.1920929e-7;
const RATE: f64 = 16000;
const LOW_HZ: f64 = 20;
const HIGH_HZ: f64 = 8000;
const EMPHASIS: f32 = 0.97;
const FFT: i32 = 512;

const work: usize = reserve(256 * 32); // 256 complex values, real and imaginary vector side by side
const power: usize = reserve(257 * 16);
const mels: usize = reserve((BINS + 1) * 16); // the first is what falls before the first peak: nothing
const emphasized: usize = reserve(BATCH_SAMPLES * 4);
const tail: usize = reserve(BATCH_SAMPLES * 4);
const tailMels: usize = reserve(BATCH * BINS * 4);
const floors: usize = reserve(16);

const window: usize = reserve(FRAME * 4);
const twiddles: usize = reserve((64 + 16 + 4) * 24); // per butterfly: w, w², w³
const splits: usize = reserve(128 * 8);
const order: usize = reserve(256 * 4); // byte offset in `work` of each frequency: digits to the base 4 reversed
const slopes: usize = reserve(256 * 8); // per frequency: its weight in the bin that falls there, and in the next, which rises
const spans: usize = reserve((BINS + 1) * 4); // bytes of power between two peaks: in the rise of a bin and the fall of the one before
let lowest: usize = 0; // the first frequency of the first bin, as a byte offset in `power`

function mel(hz: f64): f64 {
  return 1127.0 * Math.log(1.0 + hz / 700.0);
}

function makeTables(): void {
  v128.store(floors, f32x4.splat(FLOOR));
  for (let i = 0; i < FRAME; i++) {
    const hann = 0.5 - 0.5 * Math.cos((2.0 * Math.PI * <f64>i) / <f64>(FRAME - 1));
    store<f32>(window + (<usize>i << 2), <f32>Math.pow(hann, 0.85));
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
  const low = mel(LOW_HZ);
  const width = (mel(HIGH_HZ) - low) / <f64>(BINS + 1);
  let k = 0;
  while (mel((<f64>k * RATE) / <f64>FFT) <= low) k++;
  lowest = <usize>k << 4;
  for (let m = 0; m <= BINS; m++) {
    const left = low + width * <f64>m;
    const right = left + width;
    const start = k;
    for (let x: f64; k < 256 && (x = mel((<f64>k * RATE) / <f64>FFT)) < right; k++) {
      // The power below is four times the true one: the split leaves out two halvings.
      store<f32>(slopes + (<usize>k << 3), <f32>(0.25 * ((right - x) / width)));
      store<f32>(slopes + (<usize>k << 3), <f32>(0.25 * ((x - left) / width)), 4);
    }
    store<u32>(spans + (<usize>m << 2), (k - start) << 4);
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

/** The same where the fourth input is zero: the frame ends before it. */
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

/** The last stage: neighbours, no rotation. */
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

/** 0.03 times the mean of a frame from its four sums: what is left of its constant part after pre-emphasis. */
// @ts-ignore: decorator
@inline
function offset(sums: v128): v128 {
  const total =
    f32x4.extract_lane(sums, 0) + f32x4.extract_lane(sums, 1) + (f32x4.extract_lane(sums, 2) + f32x4.extract_lane(sums, 3));
  return f32x4.splat((total / <f32>FRAME) * (<f32>1.0 - EMPHASIS));
}

/**
 * Mean removal, pre-emphasis and window of four frames, then transposed so that a vector holds one sample of each.
 * Loops are left at their end: where they can be left before anything was done, V8 computes what they need anew in each round.
 */
function windowed(x: usize): void {
  const e = emphasized;
  // Kaldi takes a frame's first sample as its own predecessor; the window is zero there, so any predecessor serves.
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
  const weights = window;
  let to = work;
  n = 0;
  do {
    const w = v128.load(weights + n);
    const a = f32x4.mul(f32x4.sub(v128.load(e + n), ma), w);
    const b = f32x4.mul(f32x4.sub(v128.load(e + n, HOP * 4), mb), w);
    const c = f32x4.mul(f32x4.sub(v128.load(e + n, HOP * 8), mc), w);
    const d = f32x4.mul(f32x4.sub(v128.load(e + n, HOP * 12), md), w);
    const t0 = i32x4.shuffle(a, b, 0, 4, 1, 5);
    const t1 = i32x4.shuffle(c, d, 0, 4, 1, 5);
    const t2 = i32x4.shuffle(a, b, 2, 6, 3, 7);
    const t3 = i32x4.shuffle(c, d, 2, 6, 3, 7);
    v128.store(to, i64x2.shuffle(t0, t1, 0, 2));
    v128.store(to, i64x2.shuffle(t0, t1, 1, 3), 16);
    v128.store(to, i64x2.shuffle(t2, t3, 0, 2), 32);
    v128.store(to, i64x2.shuffle(t2, t3, 1, 3), 48);
    to += 64;
    n += 16;
  } while (n < <usize>FRAME * 4);
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

/** Every power is read once: it falls to one bin and rises to the next. */
function melLogs(out: usize): void {
  const first = mels;
  let p = power + lowest;
  let w = slopes + (lowest >> 1);
  let span = spans;
  let rising = f32x4.splat(0);
  let to = first;
  const past = to + (BINS + 1) * 16;
  do {
    let falling = rising;
    rising = f32x4.splat(0);
    for (const end = p + <usize>load<u32>(span); p < end; p += 16, w += 8) {
      const x = v128.load(p);
      falling = f32x4.add(falling, f32x4.mul(x, v128.load32_splat(w)));
      rising = f32x4.add(rising, f32x4.mul(x, v128.load32_splat(w, 4)));
    }
    v128.store(to, falling);
    span += 4;
    to += 16;
  } while (to < past);
  const floor = v128.load(floors);
  let m = first + 16;
  do {
    v128.store(m, log4(f32x4.max(v128.load(m), floor)));
    m += 16;
  } while (m < past);
  const row: usize = BINS * 4;
  for (let m: usize = 0; m < <usize>BINS; m += 4) {
    const from = first + 16 + m * 16;
    const a = v128.load(from);
    const b = v128.load(from, 16);
    const c = v128.load(from, 32);
    const d = v128.load(from, 48);
    const t0 = i32x4.shuffle(a, b, 0, 4, 1, 5);
    const t1 = i32x4.shuffle(c, d, 0, 4, 1, 5);
    const t2 = i32x4.shuffle(a, b, 2, 6, 3, 7);
    const t3 = i32x4.shuffle(c, d, 2, 6, 3, 7);
    const to = out + m * 4;
    v128.store(to, i64x2.shuffle(t0, t1, 0, 2));
    v128.store(to + row, i64x2.shuffle(t0, t1, 1, 3));
    v128.store(to + 2 * row, i64x2.shuffle(t2, t3, 0, 2));
    v128.store(to + 3 * row, i64x2.shuffle(t2, t3, 1, 3));
  }
}

/** out[4][80] of the four frames in x[880]. */
export function logMelBatch(out: usize, x: usize): void {
  windowed(x);
  transform();
  melLogs(out);
}

/** Frames in so many samples: none under 25 ms. */
export function logMelFrames(samples: i32): i32 {
  return samples < FRAME ? 0 : (samples - FRAME) / HOP + 1;
}

/** out[frames][80] of x[samples] at 16 kHz; returns frames. The same bits as the stream gives. */
export function logMel(out: usize, x: usize, samples: i32): i32 {
  const frames = logMelFrames(samples);
  let f = 0;
  for (; f + BATCH <= frames; f += BATCH) logMelBatch(out + <usize>(f * BINS * 4), x + <usize>(f * HOP * 4));
  if (f < frames) {
    const rest = min(samples - f * HOP, BATCH_SAMPLES);
    memory.copy(tail, x + <usize>(f * HOP * 4), <usize>rest * 4);
    memory.fill(tail + <usize>rest * 4, 0, <usize>(BATCH_SAMPLES - rest) * 4);
    logMelBatch(tailMels, tail);
    memory.copy(out + <usize>(f * BINS * 4), tailMels, <usize>((frames - f) * BINS * 4));
    memory.fill(tail, 0, <usize>BATCH_SAMPLES * 4);
  }
  return frames;
}

/** Removes each bin's mean over the frames, in place: x[frames][80]. */
export function removeMean(x: usize, frames: i32): void {
  if (frames < 1) return;
  const row: usize = BINS * 4;
  const end = x + <usize>frames * row;
  for (let m: usize = 0; m < row; m += 16) {
    let sum = f32x4.splat(0);
    for (let p = x + m; p < end; p += row) sum = f32x4.add(sum, v128.load(p));
    const mean = f32x4.div(sum, f32x4.splat(<f32>frames));
    for (let p = x + m; p < end; p += row) v128.store(p, f32x4.sub(v128.load(p), mean));
  }
}
