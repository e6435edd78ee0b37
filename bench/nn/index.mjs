// The neural kernels and the whole speaker network against onnxruntime: in WASM (f32, int8) and native, one thread each.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { tensorValues } from "../../dist/engine/model-file.js";
import { cosine } from "../cosine.mjs";
import { accurateModelBytes, modelBytes } from "../material.mjs";
import { absent, atLeast, atMost, compare, random } from "../measure.mjs";
import { attacks } from "./attack.mjs";
import { campplusGraph } from "./campplus-graph.mjs";
import { graph, kernels, macs, ours } from "./convolutions.mjs";
import { peak } from "./peak.mjs";
import { resnetGraph } from "./resnet-graph.mjs";
import { speaker } from "./speaker.mjs";

const SHAPES = {
  "pointwise 512": { frames: 200, channels: 512, taps: 1 },
  "convolution 256, 3 taps": { frames: 200, channels: 256, taps: 3, dilation: 2 },
  "convolution 512, 3 taps": { frames: 200, channels: 512, taps: 3, dilation: 2 },
  "convolution 256, 5 taps": { frames: 200, channels: 256, taps: 5 },
  "plane 40 × 32, 3 × 3": { frames: 100, channels: 32, taps: 3, bins: 40 },
  "plane 40 × 32, 3 × 3, four frames at once": { frames: 100, channels: 32, taps: 3, bins: 40, kind: "quads" },
  "plane 80 × 32, 3 × 3, patches": { frames: 100, channels: 32, taps: 3, bins: 80, kind: "patches" },
  "plane 40 × 64, 3 × 3, patches": { frames: 50, channels: 64, taps: 3, bins: 40, kind: "patches" },
  "plane 20 × 128, 3 × 3, patches": { frames: 50, channels: 128, taps: 3, bins: 20, kind: "patches" },
  "plane 10 × 256, 3 × 3, patches": { frames: 50, channels: 256, taps: 3, bins: 10, kind: "patches" },
};
const FRAMES = 398; // 4 s
const ATTACK_FRAMES = 320; // 3.2 s: the windows of the attack networks
/** The networks, their target figures, and their multiply-accumulates in 4 s. */
const NETWORKS = [
  {
    work: "CAM++, 4 s of speech",
    bytes: modelBytes,
    architecture: "campplus-1",
    gmacs: 0.536 * 4,
    graph: campplusGraph,
  },
  {
    work: "ResNet34, 4 s of speech",
    bytes: accurateModelBytes,
    architecture: "resnet34-1",
    gmacs: 2.24 * 4,
    graph: resnetGraph,
  },
];

const options = { intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: "all" };

async function runtimes() {
  const found = {};
  const web = await import("onnxruntime-web/wasm");
  web.env.wasm.numThreads = 1;
  web.env.logLevel = "error";
  found.web = web;
  try {
    found.native = (await import("onnxruntime-node")).default ?? (await import("onnxruntime-node"));
    if (!found.native.InferenceSession) throw new Error("no InferenceSession");
  } catch (error) {
    found.reason = error;
  }
  return found;
}

async function session(runtime, isWeb, model, feeds) {
  const created = await runtime.InferenceSession.create(model, {
    ...options,
    executionProviders: [isWeb ? "wasm" : "cpu"],
  });
  const inputs = Object.fromEntries(
    Object.entries(feeds).map(([name, { type, data, dims }]) => [name, new runtime.Tensor(type, data, dims)]),
  );
  return () => created.run(inputs);
}

async function convolutionRows(peers, limit) {
  const module = await kernels();
  const rows = [];
  for (const [name, shape] of Object.entries(SHAPES)) {
    const cases = {
      ours: ours(module, shape),
      peak: limit.run,
    };
    for (const eightBits of [false, true]) {
      const { model, dims } = graph(shape, eightBits);
      const n = dims.reduce((a, b) => a * b);
      const x = eightBits
        ? { type: "uint8", data: new Uint8Array(n).fill(30), dims }
        : { type: "float32", data: new Float32Array(n).fill(0.5), dims };
      cases[eightBits ? "int8" : "f32"] = await session(peers.web, true, model, { x });
    }
    const times = await compare(cases, "ours", { rounds: 21 });
    const speed = (macs(shape) / times.ours.ms / 1e6).toFixed(1);
    rows.push(atLeast(name, "onnxruntime-web f32", times.f32.ratio, 2.3, `${speed} GMAC/s`));
    rows.push(atLeast(name, "onnxruntime-web int8", times.int8.ratio, 1.15));
    const share = (macs(shape) / limit.macs) * times.peak.ratio * 100;
    rows.push(
      atLeast(name, "peak of dot_i16x8", share, 85, "share of the multiply-accumulates the machine can do", " %"),
    );
  }
  return rows;
}

async function engine(bytes) {
  const wasm = readFileSync(fileURLToPath(new URL("../../dist/engine/vivavoce.wasm", import.meta.url)));
  const loaded = await speaker(bytes, wasm, FRAMES);
  const { file, embed } = loaded;
  const tensors = file.network.tensors.map((t) => [t.name, { shape: t.shape, values: tensorValues(t) }]);
  return { embed, tensors: new Map(tensors), attack: attacks(loaded, ATTACK_FRAMES) };
}

/** Values like log-mel: a random walk in every bin. */
function features(seed) {
  const next = random(seed);
  const x = new Float32Array(FRAMES * 80);
  const walk = new Float32Array(80);
  for (let t = 0; t < FRAMES; t++) {
    const loud = next() * 4;
    for (let b = 0; b < 80; b++) {
      walk[b] = walk[b] * 0.9 + (next() - 0.5) * 2;
      x[t * 80 + b] = walk[b] + loud - 7;
    }
  }
  return x;
}

async function networkRows(peers, limit, network) {
  const { work, architecture, gmacs, graph } = network;
  const { embed: embedded, tensors, attack } = await engine(network.bytes());
  const isCampplus = architecture === "campplus-1";
  const x = features(1);
  const embed = () => embedded(x);
  const cases = { ours: embed, peak: limit.run, ...(attack && { attack }) };
  const cosines = {};
  const add = async (name, runtime, isWeb, eightBits) => {
    const { model, input, output } = graph(tensors, FRAMES, eightBits);
    cases[name] = await session(runtime, isWeb, model, {
      [input]: { type: "float32", data: x, dims: [1, FRAMES, 80] },
    });
    cosines[name] = cosine(embed(), (await cases[name]())[output].data);
    if (!eightBits && !(cosines[name] > 0.99))
      throw new Error(`${name} gives another embedding: cosine ${cosines[name]}`);
  };
  await add("web f32", peers.web, true, false);
  if (isCampplus) await add("web int8", peers.web, true, true);
  if (peers.native) await add("native f32", peers.native, false, false);
  const times = await compare(cases, "ours", { rounds: 15 });
  const told = (name) =>
    `${times[name].ms.toFixed(0)} ms, ours ${times.ours.ms.toFixed(0)} ms; cosine ${cosines[name].toFixed(4)}`;
  const rows = [atLeast(work, "onnxruntime-web f32", times["web f32"].ratio, 4, told("web f32"))];
  if (isCampplus) rows.push(atLeast(work, "onnxruntime-web int8", times["web int8"].ratio, 1, told("web int8")));
  if (peers.native) {
    rows.push(
      atMost(work, "onnxruntime native f32", 1 / times["native f32"].ratio, 1.5, told("native f32"), "× its time"),
    );
  } else rows.push(absent(work, "onnxruntime native f32", peers.reason));
  const share = ((gmacs * 1e9) / limit.macs) * times.peak.ratio * 100;
  if (attack) {
    const ratio = (times.attack.ratio * FRAMES) / ATTACK_FRAMES;
    const told = `${times.attack.ms.toFixed(1)} ms for windows of 3.2 s`;
    rows.push(atMost("all attack networks, as much speech", work, ratio, 0.6, told, "× its time"));
  }
  rows.push(atLeast(work, "peak of dot_i16x8", share, 85, "share, all layers and passes together", " %"));
  return rows;
}

export default async function measure() {
  const peers = await runtimes();
  const limit = await peak();
  const rows = await convolutionRows(peers, limit);
  for (const network of NETWORKS) rows.push(...(await networkRows(peers, limit, network)));
  return rows;
}
