import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { syntheticVoice } from "../../bench/nn/voices.mjs";
import { readModelFile } from "../../src/engine/model-file.js";
import { accurateModel, shippedModel } from "../../src/engine/shipped-model.js";
import { Kernels } from "./kernels.js";

const here = (path: string) => new URL(path, import.meta.url);
/** Written by training/spoof/golden.py: the float networks in PyTorch, their own front end, the same synthesized voices. */
interface Golden {
  readonly kind: string;
  readonly revision: string;
  readonly scores: readonly { readonly voice: number; readonly score: number }[];
}

/** The residual network of the accurate model begins with 32 channels, that of the other with 24. */
test.each([
  { model: shippedModel, file: "attacks.json", channels: 24 },
  { model: accurateModel, file: "attacks-accurate.json", channels: 32 },
])(
  "the attack networks of $model, from samples to score, agree with the float networks",
  async ({ model, file, channels }) => {
    const golden = JSON.parse(readFileSync(here(`golden/${file}`), "utf8")) as readonly Golden[];
    const { sections } = await readModelFile(new Uint8Array(readFileSync(here(`../../models/${model}`))));
    const k = new Kernels(new Uint8Array(readFileSync(here("../../dist/engine/vivavoce.wasm"))));
    expect(golden.map(({ kind }) => kind)).toEqual(["synthetic", "playback"]);
    expect(k.run.attackReserve!(400, channels)).toBe(1);
    for (const [number, { kind, revision, scores }] of golden.entries()) {
      const section = sections.get(kind)!;
      expect(section.revision, `${file} was made with other networks: run training/spoof/golden.py`).toBe(revision);
      expect(section.tensors.length).toBe(k.run.attackTensors!(number));
      for (const [i, tensor] of section.tensors.entries()) {
        expect(tensor.bytes.length).toBe(k.run.attackTensorBytes!(number, i));
        k.write(k.run.attackStaging!(), new Int8Array(tensor.bytes.slice().buffer));
        expect(k.run.attackTake!(number, i)).toBe(1);
      }
      for (const { voice, score } of scores) {
        const samples = syntheticVoice(voice);
        const rows = kind === "synthetic" ? k.run.detail! : k.run.logMel!;
        const frames = rows(k.run.attackFeatures!(), k.put(samples), samples.length);
        const got = k.run.attackScore!(number, frames);
        // Weights of 8 bits, activations of 12: at most 0.03 on voices like these, where the scores spread over 2.5 and 2.3.
        expect(Math.abs(got - score), `${kind}, voice ${voice}: ${got} for ${score}`).toBeLessThan(0.06);
      }
    }
  },
);
