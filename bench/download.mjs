// Download size in a browser, compressed as servers do.
import { existsSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { modelBytes } from "./material.mjs";
import { atLeast, atMost } from "./measure.mjs";

const megabytes = (bytes) => gzipSync(bytes, { level: 9 }).length / 1e6;

export default async function download() {
  const engine = ["vivavoce.js", "worker.js", "vivavoce.wasm"].map((name) => {
    const path = new URL(`../dist/browser/${name}`, import.meta.url);
    if (!existsSync(path)) throw new Error(`${name} is not built; run npm run build`);
    return [name, megabytes(readFileSync(path))];
  });
  const model = megabytes(modelBytes());
  const code = engine.reduce((sum, [, size]) => sum + size, 0);
  const peer = megabytes(
    readFileSync(new URL("./node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.wasm", import.meta.url)),
  );
  const detail = [...engine, ["model", model]]
    .map(([name, size]) => `${name} ${(1000 * size).toFixed(0)} kB`)
    .join(", ");
  return [
    atMost("engine and model, gzip", "8 MB", code + model, 8, detail, " MB"),
    atLeast("engine without a model, gzip", "onnxruntime-web's WASM, gzip", peer / code, 10, `${peer.toFixed(1)} MB`),
  ];
}
