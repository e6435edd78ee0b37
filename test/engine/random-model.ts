/**
 * A model file with random weights, the same in every run: it does not recognize voices, but the activations of every layer are as large as
 * in a trained network. Golden hashes made with it do not change when the shipped model does.
 */
import { createHash } from "node:crypto";
import {
  type FixedArchitecture,
  type ResidualStage,
  residualTensors,
  speakerTensors,
} from "../../src/engine/speaker-tensors.js";
import type { TensorSpec } from "../../src/engine/tensor-spec.js";
import { random } from "../voice.js";

interface Written {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Int8Array | Int16Array | Float32Array;
}

const padded = (length: number) => (length + 15) & ~15;

function json(value: unknown): Buffer {
  const text = JSON.stringify(value);
  return Buffer.from(text.padEnd(padded(Buffer.byteLength(text))));
}

function section(description: Record<string, unknown>, tensors: readonly Written[]): Buffer {
  // Offsets count from the start of the section, so they depend on the length of the description that contains them.
  let from = 0;
  for (;;) {
    let offset = 16 + from;
    const table = tensors.map(({ name, dtype, shape, data }) => {
      const row = { name, dtype, shape, offset, bytes: data.byteLength };
      offset += padded(data.byteLength);
      return row;
    });
    const described = json({ ...description, tensors: table });
    if (described.length !== from) {
      from = described.length;
      continue;
    }
    const bytes = Buffer.alloc(offset);
    bytes.writeUInt32LE(described.length, 0);
    described.copy(bytes, 16);
    for (const [i, { data }] of tensors.entries()) {
      Buffer.from(data.buffer, data.byteOffset, data.byteLength).copy(bytes, table[i]!.offset);
    }
    return bytes;
  }
}

/** Keeps sums of n products of weights and 12-bit activations in the range of activations. */
function values({ name, dtype, shape }: TensorSpec, inputs: number, next: () => number): Written["data"] {
  const length = shape.reduce((product, size) => product * size, 1);
  const fill = (most: number) => () => Math.round((2 * next() - 1) * most);
  if (name.endsWith(".weight")) {
    if (dtype === "i8") return Int8Array.from({ length }, fill(127));
    return Int16Array.from({ length }, fill(name.startsWith("blocks.") ? 127 : 1000));
  }
  if (dtype === "i16") return Int16Array.from({ length }, fill(name.endsWith(".gain") ? 9000 : 600));
  if (name.endsWith(".residual")) return new Float32Array(length).fill(0.5);
  // The last two layers have no bias: it would be the same part of every embedding.
  if (/^(dense|map|fc)\.bias/.test(name)) return new Float32Array(length);
  if (name.endsWith(".bias")) return Float32Array.from({ length }, () => 400 * next() - 100);
  const wide = /\.local|transit|tdnn|shortcut/.test(name) ? 8 : 1;
  return new Float32Array(length).fill(wide / Math.sqrt(inputs) / 73);
}

const networks = new Map<string, Buffer>();

/** Drawing seven million weights takes a second, so it is done once. */
function networkSection(
  seed: number,
  architecture: FixedArchitecture,
  dimensions: number,
  windowSeconds: number,
): Buffer {
  const key = `${architecture} ${seed} ${dimensions} ${windowSeconds}`;
  let bytes = networks.get(key);
  if (!bytes) {
    const frontEnd = architecture === "resnet34-1" ? { window: "hamming" } : {};
    const description = { architecture, dimensions, windowSeconds, frontEnd };
    bytes = section(description, network(seed, architecture));
    networks.set(key, bytes);
  }
  return bytes;
}

function network(seed: number, architecture: FixedArchitecture): Written[] {
  return drawn(speakerTensors(architecture), random(seed));
}

function drawn(specs: readonly TensorSpec[], next: () => number): Written[] {
  let inputs = 1;
  return specs.map((spec) => {
    if (spec.name.endsWith(".weight")) inputs = spec.shape.slice(1).reduce((product, size) => product * size, 1);
    return { ...spec, data: values(spec, inputs, next) };
  });
}

const SLIM_STAGES: readonly ResidualStage[] = [
  { blocks: 1, channels: 24, dtype: "i16" },
  { blocks: 2, channels: 48, dtype: "i16" },
  { blocks: 1, channels: 96, dtype: "i8" },
  { blocks: 1, channels: 192, dtype: "i8" },
];

/** An attack network as training/spoof writes it. */
function attackSection(kind: string, seed: number, architecture?: string): Buffer {
  const next = random(seed);
  const tensors: Written[] = [];
  const layer = (name: string, dtype: "i8" | "i16", shape: readonly number[]) => {
    const [outputs, ...runs] = shape as [number, ...number[]];
    const inputs = runs.reduce((product, size) => product * size, 1);
    const specs: TensorSpec[] = [
      { name: `${name}.weight`, dtype, shape },
      { name: `${name}.gain`, dtype: "f32", shape: [outputs] },
      { name: `${name}.bias`, dtype: "f32", shape: [outputs] },
    ];
    for (const spec of specs) tensors.push({ ...spec, data: values(spec, inputs, next) });
  };
  const network = (of: string, planes: readonly number[], tails: readonly number[], fronts: readonly string[]) => {
    const [plane0, plane1, plane2, plane3] = planes as [number, number, number, number];
    const [tail0, tail1, tail2] = tails as [number, number, number];
    for (const front of fronts) {
      layer(`${of}${front}.plane0`, "i16", [plane0, 3, 4]);
      layer(`${of}${front}.plane1`, "i8", [plane1, 3, 3 * plane0]);
      layer(`${of}${front}.plane2`, "i8", [plane2, 3, 3 * plane1]);
      layer(`${of}${front}.plane3`, "i8", [plane3, 3, 3 * plane2]);
    }
    layer(`${of}tail0`, "i8", [tail0, 3, (fronts.length > 1 ? 10 + 4 : 10) * plane3]);
    layer(`${of}tail1`, "i8", [tail1, 3, tail0]);
    layer(`${of}tail2`, "i8", [tail2, 3, tail1]);
    layer(`${of}hidden`, "i16", [32, 2 * tail2]);
    layer(`${of}out`, "i16", [4, 32]);
  };
  const synthetic = kind === "synthetic";
  if (synthetic) {
    network("narrow.", [16, 24, 40, 40], [80, 64, 64], ["linear", "short"]);
    const slim = residualTensors(SLIM_STAGES);
    tensors.push(...drawn(slim, next).map((tensor) => ({ ...tensor, name: `slim.${tensor.name}` })));
    layer("slim.hidden", "i16", [32, 2 * 10 * 192]);
    layer("slim.out", "i16", [4, 32]);
  } else network("", [8, 16, 16, 16], [48, 32, 32], ["mel"]);
  const usual = synthetic ? "attack-7" : "attack-1";
  return section({ architecture: architecture ?? usual, attack: kind, calibration: [0.001, -1] }, tensors);
}

/** Cosines of 0.3 are neutral; more speech counts more. */
export const plainCalibration = {
  terms: [
    ["one", "one", -6],
    ["cosine", "one", 20],
  ],
  reliability: [
    ["one", "one", -1],
    ["leastSpeech", "one", 1.5],
    ["leastSnr", "one", 0.8],
  ],
  impostors: { center: [["one", "one", 0.2]], spread: [["one", "one", 0.17]] },
  consistency: 0.3,
  speakers: { cosine: 0.45, seconds: 2 },
};

export interface RandomModel {
  readonly seed?: number;
  readonly architecture?: FixedArchitecture;
  /** The length of embeddings that the model claims; its network gives 256. */
  readonly dimensions?: number;
  readonly windowSeconds?: number;
  readonly attacks?: readonly string[];
  /** Names that the attack networks claim, instead of their real ones. */
  readonly attackArchitecture?: string;
  /** Replaces parts of the plain calibration; `null`: the model has none. */
  readonly calibration?: Record<string, unknown> | null;
}

export function randomModel(chosen: RandomModel = {}): Uint8Array {
  const { seed = 1, architecture = "campplus-1", dimensions = 256, windowSeconds = 4, calibration = {} } = chosen;
  const { attacks = [], attackArchitecture } = chosen;
  const next = random(seed + 1000);
  const axis = Float32Array.from({ length: dimensions }, () => next() - 0.5);
  const quantiles = Float32Array.from({ length: 101 }, (_, i) => (i - 50) / 50);
  const sections: [string, Buffer][] = [
    ["network", networkSection(seed, architecture, dimensions, windowSeconds)],
    [
      "voice-class",
      section({}, [
        { name: "axis", dtype: "f32", shape: [dimensions], data: axis },
        { name: "quantiles", dtype: "f32", shape: [101], data: quantiles },
      ]),
    ],
    ...(calibration === null
      ? []
      : [["calibration", section({ ...plainCalibration, ...calibration }, [])] as [string, Buffer]]),
    ...attacks.map((kind, i): [string, Buffer] => [
      `attack-${kind}`,
      attackSection(kind, seed + i, attackArchitecture),
    ]),
  ];
  const head = (headerBytes: number) => {
    let offset = 16 + headerBytes;
    const entries = sections.map(([name, bytes]) => {
      const entry = { name, offset, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
      offset += padded(bytes.length);
      return entry;
    });
    const header = json({
      family: "random-1",
      licence: "none",
      trainingData: [],
      bytes: offset + 32,
      sections: entries,
    });
    return { header, entries, total: offset };
  };
  let written = head(0);
  while (written.header.length !== head(written.header.length).header.length) written = head(written.header.length);
  const { header, entries, total } = head(written.header.length);
  const file = Buffer.alloc(total);
  file.write("vivavoce");
  file.writeUInt32LE(1, 8);
  file.writeUInt32LE(header.length, 12);
  header.copy(file, 16);
  for (const [i, [, bytes]] of sections.entries()) bytes.copy(file, entries[i]!.offset);
  return new Uint8Array(Buffer.concat([file, createHash("sha256").update(file).digest()]));
}
