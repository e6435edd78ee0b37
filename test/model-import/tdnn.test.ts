/** Small ECAPA-TDNN and TitaNet graphs against onnxruntime: golden/tdnn.json has its output (bench/nn/tdnn-golden.mjs). */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { FRAMES, GRAPHS, goldenFeatures, graphInput } from "../../bench/nn/tdnn-golden.mjs";
import { openEngine } from "../../dist/engine/index.js";
import { Kernels } from "../../dist/engine/kernels.js";
import { Network, weightsOf } from "../../dist/engine/network.js";
import { compileKernels } from "../../dist/engine/platform.js";
import { type ImportedNetwork, importNetwork } from "../../dist/model-import/import-model.js";
import { modelFileBytes, sectionBytes } from "../../dist/model-import/model-writer.js";
import { readModelFile } from "../../src/engine/model-file.js";
import { tdnnNetworkOf } from "../../src/engine/tdnn-layers.js";
import { compute } from "../../src/model-import/float-graph.js";
import { readOnnx } from "../../src/model-import/onnx.js";
import { plainCalibration } from "../engine/random-model.js";
import { speak } from "../voice.js";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const rateHz = 16_000;
const golden: Record<string, number[]> = JSON.parse(readFileSync(new URL("golden/tdnn.json", import.meta.url), "utf8"));
const cosine = (a: ArrayLike<number>, b: ArrayLike<number>) => {
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    ab += a[i]! * b[i]!;
    aa += a[i]! ** 2;
    bb += b[i]! ** 2;
  }
  return ab / Math.sqrt(aa * bb);
};

async function* speech() {
  for (let speaker = 1; speaker <= 4; speaker++)
    yield { samples: speak({ speaker: 3 * speaker, seconds: 4, rateHz, seed: 1 }), rateHz };
}

describe.each(Object.entries(GRAPHS))("%s", (name, made) => {
  const graph = made.graph();
  let imported: ImportedNetwork;
  let model: Uint8Array;
  beforeAll(async () => {
    imported = await importNetwork(graph, speech());
    model = modelFileBytes(
      { family: "mine", licence: "none", trainingData: [] },
      new Map([
        ["network", imported.section],
        ["calibration", sectionBytes(plainCalibration)],
      ]),
    );
  });

  test("is reproduced by the kernels", () => {
    expect(imported).toMatchObject({ architecture: "tdnn-1", dimensions: 256, windows: 4 });
    expect(imported.likeness.worst).toBeGreaterThan(
      0.9997 /* rounding takes 0.0002; zeros in place of mirrored frames, 0.0005 */,
    );
  });

  test("is computed in floats as onnxruntime does", () => {
    const values = compute(readOnnx(graph), graphInput(made), FRAMES).data;
    for (const [i, value] of golden[name]!.entries())
      expect(Math.abs(values[i]! - value)).toBeLessThan(1e-3 /* f32 sums of a dozen layers, of values up to 10 */);
  });

  test("gives the embedding that onnxruntime gave", async () => {
    const { architecture, frontEnd, program, network } = await readModelFile(model);
    const kernels = new Kernels(await compileKernels());
    const weights = weightsOf(network.tensors, (bytes) => new Uint8Array(bytes));
    const run = new Network(kernels, { architecture, frontEnd, program, weights }, FRAMES);
    kernels.run.seal();
    // The kernels take natural logarithms; features that they divide by their deviation may have any scale.
    const features = goldenFeatures(made.deviation * (Math.LN10 / 10));
    expect(cosine(golden[name]!, run.embed(features))).toBeGreaterThan(0.995);
  });

  test("is a model like any other for the engine", async () => {
    const engine = await openEngine({ model, workers: 0, calibration: null });
    try {
      const { embedding } = await engine.analyze(speak({ speaker: 3, seconds: 4, rateHz, seed: 5 }), rateHz);
      expect(embedding!.length).toBe(256);
      expect(cosine(embedding!, embedding!)).toBeCloseTo(1, 5);
      expect(embedding!.slice(96).every((value) => value === 0)).toBe(true);
    } finally {
      await engine.close();
    }
  });
});

describe("a description that the kernels cannot run is refused", () => {
  const layers = [
    {
      kind: "convolution",
      name: "first",
      from: { line: 0, channel: 0 },
      to: { line: 1, channel: 0 },
      inputs: 80,
      outputs: 16,
      taps: 3,
      dilation: 1,
      mirrored: false,
      words: true,
    },
    { kind: "attention", name: "pool", from: { line: 1, channel: 0 }, inputs: 16, hidden: 8, context: true },
    { kind: "map", name: "map", inputs: 32 },
  ];
  const network = { lines: [80, 16], layers, standardized: false };
  const at = (line: number, channel: number) => ({ line, channel });
  const changed = (i: number, change: object) => ({
    ...network,
    layers: layers.map((layer, k) => (k === i ? { ...layer, ...change } : layer)),
  });

  test("while a valid one is accepted, also with a sum in place", () => {
    expect(tdnnNetworkOf(network).layers).toHaveLength(3);
    const sum = { kind: "add", name: "sum", from: at(1, 0), second: at(1, 0), to: at(1, 0), inputs: 16 };
    expect(tdnnNetworkOf({ ...network, layers: [sum, ...layers] }).layers).toHaveLength(4);
  });

  test.each([
    ["no lines", { ...network, lines: [] }, "lines must be a list of 1 to 16"],
    ["a line of features of another width", { ...network, lines: [40, 16] }, "line 0 must have 80 channels"],
    [
      "a line that does not exist",
      changed(0, { to: { line: 7, channel: 0 } }),
      "to of first: its line must be a whole number from 0 to 1, got 7",
    ],
    [
      "channels past the end of a line",
      changed(0, { to: { line: 1, channel: 8 } }),
      "to of first: its channel must be a whole number from 0 to 0, got 8",
    ],
    [
      "channels that are not a multiple of 8",
      changed(0, { outputs: 12 }),
      "outputs of first must have a multiple of 8 channels, got 12",
    ],
    ["too many frames on a side", changed(0, { taps: 63, dilation: 5 }), "at most 48 are supported"],
    ["an overwritten input", changed(0, { to: { line: 0, channel: 0 } }), "first overwrites its own input"],
    [
      "an input overwritten by a sum before it is read",
      {
        ...network,
        lines: [80, 24],
        layers: [{ kind: "add", name: "sum", from: at(1, 0), second: null, to: at(1, 8), inputs: 16 }, ...layers],
      },
      "sum overwrites its own input",
    ],
    [
      "a second input overwritten so",
      {
        ...network,
        lines: [80, 24],
        layers: [{ kind: "add", name: "sum", from: at(0, 0), second: at(1, 8), to: at(1, 0), inputs: 16 }, ...layers],
      },
      "sum overwrites its own input",
    ],
    [
      "an unknown kind",
      changed(0, { kind: "lstm" }),
      "layer 0 must be one of convolution, depthwise, add, gate, attention, map, got lstm",
    ],
    ["a map of something else", changed(2, { inputs: 16 }), "must end with attention and the map of its statistics"],
    ["something that is not a layer", { ...network, layers: [null] }, "layer 0 is not an object"],
  ])("%s", (_, described, words) => {
    expect(() => tdnnNetworkOf(described)).toThrow(words);
  });
});
