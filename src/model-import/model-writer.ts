/** Writes the format that src/engine/model-file.ts reads. */
import { createHash } from "node:crypto";
import { MODEL_FILE_VERSION, type ModelFile } from "../engine/model-file.js";
import type { Dtype } from "../engine/tensor-spec.js";
import type { NamedTensor } from "./quantize.js";

const encoder = new TextEncoder();
const aligned = (bytes: number): number => Math.ceil(bytes / 16) * 16;
const elements: Record<Dtype, new (values: ArrayLike<number>) => { readonly buffer: ArrayBufferLike }> = {
  i8: Int8Array,
  i16: Int16Array,
  f32: Float32Array,
};

/** A self-contained section: the length of its description, the description, aligned tensors. */
export function sectionBytes(description: object, tensors: readonly NamedTensor[] = []): Uint8Array {
  const bodies = tensors.map(tensorBytes);
  const { text, places, total } = laidOut(bodies, (offsets) => ({
    ...description,
    tensors: tensors.map(({ name, dtype, shape }, i) => ({
      name,
      dtype,
      shape,
      offset: offsets[i],
      bytes: bodies[i]!.length,
    })),
  }));
  const section = new Uint8Array(total);
  new DataView(section.buffer).setUint32(0, text.length, true);
  section.set(text, 16);
  for (const [i, body] of bodies.entries()) section.set(body, places[i]!);
  return section;
}

export type ModelDescription = Pick<ModelFile, "family" | "licence" | "trainingData">;

export function modelFileBytes(model: ModelDescription, sections: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const bodies = [...sections.values()];
  const names = [...sections.keys()];
  const digests = bodies.map((body) => createHash("sha256").update(body).digest("hex"));
  const { text, places, total } = laidOut(bodies, (offsets, end) => ({
    ...model,
    bytes: end + 32,
    sections: names.map((name, i) => ({ name, offset: offsets[i], bytes: bodies[i]!.length, sha256: digests[i] })),
  }));
  const file = new Uint8Array(total + 32);
  file.set(encoder.encode("vivavoce"));
  const view = new DataView(file.buffer);
  view.setUint32(8, MODEL_FILE_VERSION, true);
  view.setUint32(12, text.length, true);
  file.set(text, 16);
  for (const [i, body] of bodies.entries()) file.set(body, places[i]!);
  file.set(createHash("sha256").update(file.subarray(0, total)).digest(), total);
  return file;
}

/** A JSON text after 16 bytes, with the offsets of what follows it. The offsets depend on the length of the text itself. */
function laidOut(
  bodies: readonly Uint8Array[],
  described: (offsets: readonly number[], end: number) => object,
): { text: Uint8Array; places: number[]; total: number } {
  for (let length = 0; ; ) {
    const places: number[] = [];
    let at = 16 + length;
    for (const body of bodies) {
      places.push(at);
      at += aligned(body.length);
    }
    const json = encoder.encode(JSON.stringify(described(places, at)));
    const text = new Uint8Array(aligned(json.length)).fill(0x20);
    text.set(json);
    if (text.length === length) return { text, places, total: at };
    length = text.length;
  }
}

/** The values as the kernels read them. */
export const tensorBytes = ({ dtype, values }: NamedTensor): Uint8Array =>
  new Uint8Array(new elements[dtype](values).buffer);
