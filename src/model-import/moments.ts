import type { FloatTensor } from "./onnx.js";

/** Input of a convolution over time: a number of frames of a tensor [1][channels][frames], `dilation` apart. */
export interface Reading {
  readonly input: string;
  readonly taps: number;
  readonly dilation: number;
}

/**
 * Second moments of a convolution's input, [inputs][inputs], summed over all frames of all windows; an input is a channel of a tap, taps
 * one after the other. Frames at the ends, where padding is read, are left out.
 */
export class Moments {
  #sums = new Float64Array();
  inputs = 0;

  constructor(readonly reading: Reading) {}

  add({ shape, data }: FloatTensor): void {
    const { taps, dilation } = this.reading;
    const [channels, frames] = [shape[1]!, shape[2]!];
    const heard = frames - (taps - 1) * dilation;
    const inputs = channels * taps;
    if (this.inputs === 0) {
      this.inputs = inputs;
      this.#sums = new Float64Array(inputs * inputs);
    }
    const rows = new Float64Array(inputs * heard);
    for (let i = 0; i < inputs; i++) {
      const from = (i % channels) * frames + Math.floor(i / channels) * dilation;
      rows.set(data.subarray(from, from + heard), i * heard);
    }
    for (let i = 0; i < inputs; i++)
      for (let j = 0; j <= i; j += 4)
        addProducts(this.#sums, i * inputs + j, rows, heard, i, j, Math.min(4, i + 1 - j));
  }

  /** In units of `steps` for each input; only the lower half is filled. */
  inSteps(steps: ArrayLike<number>): Float64Array {
    const { inputs } = this;
    const scaled = new Float64Array(inputs * inputs);
    for (let i = 0; i < inputs; i++)
      for (let j = 0; j <= i; j++) scaled[i * inputs + j] = this.#sums[i * inputs + j]! / (steps[i]! * steps[j]!);
    return scaled;
  }
}

/** Products of row i with `many` rows from j on, at most four: an import spends much of its time here. */
function addProducts(
  sums: Float64Array,
  at: number,
  rows: Float64Array,
  length: number,
  i: number,
  j: number,
  many: number,
): void {
  const row = (k: number) => (j + Math.min(k, many - 1)) * length;
  const [p0, p1, p2, p3] = [row(0), row(1), row(2), row(3)];
  const one = i * length;
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  for (let t = 0; t < length; t++) {
    const x = rows[one + t]!;
    s0 += x * rows[p0 + t]!;
    s1 += x * rows[p1 + t]!;
    s2 += x * rows[p2 + t]!;
    s3 += x * rows[p3 + t]!;
  }
  sums[at]! += s0;
  if (many > 1) sums[at + 1]! += s1;
  if (many > 2) sums[at + 2]! += s2;
  if (many > 3) sums[at + 3]! += s3;
}
