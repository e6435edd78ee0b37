/** platform.ts for browsers as a single file: it contains the kernels and the worker script; the caller passes the model. */
import { EngineError } from "../engine/engine-error.js";
import type { Thread } from "../engine/platform.js";
import { bytesAt, threadOf } from "./platform.js";

export { bytesAt, calibrationSetting, firstMessage, parallelism, shared } from "./platform.js";

/** Inserted by the build: the kernels as base64, the worker script as text. */
declare const KERNELS: string;
declare const WORKER: string;

export function compileKernels(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(Uint8Array.from(atob(KERNELS), (character) => character.charCodeAt(0)));
}

export async function readModel(location?: string | URL): Promise<Uint8Array> {
  if (location === undefined)
    throw new EngineError("BAD_ARGUMENT", "this build has no model; pass its bytes or its address as `model`");
  return bytesAt(location);
}

let script: string | undefined;

export function startThread(): Thread {
  script ??= URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  return threadOf(new Worker(script, { type: "module", name: "vivavoce" }));
}
