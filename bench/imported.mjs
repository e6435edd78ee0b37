// Compares an imported network with the published one, in onnxruntime on the same features: similarity, errors, speed.
//   node bench/imported.mjs net.onnx mine.vvm [--speech folder] [--trials list.txt] [--keep published.jsonl] [--no-speed]
// Both networks get the windows that the engine extracts from each recording.
// --speech: the cosine between the two on one window each of 200 recordings, spread over the folder.
// --trials: errors of the two; lines "1 enrolled.wav,… tested.wav" as for `vivavoce evaluate`.
// --keep: embeddings of the published network so far, for the next run and the next model file.
import { appendFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { readRecording } from "../dist/audio/index.js";
import { Kernels } from "../dist/engine/kernels.js";
import { readModelFile } from "../dist/engine/model-file.js";
import { Network, weightsOf } from "../dist/engine/network.js";
import { compileKernels } from "../dist/engine/platform.js";
import { StreamKernel } from "../dist/engine/stream-kernel.js";
import { mono } from "../dist/evaluate/evaluate.js";
import { equalErrorRate, fnmrAt, sortTrials } from "../dist/evaluate/metrics.js";
import { isAudioName, readTrialSet } from "../dist/evaluate/trials.js";
import { compare, quantile, random } from "./measure.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    speech: { type: "string" },
    trials: { type: "string" },
    keep: { type: "string" },
    "no-speed": { type: "boolean" },
  },
});
const [onnxPath, modelPath] = positionals;
if (!onnxPath || !modelPath) {
  console.error("usage: node bench/imported.mjs net.onnx mine.vvm [--speech folder] [--trials list.txt] [--keep file]");
  process.exit(2);
}
const onnx = new Uint8Array(readFileSync(onnxPath));
const file = await readModelFile(readFileSync(modelPath));
const frames = 400; // 4 s
const bins = 80;
const mostRecordings = 200;

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

/** Removes the mean over time and converts to the network's own logarithm. */
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

/** A recording's windows as the engine extracts them. */
function windowsOf(path) {
  const { samples, rateHz } = mono(readRecording(readFileSync(path)));
  const format = { rateHz, mostSpeechSeconds: 0 };
  const { state, windows } = streams.advance(null, format, samples);
  const { tail } = streams.peek(state, format);
  return tail ? [...windows, tail] : windows;
}

const original = await runtime("onnxruntime-node").catch(() => runtime("onnxruntime-web/wasm"));

/** Embeddings by the published network of a recording's windows, by path. */
const kept = new Map();
if (values.keep && existsSync(values.keep))
  for (const line of readFileSync(values.keep, "utf8").split("\n"))
    if (line !== "") kept.set(...Object.values(JSON.parse(line)));

async function published(path, windows) {
  const known = kept.get(path);
  if (known?.length >= windows.length) return known.slice(0, windows.length);
  const made = [];
  for (const { features } of windows) made.push([...(await original(features))].map((x) => Number(x.toFixed(7))));
  kept.set(path, made);
  if (values.keep) appendFileSync(values.keep, `${JSON.stringify({ path, made })}\n`);
  return made;
}

/** Embeddings of each window by both networks. */
async function heard(path, most) {
  const windows = windowsOf(path).slice(0, most);
  return {
    windows,
    ours: windows.map(({ features }) => network.embed(features)),
    theirs: await published(path, windows),
  };
}

const progress = (i, total) => process.stderr.isTTY && process.stderr.write(`\r${i + 1} of ${total} recordings`);

function sayLikeness(cosines) {
  const [median, twentieth, worst] = [quantile(cosines, 0.5), quantile(cosines, 0.05), Math.min(...cosines)];
  console.log(
    `cosine to onnxruntime, ${cosines.length} windows: median ${median.toFixed(4)}, 5th percentile ${twentieth.toFixed(4)}, worst ${worst.toFixed(4)}`,
  );
}

async function likeness(folder) {
  const files = readdirSync(folder, { recursive: true })
    .filter((path) => isAudioName(basename(path)))
    .sort();
  const step = Math.max(1, Math.floor(files.length / mostRecordings));
  const chosen = files.filter((_, i) => i % step === 0).slice(0, mostRecordings);
  const cosines = [];
  for (const [i, name] of chosen.entries()) {
    const { ours, theirs } = await heard(join(folder, name), 1);
    cosines.push(...ours.map((one, k) => cosine(theirs[k], one)));
    progress(i, chosen.length);
  }
  sayLikeness(cosines);
}

async function errors(list) {
  const { files, models, trials } = await readTrialSet(list);
  const voices = [];
  const cosines = [];
  for (const [i, path] of files.entries()) {
    const { windows, ours, theirs } = await heard(path);
    cosines.push(...ours.map((one, k) => cosine(theirs[k], one)));
    const shares = windows.map(({ speechSeconds }) => speechSeconds);
    voices.push(windows.length === 0 ? null : { ours: sum(ours, shares), published: sum(theirs, shares) });
    progress(i, files.length);
  }
  sayLikeness(cosines);
  const scored = trials.filter(({ model, test }) => [...models[model], test].every((file) => voices[file]));
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
if (values.speech) await likeness(values.speech);
if (values.trials) await errors(values.trials);
process.exit(0);
