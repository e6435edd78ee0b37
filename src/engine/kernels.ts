/**
 * The one file that touches WebAssembly memory. Values are copied in and copied out; no view leaves, because the memory is
 * written over by the next call (and, while loading, grows and detaches every view).
 */
import type { KernelExports } from "./gen/kernel-exports.js";

type Pointer = number;

export class Kernels {
  readonly run: KernelExports;
  readonly #memory: WebAssembly.Memory;

  /** A new instance with a memory of its own. The binary has no imports. */
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

  /** Into `kept` where it has the right size: a stream that is put aside ten times a second leaves nothing behind to be collected. */
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
