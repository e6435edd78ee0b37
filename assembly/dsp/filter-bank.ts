/** Banks of 80 overlapping triangles from 20 to 8,000 Hz over a 512-point power spectrum at 16 kHz, evenly spaced on a given scale. */
import { ANALYSIS, create, reserve, reserveVoice } from "../memory";
import { storeLogs } from "./lanes";

export const BINS: i32 = 80;
export const FFT: i32 = 512;

const RATE: f64 = 16000;
const LOW_HZ: f64 = 20;
const HIGH_HZ: f64 = 8000;

const sums: usize = reserveVoice((BINS + 1) * 16, ANALYSIS); // the first collects what is below the first peak, and is not used

@unmanaged
export class FilterBank {
  /** Per frequency: its weight in the bin that falls there, and in the next bin, which rises. */
  slopes: usize;
  /** Bytes of power between two peaks, where one bin rises and the previous one falls. */
  spans: usize;
  /** The first frequency of the first bin, as a byte offset in the powers. */
  lowest: usize;
}

/** The powers are multiplied by `gain`. */
export function createFilterBank(scale: (hz: f64) => f64, gain: f64): FilterBank {
  const bank = create<FilterBank>();
  bank.slopes = reserve(256 * 8);
  bank.spans = reserve((BINS + 1) * 4);
  const low = scale(LOW_HZ);
  const width = (scale(HIGH_HZ) - low) / <f64>(BINS + 1);
  let k = 0;
  while (scale((<f64>k * RATE) / <f64>FFT) <= low) k++;
  bank.lowest = <usize>k << 4;
  for (let m = 0; m <= BINS; m++) {
    const left = low + width * <f64>m;
    const right = left + width;
    const start = k;
    for (; k < 256; k++) {
      const x = scale((<f64>k * RATE) / <f64>FFT);
      if (x >= right) break;
      store<f32>(bank.slopes + (<usize>k << 3), <f32>(gain * ((right - x) / width)));
      store<f32>(bank.slopes + (<usize>k << 3), <f32>(gain * ((x - left) / width)), 4);
    }
    store<u32>(bank.spans + (<usize>m << 2), (k - start) << 4);
  }
  return bank;
}

/** Logarithms of the bank's 80 bins of four frames, power[257] a vector each, as rows `row` bytes apart. Every power is read once. */
export function filterLogs(bank: FilterBank, out: usize, row: usize, power: usize): void {
  let p = power + bank.lowest;
  let w = bank.slopes + (bank.lowest >> 1);
  let span = bank.spans;
  let rising = f32x4.splat(0);
  let to = sums;
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
  storeLogs(out, row, sums + 16, BINS);
}
