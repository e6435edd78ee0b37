/** Kernels compiled from their own files: most are not exported by the shipped binary, and none needs the rest of it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import asc from "assemblyscript/asc";

type Export = (...values: number[]) => number;

/** The exports of some files under assembly/, and memory to test them in. */
export class Kernels {
  readonly run: Record<string, Export>;
  readonly #memory: WebAssembly.Memory;

  constructor(wasm: Uint8Array<ArrayBuffer>) {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(wasm), {});
    this.run = exports as Record<string, Export>;
    this.#memory = exports.memory as WebAssembly.Memory;
  }

  reserve(bytes: number): number {
    return this.run.reserve!(bytes);
  }

  put(values: Int8Array | Int16Array | Int32Array | Float32Array): number {
    const slot = this.reserve(values.byteLength);
    this.write(slot, values);
    return slot;
  }

  write(slot: number, values: Int8Array | Int16Array | Int32Array | Float32Array): void {
    new Uint8Array(this.#memory.buffer).set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), slot);
  }

  /** A record of i32 and f32 fields, as AssemblyScript lays it out. */
  record(...fields: (number | { f32: number })[]): number {
    const view = new DataView(new ArrayBuffer(fields.length * 4));
    for (const [i, field] of fields.entries()) {
      if (typeof field === "number") view.setInt32(i * 4, field, true);
      else view.setFloat32(i * 4, field.f32, true);
    }
    return this.put(new Int32Array(view.buffer));
  }

  words(slot: number, length: number): Int16Array {
    return new Int16Array(this.#memory.buffer, slot, length).slice();
  }

  integers(slot: number, length: number): Int32Array {
    return new Int32Array(this.#memory.buffer, slot, length).slice();
  }

  floats(slot: number, length: number): Float32Array {
    return new Float32Array(this.#memory.buffer, slot, length).slice();
  }

  get bytes(): number {
    return this.#memory.buffer.byteLength;
  }
}

/** Compiling takes seconds, and on a busy machine more than the usual limit of a hook. */
export const COMPILING_MS = 240_000;

export async function compile(...files: string[]): Promise<Uint8Array<ArrayBuffer>> {
  const folder = mkdtempSync(join(tmpdir(), "kernels-"));
  try {
    const outFile = join(folder, "kernels.wasm");
    const entries = [...files, "memory"].map((file) => `assembly/${file}.ts`);
    const { error, stderr } = await asc.main([...entries, "--target", "release", "--outFile", outFile]);
    if (error) throw new Error(`${error.message}\n${stderr.toString()}`);
    return new Uint8Array(readFileSync(outFile));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Uniform integers and floats, the same in every run. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 … 1 */
  next(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 4294967296;
  }

  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  bytes(length: number, most = 127): Int8Array {
    return Int8Array.from({ length }, () => this.integer(-most, most));
  }

  words(length: number, low: number, high: number): Int16Array {
    return Int16Array.from({ length }, () => this.integer(low, high));
  }

  floats(length: number, low: number, high: number): Float32Array {
    return Float32Array.from({ length }, () => low + this.next() * (high - low));
  }
}

/** To the nearest integer, ties to even, as `f32x4.nearest`. */
export function nearest(x: number): number {
  const down = Math.floor(x);
  const rest = x - down;
  return rest < 0.5 || (rest === 0.5 && down % 2 === 0) ? down : down + 1;
}

export function clamp(x: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, x));
}
