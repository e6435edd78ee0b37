/**
 * The only file that touches WebAssembly memory. Values are copied in and out; no view is returned, because the next call overwrites the
 * memory (and, while loading, it grows and detaches every view).
 */
import type { KernelExports } from "./gen/kernel-exports.js";

type Pointer = number;

export class Kernels {
  readonly run: KernelExports;
  readonly #memory: WebAssembly.Memory;

  /** A new instance with its own memory. The binary has no imports. */
  constructor(module: WebAssembly.Module) {
    const exports = new WebAssembly.Instance(module).exports;
    this.run = exports as unknown as KernelExports;
    this.#memory = exports.memory as WebAssembly.Memory;
  }

  get memoryBytes(): number {
    return this.#memory.buffer.byteLength;
  }

  write(at: Pointer, bytes: Uint8Array): void {
    new Uint8Array(this.#memory.buffer, at, bytes.length).set(bytes);
  }

  writeFloats(at: Pointer, values: ArrayLike<number>): void {
    new Float32Array(this.#memory.buffer, at, values.length).set(values);
  }

  writeIntegers(at: Pointer, values: ArrayLike<number>): void {
    new Int32Array(this.#memory.buffer, at, values.length).set(values);
  }

  read(at: Pointer, bytes: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory.buffer, at, bytes).slice() as Uint8Array<ArrayBuffer>;
  }

  /** Copies into `kept` if it has the right size, so that saving a stream ten times a second creates no garbage. */
  readInto(kept: Uint8Array<ArrayBuffer> | null, at: Pointer, bytes: number): Uint8Array<ArrayBuffer> {
    if (kept?.length !== bytes) return this.read(at, bytes);
    kept.set(new Uint8Array(this.#memory.buffer, at, bytes));
    return kept;
  }

  readFloats(at: Pointer, length: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.#memory.buffer, at, length).slice() as Float32Array<ArrayBuffer>;
  }

  readDoubles(at: Pointer, length: number): Float64Array<ArrayBuffer> {
    return new Float64Array(this.#memory.buffer, at, length).slice() as Float64Array<ArrayBuffer>;
  }

  readIntegers(at: Pointer, length: number): Int32Array<ArrayBuffer> {
    return new Int32Array(this.#memory.buffer, at, length).slice() as Int32Array<ArrayBuffer>;
  }
}
