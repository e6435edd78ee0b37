/** The mel spectrogram for display only: it is fast and looks right. Scoring uses the kernels' own. */

import { joined } from "../audio/joined.js";

/** Discrete Fourier transform of a fixed size, in place: radix 2, with precomputed angles. */
export class Fourier {
  readonly #size: number;
  readonly #cos: Float64Array;
  readonly #sin: Float64Array;

  /** A power of two. */
  constructor(size: number) {
    this.#size = size;
    const angle = (k: number) => (-2 * Math.PI * k) / size;
    this.#cos = Float64Array.from({ length: size / 2 }, (_, k) => Math.cos(angle(k)));
    this.#sin = Float64Array.from({ length: size / 2 }, (_, k) => Math.sin(angle(k)));
  }

  transform(re: Float32Array, im: Float32Array): void {
    const size = this.#size;
    reverse(re, im);
    for (let span = 2; span <= size; span <<= 1) {
      const half = span >> 1;
      const stride = size / span;
      for (let k = 0; k < half; k++) {
        const cos = this.#cos[k * stride]!;
        const sin = this.#sin[k * stride]!;
        for (let at = k; at < size; at += span) {
          const r = re[at + half]! * cos - im[at + half]! * sin;
          const i = re[at + half]! * sin + im[at + half]! * cos;
          re[at + half] = re[at]! - r;
          im[at + half] = im[at]! - i;
          re[at] = re[at]! + r;
          im[at] = im[at]! + i;
        }
      }
    }
  }
}

/** Bit-reversal permutation. */
function reverse(re: Float32Array, im: Float32Array): void {
  for (let i = 1, j = 0; i < re.length; i++) {
    let bit = re.length >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    const [r, m] = [re[i]!, im[i]!];
    re[i] = re[j]!;
    im[i] = im[j]!;
    re[j] = r;
    im[j] = m;
  }
}

const mel = (hz: number) => 1127 * Math.log1p(hz / 700);
const hertz = (value: number) => 700 * Math.expm1(value / 1127);

export const melBands = 64;
const topHz = 8000;
const windowSeconds = 0.025;
const shiftSeconds = 0.01;

/** Samples in, columns of `melBands` levels (0..1, lowest band first) out. */
export class MelSpectrogram {
  readonly #size: number;
  readonly #shift: number;
  readonly #fourier: Fourier;
  readonly #window: Float32Array;
  /** First bin of every band, and the end of the last. */
  readonly #edges: Int32Array;
  #pending = new Float32Array(0);

  constructor(rateHz: number) {
    this.#size = 2 ** Math.round(Math.log2(rateHz * windowSeconds));
    this.#shift = Math.round(rateHz * shiftSeconds);
    this.#fourier = new Fourier(this.#size);
    this.#window = Float32Array.from(
      { length: this.#size },
      (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / this.#size),
    );
    const top = mel(Math.min(topHz, rateHz / 2));
    this.#edges = Int32Array.from({ length: melBands + 1 }, (_, band) =>
      Math.floor((hertz((top * band) / melBands) / rateHz) * this.#size),
    );
  }

  push(samples: Float32Array): Float32Array[] {
    const all = joined([this.#pending, samples]);
    const columns: Float32Array[] = [];
    let at = 0;
    for (; at + this.#size <= all.length; at += this.#shift)
      columns.push(this.#column(all.subarray(at, at + this.#size)));
    this.#pending = all.slice(at);
    return columns;
  }

  #column(samples: Float32Array): Float32Array {
    const re = samples.map((value, i) => value * this.#window[i]!);
    const im = new Float32Array(this.#size);
    this.#fourier.transform(re, im);
    return Float32Array.from({ length: melBands }, (_, band) => {
      const first = this.#edges[band]!;
      const end = Math.max(first + 1, this.#edges[band + 1]!);
      let power = 0;
      for (let k = first; k < end; k++) power += re[k]! ** 2 + im[k]! ** 2;
      const db = 10 * Math.log10(power / (end - first) / this.#size + 1e-10);
      // -75 dB is black, -5 dB the brightest.
      return Math.min(1, Math.max(0, (db + 75) / 70));
    });
  }
}
