/** Name, type and shape of a tensor in a model file, and the tensors of layers that all networks share. */

export type Dtype = "i8" | "i16" | "f32";

export interface TensorSpec {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

export const vector = (name: string, length: number): TensorSpec => ({ name, dtype: "f32", shape: [length] });

/** Weights [outputs][taps][elements per tap], then the gain and bias that turn sums into activations. */
export function convolution(name: string, dtype: Dtype, outputs: number, taps: number, run: number): TensorSpec[] {
  return [
    { name: `${name}.weight`, dtype, shape: [outputs, taps, run] },
    vector(`${name}.gain`, outputs),
    vector(`${name}.bias`, outputs),
  ];
}

export function dense(name: string, dtype: Dtype, outputs: number, inputs: number): TensorSpec[] {
  return [
    { name: `${name}.weight`, dtype, shape: [outputs, inputs] },
    vector(`${name}.gain`, outputs),
    vector(`${name}.bias`, outputs),
  ];
}
