/** Layers without a time axis: a convolution, a Gemm or a MatMul of one vector. */
import { ImportRefusal } from "./import-refusal.js";
import { type Convolution, normOf, type Users } from "./layers.js";
import type { OnnxGraph, OnnxNode } from "./onnx.js";
import type { Matrix } from "./quantize.js";

const mostDimensions = 256;
/** Operators that change no value. */
export const shapeless = ["Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Identity", "Cast"];

export interface StatisticsMap {
  readonly weight: Matrix;
  readonly bias: Float64Array;
}

/** A layer with constant weights. */
export const isWeighted = ({ constants }: OnnxGraph, { type, inputs }: OnnxNode): boolean =>
  (type === "Conv" || type === "Gemm" || type === "MatMul") && constants.has(inputs[1]!);

/** Weights [outputs][inputs]. An Add after a MatMul is its bias. */
export function flatLayer(graph: OnnxGraph, node: OnnxNode, users?: Users): Convolution {
  const given = graph.constants.get(node.inputs[1]!)!;
  const isTurned = node.type === "MatMul" || (node.type === "Gemm" && node.attributes.get("transB")?.integer !== 1);
  const [outputs, inputs] = isTurned ? [given.shape[1]!, given.shape[0]!] : [given.shape[0]!, given.shape[1]!];
  const data = isTurned
    ? given.data.map((_, k) => given.data[(k % inputs) * outputs + Math.floor(k / inputs)]!)
    : given.data;
  const [user] = users?.(node.outputs[0]!) ?? [];
  const added = user?.type === "Add" ? user.inputs.map((name) => graph.constants.get(name)).find(Boolean) : undefined;
  const bias = graph.constants.get(node.inputs[2] ?? "")?.data ?? added?.data ?? new Float32Array(outputs);
  return { weight: { shape: [outputs, inputs], data }, bias, output: node.outputs[0]! };
}

/** The map of the statistics (a convolution or a product), with the batch norms before and after it. */
export function mapOf(graph: OnnxGraph, users: Users, last: OnnxNode | undefined, inputs: number): StatisticsMap {
  const { nodes } = graph;
  const node = last ?? nodes.find((one) => one.type !== "Conv" && isWeighted(graph, one));
  if (!node) throw new ImportRefusal("the network has attentive statistics, but no map follows them");
  const { weight, bias: level } = flatLayer(graph, node);
  const [outputs, columns] = weight.shape as [number, number];
  if (columns !== inputs || outputs > mostDimensions)
    throw new ImportRefusal(
      `the network's last layer maps ${columns} values to ${outputs}; the kernels can map ${inputs} to at most ${mostDimensions}`,
    );
  const [data, bias] = [Float64Array.from(weight.data), Float64Array.from(level)];
  const maker = (name: string): OnnxNode | undefined => {
    const made = nodes.find((one) => one.outputs[0] === name);
    return made && shapeless.includes(made.type) ? maker(made.inputs[0]!) : made;
  };
  const reader = (name: string): OnnxNode | undefined => {
    const [user] = users(name);
    return user && shapeless.includes(user.type) ? reader(user.outputs[0]!) : user;
  };
  const entering = maker(node.inputs[0]!);
  if (entering?.type === "BatchNormalization") {
    const { slope, level: before } = normOf(graph, entering);
    for (let k = 0; k < data.length; k++) {
      bias[Math.floor(k / inputs)]! += data[k]! * before[k % inputs]!;
      data[k]! *= slope[k % inputs]!;
    }
  }
  const leaving = reader(node.outputs[0]!);
  if (leaving?.type === "BatchNormalization") {
    const { slope, level: after } = normOf(graph, leaving);
    for (let k = 0; k < data.length; k++) data[k]! *= slope[Math.floor(k / inputs)]!;
    for (let o = 0; o < outputs; o++) bias[o] = bias[o]! * slope[o]! + after[o]!;
  }
  return { weight: { outputs, inputs, data }, bias };
}
