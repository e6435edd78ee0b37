/**
 * The ResNet34 of WeSpeaker: a stem, sixteen basic blocks, mean and deviation over time, a linear map. Found in a graph by its
 * data flow; batch norms are folded into the convolutions, as exporters do, or follow them.
 */
import { resnetStages } from "../engine/speaker-tensors.js";
import { flatLayer, isWeighted } from "./flat-layers.js";
import { ImportRefusal } from "./import-refusal.js";
import {
  type Convolution,
  folded,
  largestOf,
  type Residual,
  repeated,
  residualBlock,
  shapeOf,
  stemTensors,
  unlike,
  usersIn,
} from "./layers.js";
import type { Peaks, RecognizedNetwork } from "./network.js";
import type { OnnxGraph, OnnxNode } from "./onnx.js";
import { balancedSteps, byteMost, fineSteps, type Layer, type NamedTensor, ones, quantized } from "./quantize.js";

const bands = 10;
const dimensions = 256;

/** Activations have 11 bits: patches of a plane are added before the multiplication (assembly/nn/patch-convolution.ts). */
const high = 2047;
/** The largest word that patches can hold, and how many times the sums of a patch must stay below 2^31. */
const patchWordMost = 455;
const patchTimes = 16;

interface Block extends Residual {
  /** Names of its input and of the input of its second convolution. */
  readonly input: string;
  readonly between: string;
  readonly words: boolean;
}

type Resnet34 = NonNullable<ReturnType<typeof layersOf>>;

/** `null` if the graph is another network. */
export function findResnet34(graph: OnnxGraph): RecognizedNetwork | null {
  const found = layersOf(graph);
  if (!found) return null;
  const { blocks, last } = found;
  return {
    architecture: "resnet34-1",
    rows: "hamming",
    outputs: dimensions,
    observed: [
      ...blocks.flatMap(({ input, between, shortcut }) => [input, between, ...(shortcut ? [shortcut.output] : [])]),
      last,
    ],
    quantize: (peaks) => ({ tensors: quantize(found, peaks) }),
  };
}

function layersOf(graph: OnnxGraph) {
  const readers = usersIn(graph);
  const users = (name: string, type: string) => readers(name).filter((node) => node.type === type);
  const first = graph.nodes.find(({ type }) => type === "Conv");
  if (!first || shapeOf(graph, first) !== "32,1,3,3") return null;

  const after = (node: OnnxNode, type: string): string => {
    const [user] = users(node.outputs[0]!, type);
    if (!user) throw unlike("a ResNet34", `no ${type} follows ${node.outputs[0]}`);
    return user.outputs[0]!;
  };
  const convolution = (node: OnnxNode, shape: readonly number[], stride: number): Convolution => {
    const found = shapeOf(graph, node);
    const strides = node.attributes.get("strides")?.integers ?? [1, 1];
    if (found !== shape.join() || strides.some((one) => one !== stride))
      throw unlike(
        "a ResNet34",
        `a convolution is ${found} with strides ${strides.join(" and ")}; expected ${shape.join()} with ${stride}`,
      );
    return folded(graph, node, users(node.outputs[0]!, "BatchNormalization")[0]);
  };

  const stem = convolution(first, [32, 1, 3, 3], 1);
  let x = after({ ...first, outputs: [stem.output] }, "Relu");
  const blocks: Block[] = [];
  let inputs = 32;
  for (const [stage, { blocks: many, channels, dtype }] of resnetStages.entries())
    for (let i = 0; i < many; i++) {
      const stride = stage > 0 && i === 0 ? 2 : 1;
      const reading = users(x, "Conv");
      const size = (node: OnnxNode) => graph.constants.get(node.inputs[1]!)?.shape[2];
      const [one, skip] = [reading.find((node) => size(node) === 3), reading.find((node) => size(node) === 1)];
      if (!one || (stride > 1 && !skip)) return null;
      const conv1 = convolution(one, [channels, inputs, 3, 3], stride);
      const between = after({ ...one, outputs: [conv1.output] }, "Relu");
      const [two] = users(between, "Conv");
      if (!two) return null;
      const conv2 = convolution(two, [channels, channels, 3, 3], 1);
      const shortcut = stride > 1 ? convolution(skip!, [channels, inputs, 1, 1], stride) : null;
      blocks.push({ input: x, between, conv1, conv2, shortcut, words: dtype === "i16" });
      const [sum] = users(conv2.output, "Add");
      const added = shortcut?.output ?? x;
      if (!sum?.inputs.includes(added)) throw unlike("a ResNet34", `block ${blocks.length - 1} does not add its input`);
      x = after(sum, "Relu");
      inputs = channels;
    }
  // `last` is the input of the statistics.
  return { stem, blocks, last: x, map: mapOf(graph) };
}

/** The linear map at the end, and a constant added or subtracted after it. */
function mapOf(graph: OnnxGraph): Layer {
  const { nodes, constants, output } = graph;
  const { channels } = resnetStages.at(-1)!;
  const inputs = 2 * bands * channels;
  const maker = (name: string) => nodes.find((node) => node.outputs[0] === name);
  const bias = new Float64Array(dimensions);
  let node = maker(output);
  for (
    ;
    node && (node.type === "Add" || node.type === "Sub" || node.type === "Identity");
    node = maker(node.inputs[0]!)
  ) {
    if (node.type === "Identity") continue;
    const given = constants.get(node.inputs[1]!);
    if (given?.data.length !== dimensions)
      throw new ImportRefusal(`the ${node.type} at the end of the network must have a vector of ${dimensions}`);
    for (let i = 0; i < dimensions; i++) bias[i]! += node.type === "Add" ? given.data[i]! : -given.data[i]!;
  }
  if (!node || node.type === "Conv" || !isWeighted(graph, node))
    throw new ImportRefusal(
      `the network ends with ${node?.type ?? "nothing"}; expected a Gemm or MatMul with constant weights`,
    );
  const { weight, bias: own } = flatLayer(graph, node);
  const [rows, columns] = weight.shape;
  if (rows !== dimensions || columns !== inputs)
    throw new ImportRefusal(
      `the network's last layer maps ${columns} values to ${rows}; the kernels can map ${inputs} to ${dimensions}`,
    );
  for (let i = 0; i < dimensions; i++) bias[i]! += own[i]!;
  // The graph flattens [statistic][channel][bin], the kernels [statistic][bin][channel].
  const data = new Float64Array(dimensions * inputs);
  for (let o = 0; o < dimensions; o++)
    for (let s = 0; s < 2; s++)
      for (let c = 0; c < channels; c++)
        for (let b = 0; b < bands; b++)
          data[o * inputs + (s * bands + b) * channels + c] = weight.data[o * inputs + (s * channels + c) * bands + b]!;
  return { weight: { outputs: dimensions, inputs, data }, bias };
}

function quantize({ stem, blocks, last, map }: Resnet34, peaks: Peaks): NamedTensor[] {
  const steps = (input: string, ...reading: (Convolution | null)[]) =>
    balancedSteps(largestOf(...reading.filter((one) => one !== null)), peaks(input), high);
  let x = steps(blocks[0]!.input, blocks[0]!.conv1);
  const made = stemTensors("stem", stem, x);
  for (const [i, block] of blocks.entries()) {
    const following = blocks[i + 1];
    const h = steps(block.between, block.conv2);
    const y = following ? steps(following.input, following.conv1, following.shortcut) : fineSteps(peaks(last));
    const most = block.words ? patchWordMost : byteMost;
    const held = { most, high, times: patchTimes, firstTimes: block.shortcut ? 1 : patchTimes };
    made.push(...residualBlock(`blocks.${i}`, block, [x, h, y], peaks, held));
    x = y;
  }
  const { inputs } = map.weight;
  made.push(
    ...quantized("fc", [dimensions, inputs], map, {
      inSteps: repeated(x, inputs / x.length),
      outSteps: ones(dimensions),
      most: byteMost,
      // Sums of the last map are kept in 64 bits.
      high: 0,
    }),
  );
  return made;
}
