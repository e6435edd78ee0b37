/** Room that CAM++'s integers leave for channels that the speech of an import left silent. */
import { beforeAll, expect, test, vi } from "vitest";
import { shippedModel } from "../../src/engine/shipped-model.js";
import { findCampplus } from "../../src/model-import/campplus.js";
import { type OnnxGraph, readOnnx } from "../../src/model-import/onnx.js";
import { publishedCampplus, tensorsOf } from "./published-graphs.js";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

let graph: OnnxGraph;
beforeAll(async () => {
  graph = readOnnx(publishedCampplus(await tensorsOf(shippedModel)));
});

function channelsOf(name: string): number {
  const { type, inputs } = graph.nodes.find(({ outputs }) => outputs[0] === name)!;
  if (type === "Conv") return graph.constants.get(inputs[1]!)!.shape[0]!;
  return type === "Concat" ? inputs.reduce((sum, input) => sum + channelsOf(input), 0) : channelsOf(inputs[0]!);
}

/** Biases of the norm before the first dense layer, as the kernels' integers: they tell the step of each channel, which is bias / integer. */
function importedBiases(statistics: { gain: number; bias: number; deviation: number }): ArrayLike<number> {
  const norm = graph.nodes.find(({ type }) => type === "BatchNormalization")!;
  const { gain, bias, deviation } = statistics;
  const constants = new Map(graph.constants);
  for (const [i, value] of [gain, bias, 0, deviation ** 2].entries())
    constants.set(norm.inputs[i + 1]!, { shape: [128], data: new Float32Array(128).fill(value) });
  const { quantize } = findCampplus({ ...graph, constants })!;
  // The speech of the import is heard by the first channel of each layer alone.
  const peaks = (name: string) => new Float64Array(channelsOf(name)).fill(loudest, 0, 1);
  const { tensors } = quantize(peaks, () => undefined as never);
  return tensors.find(({ name }) => name === "block1.0.norm.bias")!.values;
}
const loudest = 20;
const high = 4095;

test("a channel that was silent has room for twelve deviations of its norm", () => {
  const [gain, bias] = [4, 1];
  const integers = importedBiases({ gain, bias, deviation: 1 });
  expect((bias / integers[5]!) * high).toBeGreaterThan(0.98 * (bias + 12 * gain)); // The integer is about 80: rounding takes 1 %.
});

test("it gets no more room than the loudest channel has: the norms of some exports hold no statistics", () => {
  const integers = importedBiases({ gain: 1000, bias: 1, deviation: 1e4 });
  expect(integers[5]!).toBeGreaterThanOrEqual(integers[0]!);
  expect(integers[0]!).toBeGreaterThan(0);
});
