/**
 * Any rate from 4 to 192 kHz to 16 kHz, streaming. Output n is the input at time n/16,000 s: no delay, only a wait for half a filter length.
 * Every output is one dot product in a fixed order, so the result is bit-identical in any chunking.
 * At 16 kHz the samples pass unchanged. resample-table.ts has the figures of the filters.
 */
import { HIGHEST_HZ, LOWEST_HZ, MOST_TAPS, OUTPUT_HZ, resampleTable } from "./resample-table";

/** Limits per call: samples taken, and samples returned. */
export const RESAMPLE_BLOCK: i32 = 256;
export const RESAMPLE_MOST: i32 = RESAMPLE_BLOCK * (OUTPUT_HZ / LOWEST_HZ) + 1;

const BUFFER: i32 = MOST_TAPS + RESAMPLE_BLOCK;

/** State of one conversion. It contains no pointers, so it can be saved and restored. */
@unmanaged
export class Resampler {
  rateHz: i32;
  /** Samples in the buffer. */
  filled: i32;
  /** Buffer index of the next output's first tap; past `filled` when input was skipped. */
  at: i32;
  /** The next output is phase/up of an input sample after that position. */
  phase: i32;
  // then BUFFER floats
}

export const RESAMPLER_BYTES: i32 = <i32>((offsetof<Resampler>() + 15) & ~15) + BUFFER * 4;

// @ts-ignore: decorator
@inline
function bufferOf(state: usize): usize {
  return state + ((offsetof<Resampler>() + 15) & ~15);
}

export function rateIsSupported(rateHz: i32): bool {
  return rateHz >= LOWEST_HZ && rateHz <= HIGHEST_HZ;
}

export function resamplerStart(state: usize, rateHz: i32): void {
  memory.fill(state, 0, RESAMPLER_BYTES);
  const resampler = changetype<Resampler>(state);
  resampler.rateHz = rateHz;
  // Silence before the first sample.
  if (rateHz != OUTPUT_HZ) resampler.filled = resampleTable(rateHz).taps / 2 - 1;
}

/** Input samples that must follow the last one for its output to appear. */
export function resamplerWait(state: usize): i32 {
  const rateHz = changetype<Resampler>(state).rateHz;
  return rateHz == OUTPUT_HZ ? 0 : resampleTable(rateHz).taps / 2;
}

// @ts-ignore: decorator
@inline
function dot(x: usize, w: usize, taps: i32): f32 {
  // Four sums, because each addition waits for the one before it.
  let a = f32x4.mul(v128.load(x), v128.load(w));
  let b = f32x4.mul(v128.load(x, 16), v128.load(w, 16));
  let c = f32x4.mul(v128.load(x, 32), v128.load(w, 32));
  let d = f32x4.mul(v128.load(x, 48), v128.load(w, 48));
  for (let k: usize = 64; k < <usize>taps * 4; k += 64) {
    a = f32x4.add(a, f32x4.mul(v128.load(x + k), v128.load(w + k)));
    b = f32x4.add(b, f32x4.mul(v128.load(x + k, 16), v128.load(w + k, 16)));
    c = f32x4.add(c, f32x4.mul(v128.load(x + k, 32), v128.load(w + k, 32)));
    d = f32x4.add(d, f32x4.mul(v128.load(x + k, 48), v128.load(w + k, 48)));
  }
  const s = f32x4.add(f32x4.add(a, b), f32x4.add(c, d));
  return f32x4.extract_lane(s, 0) + f32x4.extract_lane(s, 1) + (f32x4.extract_lane(s, 2) + f32x4.extract_lane(s, 3));
}

/** Takes n <= RESAMPLE_BLOCK samples, writes at most RESAMPLE_MOST, returns how many. */
export function resamplerPush(state: usize, out: usize, x: usize, n: i32): i32 {
  const resampler = changetype<Resampler>(state);
  if (resampler.rateHz == OUTPUT_HZ) {
    memory.copy(out, x, <usize>n * 4);
    return n;
  }
  const table = resampleTable(resampler.rateHz);
  const taps = table.taps;
  const up = table.up;
  const whole = table.down / up;
  const part = table.down % up;
  const buffer = bufferOf(state);
  memory.copy(buffer + <usize>resampler.filled * 4, x, <usize>n * 4);
  const filled = resampler.filled + n;
  let at = resampler.at;
  let phase = resampler.phase;
  let to = out;
  while (at + taps <= filled) {
    const window = buffer + <usize>at * 4;
    if (!table.blended) {
      store<f32>(to, dot(window, table.rows + <usize>(phase * taps * 4), taps));
    } else {
      const place = (<f64>phase * <f64>table.phases) / <f64>up;
      const row = <i32>place;
      const w = table.rows + <usize>(row * taps * 4);
      const low = dot(window, w, taps);
      const high = dot(window, w + <usize>taps * 4, taps);
      store<f32>(to, low + <f32>(place - <f64>row) * (high - low));
    }
    to += 4;
    at += whole;
    phase += part;
    if (phase >= up) {
      phase -= up;
      at++;
    }
  }
  const drop = min(at, filled);
  memory.copy(buffer, buffer + <usize>drop * 4, <usize>(filled - drop) * 4);
  resampler.filled = filled - drop;
  resampler.at = at - drop;
  resampler.phase = phase;
  return <i32>((to - out) >> 2);
}
