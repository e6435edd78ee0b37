/**
 * Weights and steps as the kernels store them. Activations are integers; every channel has its own step, folded into the
 * weights that read it. Weights have one scale per output. Because the step of each channel can be chosen freely, rows and columns
 * of a weight matrix are balanced first, so that no channel wastes the bits of the others. training/export.py does the same.
 */
import { type TensorSpec, vector } from "../engine/tensor-spec.js";
import { quantileOf } from "../evaluate/quantile.js";
import { ImportRefusal } from "./import-refusal.js";
import { JointRounding } from "./joint-rounding.js";
import type { Moments } from "./moments.js";

export interface NamedTensor extends TensorSpec {
  readonly values: ArrayLike<number>;
}

/** A number for each channel. */
export const vectorOf = (name: string, values: Float64Array): NamedTensor => ({
  ...vector(name, values.length),
  values,
});

/** Steps of values that have no scale of their own. */
export const ones = (length: number): Float64Array => new Float64Array(length).fill(1);

/** A weight of [outputs][inputs], row after row. */
export interface Matrix {
  readonly outputs: number;
  readonly inputs: number;
  readonly data: Float64Array;
}

/** Largest weights. */
export const byteMost = 127;
export const wordMost = 1023;
/** Largest activations: those used only by elementwise operations use all 16 bits. */
export const wordHigh = 32767;
export const featureStep = 1 / 1024;

/** Margin over the largest activation seen: some voices and noises go far beyond those of a dozen windows. */
const margin = 3;
/** The same where there are bits to spare. */
const headroom = 6;
/** Share of the channels that get their preferred step. */
const balancedShare = 0.9;
const least = 1e-12;

/** Steps where there are bits to spare, such as in activations used only by elementwise operations. */
export const fineSteps = (peaks: ArrayLike<number>, high = wordHigh): Float64Array => heldSteps(peaks, high, headroom);

/** Steps that cover the values seen, with a margin. */
export const heldSteps = (peaks: ArrayLike<number>, high: number, room = margin): Float64Array =>
  Float64Array.from(peaks, (peak) => Math.max((peak * room) / high, 1e-9));

/** Steps of the input channels: make the columns of `largest` [outputs][channels] as even as the peaks allow. */
export function balancedSteps(
  { outputs, inputs, data }: Matrix,
  peaks: ArrayLike<number>,
  high: number,
  room = margin,
): Float64Array {
  const wanted = new Float64Array(inputs);
  for (let o = 0; o < outputs; o++) {
    let row = least;
    for (let i = 0; i < inputs; i++) row = Math.max(row, data[o * inputs + i]!);
    for (let i = 0; i < inputs; i++) wanted[i] = Math.max(wanted[i]!, data[o * inputs + i]! / row);
  }
  // A larger step where the weights are small.
  for (let i = 0; i < inputs; i++) wanted[i] = 1 / Math.max(wanted[i]!, 1e-3);
  const floors = Float64Array.from(peaks, (peak) => (peak * room) / high);
  const scale = quantileOf(floors.map((floor, i) => floor / wanted[i]!).sort(), balancedShare);
  return wanted.map((want, i) => Math.max(want * scale, floors[i]!, least));
}

export interface Layer {
  /** [outputs][taps × elements per tap] in the kernels' layout. */
  readonly weight: Matrix;
  readonly bias: ArrayLike<number>;
}

export interface Held {
  /** Step of each input of a row. */
  readonly inSteps: ArrayLike<number>;
  readonly outSteps: ArrayLike<number>;
  readonly most: number;
  /** The largest input. */
  readonly high: number;
  /** Whether inputs may be negative; by default true for `wordHigh`. */
  readonly signed?: boolean;
  /** The sums times this factor must stay below 2^31. */
  readonly times?: number;
  /** Moments of the layer's input: if given, its weights are rounded jointly. */
  readonly moments?: Moments;
}

/** Weight, gain and bias of a layer, in this order. */
export function quantized(name: string, shape: readonly number[], { weight, bias }: Layer, held: Held): NamedTensor[] {
  const { outputs, inputs, data } = weight;
  const { inSteps, outSteps, most, high, signed = high === wordHigh, times = 1 } = held;
  const values = new Float64Array(outputs * inputs);
  const gain = new Float64Array(outputs);
  const joint = held.moments && new JointRounding(inputs, held.moments.inSteps(inSteps));
  for (let o = 0; o < outputs; o++) {
    const row = data.subarray(o * inputs, (o + 1) * inputs).map((w, i) => w * inSteps[i]!);
    const peak = row.reduce((found, w) => Math.max(found, Math.abs(w)), least);
    const step = Math.max(peak / most, (largestSum(row, high, signed) * times) / (2 ** 31 * 0.99));
    const isHeld = (rounded: Float64Array) => largestSum(rounded, high, signed) * times < 2 ** 31;
    const scaled = row.map((w) => w / step);
    const together = joint?.round(scaled, most);
    const rounded = together && isHeld(together) ? together : scaled.map((w) => clamp(roundEven(w), most));
    if (!isHeld(rounded)) throw new ImportRefusal(`the sums of ${name} may exceed 32 bits`);
    values.set(rounded, o * inputs);
    gain[o] = step / outSteps[o]!;
  }
  return [
    { name: `${name}.weight`, dtype: most === byteMost ? "i8" : "i16", shape, values },
    vectorOf(`${name}.gain`, gain),
    vectorOf(
      `${name}.bias`,
      Float64Array.from(bias, (b, o) => b / outSteps[o]!),
    ),
  ];
}

/** For inputs 0..high, or -high..high if they may be negative. */
function largestSum(row: Float64Array, high: number, signed: boolean): number {
  let [positive, negative] = [0, 0];
  for (const w of row) {
    if (w > 0) positive += w;
    else negative -= w;
  }
  return high * (signed ? positive + negative : Math.max(positive, negative));
}

const clamp = (value: number, most: number): number => Math.max(-most, Math.min(most, value));

function roundEven(value: number): number {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
