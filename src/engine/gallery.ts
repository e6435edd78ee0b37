/** Many voices searched at once, in blocks that are WebAssembly instances of their own (assembly/score/gallery.ts). */
import { EngineError } from "./engine-error.js";
import { Kernels } from "./kernels.js";
import type { Gallery, GalleryHit } from "./port.js";
import { checkEmbedding } from "./scoring.js";

/** The first block is small, because most galleries are; later ones are large, because large galleries are scanned. */
const firstCapacity = 4096;
const largestCapacity = 65_536;

interface Block {
  readonly kernels: Kernels;
  readonly firstRow: number;
  readonly capacity: number;
}

export class BlockGallery implements Gallery {
  readonly #module: WebAssembly.Module;
  readonly #dimensions: number;
  readonly #precision: "int8" | "f32";
  readonly #rowOf = new Map<string, number>();
  /** By row; undefined where a row is free. */
  readonly #ids: (string | undefined)[] = [];
  readonly #free: number[] = [];
  #blocks: Block[] = [];
  #closed = false;

  constructor(module: WebAssembly.Module, dimensions: number, precision: "int8" | "f32" = "int8") {
    this.#module = module;
    this.#dimensions = dimensions;
    this.#precision = precision;
  }

  get size(): number {
    return this.#rowOf.size;
  }

  /** WebAssembly memory that the blocks hold. */
  get memoryBytes(): number {
    return this.#blocks.reduce((sum, block) => sum + block.kernels.memoryBytes, 0);
  }

  has(id: string): boolean {
    return this.#rowOf.has(id);
  }

  set(id: string, embedding: Float32Array): void {
    this.#check(embedding);
    const row = this.#rowOf.get(id) ?? this.#free.pop() ?? this.#ids.length;
    const block = this.#blockOf(row);
    block.kernels.writeFloats(block.kernels.run.galleryInput(), embedding);
    block.kernels.run.galleryStore(row - block.firstRow);
    this.#ids[row] = id;
    this.#rowOf.set(id, row);
  }

  delete(id: string): boolean {
    const row = this.#rowOf.get(id);
    if (row === undefined) return false;
    const block = this.#blockOf(row);
    block.kernels.run.galleryWipe(row - block.firstRow);
    this.#rowOf.delete(id);
    this.#ids[row] = undefined;
    this.#free.push(row);
    return true;
  }

  top(embedding: Float32Array, k: number, only?: ReadonlySet<string>): GalleryHit[] {
    this.#check(embedding);
    if (!(Number.isInteger(k) && k >= 0)) throw new EngineError("BAD_ARGUMENT", "k is a whole number");
    if (k === 0) return [];
    const best = new Best(k);
    const listed = only === undefined ? null : this.#listed(only);
    for (const [i, block] of this.#blocks.entries()) {
      const { kernels } = block;
      try {
        kernels.writeFloats(kernels.run.galleryInput(), embedding);
        kernels.run.galleryQuery();
        if (listed === null) this.#searchAll(block, best);
        else this.#searchListed(block, listed[i]!, best);
      } finally {
        kernels.run.galleryForgetQuery();
      }
    }
    return best.hits();
  }

  close(): void {
    this.#closed = true;
    this.#blocks = [];
    this.#rowOf.clear();
    this.#ids.length = 0;
    this.#free.length = 0;
  }

  #check(embedding: Float32Array): void {
    if (this.#closed) throw new EngineError("CLOSED", "the gallery is closed");
    checkEmbedding(embedding, this.#dimensions);
  }

  #searchAll(block: Block, best: Best): void {
    const { run } = block.kernels;
    const batch = run.galleryBatch();
    const rows = Math.min(block.capacity, this.#ids.length - block.firstRow);
    for (let first = 0; first < rows; first += batch) {
      const found = run.gallerySearch(first, Math.min(batch, rows - first), best.floor);
      this.#take(block, found, best);
    }
  }

  #searchListed(block: Block, rows: readonly number[], best: Best): void {
    const { kernels } = block;
    const batch = kernels.run.galleryBatch();
    for (let first = 0; first < rows.length; first += batch) {
      const part = rows.slice(first, first + batch);
      kernels.writeIntegers(kernels.run.galleryListed(), part);
      this.#take(block, kernels.run.gallerySearchListed(part.length, best.floor), best);
    }
  }

  /** Hits are pairs of row and score. */
  #take(block: Block, found: number, best: Best): void {
    if (found === 0) return;
    const { kernels, firstRow } = block;
    const rows = kernels.readIntegers(kernels.run.galleryHits(), 2 * found);
    const scores = new Float32Array(rows.buffer);
    for (let i = 0; i < found; i++) {
      const id = this.#ids[firstRow + rows[2 * i]!];
      if (id !== undefined) best.add(id, scores[2 * i + 1]!);
    }
  }

  /** The rows of these ids, block by block. */
  #listed(only: ReadonlySet<string>): number[][] {
    const listed = this.#blocks.map((): number[] => []);
    for (const id of only) {
      const row = this.#rowOf.get(id);
      if (row === undefined) continue;
      const block = this.#blockOf(row);
      listed[this.#blocks.indexOf(block)]!.push(row - block.firstRow);
    }
    return listed;
  }

  #blockOf(row: number): Block {
    const known = this.#blocks.findLast((block) => block.firstRow <= row);
    if (known && row < known.firstRow + known.capacity) return known;
    const firstRow = known ? known.firstRow + known.capacity : 0;
    const capacity = known ? Math.min(largestCapacity, known.capacity * 4) : firstCapacity;
    const kernels = new Kernels(this.#module);
    kernels.run.reserveGallery(capacity, this.#dimensions, this.#precision === "int8" ? 1 : 0);
    kernels.run.seal();
    const block = { kernels, firstRow, capacity };
    this.#blocks.push(block);
    return block;
  }
}

/** The k best so far; whoever scores below `floor` need not be looked at. */
class Best {
  floor = Number.NEGATIVE_INFINITY;
  readonly #k: number;
  readonly #room: number;
  #hits: GalleryHit[] = [];

  constructor(k: number) {
    this.#k = k;
    this.#room = Math.max(2 * k, 256);
  }

  add(id: string, score: number): void {
    if (score < this.floor) return;
    this.#hits.push({ id, raw: score > 1 ? 1 : Math.max(score, -1) });
    if (this.#hits.length >= this.#room) this.#cut();
  }

  hits(): GalleryHit[] {
    this.#cut();
    return this.#hits;
  }

  /** Best first; equal scores by id, so that the answer does not depend on the order in which voices were stored. */
  #cut(): void {
    this.#hits.sort((a, b) => b.raw - a.raw || (a.id < b.id ? -1 : 1));
    if (this.#hits.length > this.#k) this.#hits.length = this.#k;
    if (this.#hits.length === this.#k) this.floor = this.#hits[this.#k - 1]!.raw;
  }
}
