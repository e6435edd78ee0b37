// node bench/nn/embed.mjs MODEL.vvm < FEATURES > EMBEDDINGS: runs the shipped kernels for other programs (training/golden.py).
// FEATURES: for each recording u32 frames, then f32 [frames][80] log-mel; EMBEDDINGS: f32[256] each. Little-endian.
// node bench/nn/embed.mjs --voice SEED > SAMPLES: a synthetic voice, f32 at 16 kHz.
import { readFileSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { speaker } from "./speaker.mjs";
import { syntheticVoice } from "./voices.mjs";

function write(array) {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

const [argument, seed] = process.argv.slice(2);
if (argument === "--voice") write(syntheticVoice(Number(seed)));
else {
  const wasm = fileURLToPath(new URL("../../dist/engine/vivavoce.wasm", import.meta.url));
  const { embed } = await speaker(new Uint8Array(readFileSync(argument)), readFileSync(wasm), 1000);
  const input = readFileSync(0);
  for (let at = 0; at < input.length; ) {
    const frames = input.readUInt32LE(at);
    const features = new Float32Array(frames * 80);
    for (let i = 0; i < features.length; i++) features[i] = input.readFloatLE(at + 4 + 4 * i);
    at += 4 + features.byteLength;
    write(embed(features));
  }
}
