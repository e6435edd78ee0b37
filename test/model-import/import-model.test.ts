import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { Graph } from "../../bench/nn/onnx.mjs";
import { GRAPHS } from "../../bench/nn/tdnn-golden.mjs";
import { openEngine } from "../../dist/engine/index.js";
import { importNetwork } from "../../dist/model-import/import-model.js";
import { modelFileBytes, sectionBytes } from "../../dist/model-import/model-writer.js";
import { readModelFile } from "../../src/engine/model-file.js";
import { accurateModel } from "../../src/engine/shipped-model.js";
import { compute } from "../../src/model-import/float-graph.js";
import { readOnnx } from "../../src/model-import/onnx.js";
import { speak } from "../voice.js";
import { publishedResnet34, tensorsOf } from "./published-graphs.js";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 });

const rateHz = 16_000;
async function* speech(recordings = 4, seconds = 5) {
  for (let speaker = 1; speaker <= recordings; speaker++)
    yield { samples: speak({ speaker: 3 * speaker, seconds, rateHz, seed: 1 }), rateHz };
}

let tensors: Awaited<ReturnType<typeof tensorsOf>>;
beforeAll(async () => {
  tensors = await tensorsOf(accurateModel);
});

// A CAM++ is imported in test/trials, as a user does it: each import takes a minute on a busy machine.
test("a published ResNet34 becomes a model", async () => {
  const network = await importNetwork(publishedResnet34(tensors), speech());
  expect(network).toMatchObject({ architecture: "resnet34-1", dimensions: 256, windows: 4 });
  expect(network.likeness.median).toBeGreaterThan(0.995);
  const like = await readModelFile(readFileSync(new URL(`../../models/${accurateModel}`, import.meta.url)));
  const { tensors: _none, ...calibration } = like.calibration!;
  const model = modelFileBytes(
    { family: "mine", licence: "Apache-2.0", trainingData: ["elsewhere"] },
    new Map([
      ["network", network.section],
      ["calibration", sectionBytes(calibration)],
    ]),
  );
  const engine = await openEngine({ model, workers: 0, calibration: null });
  try {
    expect(engine.model).toMatchObject({ calibrationModelId: "mine", dimensions: 256, attacks: [] });
    const analyzed = (speaker: number, seed: number) =>
      engine.analyze(speak({ speaker, seconds: 5, rateHz, seed }), rateHz);
    const [one, again, other] = [await analyzed(3, 11), await analyzed(3, 12), await analyzed(20, 13)];
    const cosine = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
    expect(cosine(one.embedding!, again.embedding!)).toBeGreaterThan(cosine(one.embedding!, other.embedding!) + 0.2);
  } finally {
    await engine.close();
  }
});

describe("a network that cannot be imported is refused with a reason", () => {
  const nothing = async function* () {};

  test("operators that are not supported, by name", async () => {
    const graph = new Graph();
    const x = graph.input("features", [1, 0, 80]);
    graph.output(graph.node("LSTM", [graph.node("Erf", [x])]), [1, 0, 80]);
    await expect(importNetwork(graph.encode(), nothing())).rejects.toThrow(
      "the network uses operators that are not supported: Erf, LSTM",
    );
  });

  test("bytes that are not an ONNX model, and no bytes at all", async () => {
    for (const bytes of [
      new Uint8Array(),
      new TextEncoder().encode("a text that is not a model"),
      new Uint8Array(64).fill(255),
    ])
      await expect(importNetwork(bytes, nothing())).rejects.toThrow("the file is not an ONNX model");
  });

  test("a graph that lacks what its nodes read, or has other shapes than they need", async () => {
    const made = (build: (graph: Graph, x: string) => string) => {
      const graph = new Graph();
      graph.output(build(graph, graph.input("features", [1, 0, 80])), [1, 0, 80]);
      return graph.encode();
    };
    await expect(
      importNetwork(
        made((graph) => graph.node("Relu", ["nowhere"])),
        nothing(),
      ),
    ).rejects.toThrow("the graph is malformed: Relu reads nowhere, which no earlier node produces");
    await expect(
      importNetwork(
        made(() => "nowhere"),
        nothing(),
      ),
    ).rejects.toThrow("the graph is malformed: no node produces its output nowhere");
    const given = { shape: [1, 2, 80], data: new Float32Array(160) };
    expect(() => compute(readOnnx(made((graph, x) => graph.node("Reshape", [x]))), given, 2)).toThrow(
      /^the graph is malformed: Reshape v\d+ has the wrong inputs or shapes$/,
    );
    // The first norm of a network that is otherwise recognized reads its mean from the data.
    const ecapa = Buffer.from(GRAPHS.ecapa!.graph()).toString("latin1");
    const names = (...all: string[]) => all.map((name) => `\n\x02${name}`).join("");
    const cut = ecapa.replace(names("v6", "v7", "v8", "v9"), names("v6", "v7", "v8", "v0"));
    expect(cut).not.toBe(ecapa);
    await expect(importNetwork(Buffer.from(cut, "latin1"), nothing())).rejects.toThrow(
      "the graph is malformed: one of its layers has the wrong inputs or shapes",
    );
  });

  test("a network of another shape, and an unknown one", async () => {
    const graph = new Graph();
    const x = graph.input("features", [1, 0, 80]);
    graph.output(graph.node("Relu", [x]), [1, 0, 80]);
    await expect(importNetwork(graph.encode(), nothing())).rejects.toThrow("this network is not supported");
    await expect(importNetwork(publishedResnet34(tensors, "MatMul"), nothing())).rejects.toThrow(
      "the network's last layer maps",
    );
  });

  test("too little speech to scale it", async () => {
    await expect(importNetwork(publishedResnet34(tensors), speech(2))).rejects.toThrow(
      "2 recordings have 2 s of speech; at least 4 are needed",
    );
  });
});
