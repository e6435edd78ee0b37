/** Convolutions of a graph, in the layout that the kernels read. */
import type { FloatTensor, OnnxGraph, OnnxNode } from "./onnx.js";
import { type Matrix, type NamedTensor, quantized } from "./quantize.js";

export interface Convolution {
  /** [outputs][channels][bins][frames] */
  readonly weight: FloatTensor;
  readonly bias: ArrayLike<number>;
  /** Name of its output in the graph. */
  readonly output: string;
}

export const shapeOf = (graph: OnnxGraph, node: OnnxNode): string =>
  graph.constants.get(node.inputs[1]!)?.shape.join() ?? "with computed weights";

/** Includes the batch norm that follows, if any. */
export function folded(graph: OnnxGraph, node: OnnxNode, norm: OnnxNode | undefined): Convolution {
  const weight = graph.constants.get(node.inputs[1]!)!;
  const outputs = weight.shape[0]!;
  const bias = graph.constants.get(node.inputs[2] ?? "")?.data ?? new Float32Array(outputs);
  if (!norm) return { weight, bias, output: node.outputs[0]! };
  const [gain, level, mean, variance] = norm.inputs.slice(1).map((name) => graph.constants.get(name)!.data);
  const epsilon = norm.attributes.get("epsilon")?.float ?? 1e-5;
  const slope = Float64Array.from({ length: outputs }, (_, o) => gain![o]! / Math.sqrt(variance![o]! + epsilon));
  const run = weight.data.length / outputs;
  return {
    weight: { shape: weight.shape, data: weight.data.map((w, i) => w * slope[Math.floor(i / run)]!) },
    bias: Float64Array.from(slope, (s, o) => level![o]! + (bias[o]! - mean![o]!) * s),
    output: norm.outputs[0]!,
  };
}

export const repeated = (steps: Float64Array, times: number): Float64Array =>
  Float64Array.from({ length: steps.length * times }, (_, i) => steps[i % steps.length]!);

/** Weights [outputs][frames][bins][channels], as the convolution of a plane reads them. */
export function plane(
  name: string,
  { weight, bias }: Convolution,
  held: { inSteps: Float64Array; outSteps: Float64Array; most: number; high: number; times?: number },
): NamedTensor[] {
  const [outputs, channels, bins, frames] = weight.shape as [number, number, number, number];
  const inputs = channels * bins * frames;
  const data = new Float64Array(outputs * inputs);
  for (let o = 0; o < outputs; o++)
    for (let c = 0; c < channels; c++)
      for (let b = 0; b < bins; b++)
        for (let f = 0; f < frames; f++)
          data[o * inputs + (f * bins + b) * channels + c] = weight.data[((o * channels + c) * bins + b) * frames + f]!;
  return quantized(
    name,
    [outputs, frames, bins * channels],
    { weight: { outputs, inputs, data }, bias },
    {
      ...held,
      inSteps: repeated(held.inSteps, bins * frames),
    },
  );
}

/** A first convolution [outputs][1][3 bins][3 frames]: one channel, so a row is 3 bins and a zero. */
export function stemMatrix({ data }: FloatTensor): Matrix {
  const outputs = data.length / 9;
  const turned = new Float64Array(outputs * 12);
  for (let o = 0; o < outputs; o++)
    for (let b = 0; b < 3; b++) for (let f = 0; f < 3; f++) turned[o * 12 + f * 4 + b] = data[o * 9 + b * 3 + f]!;
  return { outputs, inputs: 12, data: turned };
}
