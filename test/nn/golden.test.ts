import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { syntheticVoice } from "../../bench/nn/voices.mjs";
import { readModelFile } from "../../src/engine/model-file.js";
import { shippedModel } from "../../src/engine/shipped-model.js";
import { Kernels } from "./kernels.js";

const here = (path: string) => new URL(path, import.meta.url);
/** Written by training/golden.py: the float network in PyTorch, its own front end, the same synthesized voices. */
const golden = JSON.parse(readFileSync(here("golden/embeddings.json"), "utf8")) as {
  revision: string;
  voices: { voice: number; embedding: number[] }[];
};
const model = here(`../../models/${shippedModel}`);

const k = new Kernels(new Uint8Array(readFileSync(here("../../dist/engine/vivavoce.wasm"))));

test("the shipped model, from samples to embedding, is the float network's", async () => {
  const file = await readModelFile(new Uint8Array(readFileSync(model)));
  expect(file.revision, "golden.json is of another model: run training/golden.py").toBe(golden.revision);
  expect(k.run.speakerReserve!(0, 400, file.frontEnd.floor)).toBe(1);
  for (const [i, tensor] of file.network.tensors.entries()) {
    k.write(k.run.speakerStaging!(), new Int8Array(tensor.bytes.slice().buffer));
    expect(k.run.speakerTake!(i)).toBe(1);
  }
  const dimensions = k.run.speakerDimensions!();
  const heard: Float32Array[] = [];
  for (const { voice, embedding } of golden.voices) {
    const samples = syntheticVoice(voice);
    const frames = k.run.logMelFrames!(samples.length);
    k.run.logMel!(k.run.speakerFeatures!(), k.put(samples), samples.length);
    expect(k.run.speakerEmbed!(frames)).toBe(0);
    const got = k.floats(k.run.speakerEmbedding!(), dimensions);
    heard.push(got);
    const cosine = embedding.reduce((sum, v, i) => sum + v * got[i]!, 0);
    expect(cosine, `voice ${voice}`).toBeGreaterThan(0.997);
  }
  // Three voices, not one answer: the goldens themselves are this far apart.
  const apart = heard[0]!.reduce((sum, v, i) => sum + v * heard[1]![i]!, 0);
  expect(apart).toBeLessThan(0.95);
});
