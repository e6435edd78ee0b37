/** Builds a time-delay network (src/engine/tdnn-layers.ts) layer by layer, with its weights in the kernels' form. */
import type { Place, TdnnLayer, TdnnNetwork } from "../engine/tdnn-layers.js";
import { type Convolution, flatMatrix, flatTensors, matrixOf, normOf, repeated, type Users } from "./layers.js";
import type { OnnxGraph, OnnxNode } from "./onnx.js";
import {
  byteMost,
  featureStep,
  fineSteps,
  type Matrix,
  type NamedTensor,
  ones,
  quantized,
  vectorOf,
  wordHigh,
  wordMost,
} from "./quantize.js";

/** The largest activation of a line: 14 bits and a sign. A sum over a few thousand channels then leaves room for 8-bit weights. */
const high = 16383;
const dimensions = 256;
const bins = 80;

/** A convolution over time and the limits after it: low..high, in the graph's own units. */
export interface BoundedConvolution extends Convolution {
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly dilation: number;
  readonly mirrored: boolean;
  readonly groups: number;
}

/** The contents of some channels of a line: integers, with a step per channel. */
export interface Signal {
  readonly place: Place;
  readonly steps: Float64Array;
}

/** A convolution with the ReLU and batch norm that are its only readers, in either order. */
export function boundedConvolution(graph: OnnxGraph, users: Users, node: OnnxNode): BoundedConvolution {
  const weight = graph.constants.get(node.inputs[1]!)!;
  const outputs = weight.shape[0]!;
  const run = weight.data.length / outputs;
  const data = Float64Array.from(weight.data);
  const bias = Float64Array.from(
    { length: outputs },
    (_, o) => graph.constants.get(node.inputs[2] ?? "")?.data[o] ?? 0,
  );
  const low = new Float64Array(outputs).fill(Number.NEGATIVE_INFINITY);
  const top = new Float64Array(outputs).fill(Number.POSITIVE_INFINITY);
  let output = node.outputs[0]!;
  for (;;) {
    const [user, ...more] = users(output);
    if (more.length > 0 || (user?.type !== "Relu" && user?.type !== "BatchNormalization")) break;
    output = user.outputs[0]!;
    if (user.type === "Relu") {
      for (let o = 0; o < outputs; o++) [low[o], top[o]] = [Math.max(0, low[o]!), Math.max(0, top[o]!)];
      continue;
    }
    const { slope, level } = normOf(graph, user);
    for (let o = 0; o < outputs; o++) {
      const s = slope[o]!;
      for (let i = o * run; i < (o + 1) * run; i++) data[i]! *= s;
      const moved = (value: number) => (s === 0 ? level[o]! : value * s + level[o]!);
      bias[o] = moved(bias[o]!);
      [low[o], top[o]] = [moved(low[o]!), moved(top[o]!)].sort((a, b) => a - b) as [number, number];
    }
  }
  const pad = graph.nodes.find(({ type, outputs: [made] }) => type === "Pad" && made === node.inputs[0]);
  return {
    weight: { shape: weight.shape, data: Float32Array.from(data) },
    bias,
    output,
    low,
    high: top,
    dilation: node.attributes.get("dilations")?.integers?.[0] ?? 1,
    mirrored: pad?.attributes.get("mode")?.text === "reflect",
    groups: node.attributes.get("group")?.integer ?? 1,
  };
}

export class TdnnBuilder {
  readonly #lines: number[] = [bins];
  readonly #layers: TdnnLayer[] = [];
  readonly tensors: NamedTensor[] = [];

  /** Features are the kernels' times `unit`; `standardized`: every bin is divided by its deviation. */
  constructor(
    readonly unit: number,
    readonly standardized: boolean,
  ) {}

  get network(): TdnnNetwork {
    return { lines: this.#lines, layers: this.#layers, standardized: this.standardized };
  }

  line(channels: number): Place {
    return { line: this.#lines.push(channels) - 1, channel: 0 };
  }

  get features(): Signal {
    return { place: { line: 0, channel: 0 }, steps: new Float64Array(bins).fill(featureStep * this.unit) };
  }

  convolution(name: string, layer: BoundedConvolution, from: Signal, to: Place, peaks: ArrayLike<number>): Signal {
    const [outputs, inputs, taps] = [layer.weight.shape[0]!, from.steps.length, layer.weight.shape[2]!];
    const steps = fineSteps(peaks, high);
    const words = from.place.line === 0;
    const { dilation, mirrored } = layer;
    const shape = { inputs, outputs, taps, dilation, mirrored };
    this.#layers.push({ kind: "convolution", name, from: from.place, to, ...shape, words });
    const held = words ? { most: wordMost, high: wordHigh } : { most: byteMost, high };
    this.tensors.push(...this.#bounded(name, layer, matrixOf(layer), from.steps, steps, held));
    return { place: to, steps };
  }

  /** Per channel; without limits. */
  depthwise(name: string, layer: BoundedConvolution, from: Signal, to: Place, peaks: ArrayLike<number>): Signal {
    const [inputs, taps] = [from.steps.length, layer.weight.shape[2]!];
    const steps = fineSteps(peaks, high);
    const { dilation, mirrored } = layer;
    this.#layers.push({ kind: "depthwise", name, from: from.place, to, inputs, taps, dilation, mirrored });
    const each = {
      outputs: inputs,
      inputs: taps,
      data: Float64Array.from(layer.weight.data, (w, i) => w * from.steps[Math.floor(i / taps)]!),
    };
    const held = { inSteps: ones(taps), outSteps: steps, most: wordMost, high: wordHigh };
    const [weight, gain, bias] = quantized(name, [taps, inputs], { weight: each, bias: layer.bias }, held);
    const turned = Float64Array.from(
      each.data,
      (_, i) => weight!.values[(i % inputs) * taps + Math.floor(i / inputs)]!,
    );
    this.tensors.push({ ...weight!, values: turned }, gain!, bias!);
    return { place: to, steps };
  }

  /** Without a second input it copies. */
  add(name: string, from: Signal, second: Signal | null, to: Place, peaks: ArrayLike<number>): Signal {
    const steps = fineSteps(peaks, high);
    const inputs = steps.length;
    this.#layers.push({ kind: "add", name, from: from.place, second: second?.place ?? null, to, inputs });
    this.tensors.push(...sum(name, from, second, steps));
    return { place: to, steps };
  }

  gate(
    name: string,
    [squeeze, excite]: readonly [Convolution, Convolution],
    from: Signal,
    second: Signal | null,
    to: Place,
    { peaks, rectified }: { peaks: ArrayLike<number>; rectified: boolean },
  ): Signal {
    const steps = fineSteps(peaks, high);
    const [inputs, hidden] = [steps.length, squeeze.weight.shape[0]!];
    const places = { from: from.place, second: second?.place ?? null, to };
    this.#layers.push({ kind: "gate", name, ...places, inputs, hidden, rectified });
    this.tensors.push(
      ...flatTensors(`${name}.squeeze`, squeeze, from.steps, ones(hidden), wordHigh),
      ...flatTensors(`${name}.excite`, excite, ones(hidden), ones(inputs), wordHigh),
      ...sum(name, from, second, steps),
    );
    return { place: to, steps };
  }

  /** `layer` reads the channels; if it reads three times as many, also their mean and deviation over all frames. */
  attention(
    name: string,
    layer: BoundedConvolution,
    score: Convolution,
    from: Signal,
    peaks: { hidden: ArrayLike<number>; score: ArrayLike<number> },
  ): void {
    const inputs = from.steps.length;
    const [hidden, read] = layer.weight.shape as [number, number];
    const context = read === 3 * inputs;
    const [hiddenSteps, scoreSteps] = [fineSteps(peaks.hidden, high), fineSteps(peaks.score)];
    const columns = (first: number, many: number): Matrix => ({
      outputs: hidden,
      inputs: many,
      data: Float64Array.from(
        { length: hidden * many },
        (_, i) => layer.weight.data[Math.floor(i / many) * read + first + (i % many)]!,
      ),
    });
    this.#layers.push({ kind: "attention", name, from: from.place, inputs, hidden, context });
    if (context) {
      const ofContext = { weight: columns(inputs, 2 * inputs), bias: layer.bias };
      const held = { inSteps: repeated(from.steps, 2), outSteps: hiddenSteps, most: wordHigh, high: 0 };
      this.tensors.push(...quantized(`${name}.context`, [hidden, 2 * inputs], ofContext, held));
    }
    const scored = { weight: flatMatrix(score), bias: score.bias };
    const squashed = new Float64Array(hidden).fill(1 / wordHigh);
    const held = { inSteps: squashed, outSteps: scoreSteps, most: byteMost, high: wordHigh };
    this.tensors.push(
      ...this.#bounded(`${name}.hidden`, layer, columns(0, inputs), from.steps, hiddenSteps, { most: wordMost, high }),
      vectorOf(`${name}.hidden.step`, hiddenSteps),
      ...quantized(`${name}.score`, [inputs, 1, hidden], scored, held),
      vectorOf(`${name}.score.step`, scoreSteps),
    );
  }

  /** The map of the statistics after attention. The kernels' embeddings are longer than most: the rest is zeros. */
  map(name: string, { weight, bias }: { weight: Matrix; bias: ArrayLike<number> }, from: Signal): void {
    const { inputs, outputs, data } = weight;
    this.#layers.push({ kind: "map", name, inputs });
    const filled = new Float64Array(dimensions * inputs);
    filled.set(data);
    const level = Float64Array.from({ length: dimensions }, (_, o) => (o < outputs ? bias[o]! : 0));
    const layer = { weight: { outputs: dimensions, inputs, data: filled }, bias: level };
    const held = { inSteps: repeated(from.steps, 2), outSteps: ones(dimensions), most: wordHigh, high: 0 };
    this.tensors.push(...quantized(name, [dimensions, inputs], layer, held));
  }

  #bounded(
    name: string,
    layer: BoundedConvolution,
    weight: Matrix,
    inSteps: Float64Array,
    outSteps: Float64Array,
    held: { readonly most: number; readonly high: number },
  ): NamedTensor[] {
    const taps = weight.inputs / inSteps.length;
    const kept = (bounds: Float64Array): Float64Array =>
      bounds.map((bound, o) => Math.max(-high, Math.min(high, bound / outSteps[o]!)));
    const all = { inSteps: repeated(inSteps, taps), outSteps, ...held, signed: true };
    return [
      ...quantized(name, [weight.outputs, taps, inSteps.length], { weight, bias: layer.bias }, all),
      vectorOf(`${name}.low`, kept(layer.low)),
      vectorOf(`${name}.high`, kept(layer.high)),
    ];
  }
}

function sum(name: string, first: Signal, second: Signal | null, to: Float64Array): NamedTensor[] {
  const inSteps = ({ steps }: Signal) => to.map((step, c) => steps[c]! / step);
  return [vectorOf(`${name}.first`, inSteps(first)), ...(second ? [vectorOf(`${name}.second`, inSteps(second))] : [])];
}
