/** What differs between Node and a browser. This file is for Node; browsers use src/browser/platform.ts instead. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { shippedModel } from "./shipped-model.js";

/** A thread as the pool sees it. */
export interface Thread {
  postMessage(message: unknown, transfer: readonly Transferable[]): void;
  /** Called once when the thread ends by itself or fails. */
  onLost(listener: (reason: string) => void): void;
  /** Whether the thread keeps an otherwise idle process alive. */
  hold(held: boolean): void;
  terminate(): Promise<void>;
}

export async function compileKernels(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await kernels());
}

async function kernels() {
  try {
    return await readFile(new URL("./vivavoce.wasm", import.meta.url));
  } catch (error) {
    // A bundle is in another folder; as CommonJS it has no address at all.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ERR_INVALID_URL") throw error;
    const what = "vivavoce.wasm is not beside the library; in a program for Node, do not bundle the package";
    throw new Error(`${what}: mark vivavoce as external (esbuild: --external:vivavoce)`, { cause: error });
  }
}

/** A checkout has it in models/; the package has one copy, beside the browser bundle. */
export function ownModel(): string | URL {
  // Not with `new URL`: server bundlers would treat it as a file that must exist, and a package does not have it.
  const ofCheckout = import.meta.url.replace(/[^/]+\/engine\/[^/]+$/, `models/${shippedModel}`);
  return existsSync(fileURLToPath(ofCheckout)) ? ofCheckout : new URL("../browser/vivavoce.vvm", import.meta.url);
}

/** The model's bytes: from `location` (a path or URL), else $VIVAVOCE_MODEL, else the package's own. */
export async function readModel(location?: string | URL): Promise<Uint8Array> {
  return bytesAt(location ?? (process.env.VIVAVOCE_MODEL || ownModel()));
}

export async function bytesAt(from: string | URL): Promise<Uint8Array> {
  const path = typeof from === "string" && !from.startsWith("file:") ? from : fileURLToPath(from);
  // Not a Node Buffer: its slice() is a view, while that of every other array is a copy.
  const { buffer, byteOffset, byteLength } = await readFile(path).catch((error: Error) => {
    // The error of a folder does not name it.
    throw Object.assign(error, { path });
  });
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The calibration file to use if none is given. */
export const calibrationSetting = (): string | null => process.env.VIVAVOCE_CALIBRATION || null;

/** Bytes that every thread of this process can read. */
export function shared(bytes: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(bytes));
}

export { availableParallelism as parallelism } from "node:os";

export function startThread(): Thread {
  // A worker must not inherit the process's flags: with `node --input-type=module -e …` it could not load a file.
  const worker = new Worker(new URL("./worker.js", import.meta.url), { name: "vivavoce", execArgv: [] });
  return {
    postMessage: (message, transfer) => worker.postMessage(message, transfer as never),
    onLost(listener) {
      worker.once("error", (error: Error) => listener(error.message));
      worker.once("exit", (code: number) => listener(`it ended with code ${code}`));
    },
    hold: (held) => (held ? worker.ref() : worker.unref()),
    async terminate() {
      await worker.terminate();
    },
  };
}

/** Inside a thread: the first message. Only the code that started the thread can send it. */
export function firstMessage(): Promise<unknown> {
  if (isMainThread || parentPort === null) throw new Error("worker.js must be started by the engine, not directly");
  const port = parentPort;
  return new Promise((resolve) => port.once("message", resolve));
}
