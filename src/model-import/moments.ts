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
  /** [width][width]; the upper half is not all filled. */
  #sums = new Float64Array();
  /** Number of inputs, and of rows with those that fill the last four. */
  inputs = 0;
  #width = 0;

  constructor(readonly reading: Reading) {}

  add({ shape, data }: FloatTensor): void {
    const { taps, dilation } = this.reading;
    const [channels, frames] = [shape[1]!, shape[2]!];
    const length = frames - (taps - 1) * dilation;
    if (this.inputs === 0) {
      this.inputs = channels * taps;
      this.#width = 4 * Math.ceil(this.inputs / 4);
      this.#sums = new Float64Array(this.#width * this.#width);
    }
    const rows = new Float32Array(this.#width * length);
    for (let i = 0; i < this.inputs; i++) {
      const from = (i % channels) * frames + Math.floor(i / channels) * dilation;
      rows.set(data.subarray(from, from + length), i * length);
    }
    for (let i = 0; i < this.#width; i += 2)
      for (let j = 0; j <= i; j += 4) addProducts(this.#sums, this.#width, rows, length, i, j);
  }

  /** In units of `steps` for each input; only the lower half is filled. */
  inSteps(steps: ArrayLike<number>): Float64Array {
    const { inputs } = this;
    const scaled = new Float64Array(inputs * inputs);
    for (let i = 0; i < inputs; i++)
      for (let j = 0; j <= i; j++) scaled[i * inputs + j] = this.#sums[i * this.#width + j]! / (steps[i]! * steps[j]!);
    return scaled;
  }
}

/** Products of rows i and i + 1 with the four rows from j on: an import spends much of its time here. */
function addProducts(
  sums: Float64Array,
  width: number,
  rows: Float32Array,
  length: number,
  i: number,
  j: number,
): void {
  let [a0, a1, a2, a3] = [0, 0, 0, 0];
  let [b0, b1, b2, b3] = [0, 0, 0, 0];
  const end = (i + 1) * length;
  for (let p = i * length, q = j * length; p < end; p++, q++) {
    const a = rows[p]!;
    const b = rows[p + length]!;
    const x0 = rows[q]!;
    const x1 = rows[q + length]!;
    const x2 = rows[q + 2 * length]!;
    const x3 = rows[q + 3 * length]!;
    a0 += a * x0;
    a1 += a * x1;
    a2 += a * x2;
    a3 += a * x3;
    b0 += b * x0;
    b1 += b * x1;
    b2 += b * x2;
    b3 += b * x3;
  }
  const [one, other] = [i * width + j, (i + 1) * width + j];
  sums[one]! += a0;
  sums[one + 1]! += a1;
  sums[one + 2]! += a2;
  sums[one + 3]! += a3;
  sums[other]! += b0;
  sums[other + 1]! += b1;
  sums[other + 2]! += b2;
  sums[other + 3]! += b3;
}
