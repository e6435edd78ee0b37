/** Detects telephone keys in the audio: two tones at once, one of each group (ITU-T Q.23, Q.24). */

const LOW_HZ = [697, 770, 852, 941];
const HIGH_HZ = [1209, 1336, 1477, 1633];
const KEYS = ["123A", "456B", "789C", "*0#D"];

export const isDtmfDigit = (text: string): boolean => text.length === 1 && KEYS.some((row) => row.includes(text));

/** Long enough to tell 697 from 770 Hz, short enough for two in the shortest key of 40 ms. */
const BLOCK_SECONDS = 0.0125 * 1.02;
/** Number of agreeing blocks after which a key counts as pressed, and of blocks without it after which it counts as released. */
const BLOCKS_ON = 2;
const BLOCKS_OFF = 2;
/** The two tones hold at least this share of a key's energy; speech spreads its energy more widely. */
const TONE_SHARE = 0.85;
/** The high tone may be weaker by 8 dB or stronger by 4 (Q.24), with a margin for lines. */
const TWIST_DOWN = 10 ** 1;
const TWIST_UP = 10 ** 0.6;
/** -48 dB relative to full scale. */
const LEAST_POWER = 10 ** -4.8;

export class DtmfDetector {
  readonly #block: Float32Array;
  readonly #low: readonly number[];
  readonly #high: readonly number[];
  #filled = 0;
  #blocks = 0;
  #candidate: string | null = null;
  #agreeing = 0;
  #absent = 0;
  /** The key that is pressed now and was already reported. */
  #pressed: string | null = null;

  constructor(private readonly rateHz: number) {
    const length = Math.round(BLOCK_SECONDS * rateHz);
    this.#block = new Float32Array(length);
    const coefficients = (tones: readonly number[]) => tones.map((hz) => 2 * Math.cos((2 * Math.PI * hz) / rateHz));
    this.#low = coefficients(LOW_HZ);
    this.#high = coefficients(HIGH_HZ);
  }

  /** Returns the keys that these samples confirm. */
  push(samples: Float32Array): { digit: string; atSeconds: number }[] {
    const digits: { digit: string; atSeconds: number }[] = [];
    for (let at = 0; at < samples.length; ) {
      const part = samples.subarray(at, at + this.#block.length - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled < this.#block.length) break;
      this.#filled = 0;
      this.#blocks++;
      const digit = this.#step(this.#keyOfBlock());
      if (digit === null) continue;
      const began = (this.#blocks - BLOCKS_ON) * this.#block.length;
      digits.push({ digit, atSeconds: began / this.rateHz });
    }
    return digits;
  }

  #step(key: string | null): string | null {
    this.#absent = key === this.#pressed ? 0 : this.#absent + 1;
    if (this.#absent >= BLOCKS_OFF) this.#pressed = null;
    this.#agreeing = key === this.#candidate ? this.#agreeing + 1 : 1;
    this.#candidate = key;
    if (key === null || key === this.#pressed || this.#agreeing < BLOCKS_ON) return null;
    this.#pressed = key;
    this.#absent = 0;
    return key;
  }

  #keyOfBlock(): string | null {
    const block = this.#block;
    let energy = 0;
    for (const x of block) energy += x * x;
    const n = block.length;
    if (energy / n < LEAST_POWER) return null;
    const low = strongest(block, this.#low);
    const high = strongest(block, this.#high);
    // A tone of amplitude a has energy n·a²/2, and its Goertzel power is (n·a/2)².
    const share = (2 * (low.power + high.power)) / (n * energy);
    if (share < TONE_SHARE) return null;
    if (high.power * TWIST_DOWN < low.power || high.power > low.power * TWIST_UP) return null;
    return KEYS[low.index]![high.index]!;
  }
}

function strongest(block: Float32Array, coefficients: readonly number[]): { index: number; power: number } {
  let best = { index: 0, power: -1 };
  for (const [index, coefficient] of coefficients.entries()) {
    let one = 0;
    let two = 0;
    for (let i = 0; i < block.length; i++) {
      const next = block[i]! + coefficient * one - two;
      two = one;
      one = next;
    }
    const power = one * one + two * two - coefficient * one * two;
    if (power > best.power) best = { index, power };
  }
  return best;
}
