// The speaker network alone, without the engine around it.
import { readModelFile } from "../../dist/engine/model-file.js";
import { SPEAKER_ARCHITECTURES } from "../../dist/engine/speaker-tensors.js";

export async function speaker(model, wasm, maxFrames) {
  const file = await readModelFile(model);
  const kernels = new WebAssembly.Instance(new WebAssembly.Module(wasm), {}).exports;
  const architecture = SPEAKER_ARCHITECTURES.indexOf(file.architecture);
  const words = file.program;
  new Int32Array(kernels.memory.buffer, kernels.speakerProgram(), words.length).set(words);
  if (!kernels.speakerReserve(architecture, maxFrames, file.frontEnd.floor))
    throw new Error(`no room for ${maxFrames} frames`);
  for (const [i, tensor] of file.network.tensors.entries()) {
    new Uint8Array(kernels.memory.buffer).set(tensor.bytes, kernels.speakerStaging());
    kernels.speakerTake(i);
  }
  const embed = (features) => {
    new Float32Array(kernels.memory.buffer, kernels.speakerFeatures(), features.length).set(features);
    const reason = kernels.speakerEmbed(features.length / kernels.speakerBins());
    if (reason) throw new Error(`no embedding: reason ${reason}`);
    return new Float32Array(kernels.memory.buffer, kernels.speakerEmbedding(), kernels.speakerDimensions()).slice();
  };
  return { file, kernels, embed };
}
