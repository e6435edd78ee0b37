/**
 * TitaNet of NeMo and similar networks, of any width and depth: blocks of depthwise and pointwise convolutions, each block with squeeze and
 * excitation and, in some blocks, its input added through a convolution; attentive statistics, a linear map. In every export its layers
 * are in the order of computation.
 */
import { flatLayer, isWeighted, mapOf, shapeless } from "./flat-layers.js";
import { type Convolution, LayerOrder, unlike, usersIn } from "./layers.js";
import type { Peaks, RecognizedNetwork } from "./network.js";
import type { OnnxGraph, OnnxNode } from "./onnx.js";
import { type BoundedConvolution, boundedConvolution, type Signal, TdnnBuilder } from "./tdnn-builder.js";

const bins = 80;

interface Block {
  readonly pairs: readonly { readonly depthwise: BoundedConvolution; readonly pointwise: BoundedConvolution }[];
  readonly squeeze: Convolution;
  readonly excite: Convolution;
  readonly shortcut: BoundedConvolution | null;
  /** Output of the block, after ReLU. */
  readonly output: string;
}

type Titanet = ReturnType<typeof layersOf>;

/** `null` if the graph is another network. */
export function findTitanet(graph: OnnxGraph): RecognizedNetwork | null {
  const weighted = graph.nodes.filter((node) => isWeighted(graph, node));
  if (!weighted[0] || !isDepthwise(graph, weighted[0]) || channelsOf(graph, weighted[0])[0] !== bins) return null;
  const found = layersOf(graph, weighted);
  const { blocks, hidden, score, map } = found;
  return {
    architecture: "tdnn-1",
    rows: "hamming",
    standardized: true,
    outputs: map.weight.outputs,
    observed: [
      ...blocks.flatMap(({ pairs, shortcut, output }) => [
        ...pairs.flatMap(({ depthwise, pointwise }) => [depthwise.output, pointwise.output]),
        ...(shortcut ? [shortcut.output] : []),
        output,
      ]),
      hidden.output,
      score.output,
    ],
    quantize: (peaks) => quantize(found, peaks),
  };
}

const channelsOf = ({ constants }: OnnxGraph, { inputs }: OnnxNode) => constants.get(inputs[1]!)!.shape;
const isDepthwise = (graph: OnnxGraph, node: OnnxNode): boolean => {
  const [outputs, inputs] = channelsOf(graph, node);
  return node.type === "Conv" && inputs === 1 && outputs! > 1 && node.attributes.get("group")?.integer === outputs;
};

function layersOf(graph: OnnxGraph, weighted: readonly OnnxNode[]) {
  const users = usersIn(graph);
  /** The next operator of a type downstream, skipping operators that change no value or only mask frames past the end. */
  const following = (name: string, type: string): string => {
    for (const node of users(name)) {
      if (node.type === type) return node.outputs[0]!;
      if (shapeless.includes(node.type) || node.type === "Where") {
        const found = following(node.outputs[0]!, type);
        if (found !== "") return found;
      }
    }
    return "";
  };
  const expected = (found: string, what: string): string => {
    if (found === "") throw unlike("a TitaNet", what);
    return found;
  };
  const order = new LayerOrder("a TitaNet", graph, weighted);
  const bounded = (...shape: (number | null)[]) => boundedConvolution(graph, users, order.take(...shape));
  const flat = (): Convolution => {
    const node = weighted[order.taken++];
    if (!node) throw unlike("a TitaNet", "a gate's layers are missing");
    return flatLayer(graph, node, users);
  };

  const blocks: Block[] = [];
  let inputs = bins;
  while (order.next && isDepthwise(graph, order.next)) {
    const pairs: { depthwise: BoundedConvolution; pointwise: BoundedConvolution }[] = [];
    let channels = inputs;
    while (order.next && isDepthwise(graph, order.next)) {
      const depthwise = bounded(channels, 1, null);
      const pointwise = bounded(null, channels, 1);
      channels = pointwise.weight.shape[0]!;
      pairs.push({ depthwise, pointwise });
      // The last layer of a block has its ReLU only after the gate.
      if (pointwise.low.some((low) => low === Number.NEGATIVE_INFINITY)) break;
    }
    // The block's input is read before or after its gate.
    const shortcutHere = () => {
      const [outputs, read] = order.next?.type === "Conv" ? channelsOf(graph, order.next) : [];
      return outputs === channels && read === inputs ? bounded(channels, inputs, 1) : null;
    };
    const before = shortcutHere();
    const [squeeze, excite] = [flat(), flat()];
    const sigmoid = expected(following(excite.output, "Sigmoid"), `no Sigmoid follows gate ${blocks.length + 1}`);
    const gated = expected(following(sigmoid, "Mul"), `gate ${blocks.length + 1} multiplies nothing`);
    const shortcut = before ?? shortcutHere();
    const sum = shortcut ? expected(following(gated, "Add"), `block ${blocks.length + 1} adds nothing`) : gated;
    const output = expected(following(sum, "Relu"), `no Relu ends block ${blocks.length + 1}`);
    blocks.push({ pairs, squeeze, excite, shortcut, output });
    inputs = channels;
  }
  const hidden = bounded(null, null, 1);
  const read = hidden.weight.shape[1]!;
  if (read !== inputs && read !== 3 * inputs)
    throw unlike("a TitaNet", `its attention reads ${read} channels, neither ${inputs} nor ${3 * inputs}`);
  const score = flat();
  return { blocks, hidden, score, map: mapOf(graph, users, order.next, 2 * inputs) };
}

function quantize({ blocks, hidden, score, map }: Titanet, peaks: Peaks) {
  const made = new TdnnBuilder(1, true);
  const widest = Math.max(...blocks.flatMap(({ pairs }) => pairs.map(({ pointwise }) => pointwise.weight.shape[0]!)));
  const widestRead = Math.max(
    ...blocks.flatMap(({ pairs }) => pairs.map(({ depthwise }) => depthwise.weight.shape[0]!)),
  );
  const [spread, mixed, beside] = [made.line(widestRead), made.line(widest), made.line(widest)];
  const lines = [made.line(widest), made.line(widest)];
  let x: Signal = made.features;
  for (const [b, { pairs, squeeze, excite, shortcut, output }] of blocks.entries()) {
    const name = `blocks.${b}`;
    let y = x;
    for (const [i, { depthwise, pointwise }] of pairs.entries()) {
      const wide = made.depthwise(`${name}.depthwise.${i}`, depthwise, y, spread, peaks(depthwise.output));
      y = made.convolution(`${name}.pointwise.${i}`, pointwise, wide, mixed, peaks(pointwise.output));
    }
    const added = shortcut ? made.convolution(`${name}.shortcut`, shortcut, x, beside, peaks(shortcut.output)) : null;
    x = made.gate(`${name}.gate`, [squeeze, excite], y, added, lines[b % 2]!, {
      peaks: peaks(output),
      rectified: true,
    });
  }
  made.attention("attention", hidden, score, x, { hidden: peaks(hidden.output), score: peaks(score.output) });
  made.map("map", map, x);
  return { tensors: made.tensors, layers: made.network };
}
