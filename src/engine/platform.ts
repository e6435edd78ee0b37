/** What differs between Node and a browser. This is Node's; browsers get src/browser/platform.ts in its place. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { shippedModel } from "./shipped-model.js";

/** A thread as the pool sees it. */
export interface Thread {
  postMessage(message: unknown, transfer: readonly Transferable[]): void;
  /** Called once when the thread ends by itself or fails. */
  onLost(listener: (reason: string) => void): void;
  /** Whether a waiting process stays alive for this thread. */
  hold(held: boolean): void;
  terminate(): Promise<void>;
}

export async function compileKernels(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await readFile(new URL("./vivavoce.wasm", import.meta.url)));
}

/** A checkout has it in models/; the package carries it once, beside the browser bundle. */
export function ownModel(): string | URL {
  // Not with `new URL`: bundlers for servers would take it for a file that must be there, and a package has none.
  const ofCheckout = import.meta.url.replace(/[^/]+\/engine\/[^/]+$/, `models/${shippedModel}`);
  return existsSync(fileURLToPath(ofCheckout)) ? ofCheckout : new URL("../browser/vivavoce.vvm", import.meta.url);
}

/** The model's bytes: from `location` (a path or URL), else $VIVAVOCE_MODEL, else the package's own. */
export async function readModel(location?: string | URL): Promise<Uint8Array> {
  return bytesAt(location ?? (process.env.VIVAVOCE_MODEL || ownModel()));
}

async function bytesAt(from: string | URL): Promise<Uint8Array> {
  const path = typeof from === "string" && !from.startsWith("file:") ? from : fileURLToPath(from);
  // Not node's Buffer, whose slice() is a view where every other array's is a copy.
  const { buffer, byteOffset, byteLength } = await readFile(path);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The bytes of a calibration file: from `location`, else $VIVAVOCE_CALIBRATION; `null` without either. */
export async function readCalibration(location?: string | URL): Promise<Uint8Array | null> {
  const from = location ?? process.env.VIVAVOCE_CALIBRATION;
  return from ? bytesAt(from) : null;
}

/** Bytes that every thread of this process can read. */
export function shared(bytes: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(bytes));
}

export function parallelism(): number {
  return availableParallelism();
}

export function startThread(): Thread {
  // The flags of the process are not the worker's: `node --input-type=module -e …` would keep it from loading a file.
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

/** Inside a thread: the first message, which only who started the thread can send. */
export function firstMessage(): Promise<unknown> {
  if (isMainThread || parentPort === null) throw new Error("worker.js must be started by the engine, not directly");
  const port = parentPort;
  return new Promise((resolve) => port.once("message", resolve));
}
