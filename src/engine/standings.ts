/** Standings of embeddings that were compared before. Forgotten with the embedding: nothing of a voice is held here. */
import type { Standing } from "./scoring.js";

interface Known {
  readonly standing: Standing;
  readonly checksum: number;
}

export class Standings {
  readonly #known = new WeakMap<Float32Array, Known>();

  /** `null` for an embedding not seen yet, or changed since. */
  get(embedding: Float32Array): Standing | null {
    const known = this.#known.get(embedding);
    return known && known.checksum === checksumOf(embedding) ? known.standing : null;
  }

  set(embedding: Float32Array, standing: Standing): void {
    this.#known.set(embedding, { standing, checksum: checksumOf(embedding) });
  }
}

/** Of the bits: a caller may write into an array that it handed over for a score. */
function checksumOf({ buffer, byteOffset, length }: Float32Array): number {
  const words = new Int32Array(buffer, byteOffset, length);
  let sum = length;
  for (let i = 0; i < length; i++) sum = Math.imul(sum ^ words[i]!, 0x01000193);
  return sum;
}
