/** Searches many voices at once, in a separate WebAssembly instance that grows as needed (assembly/score/gallery.ts). */
import { typeName } from "../type-name.js";
import { badArgument, EngineError } from "./engine-error.js";
import { Kernels } from "./kernels.js";
import type { Gallery, GalleryHit } from "./port.js";
import { checkEmbedding } from "./scoring.js";

export class WasmGallery implements Gallery {
  #kernels: Kernels | null;
  readonly #dimensions: number;
  readonly #rowOf = new Map<string, number>();
  /** By row; undefined where a row is free. */
  readonly #ids: (string | undefined)[] = [];
  readonly #free: number[] = [];

  constructor(
    module: WebAssembly.Module,
    dimensions: number,
    precision: "int8" | "f32" = "int8",
    private readonly onClose: () => void = () => {},
  ) {
    this.#dimensions = dimensions;
    this.#kernels = new Kernels(module);
    this.#kernels.run.reserveGallery(dimensions, precision === "int8" ? 1 : 0);
  }

  get size(): number {
    return this.#rowOf.size;
  }

  get memoryBytes(): number {
    return this.#kernels?.memoryBytes ?? 0;
  }

  has(id: string): boolean {
    return this.#rowOf.has(id);
  }

  set(id: string, embedding: Float32Array): void {
    if (typeof id !== "string") throw badArgument(`the id of a voice must be a string, got ${typeName(id)}`);
    const { run } = this.#checked(embedding);
    const row = this.#rowOf.get(id) ?? this.#free.pop() ?? this.#ids.length;
    if (row >= run.galleryCapacity()) this.#grow();
    this.#kernels!.writeFloats(run.galleryInput(), embedding);
    run.galleryStore(row);
    this.#ids[row] = id;
    this.#rowOf.set(id, row);
  }

  delete(id: string): boolean {
    const row = this.#rowOf.get(id);
    if (row === undefined || this.#kernels === null) return false;
    this.#kernels.run.galleryWipe(row);
    this.#rowOf.delete(id);
    this.#ids[row] = undefined;
    this.#free.push(row);
    return true;
  }

  top(embedding: Float32Array, k: number, only?: ReadonlySet<string>): GalleryHit[] {
    const kernels = this.#checked(embedding);
    if (!(Number.isInteger(k) && k >= 0)) throw badArgument(`k must be a whole number of at least 0, got ${k}`);
    if (k === 0) return [];
    const best = new Best(k);
    try {
      kernels.writeFloats(kernels.run.galleryInput(), embedding);
      kernels.run.galleryQuery();
      if (only === undefined) this.#searchAll(kernels, best);
      else this.#searchListed(kernels, only, best);
    } finally {
      kernels.run.galleryForgetQuery();
    }
    return best.hits();
  }

  /** Frees its memory. */
  close(): void {
    this.#kernels = null;
    this.#rowOf.clear();
    this.#ids.length = 0;
    this.#free.length = 0;
    this.onClose();
  }

  #checked(embedding: Float32Array): Kernels {
    if (this.#kernels === null) throw new EngineError("CLOSED", "the gallery is closed");
    checkEmbedding(embedding, this.#dimensions);
    return this.#kernels;
  }

  /** Grows by a sixteenth, so that neither many small galleries nor one large gallery waste much memory. */
  #grow(): void {
    const rows = Math.max(256, this.#ids.length >> 4);
    try {
      this.#kernels!.run.galleryGrow((rows + 63) & ~63);
    } catch (cause) {
      throw new EngineError("GALLERY_FULL", `not enough memory for more than ${this.size} voices in one gallery`, {
        cause,
      });
    }
  }

  #searchAll(kernels: Kernels, best: Best): void {
    const { run } = kernels;
    const batch = run.galleryBatch();
    const rows = this.#ids.length;
    // Small batches first: until k voices are found, every voice of a batch is a hit.
    for (let first = 0, size = 64; first < rows; first += size, size = Math.min(batch, 2 * size))
      this.#take(kernels, run.gallerySearch(first, Math.min(size, rows - first), best.floor), best);
  }

  #searchListed(kernels: Kernels, only: ReadonlySet<string>, best: Best): void {
    const { run } = kernels;
    const rows: number[] = [];
    for (const id of only) {
      const row = this.#rowOf.get(id);
      if (row !== undefined) rows.push(row);
    }
    const batch = run.galleryBatch();
    for (let first = 0; first < rows.length; first += batch) {
      const part = rows.slice(first, first + batch);
      kernels.writeIntegers(run.galleryListed(), part);
      this.#take(kernels, run.gallerySearchListed(part.length, best.floor), best);
    }
  }

  /** Hits are pairs of row and score. */
  #take(kernels: Kernels, found: number, best: Best): void {
    if (found === 0) return;
    const rows = kernels.readIntegers(kernels.run.galleryHits(), 2 * found);
    const scores = new Float32Array(rows.buffer);
    for (let i = 0; i < found; i++) {
      const score = scores[2 * i + 1]!;
      if (score < best.floor) continue;
      const id = this.#ids[rows[2 * i]!];
      if (id !== undefined) best.add(id, score);
    }
  }
}

/** The k best so far; voices that score below `floor` can be skipped. */
class Best {
  floor = Number.NEGATIVE_INFINITY;
  readonly #k: number;
  readonly #room: number;
  #hits: GalleryHit[] = [];

  constructor(k: number) {
    this.#k = k;
    this.#room = Math.max(2 * k, 64);
  }

  add(id: string, score: number): void {
    this.#hits.push({ id, raw: Math.max(-1, Math.min(1, score)) });
    if (this.#hits.length >= this.#room) this.#cut();
  }

  hits(): GalleryHit[] {
    this.#cut();
    return this.#hits;
  }

  /** Best first; equal scores by id, so that the result does not depend on the order in which voices were stored. */
  #cut(): void {
    this.#hits.sort((a, b) => b.raw - a.raw || (a.id < b.id ? -1 : 1));
    if (this.#hits.length > this.#k) this.#hits.length = this.#k;
    if (this.#hits.length === this.#k) this.floor = this.#hits[this.#k - 1]!.raw;
  }
}
