// From import to ready, and to the first decision, in new processes: compared with onnxruntime-web and the same network.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readModelFile, tensorValues } from "../dist/engine/model-file.js";
import { modelBytes, speech } from "./material.mjs";
import { atMost, median } from "./measure.mjs";
import { campplusGraph } from "./nn/campplus-graph.mjs";

const frames = 398;

const ours = (folder) => `
  const { openEngine } = await import(${JSON.stringify(new URL("../dist/engine/index.js", import.meta.url).href)});
  const { readFileSync } = await import("node:fs");
  const engine = await openEngine({ workers: 0, model: ${JSON.stringify(join(folder, "model.vvm"))} });
  const ready = spent();
  const bytes = readFileSync(${JSON.stringify(join(folder, "speech.f32"))});
  const { embedding, measures } = await engine.analyze(new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), 16000);
  const voice = { embedding, ...measures };
  const { template } = await engine.train([voice]);
  await engine.score([template], voice);
  console.log(JSON.stringify({ ready, decided: spent() }));`;

const theirs = (folder) => `
  const ort = await import("onnxruntime-web/wasm");
  const { readFileSync } = await import("node:fs");
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(readFileSync(${JSON.stringify(join(folder, "network.onnx"))}), { executionProviders: ["wasm"] });
  const ready = spent();
  const x = new ort.Tensor("float32", new Float32Array(${frames * 80}).map((_, i) => Math.sin(i)), [1, ${frames}, 80]);
  await session.run({ features: x });
  console.log(JSON.stringify({ ready, decided: spent() }));
  process.exit(0);`;

/** CPU milliseconds since the process began to load the measured code. */
function started(script) {
  const clock = `const begun = process.cpuUsage(); const spent = () => { const { user, system } = process.cpuUsage(begun); return (user + system) / 1000; };`;
  const here = fileURLToPath(new URL(".", import.meta.url));
  return JSON.parse(
    execFileSync(process.execPath, ["--input-type=module", "-e", clock + script], { cwd: here, encoding: "utf8" }),
  );
}

export default async function coldStart() {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-bench-"));
  try {
    const bytes = modelBytes();
    const { network } = await readModelFile(bytes);
    const tensors = new Map(
      network.tensors.map((tensor) => [tensor.name, { shape: tensor.shape, values: tensorValues(tensor) }]),
    );
    writeFileSync(join(folder, "model.vvm"), bytes);
    writeFileSync(join(folder, "network.onnx"), campplusGraph(tensors, frames).model);
    writeFileSync(join(folder, "speech.f32"), new Uint8Array(speech(5).buffer));
    const [mine, peer] = [[], []];
    for (let i = 0; i < 5; i++) {
      mine.push(started(ours(folder)));
      peer.push(started(theirs(folder)));
    }
    const of = (runs, what) => median(runs.map((run) => run[what]));
    const row = (work, what, target) =>
      atMost(
        work,
        "onnxruntime-web, same network",
        of(mine, what) / of(peer, what),
        target,
        `${of(mine, what).toFixed(0)} ms, onnxruntime-web ${of(peer, what).toFixed(0)} ms`,
        "× its time",
      );
    return [row("cold start to ready", "ready", 0.1), row("cold start to first decision", "decided", 0.25)];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
