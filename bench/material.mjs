// Input of the benchmarks: the shipped model (or $VIVAVOCE_MODEL), the accurate one, and synthesized speech.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { utter } from "../dist/demo/voice.js";
import { accurateModel, shippedModel } from "../dist/engine/shipped-model.js";

const bytesAt = (path) => new Uint8Array(readFileSync(path));
const pathOf = (model) => fileURLToPath(new URL(`../models/${model}`, import.meta.url));

export function modelBytes() {
  return bytesAt(process.env.VIVAVOCE_MODEL ?? pathOf(shippedModel));
}

export function accurateModelBytes() {
  return bytesAt(pathOf(accurateModel));
}

export function speech(seconds, rateHz = 16_000) {
  return utter({ speaker: 3, seconds, rateHz }).samples;
}

export function kernelsModule() {
  return new WebAssembly.Module(readFileSync(new URL("../dist/engine/vivavoce.wasm", import.meta.url)));
}
