// Writes the output of onnxruntime for the small graphs of tdnn-graphs.mjs: test/model-import/golden/tdnn.json.
//   node bench/nn/tdnn-golden.mjs
import { writeFileSync } from "node:fs";
import { random } from "./random-model.mjs";
import { ecapaGraph, titanetGraph } from "./tdnn-graphs.mjs";

export const FRAMES = 130;

/** Features [frames][80]: a random walk in every bin, with mean 0 and this deviation over time. */
export function goldenFeatures(deviation) {
  const next = random(7);
  const x = new Float32Array(FRAMES * 80);
  for (let b = 0; b < 80; b++) {
    let at = 0;
    const walk = Array.from({ length: FRAMES }, () => (at = 0.875 * at + next() - 0.5));
    const mean = walk.reduce((sum, v) => sum + v, 0) / FRAMES;
    const spread = Math.sqrt(walk.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (FRAMES - 1));
    for (const [t, value] of walk.entries()) x[t * 80 + b] = ((value - mean) / spread) * deviation;
  }
  return x;
}

/** The graphs, the order of their features, and the features' deviation: 1 for TitaNet; ECAPA's are in decibels. */
export const GRAPHS = {
  ecapa: { graph: ecapaGraph, isTurned: false, deviation: 10 },
  titanet: { graph: titanetGraph, isTurned: true, deviation: 1 },
};

/** Features in the graph's own order. */
export function graphInput({ isTurned, deviation }) {
  const x = goldenFeatures(deviation);
  if (!isTurned) return { shape: [1, FRAMES, 80], data: x };
  return { shape: [1, 80, FRAMES], data: x.map((_, i) => x[(i % FRAMES) * 80 + Math.floor(i / FRAMES)]) };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { InferenceSession, Tensor, env } = await import("onnxruntime-web/wasm");
  env.wasm.numThreads = 1;
  const golden = {};
  for (const [name, made] of Object.entries(GRAPHS)) {
    const session = await InferenceSession.create(made.graph(), { executionProviders: ["wasm"] });
    const { shape, data } = graphInput(made);
    const results = await session.run({ [session.inputNames[0]]: new Tensor("float32", data, shape) });
    golden[name] = Array.from(results[session.outputNames[0]].data, (v) => Number(v.toPrecision(7)));
  }
  const at = new URL("../../test/model-import/golden/tdnn.json", import.meta.url);
  writeFileSync(at, `${JSON.stringify(golden)}\n`);
  process.exit(0);
}
