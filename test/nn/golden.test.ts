import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { syntheticVoice } from "../../bench/nn/voices.mjs";
import { readModelFile } from "../../src/engine/model-file.js";
import { accurateModel, shippedModel } from "../../src/engine/shipped-model.js";
import { SPEAKER_ARCHITECTURES } from "../../src/engine/speaker-tensors.js";
import { Kernels } from "./kernels.js";

const here = (path: string) => new URL(path, import.meta.url);
const pathOf = (model: string) => here(`../../models/${model}`);

interface Golden {
  readonly revision: string;
  readonly voices: { readonly voice: number; readonly embedding: number[] }[];
}

/** The goldens are written by training/golden.py: the float network in PyTorch, its own front end, the same synthesized voices. */
const models = [
  { model: shippedModel, goldens: "golden/embeddings.json" },
  { model: accurateModel, goldens: "golden/embeddings-accurate.json" },
];

test.each(models)("$model, from samples to embedding, agrees with the float network", async ({ model, goldens }) => {
  const golden = JSON.parse(readFileSync(here(goldens), "utf8")) as Golden;
  const { revision, architecture, frontEnd, network } = await readModelFile(
    new Uint8Array(readFileSync(pathOf(model))),
  );
  expect(revision, `${goldens} was made with another model: run training/golden.py`).toBe(golden.revision);
  const k = new Kernels(new Uint8Array(readFileSync(here("../../dist/engine/vivavoce.wasm"))));
  expect(k.run.speakerReserve!(SPEAKER_ARCHITECTURES.indexOf(architecture), 400, frontEnd.floor)).toBe(1);
  for (const [i, tensor] of network.tensors.entries()) {
    k.write(k.run.speakerStaging!(), new Int8Array(tensor.bytes.slice().buffer));
    expect(k.run.speakerTake!(i)).toBe(1);
  }
  const logMel = frontEnd.rows === "hamming" ? k.run.hammingLogMel! : k.run.logMel!;
  const heard: Float32Array[] = [];
  for (const { voice, embedding } of golden.voices) {
    const samples = syntheticVoice(voice);
    const frames = k.run.logMelFrames!(samples.length);
    logMel(k.run.speakerFeatures!(), k.put(samples), samples.length);
    expect(k.run.speakerEmbed!(frames)).toBe(0);
    const got = k.floats(k.run.speakerEmbedding!(), k.run.speakerDimensions!());
    heard.push(got);
    const cosine = embedding.reduce((sum, v, i) => sum + v * got[i]!, 0);
    expect(cosine, `voice ${voice}`).toBeGreaterThan(model === shippedModel ? 0.997 : 0.995);
  }
  // Three voices must give different results: the goldens themselves are this far apart.
  const apart = heard[0]!.reduce((sum, v, i) => sum + v * heard[1]![i]!, 0);
  expect(apart).toBeLessThan(0.95);
});
