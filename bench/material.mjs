// What the benchmarks work on: the shipped model (or $VIVAVOCE_MODEL, or random weights where neither is there), the accurate one (or random
// weights), and synthesized speech.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { utter } from "../dist/demo/voice.js";
import { accurateModel, shippedModel } from "../dist/engine/shipped-model.js";
import { speakerTensors } from "../dist/engine/speaker-tensors.js";
import { RESNET, randomModel } from "./nn/random-model.mjs";

function bytesAt(path, random) {
  return existsSync(path) ? new Uint8Array(readFileSync(path)) : random();
}

const pathOf = (model) => fileURLToPath(new URL(`../models/${model}`, import.meta.url));

export function modelBytes() {
  const path = process.env.VIVAVOCE_MODEL ?? pathOf(shippedModel);
  return bytesAt(path, () => randomModel(speakerTensors("campplus-1")));
}

export function accurateModelBytes() {
  return bytesAt(pathOf(accurateModel), () => randomModel(speakerTensors("resnet34-1"), 1, RESNET));
}

export function speech(seconds, rateHz = 16_000) {
  return utter({ speaker: 3, seconds, rateHz }).samples;
}

export function kernelsModule() {
  return new WebAssembly.Module(readFileSync(new URL("../dist/engine/vivavoce.wasm", import.meta.url)));
}
