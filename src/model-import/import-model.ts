/** Turns a published network into a model file: integers for the kernels, scaled by speech that the user provides. */
import type { FrontEnd } from "../engine/front-end.js";
import { Kernels } from "../engine/kernels.js";
import { Network, weightsOf } from "../engine/network.js";
import { compileKernels } from "../engine/platform.js";
import { type SpeakerArchitecture, speakerTensors } from "../engine/speaker-tensors.js";
import { StreamKernel } from "../engine/stream-kernel.js";
import { tdnnNetworkOf, tdnnProgram, tdnnTensors } from "../engine/tdnn-layers.js";
import type { Pcm } from "../evaluate/evaluate.js";
import { findCampplus } from "./campplus.js";
import { findEcapa } from "./ecapa.js";
import { checkOperators, checkReferences, compute, orMalformed } from "./float-graph.js";
import { ImportRefusal } from "./import-refusal.js";
import { sectionBytes, tensorBytes } from "./model-writer.js";
import { Moments } from "./moments.js";
import type { QuantizedNetwork, RecognizedNetwork } from "./network.js";
import { type FloatTensor, type OnnxGraph, readOnnx } from "./onnx.js";
import { findResnet34 } from "./resnet34.js";
import { findTitanet } from "./titanet.js";

export interface ImportedNetwork {
  /** The section `network` of a model file. */
  readonly section: Uint8Array;
  readonly architecture: SpeakerArchitecture;
  readonly dimensions: number;
  /** Number of windows of speech used for the scales. */
  readonly windows: number;
  /** Cosine between the embeddings of the kernels and of the published network, over these windows. */
  readonly likeness: { readonly median: number; readonly worst: number };
}

const bins = 80;
const dimensions = 256;
/** Length of the windows used for the scales. */
const windowFrames = 200;
const windowSeconds = 4;
const mostWindows = 12;
const fewestWindows = 4;
/** Below this median the graph is not the network that it seems to be. */
const leastMedian = 0.99;

/** As the published networks were trained: no floor is added to the powers. */
const frontEndOf = ({ rows }: RecognizedNetwork): FrontEnd => ({ rows, floor: 0 });

const describedFrontEnd = ({ rows, unit = 1, standardized }: RecognizedNetwork) => ({
  rateHz: 16000,
  frameSamples: 400,
  shiftSamples: 160,
  bins,
  lowHz: 20,
  highHz: 8000,
  preemphasis: 0.97,
  window: rows === "mel" ? "povey" : rows,
  logarithm: unit === 1 ? "natural" : "decibels",
  fftPoints: 512,
  floor: 2 ** -23,
  relativeFloor: 0,
  mean: "removed over the window",
  deviation: standardized ? "one over the window" : "as it is",
});

export async function importNetwork(
  onnx: Uint8Array,
  speech: AsyncIterable<Pcm>,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<ImportedNetwork> {
  const graph = readOnnx(onnx);
  checkOperators(graph);
  checkReferences(graph);
  const find = () => findCampplus(graph) ?? findResnet34(graph) ?? findEcapa(graph) ?? findTitanet(graph);
  const network = orMalformed("one of its layers", find);
  if (!network)
    throw new ImportRefusal(
      "this network is not supported: CAM++, ECAPA-TDNN, TitaNet and the ResNet34 of WeSpeaker can be imported",
    );
  const module = await compileKernels();
  const windows = await speechWindows(module, network, speech);
  if (windows.length < fewestWindows)
    throw new ImportRefusal(
      `${windows.length} recordings have ${windowFrames / 100} s of speech; at least ${fewestWindows} are needed to scale the network`,
    );
  const peaks = new Map<string, Float64Array>(network.observed.map((name) => [name, new Float64Array()]));
  const moments = new Map((network.readings ?? []).map((reading) => [reading, new Moments(reading)]));
  const published: Float32Array[] = [];
  for (const [i, features] of windows.entries()) {
    const output = compute(graph, asPublished(features, network, graph), features.length / bins, (name, tensor) => {
      if (peaks.has(name)) peaks.set(name, raised(peaks.get(name)!, tensor));
      for (const one of moments.values()) if (one.reading.input === name) one.add(tensor);
    });
    if (output.data.length !== network.outputs)
      throw new ImportRefusal(
        `the output of the network must have ${network.outputs} numbers, got ${output.data.length}`,
      );
    published.push(output.data);
    onProgress(i + 1, windows.length);
  }
  const quantized = orMalformed("one of its layers", () =>
    network.quantize(
      (name) => peaks.get(name)!,
      (reading) => moments.get(reading)!,
    ),
  );
  const { architecture } = network;
  assertAsTheKernelsTakeThem(quantized, architecture);
  const likeness = likenessOf(published, embedded(module, network, quantized, windows));
  if (!(likeness.median >= leastMedian))
    throw new ImportRefusal(
      `the imported network differs too much from the original: their median cosine is ${likeness.median.toFixed(4)}, expected at least ${leastMedian}`,
    );
  const frontEnd = describedFrontEnd(network);
  const description = { architecture, dimensions, windowSeconds, frontEnd, ...quantized.layers };
  const section = sectionBytes(description, quantized.tensors);
  return { section, architecture, dimensions, windows: windows.length, likeness };
}

/** The first window of net speech of each recording, as the engine extracts it. */
async function speechWindows(
  module: WebAssembly.Module,
  network: RecognizedNetwork,
  speech: AsyncIterable<Pcm>,
): Promise<Float32Array[]> {
  const kernels = new Kernels(module);
  const streams = new StreamKernel(kernels, windowFrames, network.rows);
  kernels.run.seal();
  const found: Float32Array[] = [];
  for await (const { samples, rateHz } of speech) {
    const format = { rateHz, maxSpeechSeconds: windowFrames / 100 + 1 };
    const [first] = streams.advance(null, format, samples).windows;
    if (first) found.push(first.features);
    if (found.length === mostWindows) break;
  }
  return found;
}

/** Removes the mean over time and converts to the units and order of the network's features. */
function asPublished(features: Float32Array, network: RecognizedNetwork, { inputShape }: OnnxGraph): FloatTensor {
  const frames = features.length / bins;
  const data = new Float32Array(features.length);
  const isTurned = inputShape[1] === bins && inputShape[2] !== bins;
  for (let bin = 0; bin < bins; bin++) {
    const values = Float64Array.from({ length: frames }, (_, t) => features[t * bins + bin]!);
    const mean = values.reduce((sum, x) => sum + x, 0) / frames;
    const deviation = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (frames - 1));
    const scale = network.standardized ? 1 / (deviation + 1e-5) : (network.unit ?? 1);
    for (let t = 0; t < frames; t++) data[isTurned ? bin * frames + t : t * bins + bin] = (values[t]! - mean) * scale;
  }
  return { shape: isTurned ? [1, bins, frames] : [1, frames, bins], data };
}

/** The largest value of each channel of [1][channels][…]. */
function raised(before: Float64Array, { shape, data }: FloatTensor): Float64Array {
  const channels = shape[1]!;
  const run = data.length / channels;
  return Float64Array.from({ length: channels }, (_, c) => {
    let most = before[c] ?? 0;
    for (let i = c * run; i < (c + 1) * run; i++) most = Math.max(most, Math.abs(data[i]!));
    return most;
  });
}

function assertAsTheKernelsTakeThem({ tensors, layers }: QuantizedNetwork, architecture: SpeakerArchitecture): void {
  const specs = architecture === "tdnn-1" ? tdnnTensors(tdnnNetworkOf({ ...layers })) : speakerTensors(architecture);
  const [wanted, made] = [specs, tensors].map((list) =>
    list.map(({ name, dtype, shape }) => `${name} ${dtype} ${shape.join()}`),
  ) as [string[], string[]];
  const at = wanted.findIndex((one, i) => one !== made[i]);
  if (at >= 0 || made.length !== wanted.length)
    throw new Error(`tensor ${at} is ${made[at]}; the kernels expect ${wanted[at]}`);
}

function embedded(
  module: WebAssembly.Module,
  recognized: RecognizedNetwork,
  { tensors, layers }: QuantizedNetwork,
  windows: readonly Float32Array[],
): Float32Array[] {
  const kernels = new Kernels(module);
  const held = tensors.map((tensor) => ({ bytes: tensorBytes(tensor) }));
  const weights = weightsOf(held, (bytes) => new Uint8Array(bytes));
  const { architecture } = recognized;
  const program = layers ? tdnnProgram(layers) : new Int32Array();
  const frontEnd = frontEndOf(recognized);
  const network = new Network(kernels, { architecture, frontEnd, program, weights }, windowFrames);
  kernels.run.seal();
  return windows.map((features) => network.embed(features));
}

function likenessOf(published: readonly Float32Array[], made: readonly Float32Array[]) {
  const cosines = published.map((one, i) => cosine(one, made[i]!)).sort((a, b) => a - b);
  return { median: cosines[Math.floor(cosines.length / 2)]!, worst: cosines[0]! };
}

function cosine(one: Float32Array, other: Float32Array): number {
  let [product, a, b] = [0, 0, 0];
  for (let i = 0; i < one.length; i++) {
    product += one[i]! * other[i]!;
    a += one[i]! ** 2;
    b += other[i]! ** 2;
  }
  return product / Math.sqrt(a * b);
}
