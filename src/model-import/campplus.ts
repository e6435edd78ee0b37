/**
 * CAM++ of 3D-Speaker and WeSpeaker: a 2-D convolutional front, a dense TDNN with context-aware masks, mean and deviation over
 * time, a linear map. Its convolutions have the same order in every export; batch norms are folded in or follow them.
 */
import { BLOCK_LAYERS, BOTTLENECK, CONTEXT, FRONT_CHANNELS, GROWTH } from "../engine/speaker-tensors.js";
import {
  type Convolution,
  flatTensors,
  folded,
  LayerOrder,
  largestOf,
  matrixOf,
  normOf,
  plane,
  repeated,
  residualBlock,
  shapeOf,
  stemTensors,
  unlike,
  usersIn,
} from "./layers.js";
import type { Moments, Reading } from "./moments.js";
import type { MomentsOf, Peaks, RecognizedNetwork } from "./network.js";
import type { OnnxGraph, OnnxNode } from "./onnx.js";
import {
  balancedSteps,
  byteMost,
  fineSteps,
  heldSteps,
  type Matrix,
  type NamedTensor,
  ones,
  quantized,
  wordHigh,
  wordMost,
} from "./quantize.js";

const dilations = [1, 2, 2];
const frontBins = 10;
const published = 192;
const dimensions = 256;

/** Activations have 12 bits, and four of 3 × 3 are added before the multiplication: eight times their sums stay below 2^31. */
const high = 4095;
const quadTimes = 8;
/** The inputs of the context's layers have no upper limit. */
const unbounded = 1e6;

interface Layer extends Convolution, Reading {}

/** A separate batch norm before a convolution. */
interface Norm {
  readonly input: string;
  readonly gain: Float64Array;
  readonly bias: Float64Array;
  /** The largest values to expect before and after it, from the statistics of the network's own training. */
  readonly expected: { readonly before: Float64Array; readonly after: Float64Array };
}

/**
 * A channel that a few windows of speech leave silent is loud for another voice. The norms know: they hold mean and deviation of every
 * channel over the network's training. Chosen on 199 recordings of the training corpora: 8, 12 and 20 were tried.
 */
const deviations = 12;
/** Margin over the largest activation seen. With 3, telephone speech saturated after an import with wide-band speech. */
const room = 5;

interface DenseLayer {
  readonly norm: Norm;
  readonly bottleneck: Layer;
  readonly local: Layer;
  readonly squeeze: Layer;
  readonly excite: Layer;
}

interface Campplus {
  readonly stem: Layer;
  readonly front: readonly { readonly conv1: Layer; readonly conv2: Layer; readonly shortcut: Layer | null }[];
  readonly frontEnd: Layer;
  /** Output of `frontEnd`, after ReLU: [channel][bin][frame]. */
  readonly flattened: string;
  readonly tdnn: Layer;
  readonly blocks: readonly { readonly layers: readonly DenseLayer[]; readonly norm: Norm; readonly linear: Layer }[];
  /** Input of the statistics. */
  readonly statistics: string;
  readonly dense: Layer;
}

/** `null` if the graph is another network. */
export function findCampplus(graph: OnnxGraph): RecognizedNetwork | null {
  const convolutions = graph.nodes.filter(({ type }) => type === "Conv");
  const pooled = graph.nodes.filter(({ type }) => type === "AveragePool");
  if (!convolutions[0] || shapeOf(graph, convolutions[0]) !== "32,1,3,3" || pooled.length === 0) return null;
  const found = layersOf(graph, convolutions);
  return {
    architecture: "campplus-1",
    rows: "mel",
    outputs: published,
    observed: observedIn(found),
    readings: found.blocks.flatMap(({ layers, linear }) => [
      ...layers.flatMap((one) => [one.bottleneck, one.local]),
      linear,
    ]),
    quantize: (peaks, moments) => ({ tensors: quantize(found, peaks, moments) }),
  };
}

function layersOf(graph: OnnxGraph, convolutions: readonly OnnxNode[]): Campplus {
  const made = new Map(graph.nodes.map((node) => [node.outputs[0]!, node]));
  const users = usersIn(graph);
  const order = new LayerOrder("a CAM++", graph, convolutions);
  const layer = (...shape: number[]): Layer => {
    const node = order.take(...shape);
    return {
      ...folded(graph, node, normBehind(node.outputs[0]!)),
      input: node.inputs[0]!,
      taps: shape.at(-1)!,
      dilation: dilationOf(node),
    };
  };
  /** A norm belongs to the convolution if nothing else reads its output, squeezed or not: the last layer has no time axis. */
  const normBehind = (output: string): OnnxNode | undefined => {
    const [user, ...more] = users(output);
    if (more.length > 0) return undefined;
    if (user?.type === "Squeeze") return normBehind(user.outputs[0]!);
    return user?.type === "BatchNormalization" ? user : undefined;
  };
  const rectified = (name: string): string => {
    const relu = users(name).find(({ type }) => type === "Relu");
    if (!relu) throw unlike("a CAM++", `no Relu follows ${name}`);
    return relu.outputs[0]!;
  };
  /** The input of a convolution comes from a batch norm and a ReLU. */
  const normBefore = ({ input }: Layer): Norm => {
    const norm = made.get(made.get(input)?.inputs[0] ?? "");
    if (norm?.type !== "BatchNormalization") throw unlike("a CAM++", `no BatchNormalization produces ${input}`);
    const { gain, bias, mean, deviation, slope, level } = normOf(graph, norm);
    return {
      input: norm.inputs[0]!,
      gain: slope,
      bias: level,
      expected: {
        before: deviation.map((d, c) => Math.abs(mean[c]!) + deviations * d),
        after: deviation.map((_, c) => Math.max(0, bias[c]! + deviations * Math.abs(gain[c]!))),
      },
    };
  };

  const wide = () => layer(FRONT_CHANNELS, FRONT_CHANNELS, 3, 3);
  const stem = layer(FRONT_CHANNELS, 1, 3, 3);
  const front = [true, false, true, false].map((strided) => ({
    conv1: wide(),
    conv2: wide(),
    shortcut: strided ? layer(FRONT_CHANNELS, FRONT_CHANNELS, 1, 1) : null,
  }));
  const frontEnd = wide();
  const tdnn = layer(BOTTLENECK, FRONT_CHANNELS * frontBins, 5);
  let channels = BOTTLENECK;
  const blocks = BLOCK_LAYERS.map((count) => {
    const layers = Array.from({ length: count }, (): DenseLayer => {
      const narrowed = layer(BOTTLENECK, channels, 1);
      channels += GROWTH;
      return {
        norm: normBefore(narrowed),
        bottleneck: narrowed,
        local: layer(GROWTH, BOTTLENECK, 3),
        squeeze: layer(CONTEXT, BOTTLENECK, 1),
        excite: layer(GROWTH, CONTEXT, 1),
      };
    });
    const linear = layer(channels / 2, channels, 1);
    channels /= 2;
    return { layers, norm: normBefore(linear), linear };
  });
  const statistics = rectified(blocks.at(-1)!.linear.output);
  const dense = layer(published, 2 * channels, 1);
  if (order.next) throw unlike("a CAM++", `has ${convolutions.length} convolutions; expected ${order.taken}`);
  for (const [b, { layers }] of blocks.entries())
    for (const { local } of layers) assertDilated(graph, convolutions, local, dilations[b]!);
  return { stem, front, frontEnd, flattened: rectified(frontEnd.output), tdnn, blocks, statistics, dense };
}

function assertDilated(graph: OnnxGraph, convolutions: readonly OnnxNode[], { output }: Layer, wanted: number): void {
  const node = convolutions.find(({ outputs }) => outputs[0] === output)!;
  if (dilationOf(node) === wanted) return;
  const is = `a convolution of ${shapeOf(graph, node)} has dilation ${dilationOf(node)}`;
  throw unlike("a CAM++", `${is}; expected ${wanted}`);
}

const dilationOf = ({ attributes }: OnnxNode): number => attributes.get("dilations")?.integers?.[0] ?? 1;

const observedIn = ({ front, frontEnd, flattened, blocks, statistics }: Campplus): string[] => [
  ...front.flatMap(({ conv1, conv2, shortcut }) => [conv1.input, conv2.input, ...(shortcut ? [shortcut.output] : [])]),
  frontEnd.input,
  flattened,
  ...blocks.flatMap(({ layers, norm, linear }) => [
    ...layers.flatMap((one) => [one.norm.input, one.bottleneck.input, one.local.input, one.excite.input]),
    norm.input,
    linear.input,
    linear.output,
  ]),
  statistics,
];

function quantize(
  { stem, front, frontEnd, flattened, tdnn, blocks, statistics, dense }: Campplus,
  peaks: Peaks,
  moments: MomentsOf,
) {
  const held = (name: string) => heldSteps(peaks(name), high, room);
  const out = stemTensors("front.conv1", stem, held(front[0]!.conv1.input));
  const wide = { most: wordMost, high, times: quadTimes };
  for (const [i, block] of front.entries()) {
    const y = held(front[i + 1]?.conv1.input ?? frontEnd.input);
    const steps = [held(block.conv1.input), held(block.conv2.input), y] as const;
    const name = `front.stage${1 + (i >> 1)}.${i % 2}`;
    out.push(...residualBlock(name, block, steps, peaks, { ...wide, firstTimes: quadTimes }));
  }
  // All bins of a channel share the step at the end of the front.
  const perChannel = held(flattened);
  out.push(...plane("front.conv2", frontEnd, { inSteps: held(frontEnd.input), outSteps: perChannel, ...wide }));
  let concatenated = concatenatedSteps(blocks[0]!.norm, peaks);
  out.push(
    ...line("tdnn", tdnn, repeated(perChannel, frontBins), concatenated.subarray(0, BOTTLENECK), undefined, (c) => {
      // The graph flattens [channel][bin], the kernels [bin][channel].
      return (c % FRONT_CHANNELS) * frontBins + Math.floor(c / FRONT_CHANNELS);
    }),
  );
  for (const [b, { layers, norm, linear }] of blocks.entries()) {
    concatenated = concatenatedSteps(norm, peaks);
    let channels = layers[0]!.norm.gain.length;
    for (const [i, one] of layers.entries()) {
      const name = `block${b + 1}.${i}`;
      const before = concatenated.subarray(0, channels);
      const hidden = normedSteps(one.norm, before, one.bottleneck, peaks);
      const between = balancedSteps(largestOf(one.local), peaks(one.local.input), high, room);
      const excited = balancedSteps(largestOf(one.excite), peaks(one.excite.input), unbounded, room);
      out.push(...norming(`${name}.norm`, one.norm, before, hidden));
      const after = concatenated.subarray(channels, channels + GROWTH);
      out.push(...line(`${name}.bottleneck`, one.bottleneck, hidden, between, moments(one.bottleneck)));
      out.push(...line(`${name}.local`, one.local, between, after, moments(one.local)));
      out.push(...flatTensors(`${name}.squeeze`, one.squeeze, between, excited, byteMost));
      out.push(...flatTensors(`${name}.excite`, one.excite, excited, ones(GROWTH), byteMost));
      channels += GROWTH;
    }
    const name = `transit${b + 1}`;
    const hidden = normedSteps(norm, concatenated, linear, peaks);
    out.push(...norming(`${name}.norm`, norm, concatenated, hidden));
    const following = blocks[b + 1];
    const after = following ? concatenatedSteps(following.norm, peaks) : fineSteps(peaks(linear.output));
    out.push(...line(`${name}.linear`, linear, hidden, after.subarray(0, channels / 2), moments(linear)));
  }
  // The norm after the last block is folded into that block's convolution.
  const { output } = blocks.at(-1)!.linear;
  const before = fineSteps(peaks(output));
  const step = fineSteps(peaks(statistics)).map((s, c) => Math.max(s, before[c]! * justAbove));
  const unit = { gain: ones(step.length), bias: new Float64Array(step.length) };
  out.push(...norming("out.norm", unit, before, step));
  out.push(...flatTensors("dense", dense, repeated(step, 2), ones(published), byteMost));
  out.push(
    ...quantized(
      "map",
      [dimensions, published],
      { weight: padding(), bias: new Float64Array(dimensions) },
      { inSteps: ones(published), outSteps: ones(dimensions), most: wordHigh, high: 0 },
    ),
  );
  return out;
}

/** Gains of norms are fractions of 2^15 and must stay below 1. */
const justAbove = 1.0001;
const mostNormBias = 32000;

/** Steps before a norm, which reads all that its block has made so far. */
const concatenatedSteps = ({ input, expected }: Norm, peaks: Peaks): Float64Array =>
  roomFor(expected.before, fineSteps(peaks(input)), wordHigh);

/** Steps between a norm and the convolution that reads it. */
function normedSteps(norm: Norm, before: Float64Array, reading: Layer, peaks: Peaks): Float64Array {
  const { gain, bias, expected } = norm;
  const steps = balancedSteps(largestOf(reading), peaks(reading.input), high, room);
  return roomFor(expected.after, steps, high).map((step, c) =>
    Math.max(step, Math.abs(gain[c]!) * before[c]! * justAbove, Math.abs(bias[c]!) / mostNormBias),
  );
}

/** Room for the expected values, but no more than the channel with the largest step has: norms of some exports hold no statistics. */
function roomFor(expected: Float64Array, steps: Float64Array, most: number): Float64Array {
  const largestStep = steps.reduce((found, step) => Math.max(found, step), 0);
  return steps.map((step, c) => Math.max(step, Math.min(largestStep, expected[c]! / most)));
}

function norming(
  name: string,
  { gain, bias }: Pick<Norm, "gain" | "bias">,
  before: Float64Array,
  after: Float64Array,
): NamedTensor[] {
  const word = (value: number) => Math.max(-32768, Math.min(32767, Math.round(value)));
  const shape = [gain.length];
  const gains = gain.map((g, c) => word(((g * before[c]!) / after[c]!) * 32768));
  return [
    { name: `${name}.gain`, dtype: "i16", shape, values: gains },
    { name: `${name}.bias`, dtype: "i16", shape, values: bias.map((b, c) => word(b / after[c]!)) },
  ];
}

/** A convolution over time: weights [outputs][taps][channels], the channels in the kernels' order. */
function line(
  name: string,
  layer: Layer,
  inSteps: Float64Array,
  outSteps: Float64Array,
  moments?: Moments,
  theirs?: (channel: number) => number,
): NamedTensor[] {
  const [outputs, channels, taps] = layer.weight.shape as [number, number, number];
  const held = { inSteps: repeated(inSteps, taps), outSteps, most: byteMost, high, ...(moments && { moments }) };
  return quantized(name, [outputs, taps, channels], { weight: matrixOf(layer, theirs), bias: layer.bias }, held);
}

/** The kernels' embeddings are longer than the published ones: the rest is zeros. */
function padding(): Matrix {
  const data = new Float64Array(dimensions * published);
  for (let i = 0; i < published; i++) data[i * published + i] = 1;
  return { outputs: dimensions, inputs: published, data };
}
