/** Name, type and shape of a tensor in a model file, and the tensors of layers that all networks share. */

export type Dtype = "i8" | "i16" | "f32";

export interface TensorSpec {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

export const vector = (name: string, length: number): TensorSpec => ({ name, dtype: "f32", shape: [length] });

/** Weights, then the gain and bias that turn sums into activations. */
const weighted = (name: string, dtype: Dtype, shape: readonly number[], outputs: number): TensorSpec[] => [
  { name: `${name}.weight`, dtype, shape },
  vector(`${name}.gain`, outputs),
  vector(`${name}.bias`, outputs),
];

/** Weights [outputs][taps][elements per tap]. */
export const convolution = (name: string, dtype: Dtype, outputs: number, taps: number, run: number): TensorSpec[] =>
  weighted(name, dtype, [outputs, taps, run], outputs);

export const depthwise = (name: string, dtype: Dtype, taps: number, channels: number): TensorSpec[] =>
  weighted(name, dtype, [taps, channels], channels);

export const dense = (name: string, dtype: Dtype, outputs: number, inputs: number): TensorSpec[] =>
  weighted(name, dtype, [outputs, inputs], outputs);
