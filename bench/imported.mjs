// An imported network against the network as published, in onnxruntime on the same features: likeness, errors, speed.
//   node bench/imported.mjs net.onnx mine.vvm [--trials list.txt] [--keep embeddings.jsonl] [--no-speed]
// --trials: lines "1 enrolled.wav,… tested.wav" as for `vivavoce evaluate`; both networks hear what the engine takes out of each recording.
// --keep: embeddings made so far; an interrupted run goes on where it stopped.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readRecording } from "../dist/audio/index.js";
import { Kernels } from "../dist/engine/kernels.js";
import { readModelFile } from "../dist/engine/model-file.js";
import { Network, weightsOf } from "../dist/engine/network.js";
import { compileKernels } from "../dist/engine/platform.js";
import { StreamKernel } from "../dist/engine/stream-kernel.js";
import { mono } from "../dist/evaluate/evaluate.js";
import { equalErrorRate, fnmrAt, sortTrials } from "../dist/evaluate/metrics.js";
import { readTrialSet } from "../dist/evaluate/trials.js";
import { compare, quantile, random } from "./measure.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { trials: { type: "string" }, keep: { type: "string" }, "no-speed": { type: "boolean" } },
});
const [onnxPath, modelPath] = positionals;
if (!onnxPath || !modelPath) {
  console.error("usage: node bench/imported.mjs net.onnx mine.vvm [--trials list.txt] [--keep embeddings.jsonl]");
  process.exit(2);
}
const onnx = new Uint8Array(readFileSync(onnxPath));
const file = await readModelFile(readFileSync(modelPath));
const frames = 400; // 4 s
const bins = 80;

const kernels = new Kernels(await compileKernels());
const streams = new StreamKernel(kernels, frames, file.frontEnd.rows);
const { architecture, frontEnd, program } = file;
const weights = weightsOf(file.network.tensors, (bytes) => new Uint8Array(bytes));
const network = new Network(kernels, { architecture, frontEnd, program, weights }, frames);
kernels.run.seal();

async function runtime(name) {
  const loaded = await import(name);
  const { InferenceSession, Tensor, env } = loaded.InferenceSession ? loaded : loaded.default;
  if (env?.wasm) env.wasm.numThreads = 1;
  const session = await InferenceSession.create(onnx, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    executionProviders: [name.includes("web") ? "wasm" : "cpu"],
  });
  return async (features) => {
    const dims = [1, features.length / bins, bins];
    const made = await session.run({ [session.inputNames[0]]: new Tensor("float32", asPublished(features), dims) });
    return unit(made[session.outputNames[0]].data);
  };
}

/** The mean over time removed, in the network's own logarithm. */
function asPublished(features) {
  const scale = file.network.description.frontEnd.logarithm === "decibels" ? 10 / Math.LN10 : 1;
  const data = features.slice();
  for (let bin = 0; bin < bins; bin++) {
    let sum = 0;
    for (let i = bin; i < data.length; i += bins) sum += data[i];
    const mean = (sum * bins) / data.length;
    for (let i = bin; i < data.length; i += bins) data[i] = (data[i] - mean) * scale;
  }
  return data;
}

function unit(x) {
  const length = Math.sqrt(x.reduce((sum, v) => sum + v * v, 0));
  return Float32Array.from(x, (v) => v / length);
}
const cosine = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);
const sum = (rows, shares) =>
  unit(rows[0].map((_, i) => rows.reduce((total, row, k) => total + row[i] * (shares?.[k] ?? 1), 0)));

/** A recording's windows as the engine takes them. */
function windowsOf(path) {
  const { samples, rateHz } = mono(readRecording(readFileSync(path)));
  const format = { rateHz, mostSpeechSeconds: 0 };
  const { state, windows } = streams.hear(null, format, samples);
  const { tail } = streams.peek(state, format);
  return tail ? [...windows, tail] : windows;
}

async function both(path, original) {
  const windows = windowsOf(path);
  if (windows.length === 0) return null;
  const shares = windows.map(({ speechSeconds }) => speechSeconds);
  const published = [];
  for (const { features } of windows) published.push(await original(features));
  return {
    ours: sum(
      windows.map(({ features }) => network.embed(features)),
      shares,
    ),
    published: sum(published, shares),
  };
}

async function errors(list) {
  const { files, models, trials } = await readTrialSet(list);
  const original = await runtime("onnxruntime-node").catch(() => runtime("onnxruntime-web/wasm"));
  const kept = new Map();
  if (values.keep && existsSync(values.keep))
    for (const line of readFileSync(values.keep, "utf8").split("\n"))
      if (line !== "") kept.set(...Object.values(JSON.parse(line)));
  const voices = [];
  for (const [i, path] of files.entries()) {
    if (!kept.has(path)) {
      const made = await both(path, original);
      const voice = made && { ours: [...made.ours], published: [...made.published] };
      kept.set(path, voice);
      if (values.keep) appendFileSync(values.keep, `${JSON.stringify({ path, voice })}\n`);
    }
    voices.push(kept.get(path));
    if (process.stderr.isTTY) process.stderr.write(`\r${i + 1} of ${files.length} recordings`);
  }
  const scored = trials.filter(({ model, test }) => [...models[model], test].every((file) => voices[file]));
  const cosines = voices.filter(Boolean).map(({ ours, published }) => cosine(published, ours));
  console.log(
    `cosine to onnxruntime, ${cosines.length} recordings: median ${quantile(cosines, 0.5).toFixed(4)}, worst ${Math.min(...cosines).toFixed(4)}`,
  );
  for (const [kind, name] of [
    ["published", "as published"],
    ["ours", "imported"],
  ]) {
    const templates = models.map((enrolled) =>
      enrolled.every((file) => voices[file]) ? sum(enrolled.map((file) => voices[file][kind])) : null,
    );
    const sorted = sortTrials(
      scored.map(({ model, test }) => cosine(templates[model], voices[test][kind])),
      scored.map(({ same }) => same),
    );
    const [eer, fnmr] = [100 * equalErrorRate(sorted), 100 * fnmrAt(sorted, 0.001)];
    console.log(
      `${name}: EER ${eer.toFixed(2)} %, FNMR at an FMR of 0.1 % ${fnmr.toFixed(1)} %, ${scored.length} trials`,
    );
  }
}

async function speed() {
  const next = random(1);
  const features = Float32Array.from({ length: frames * bins }, () => 6 * next() - 10);
  const web = await runtime("onnxruntime-web/wasm");
  const native = await runtime("onnxruntime-node").catch(() => null);
  const cases = {
    ours: () => network.embed(features),
    web: () => web(features),
    ...(native && { native: () => native(features) }),
  };
  const times = await compare(cases, "ours", { rounds: 9 });
  console.log(`4 s of speech: ${times.ours.ms.toFixed(0)} ms`);
  console.log(`onnxruntime-web, f32: ${times.web.ms.toFixed(0)} ms, ${times.web.ratio.toFixed(1)} times ours`);
  if (native)
    console.log(
      `onnxruntime native, f32: ${times.native.ms.toFixed(0)} ms, ${times.native.ratio.toFixed(1)} times ours`,
    );
}

if (!values["no-speed"]) await speed();
if (values.trials) await errors(values.trials);
process.exit(0);
