/**
 * The engine's platform.ts for browsers, selected by the field `browser` of package.json. Kernels, model and worker are next to this
 * file in the package, or next to the bundle.
 */
import type { Thread } from "../engine/platform.js";

async function fetched(url: URL | string): Promise<Response> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} cannot be loaded: HTTP status ${response.status}`);
  // Servers of single-page applications answer so, with 200, where a file is missing.
  if (response.headers.get("content-type")?.startsWith("text/html"))
    throw new Error(
      `${url} cannot be loaded: the answer is a page, so the file is not there: see "Files" in vivavoce's docs/browser.md`,
    );
  return response;
}

export async function compileKernels(): Promise<WebAssembly.Module> {
  const response = await fetched(new URL("./vivavoce.wasm", import.meta.url));
  // Streaming compilation needs the right media type, which not every server sends.
  if (response.headers.get("content-type")?.startsWith("application/wasm"))
    return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

export function readModel(location?: string | URL): Promise<Uint8Array> {
  return bytesAt(location ?? new URL("./vivavoce.vvm", import.meta.url));
}

export async function bytesAt(location: string | URL): Promise<Uint8Array> {
  return new Uint8Array(await (await fetched(location)).arrayBuffer());
}

/** A page has no settings of its environment. */
export const calibrationSetting = (): null => null;

/** Only cross-origin isolated pages can share memory, and in some browsers (WebKitGTK) not even these. Otherwise each worker gets a copy. */
export function shared(bytes: number): Uint8Array {
  const canShare = globalThis.crossOriginIsolated && "SharedArrayBuffer" in globalThis;
  return new Uint8Array(canShare ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes));
}

export function parallelism(): number {
  return globalThis.navigator?.hardwareConcurrency ?? 2;
}

export function startThread(): Thread {
  return threadOf(new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "vivavoce" }));
}

export function threadOf(worker: Worker): Thread {
  return {
    postMessage: (message, transfer) => worker.postMessage(message, [...transfer]),
    onLost(listener) {
      worker.addEventListener("error", (event) => listener(event.message || "its script did not load"), { once: true });
    },
    hold() {
      // Nothing to do: a worker does not keep a page alive.
    },
    async terminate() {
      worker.terminate();
    },
  };
}

export function firstMessage(): Promise<unknown> {
  const scope = globalThis as unknown as DedicatedWorkerGlobalScope;
  return new Promise((resolve) => scope.addEventListener("message", (event) => resolve(event.data), { once: true }));
}
