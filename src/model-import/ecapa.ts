/**
 * ECAPA-TDNN of SpeechBrain, WeSpeaker and others, of any width: a convolution, three Res2Net blocks with squeeze and excitation, their three
 * outputs concatenated, attentive statistics, a linear map. Its convolutions have the same order in every export.
 */

import { flatLayer, mapOf } from "./flat-layers.js";
import { type Convolution, LayerOrder, type Users, unlike, usersIn } from "./layers.js";
import type { Peaks, RecognizedNetwork } from "./network.js";
import type { OnnxGraph, OnnxNode } from "./onnx.js";
import { type BoundedConvolution, boundedConvolution, type Signal, TdnnBuilder } from "./tdnn-builder.js";

const bins = 80;
const parts = 8;
/** SpeechBrain's features are in decibels, not natural logarithms. */
const decibels = 10 / Math.LN10;

interface Block {
  readonly wide: BoundedConvolution;
  /** All parts except one, each with its input: a part of `wide`, plus the output of the part before. */
  readonly narrow: readonly { readonly layer: BoundedConvolution; readonly input: string; readonly part: number }[];
  readonly joined: BoundedConvolution;
  readonly squeeze: Convolution;
  readonly excite: Convolution;
  /** Output of the block, with its input added. */
  readonly output: string;
}

type Ecapa = ReturnType<typeof layersOf>;

/** `null` if the graph is another network. */
export function findEcapa(graph: OnnxGraph): RecognizedNetwork | null {
  const convolutions = graph.nodes.filter(({ type }) => type === "Conv");
  const first = convolutions[0] && graph.constants.get(convolutions[0].inputs[1]!)?.shape;
  const isGrouped = convolutions.some(({ attributes }) => (attributes.get("group")?.integer ?? 1) !== 1);
  if (first?.length !== 3 || first[1] !== bins || first[2] === 1 || isGrouped) return null;
  const found = layersOf(graph, convolutions);
  const { first: stem, blocks, all, hidden, score, map } = found;
  const unit = stem.mirrored ? decibels : 1;
  return {
    architecture: "tdnn-1",
    rows: "hamming",
    unit,
    outputs: map.weight.outputs,
    observed: [
      stem.output,
      ...blocks.flatMap(({ wide, narrow, joined, output }) => [
        wide.output,
        ...narrow.flatMap(({ layer, input }) => [input, layer.output]),
        joined.output,
        output,
      ]),
      all.output,
      hidden.output,
      score.output,
    ],
    quantize: (peaks) => quantize(found, peaks, unit),
  };
}

function layersOf(graph: OnnxGraph, convolutions: readonly OnnxNode[]) {
  const users = usersIn(graph);
  const maker = (name: string) => graph.nodes.find(({ outputs }) => outputs.includes(name));
  const order = new LayerOrder("an ECAPA-TDNN", graph, convolutions);
  const bounded = (...shape: (number | null)[]) => boundedConvolution(graph, users, order.take(...shape));
  const flat = (...shape: (number | null)[]) => flatLayer(graph, order.take(...shape));
  /** Skips operators that only pad. */
  const inputOf = ({ inputs }: OnnxNode): string => {
    const made = maker(inputs[0]!);
    return made?.type === "Pad" ? made.inputs[0]! : inputs[0]!;
  };

  const first = bounded(null, bins, null);
  const channels = first.weight.shape[0]!;
  const width = channels / parts;
  const blocks: Block[] = [];
  for (let input = first.output; blocks.length < 3; input = blocks.at(-1)!.output) {
    const wide = bounded(channels, channels, 1);
    const pieces = piecesOf(users, wide.output);
    const narrow = Array.from({ length: parts - 1 }, () => {
      const reading = order.take(width, width, null);
      const entered = inputOf(reading);
      const sources = [entered, ...(maker(entered)?.inputs ?? [])];
      const part = pieces.findIndex((piece) => sources.includes(piece));
      if (part < 0) throw unlike("an ECAPA-TDNN", `${entered} is not a part of ${wide.output}`);
      return { layer: boundedConvolution(graph, users, reading), input: entered, part };
    });
    const joined = bounded(channels, channels, 1);
    const squeeze = flat(null, channels, 1);
    const excite = flat(channels, squeeze.weight.shape[0]!, 1);
    const gated = users(joined.output).find(({ type }) => type === "Mul");
    const sum = gated && users(gated.outputs[0]!).find(({ type }) => type === "Add");
    if (!sum?.inputs.includes(input))
      throw unlike("an ECAPA-TDNN", `block ${blocks.length + 1} does not add its input`);
    blocks.push({ wide, narrow, joined, squeeze, excite, output: sum.outputs[0]! });
  }
  const all = bounded(null, 3 * channels, 1);
  const many = all.weight.shape[0]!;
  const hidden = bounded(null, null, 1);
  const read = hidden.weight.shape[1]!;
  if (read !== many && read !== 3 * many)
    throw unlike("an ECAPA-TDNN", `its attention reads ${read} channels, neither ${many} nor ${3 * many}`);
  const score = flat(many, hidden.weight.shape[0]!, 1);
  return { first, blocks, all, hidden, score, map: mapOf(graph, users, order.next, 2 * many) };
}

/** The names of the equal parts into which a tensor is split, in order. */
function piecesOf(users: Users, name: string): readonly string[] {
  const split = users(name).find(({ type }) => type === "Split");
  if (split) return split.outputs;
  return users(name).flatMap(({ type, outputs }) => (type === "Slice" ? [outputs[0]!] : []));
}

function quantize({ first, blocks, all, hidden, score, map }: Ecapa, peaks: Peaks, unit: number) {
  const made = new TdnnBuilder(unit, false);
  const channels = first.weight.shape[0]!;
  const width = channels / parts;
  const [entry, inner, between, gated] = [
    made.line(channels),
    made.line(channels),
    made.line(width),
    made.line(channels),
  ];
  const beside = made.line(3 * channels);
  const part = ({ place, steps }: Signal, p: number): Signal => ({
    place: { line: place.line, channel: place.channel + p * width },
    steps: steps.subarray(p * width, (p + 1) * width),
  });
  let x = made.convolution("first", first, made.features, entry, peaks(first.output));
  const all3 = new Float64Array(3 * channels);
  for (const [b, block] of blocks.entries()) {
    const name = `blocks.${b}`;
    const wide = made.convolution(`${name}.wide`, block.wide, x, inner, peaks(block.wide.output));
    const joinedSteps = wide.steps.slice();
    let before: Signal | null = null;
    for (const [i, { layer, input, part: p }] of block.narrow.entries()) {
      const own = part(wide, p);
      // The convolution of a part writes its output over that part.
      const entered: Signal = made.add(`${name}.sums.${i}`, own, before, between, peaks(input));
      before = made.convolution(`${name}.narrow.${i}`, layer, entered, own.place, peaks(layer.output));
      joinedSteps.set(before.steps, p * width);
    }
    const joined = { place: wide.place, steps: joinedSteps };
    const u = made.convolution(`${name}.joined`, block.joined, joined, gated, peaks(block.joined.output));
    const to = { line: beside.line, channel: b * channels };
    x = made.gate(`${name}.gate`, [block.squeeze, block.excite], u, x, to, {
      peaks: peaks(block.output),
      rectified: false,
    });
    all3.set(x.steps, b * channels);
  }
  const concatenated = { place: beside, steps: all3 };
  const m = made.convolution("all", all, concatenated, made.line(all.weight.shape[0]!), peaks(all.output));
  made.attention("attention", hidden, score, m, { hidden: peaks(hidden.output), score: peaks(score.output) });
  made.map("map", map, m);
  return { tensors: made.tensors, layers: made.network };
}
