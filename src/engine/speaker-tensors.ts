/** The tensors of each speaker network in the order that the kernels expect; each weights.ts of assembly/speaker walks the same layers. */
import { convolution, type Dtype, dense, type TensorSpec, vector } from "./tensor-spec.js";

/** Architectures whose name determines their tensors. */
export const FIXED_ARCHITECTURES = ["campplus-1", "resnet34-1"] as const;
export type FixedArchitecture = (typeof FIXED_ARCHITECTURES)[number];
/** In the kernels' order (assembly/speaker/abi.ts). For the last, the model file describes the layers (tdnn-layers.ts). */
export const SPEAKER_ARCHITECTURES = [...FIXED_ARCHITECTURES, "tdnn-1"] as const;
export type SpeakerArchitecture = (typeof SPEAKER_ARCHITECTURES)[number];

export function isSpeakerArchitecture(value: unknown): value is SpeakerArchitecture {
  return (SPEAKER_ARCHITECTURES as readonly unknown[]).includes(value);
}

/** CAM++: channels of its parts, and layers of each of its blocks. */
export const FRONT_CHANNELS = 32;
export const GROWTH = 32;
export const BOTTLENECK = 128;
export const CONTEXT = 64;
export const BLOCK_LAYERS = [12, 24, 16];

function norm(name: string, channels: number): TensorSpec[] {
  return [
    { name: `${name}.gain`, dtype: "i16", shape: [channels] },
    { name: `${name}.bias`, dtype: "i16", shape: [channels] },
  ];
}

/** Two 3 × 3 convolutions, and a 1 × 1 convolution where the input cannot be added unchanged. */
function residualBlock(name: string, dtype: Dtype, inputs: number, channels: number, shortcut: boolean): TensorSpec[] {
  return [
    ...convolution(`${name}.conv1`, dtype, channels, 3, 3 * inputs),
    ...(shortcut ? convolution(`${name}.shortcut`, dtype, channels, 1, inputs) : []),
    ...convolution(`${name}.conv2`, dtype, channels, 3, 3 * channels),
    vector(`${name}.conv2.residual`, channels),
  ];
}

const frontBlock = (name: string, shortcut: boolean): TensorSpec[] =>
  residualBlock(name, "i16", FRONT_CHANNELS, FRONT_CHANNELS, shortcut);

function denseLayer(name: string, channels: number): TensorSpec[] {
  return [
    ...norm(`${name}.norm`, channels),
    ...convolution(`${name}.bottleneck`, "i8", BOTTLENECK, 1, channels),
    ...convolution(`${name}.local`, "i8", GROWTH, 3, BOTTLENECK),
    ...dense(`${name}.squeeze`, "i8", CONTEXT, BOTTLENECK),
    ...dense(`${name}.excite`, "i8", GROWTH, CONTEXT),
  ];
}

export function speakerTensors(architecture: FixedArchitecture): TensorSpec[] {
  return architecture === "campplus-1" ? campplusTensors() : resnetTensors();
}

function campplusTensors(): TensorSpec[] {
  const tensors = [
    ...convolution("front.conv1", "i16", FRONT_CHANNELS, 3, 4),
    ...frontBlock("front.stage1.0", true),
    ...frontBlock("front.stage1.1", false),
    ...frontBlock("front.stage2.0", true),
    ...frontBlock("front.stage2.1", false),
    ...convolution("front.conv2", "i16", FRONT_CHANNELS, 3, 3 * FRONT_CHANNELS),
    ...convolution("tdnn", "i8", 128, 5, 10 * FRONT_CHANNELS),
  ];
  let channels = 128;
  for (const [block, layers] of BLOCK_LAYERS.entries()) {
    for (let i = 0; i < layers; i++, channels += GROWTH)
      tensors.push(...denseLayer(`block${block + 1}.${i}`, channels));
    tensors.push(...norm(`transit${block + 1}.norm`, channels));
    tensors.push(...convolution(`transit${block + 1}.linear`, "i8", channels / 2, 1, channels));
    channels /= 2;
  }
  tensors.push(
    ...norm("out.norm", channels),
    ...dense("dense", "i8", 192, 2 * channels),
    ...dense("map", "i16", 256, 192),
  );
  return tensors;
}

export interface ResidualStage {
  readonly blocks: number;
  readonly channels: number;
  readonly dtype: Dtype;
}

export const resnetStages: readonly ResidualStage[] = [
  { blocks: 3, channels: 32, dtype: "i16" },
  { blocks: 4, channels: 64, dtype: "i16" },
  { blocks: 6, channels: 128, dtype: "i8" },
  { blocks: 3, channels: 256, dtype: "i8" },
];

const resnetTensors = (): TensorSpec[] => [...residualTensors(resnetStages), ...dense("fc", "i8", 256, 2 * 10 * 256)];

/** A residual network up to its statistics. */
export function residualTensors(stages: readonly ResidualStage[]): TensorSpec[] {
  let inputs = stages[0]!.channels;
  let number = 0;
  const tensors = convolution("stem", "i16", inputs, 3, 4);
  for (const { blocks, channels, dtype } of stages) {
    for (let i = 0; i < blocks; i++, number++) {
      tensors.push(...residualBlock(`blocks.${number}`, dtype, inputs, channels, inputs !== channels));
      inputs = channels;
    }
  }
  return tensors;
}
