// What the benchmarks work on: the shipped model (or $VIVAVOCE_MODEL, or random weights where neither is there) and synthesized speech.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { utter } from "../dist/demo/voice.js";
import { shippedModel } from "../dist/engine/shipped-model.js";
import { speakerTensors } from "../dist/engine/speaker-tensors.js";
import { randomModel } from "./nn/random-model.mjs";

export function modelBytes() {
  const path = process.env.VIVAVOCE_MODEL ?? fileURLToPath(new URL(`../models/${shippedModel}`, import.meta.url));
  return existsSync(path) ? new Uint8Array(readFileSync(path)) : randomModel(speakerTensors("campplus-1"));
}

export function speech(seconds, rateHz = 16_000) {
  return utter({ speaker: 3, seconds, rateHz }).samples;
}

export function kernelsModule() {
  return new WebAssembly.Module(readFileSync(new URL("../dist/engine/vivavoce.wasm", import.meta.url)));
}
