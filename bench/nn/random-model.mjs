// A model file with random weights of the shipped architecture: the same bytes for the same seed on every machine.
// Gains keep activations within their bits, so that a pass does the same work and has the same range as with trained weights.
import { createHash } from "node:crypto";

/** Uniform in 0..1. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

const KINDS = { i8: Int8Array, i16: Int16Array, f32: Float32Array };
const ACTIVATION = 800; // mean of a rectified activation, of 4095
const CONCATENATED = 6000; // of 32767
const PATCHED = 600; // of 2047: activations in ResNet34's planes
const SHORTCUT = 1500; // the residual there
const WORD = 300; // 24 times the largest sum of a 3 × 3 convolution stays below 2³¹

function fill(name, array, weights, next) {
  const spread = (low, high) => {
    for (let i = 0; i < array.length; i++) array[i] = low + next() * (high - low);
  };
  const layer = name.slice(0, name.lastIndexOf("."));
  const concatenated = /^tdnn|\.local$|\.linear$|\.shortcut$/.test(layer);
  if (name.endsWith(".weight")) {
    const most = array instanceof Int8Array ? 127 : layer === "map" ? 32767 : WORD;
    for (let i = 0; i < array.length; i++) array[i] = Math.floor(next() * (2 * most + 1)) - most;
  } else if (name.endsWith(".residual")) spread(0.3, 0.6);
  else if (array instanceof Int16Array)
    name.endsWith(".gain") ? spread(2000, 7000) : spread(-300, 600); // a norm, Q15
  else if (name.endsWith(".bias")) {
    const size = /squeeze|excite|dense|map|^fc$/.test(layer) ? 0.5 : concatenated ? 500 : 300;
    spread(-size, size);
  } else {
    const { most, inputs } = weights.get(layer);
    const sum = Math.sqrt(inputs) * most * 0.577; // of unit inputs
    const scale = /excite|map/.test(layer) ? 1 / sum : /squeeze|dense|^fc$/.test(layer) ? 1 / (sum * ACTIVATION) : 0;
    const isPatch = /^stem$|^blocks\./.test(layer);
    const held = isPatch ? PATCHED : ACTIVATION * 1.5;
    const wanted = concatenated ? (isPatch ? SHORTCUT : CONCATENATED) : held;
    const heard = /^front\.conv1$|^stem$/.test(layer) ? 2000 : held;
    spread(0.7 * (scale || wanted / (sum * heard)), 1.3 * (scale || wanted / (sum * heard)));
  }
}

/** specs: `speakerTensors(architecture)` of src/engine/speaker-tensors.ts -> [{ name, dtype, shape, bytes: Uint8Array }] */
export function randomTensors(specs, seed) {
  const next = random(seed);
  const weights = new Map();
  return specs.map(({ name, dtype, shape }) => {
    const array = new KINDS[dtype](shape.reduce((product, size) => product * size, 1));
    const layer = name.slice(0, name.lastIndexOf("."));
    if (name.endsWith(".weight")) {
      const most = dtype === "i8" ? 127 : layer === "map" ? 32767 : WORD;
      weights.set(layer, { most, inputs: array.length / shape[0] });
    }
    fill(name, array, weights, next);
    return { name, dtype, shape, bytes: new Uint8Array(array.buffer) };
  });
}

const aligned = (length) => Math.ceil(length / 16) * 16;
const sha256 = (bytes) => createHash("sha256").update(bytes).digest();

/** JSON that contains offsets, which depend on its own length. */
function settled(describe) {
  let length = 0;
  for (;;) {
    const text = Buffer.from(JSON.stringify(describe(16 + length)));
    if (aligned(text.length) === length) return Buffer.concat([text, Buffer.alloc(length - text.length, " ")]);
    length = aligned(text.length);
  }
}

function place(parts, from, row) {
  let offset = from;
  return parts.map((part) => {
    const entry = row(part, offset);
    offset += aligned(part.bytes.length);
    return entry;
  });
}

function joined(head, parts) {
  const padded = parts.map(({ bytes }) => Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]));
  return Buffer.concat([head, ...padded]);
}

export function section(description, tensors) {
  const text = settled((from) => ({
    ...description,
    tensors: place(tensors, from, ({ name, dtype, shape, bytes }, offset) => ({
      name,
      dtype,
      shape,
      offset,
      bytes: bytes.length,
    })),
  }));
  const word = Buffer.alloc(16);
  word.writeUInt32LE(text.length, 0);
  return joined(Buffer.concat([word, text]), tensors);
}

/**
 * @param {readonly { name: string, bytes: Uint8Array }[]} sections
 * @param {{ version?: number, [name: string]: unknown }} header
 */
export function modelFile(sections, { version = 1, ...header } = {}) {
  const size = sections.reduce((sum, { bytes }) => sum + aligned(bytes.length), 0);
  const text = settled((from) => ({
    family: "random",
    licence: "Apache-2.0",
    trainingData: [],
    bytes: from + size + 32,
    sections: place(sections, from, ({ name, bytes }, offset) => ({
      name,
      offset,
      bytes: bytes.length,
      sha256: sha256(bytes).toString("hex"),
    })),
    ...header,
  }));
  const head = Buffer.alloc(16);
  head.write("vivavoce", 0, "latin1");
  head.writeUInt32LE(version, 8);
  head.writeUInt32LE(text.length, 12);
  const body = joined(Buffer.concat([head, text]), sections);
  return new Uint8Array(Buffer.concat([body, sha256(body)]));
}

export const NETWORK = {
  architecture: "campplus-1",
  dimensions: 256,
  windowSeconds: 4,
  frontEnd: { rateHz: 16000, bins: 80 },
};

export const RESNET = {
  ...NETWORK,
  architecture: "resnet34-1",
  frontEnd: { ...NETWORK.frontEnd, window: "hamming" },
};

export function randomModel(specs, seed = 1, network = NETWORK) {
  return modelFile([{ name: "network", bytes: section(network, randomTensors(specs, seed)) }]);
}
