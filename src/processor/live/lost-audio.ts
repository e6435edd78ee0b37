/**
 * Replaces audio that the network lost: repeats the last pitch period, fading it out as ITU-T G.711 Appendix I does, then gives silence. A gap of
 * 20 ms inside a word still sounds like the word, and a longer gap does not add speech that nobody spoke.
 */

const shortestPeriodSeconds = 1 / 400;
const longestPeriodSeconds = 1 / 66;
/** Length of the audio that is compared to find the period. */
const comparedSeconds = 0.01;
/** Until `fullSeconds` the repetition is at full level; at `goneSeconds` it has faded out. */
const fullSeconds = 0.01;
const goneSeconds = 0.06;
/** A longer gap is shortened to this length. */
const longestGapSeconds = 0.2;

export class LostAudio {
  /** The most recent samples, as many as the period search needs, aligned to the end. */
  readonly #last: Float32Array;
  #kept = 0;

  constructor(private readonly rateHz: number) {
    this.#last = new Float32Array(Math.ceil((longestPeriodSeconds + comparedSeconds) * rateHz));
  }

  /** Audio that did arrive. */
  keep(samples: Float32Array): void {
    const { length } = this.#last;
    const newest = samples.subarray(-length);
    this.#last.copyWithin(0, newest.length);
    this.#last.set(newest, length - newest.length);
    this.#kept = Math.min(length, this.#kept + newest.length);
  }

  /** Samples to use in place of the lost ones. */
  fill(lost: number): Float32Array {
    const filled = new Float32Array(Math.min(lost, Math.round(longestGapSeconds * this.rateHz)));
    const period = this.#period();
    if (period > 0) {
      const [full, gone] = [fullSeconds * this.rateHz, goneSeconds * this.rateHz];
      const cycle = this.#last.subarray(this.#last.length - period);
      for (let i = 0; i < filled.length && i < gone; i++)
        filled[i] = cycle[i % period]! * Math.min(1, (gone - i) / (gone - full));
    }
    this.#kept = 0;
    return filled;
  }

  wipe(): void {
    this.#last.fill(0);
  }

  /** The lag in samples at which the end is most similar to the audio before it; 0 if too little audio was heard. */
  #period(): number {
    const last = this.#last;
    if (this.#kept < last.length) return 0;
    const compared = Math.round(comparedSeconds * this.rateHz);
    const from = last.length - compared;
    let [best, period] = [0, 0];
    for (
      let lag = Math.round(shortestPeriodSeconds * this.rateHz);
      lag <= from && lag <= longestPeriodSeconds * this.rateHz;
      lag++
    ) {
      let [product, energy] = [0, 0];
      for (let i = from; i < last.length; i++) {
        product += last[i]! * last[i - lag]!;
        energy += last[i - lag]! * last[i - lag]!;
      }
      // Square of the normalized correlation; negative correlations are skipped.
      const likeness = product > 0 && energy > 0 ? (product * product) / energy : 0;
      if (likeness > best) [best, period] = [likeness, lag];
    }
    return period;
  }
}
