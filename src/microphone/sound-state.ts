/** Detects a muted or silent microphone from its samples, because a browser does not notice a mute switch on the cable. */

/** `muted`: the same sample value again and again, as only a switched-off microphone gives. `silent`: hardly any sound. */
export type SoundState = "sound" | "silent" | "muted";

/** A working microphone never gives the same value for this long. */
const mutedSeconds = 0.5;
/** The room noise of every open microphone is above this level. */
const silentDb = -65;
const silentSeconds = 1.5;

/** Root mean square, dB relative to full scale. */
export function levelOf(samples: Float32Array): number {
  let power = 0;
  for (const value of samples) power += value * value;
  return 10 * Math.log10(power / Math.max(1, samples.length) + 1e-10);
}

export class SoundWatch {
  #last = Number.NaN;
  /** Number of samples since the value, or the level, last changed. */
  #same = 0;
  #quiet = 0;

  constructor(private readonly rateHz: number) {}

  push(samples: Float32Array, levelDb: number): SoundState {
    for (const value of samples) {
      this.#same = value === this.#last ? this.#same + 1 : 0;
      this.#last = value;
    }
    this.#quiet = levelDb < silentDb ? this.#quiet + samples.length : 0;
    if (this.#same >= mutedSeconds * this.rateHz) return "muted";
    return this.#quiet >= silentSeconds * this.rateHz ? "silent" : "sound";
  }
}
