// The attack networks together with the speaker network, in one instance of the kernels.
import { random } from "../measure.mjs";

const KINDS = [
  { kind: "synthetic", values: 288 },
  { kind: "playback", values: 80 },
];

/** Values in the range of log powers. */
function features(length) {
  const next = random(2);
  return Float32Array.from({ length }, () => 8 * next() - 10);
}

/** Scores `frames` frames with both networks; null if the model has none. */
export function attacks({ file, kernels }, frames) {
  if (!KINDS.every(({ kind }) => file.sections.has(kind))) return null;
  const channels = file.sections.get("synthetic").description.architecture === "attack-5" ? 32 : 24;
  if (!kernels.attackReserve(frames, channels)) throw new Error(`no room for ${frames} frames`);
  const memory = (Kind, at, length) => new Kind(kernels.memory.buffer, at, length);
  const networks = KINDS.map(({ kind, values }, number) => {
    for (const [i, { bytes }] of file.sections.get(kind).tensors.entries()) {
      memory(Uint8Array, kernels.attackStaging(), bytes.length).set(bytes);
      if (!kernels.attackTake(number, i)) throw new Error(`tensor ${i} of the ${kind} network`);
    }
    const x = features(frames * values);
    return () => {
      memory(Float32Array, kernels.attackFeatures(), x.length).set(x);
      if (!Number.isFinite(kernels.attackScore(number, frames))) throw new Error(`no score for ${kind}`);
    };
  });
  return () => {
    for (const score of networks) score();
  };
}
