/**
 * Filters of the resampler: a sinc under a Kaiser window, one row of taps per phase. The most recent rates are cached.
 *
 * With B = half of the lower of the two rates: flat within 0.01 dB to 0.9 B, at least 80 dB down from B on.
 * (Telephone audio at 8 kHz keeps 0..3,600 Hz, everything from 16 kHz up keeps 0..7,200 Hz.)
 *
 * The reduced rate ratio is up/down. If all `up` phases fit, the conversion is exact; otherwise the rows
 * are on a grid of about 4 MHz and two adjacent rows are interpolated, with an error below -94 dB.
 */
import { reserve } from "../memory";

export const OUTPUT_HZ: i32 = 16000;
export const LOWEST_HZ: i32 = 4000;
export const HIGHEST_HZ: i32 = 192000;
export const MOST_TAPS: i32 = 1312;

const ATTENUATION_DB: f64 = 86;
/** Most usual rates need a small table (8, 24, 48, 96 kHz); the large ones (11,025, 22,050, 44,100 Hz) take 10 ms to fill, so small ones do not displace them. */
const LARGE_SLOTS: i32 = 4;
const LARGE_FLOATS: i32 = 73728;
const SMALL_SLOTS: i32 = 16;
const SMALL_FLOATS: i32 = 2048;
const GRID_HZ: i32 = OUTPUT_HZ * 256;

/** How one rate is converted. */
@unmanaged
export class ResampleTable {
  rateHz: i32;
  /** Output samples per `down` input samples. */
  up: i32;
  down: i32;
  /** A multiple of 16; half of them are before the output position. */
  taps: i32;
  /** Rows are 1/phases of an input sample apart. */
  phases: i32;
  /** Whether positions may fall between two rows. */
  blended: bool;
  usedAt: i64;
  rows: usize;
}

const slots: usize = reserve((LARGE_SLOTS + SMALL_SLOTS) * offsetof<ResampleTable>());
const largeRows: usize = reserve(LARGE_SLOTS * LARGE_FLOATS * 4);
const smallRows: usize = reserve(SMALL_SLOTS * SMALL_FLOATS * 4);
let uses: i64 = 0;

function greatestCommonDivisor(a: i32, b: i32): i32 {
  while (b != 0) {
    const rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/** The modified Bessel function of order 0 by its power series; under 1e-15 relative for the arguments here (up to 9). */
function besselI0(x: f64): f64 {
  const quarter = x * x * 0.25;
  let term: f64 = 1;
  let sum: f64 = 1;
  for (let k: f64 = 1; term > sum * 1e-17; k += 1) {
    term *= quarter / (k * k);
    sum += term;
  }
  return sum;
}

function fill(table: ResampleTable): void {
  const taps = table.taps;
  const half = <f64>(taps / 2);
  const lower = <f64>min(table.rateHz, OUTPUT_HZ);
  const cutoff = (0.95 * lower) / <f64>table.rateHz; // center of the transition, in half-cycles per input sample
  const beta = 0.1102 * (ATTENUATION_DB - 8.7);
  const last = table.blended ? table.phases : table.phases - 1;
  for (let phase = 0; phase <= last; phase++) {
    const row = table.rows + <usize>(phase * taps * 4);
    const shift = <f64>phase / <f64>table.phases;
    let sum: f64 = 0;
    for (let pass = 0; pass < 2; pass++) {
      // The second pass divides by the row's sum: every phase passes a constant unchanged.
      const gain = pass == 0 ? 1.0 : 1.0 / sum;
      for (let k = 0; k < taps; k++) {
        const t = <f64>(k + 1) - half - shift;
        const at = t / half;
        const kaiser = at * at < 1 ? besselI0(beta * Math.sqrt(1 - at * at)) : 1.0;
        const x = Math.PI * cutoff * t;
        const sinc = x == 0 ? 1.0 : Math.sin(x) / x;
        if (pass == 0) sum += sinc * kaiser;
        else store<f32>(row + (<usize>k << 2), <f32>(sinc * kaiser * gain));
      }
    }
  }
}

// @ts-ignore: decorator
@inline
function slotAt(i: i32): ResampleTable {
  return changetype<ResampleTable>(slots + <usize>i * offsetof<ResampleTable>());
}

/** The one of these slots that was used least recently. */
function oldestOf(first: i32, end: i32): i32 {
  let oldest = first;
  for (let i = first + 1; i < end; i++) if (slotAt(i).usedAt < slotAt(oldest).usedAt) oldest = i;
  return oldest;
}

/** The table for a rate of LOWEST_HZ..HIGHEST_HZ; created unless it is one of the last ones of its size. */
export function resampleTable(rateHz: i32): ResampleTable {
  for (let i = 0; i < LARGE_SLOTS + SMALL_SLOTS; i++) {
    const table = slotAt(i);
    if (table.rateHz != rateHz) continue;
    // Counted only on a change: a count of every use would reveal how long somebody spoke.
    if (table.usedAt < uses) table.usedAt = ++uses;
    return table;
  }
  const common = greatestCommonDivisor(rateHz, OUTPUT_HZ);
  const up = OUTPUT_HZ / common;
  // Kaiser's length for a transition of 0.05 of the lower rate.
  const lower = <f64>min(rateHz, OUTPUT_HZ);
  const length = (((ATTENUATION_DB - 7.95) / (2.285 * 2.0 * Math.PI)) * <f64>rateHz) / (0.05 * lower);
  const taps = min(MOST_TAPS, (<i32>Math.ceil(length / 16)) * 16);
  const isSmall = up * taps <= SMALL_FLOATS;
  const slot = isSmall ? oldestOf(LARGE_SLOTS, LARGE_SLOTS + SMALL_SLOTS) : oldestOf(0, LARGE_SLOTS);
  const table = slotAt(slot);
  table.rateHz = rateHz;
  table.usedAt = ++uses;
  table.up = up;
  table.down = rateHz / common;
  table.taps = taps;
  table.blended = up * taps > LARGE_FLOATS;
  table.phases = table.blended ? (GRID_HZ + max(rateHz, OUTPUT_HZ) - 1) / max(rateHz, OUTPUT_HZ) : up;
  table.rows = isSmall
    ? smallRows + <usize>((slot - LARGE_SLOTS) * SMALL_FLOATS * 4)
    : largeRows + <usize>(slot * LARGE_FLOATS * 4);
  fill(table);
  return table;
}
