/** Whether anything comes from a microphone at all: told from the samples, because a switch on a cable tells no browser. */

/** `muted`: the very same number again and again, as only a switched-off microphone gives. `silent`: hardly anything. */
export type SoundState = "sound" | "silent" | "muted";

/** A living microphone never gives the same number for so long. */
const mutedSeconds = 0.5;
/** Room noise of any microphone that is open is above this. */
const silentDb = -65;
const silentSeconds = 1.5;

/** Root mean square, dB relative to full scale. */
export function levelOf(samples: Float32Array): number {
  let power = 0;
  for (const value of samples) power += value * value;
  return 10 * Math.log10(power / Math.max(1, samples.length) + 1e-10);
}

export class SoundWatch {
  readonly #rateHz: number;
  #last = Number.NaN;
  /** Samples since the number, or the level, last was another. */
  #same = 0;
  #quiet = 0;

  constructor(rateHz: number) {
    this.#rateHz = rateHz;
  }

  push(samples: Float32Array, levelDb: number): SoundState {
    for (const value of samples) {
      this.#same = value === this.#last ? this.#same + 1 : 0;
      this.#last = value;
    }
    this.#quiet = levelDb < silentDb ? this.#quiet + samples.length : 0;
    if (this.#same >= mutedSeconds * this.#rateHz) return "muted";
    return this.#quiet >= silentSeconds * this.#rateHz ? "silent" : "sound";
  }
}
