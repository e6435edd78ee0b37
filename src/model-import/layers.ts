/** Convolutions of a graph, in the layout that the kernels read. */
import { ImportRefusal } from "./import-refusal.js";
import type { Peaks } from "./network.js";
import type { FloatTensor, OnnxGraph, OnnxNode } from "./onnx.js";
import {
  featureStep,
  fineSteps,
  type Matrix,
  type NamedTensor,
  quantized,
  vectorOf,
  wordHigh,
  wordMost,
} from "./quantize.js";

export type Users = (name: string) => readonly OnnxNode[];

export function usersIn({ nodes }: OnnxGraph): Users {
  const users = new Map<string, OnnxNode[]>();
  for (const node of nodes) for (const name of node.inputs) users.set(name, [...(users.get(name) ?? []), node]);
  return (name) => users.get(name) ?? [];
}

/** Refuses a network that is almost one of the known ones. */
export const unlike = (network: string, detail: string): ImportRefusal =>
  new ImportRefusal(`the network looks like ${network}, but ${detail}`);

/** The layers of a graph one after the other, each of the shape that it has in the known network; `null` fits any size. */
export class LayerOrder {
  taken = 0;

  constructor(
    readonly network: string,
    readonly graph: OnnxGraph,
    readonly nodes: readonly OnnxNode[],
  ) {}

  get next(): OnnxNode | undefined {
    return this.nodes[this.taken];
  }

  take(...shape: readonly (number | null)[]): OnnxNode {
    const node = this.nodes[this.taken++];
    const sizes = node?.type === "Conv" ? this.graph.constants.get(node.inputs[1]!)?.shape : undefined;
    if (node && sizes && shape.every((size, i) => size === null || size === sizes[i])) return node;
    const found = node ? `${node.type} ${shapeOf(this.graph, node)}` : "missing";
    const wanted = shape.map((size) => size ?? "any").join();
    throw unlike(this.network, `its layer ${this.taken} is ${found}; expected a Conv of ${wanted}`);
  }
}

export interface Convolution {
  /** [outputs][channels][bins][frames] */
  readonly weight: FloatTensor;
  readonly bias: ArrayLike<number>;
  /** Name of its output in the graph. */
  readonly output: string;
}

export const shapeOf = (graph: OnnxGraph, node: OnnxNode): string =>
  graph.constants.get(node.inputs[1]!)?.shape.join() ?? "with computed weights";

/** A batch norm: its own values, and as slope · x + level. */
export function normOf({ constants }: OnnxGraph, node: OnnxNode) {
  const [gain, bias, mean, variance] = node.inputs.slice(1).map((name) => constants.get(name)!.data) as Float32Array[];
  const epsilon = node.attributes.get("epsilon")?.float ?? 1e-5;
  const deviation = Float64Array.from(variance!, (v) => Math.sqrt(v + epsilon));
  const slope = Float64Array.from(gain!, (g, c) => g / deviation[c]!);
  const level = slope.map((s, c) => bias![c]! - mean![c]! * s);
  return { gain: gain!, bias: bias!, mean: mean!, deviation, slope, level };
}

/** Includes the batch norm that follows, if any. */
export function folded(graph: OnnxGraph, node: OnnxNode, norm: OnnxNode | undefined): Convolution {
  const weight = graph.constants.get(node.inputs[1]!)!;
  const outputs = weight.shape[0]!;
  const bias = graph.constants.get(node.inputs[2] ?? "")?.data ?? new Float32Array(outputs);
  if (!norm) return { weight, bias, output: node.outputs[0]! };
  const { slope, mean, bias: level } = normOf(graph, norm);
  const run = weight.data.length / outputs;
  return {
    weight: { shape: weight.shape, data: weight.data.map((w, i) => w * slope[Math.floor(i / run)]!) },
    bias: Float64Array.from({ length: outputs }, (_, o) => level[o]! + (bias[o]! - mean[o]!) * slope[o]!),
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
  const layer = { weight: { outputs, inputs, data }, bias };
  const inSteps = repeated(held.inSteps, bins * frames);
  return quantized(name, [outputs, frames, bins * channels], layer, { ...held, inSteps });
}

/** A first convolution [outputs][1][3 bins][3 frames]: one channel, so a row is 3 bins and a zero. */
export function stemTensors(name: string, { weight, bias }: Convolution, outSteps: Float64Array): NamedTensor[] {
  const outputs = weight.data.length / 9;
  const data = new Float64Array(outputs * 12);
  for (let o = 0; o < outputs; o++)
    for (let b = 0; b < 3; b++) for (let f = 0; f < 3; f++) data[o * 12 + f * 4 + b] = weight.data[o * 9 + b * 3 + f]!;
  const held = { inSteps: new Float64Array(12).fill(featureStep), outSteps, most: wordMost, high: wordHigh };
  return quantized(name, [outputs, 3, 4], { weight: { outputs, inputs: 12, data }, bias }, held);
}

/** [outputs][channels][taps] as [outputs][taps][channels], the channels in the kernels' order: `theirs` is the graph's. */
export function matrixOf({ weight }: Convolution, theirs: (channel: number) => number = (channel) => channel): Matrix {
  const [outputs, channels, taps] = weight.shape as [number, number, number];
  const inputs = channels * taps;
  const data = new Float64Array(outputs * inputs);
  for (let o = 0; o < outputs; o++)
    for (let c = 0; c < channels; c++)
      for (let t = 0; t < taps; t++)
        data[o * inputs + t * channels + c] = weight.data[(o * channels + theirs(c)) * taps + t]!;
  return { outputs, inputs, data };
}

export const flatMatrix = ({ weight }: Convolution): Matrix => ({
  outputs: weight.shape[0]!,
  inputs: weight.data.length / weight.shape[0]!,
  data: Float64Array.from(weight.data),
});

/** A layer without a time axis. */
export function flatTensors(
  name: string,
  layer: Convolution,
  inSteps: Float64Array,
  outSteps: Float64Array,
  most: number,
): NamedTensor[] {
  const weight = flatMatrix(layer);
  const held = { inSteps, outSteps, most, high: 0 };
  return quantized(name, [weight.outputs, weight.inputs], { weight, bias: layer.bias }, held);
}

/** The largest weight between each output and each channel, over all layers with the same input. */
export function largestOf(...convolutions: readonly Convolution[]): Matrix {
  const inputs = convolutions[0]!.weight.shape[1]!;
  const outputs = convolutions.reduce((sum, { weight }) => sum + weight.shape[0]!, 0);
  const data = new Float64Array(outputs * inputs);
  let at = 0;
  for (const { weight } of convolutions) {
    const run = weight.data.length / weight.shape[0]! / inputs;
    for (let row = 0; row < weight.shape[0]! * inputs; row++, at++)
      for (let k = 0; k < run; k++) data[at] = Math.max(data[at]!, Math.abs(weight.data[row * run + k]!));
  }
  return { outputs, inputs, data };
}

/** Two convolutions, and the input added to them: through a third where it has another shape. */
export interface Residual {
  readonly conv1: Convolution;
  readonly conv2: Convolution;
  readonly shortcut: Convolution | null;
}

/** Tensors of a residual block; `x`, `h` and `y` are the steps of its input, between its convolutions and of its output. */
export function residualBlock(
  name: string,
  { conv1, conv2, shortcut }: Residual,
  [x, h, y]: readonly [Float64Array, Float64Array, Float64Array],
  peaks: Peaks,
  { most, high, times, firstTimes }: { most: number; high: number; times: number; firstTimes: number },
): NamedTensor[] {
  const added = shortcut ? fineSteps(peaks(shortcut.output)) : x;
  return [
    ...plane(`${name}.conv1`, conv1, { inSteps: x, outSteps: h, most, high, times: firstTimes }),
    ...(shortcut ? plane(`${name}.shortcut`, shortcut, { inSteps: x, outSteps: added, most, high }) : []),
    ...plane(`${name}.conv2`, conv2, { inSteps: h, outSteps: y, most, high, times }),
    vectorOf(
      `${name}.conv2.residual`,
      added.map((s, c) => s / y[c]!),
    ),
  ];
}
