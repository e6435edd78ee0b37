// Chains of four convolutions, each as wide as the last: ours has int8 weights and 16-bit activations.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";
import { random } from "../measure.mjs";
import { Graph, scalar, UINT8 } from "./onnx.mjs";

const DEPTH = 4;

async function compile(...files) {
  const folder = mkdtempSync(join(tmpdir(), "kernels-"));
  const root = fileURLToPath(new URL("../..", import.meta.url));
  try {
    const out = join(folder, "kernels.wasm");
    const entries = [...files, "memory"].map((file) => `assembly/${file}.ts`);
    const { error, stderr } = await asc.main([...entries, "--baseDir", root, "--target", "release", "--outFile", out]);
    if (error) throw new Error(`${error.message}\n${stderr.toString()}`);
    return new WebAssembly.Module(readFileSync(out));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function kernels() {
  return compile("nn/convolution", "nn/quad-convolution", "nn/patch-convolution");
}

/** One layer as frames × channels → channels, `taps` × `dilation`; a plane has bins, and its taps are 3 × 3. */
export function macs({ frames, channels, taps, bins = 1 }) {
  return DEPTH * frames * bins * channels * channels * taps * (bins > 1 ? 3 : 1);
}

export function ours(module, shape) {
  const { frames, channels, taps, dilation = 1, bins = 1 } = shape;
  const quads = shape.kind === "quads";
  const patches = shape.kind === "patches";
  const k = new WebAssembly.Instance(module, {}).exports;
  const width = 2;
  const isPlane = bins > 1;
  const run = isPlane ? 3 * channels : channels;
  const row = (isPlane ? (bins + 2) * channels : channels) * width;
  const pad = ((taps - 1) * dilation) / 2;
  // Patches write four frames at a time.
  const rows = (patches ? Math.ceil(frames / 4) * 4 : frames) + 2 * pad;
  const planes = [k.reserve(rows * row), k.reserve(rows * row)];
  const next = random(3);
  const put = (values) => {
    const at = k.reserve(values.byteLength);
    new Uint8Array(k.memory.buffer).set(new Uint8Array(values.buffer), at);
    return at;
  };
  const layers = Array.from({ length: DEPTH }, () => {
    const size = channels * taps * run;
    const weights = quads
      ? Int16Array.from({ length: size }, () => next() * 150 - 75)
      : Int8Array.from({ length: size }, () => next() * 255 - 127);
    const bytes = quads ? k.quadBytes(channels, run) : patches ? k.patchBytes(channels, channels) : size * width;
    const panels = k.reserve(bytes);
    if (quads) k.packQuads(panels, put(weights), channels, run, 1);
    else if (patches) k.packPatches(panels, put(weights), channels, channels, 0);
    else k.packPanels(panels, put(weights), channels, taps, run, 0);
    const bias = put(new Float32Array(channels).fill(0.05));
    const gain = put(new Float32Array(channels).fill(0.02 / Math.sqrt(taps * run)));
    const words = Int32Array.of(channels, taps, run, panels, gain, bias, 0, 0, 0, 1, dilation, 1);
    new Float32Array(words.buffer)[8] = patches ? 2047 : 4095;
    return put(words);
  });
  const scratch = quads ? k.reserve(6 * row) : patches ? k.reserve(k.patchScratchBytes(bins, channels)) : 0;
  const plane = put(Int32Array.of(frames, bins, channels, channels * width, row, rows * row));
  const inner = pad * row + (isPlane ? channels * width : 0);
  for (let t = 0; t < frames; t++) {
    new Int16Array(k.memory.buffer, planes[0] + inner + t * row, bins * channels).fill(500);
  }
  return () => {
    for (let l = 0; l < DEPTH; l++) {
      const out = planes[(l + 1) & 1] + inner;
      const x = planes[l & 1];
      if (quads) k.convolveQuads(out, plane, x, plane, layers[l], 0, scratch);
      else if (patches) k.convolvePatches(out, plane, x, plane, layers[l], 0, scratch);
      else if (isPlane) k.convolvePlane(out, plane, x, plane, layers[l], 0);
      else k.convolve(out, row, x, row, frames, layers[l]);
    }
  };
}

/** The same chain for a peer, in f32 or in static int8 (QLinearConv). */
export function graph({ frames, channels, taps, dilation = 1, bins = 1 }, eightBits) {
  const g = new Graph();
  const isPlane = bins > 1;
  const dims = isPlane ? [1, channels, bins, frames] : [1, channels, frames];
  const kernel = isPlane ? [3, taps] : [taps];
  const pad = ((taps - 1) * dilation) / 2;
  const pads = isPlane ? [1, pad, 1, pad] : [pad, pad];
  const attributes = { kernel_shape: kernel, pads, dilations: isPlane ? [1, dilation] : [dilation] };
  const next = random(3);
  const inputs = channels * kernel.reduce((a, b) => a * b);
  let x = g.input("x", dims, eightBits ? UINT8 : 1);
  const [scale, zero] = [g.constant(scalar(0.02), []), g.constant(Uint8Array.of(0), [])];
  for (let l = 0; l < DEPTH; l++) {
    const shape = [channels, channels, ...kernel];
    if (eightBits) {
      const w = g.constant(
        Int8Array.from({ length: channels * inputs }, () => next() * 255 - 127),
        shape,
      );
      const wScale = g.constant(new Float32Array(channels).fill(0.02 / Math.sqrt(inputs)));
      const rest = [g.constant(new Int8Array(channels)), scale, zero, g.constant(new Int32Array(channels))];
      x = g.node("QLinearConv", [x, scale, zero, w, wScale, ...rest], attributes);
    } else {
      const w = Float32Array.from({ length: channels * inputs }, () => (next() - 0.5) / Math.sqrt(inputs));
      x = g.node("Relu", [
        g.node("Conv", [x, g.constant(w, shape), g.constant(new Float32Array(channels).fill(0.05))], attributes),
      ]);
    }
  }
  g.output(x, dims, eightBits ? UINT8 : 1);
  return { model: g.encode(), dims };
}
