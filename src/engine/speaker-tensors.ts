/** The tensors of the speaker network in the order in which the kernels take them; assembly/speaker/weights.ts walks the same layers. */

export type Dtype = "i8" | "i16" | "f32";

export interface TensorSpec {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

export const SPEAKER_ARCHITECTURE = "campplus-1";

const FRONT_CHANNELS = 32;
const GROWTH = 32;
const BOTTLENECK = 128;
const CONTEXT = 64;
const BLOCK_LAYERS = [12, 24, 16];

const vector = (name: string, length: number): TensorSpec => ({ name, dtype: "f32", shape: [length] });

/** Weights [outputs][taps][elements of a tap], then what turns sums into activations. */
function convolution(name: string, dtype: Dtype, outputs: number, taps: number, run: number): TensorSpec[] {
  return [
    { name: `${name}.weight`, dtype, shape: [outputs, taps, run] },
    vector(`${name}.gain`, outputs),
    vector(`${name}.bias`, outputs),
  ];
}

function dense(name: string, dtype: Dtype, outputs: number, inputs: number): TensorSpec[] {
  return [
    { name: `${name}.weight`, dtype, shape: [outputs, inputs] },
    vector(`${name}.gain`, outputs),
    vector(`${name}.bias`, outputs),
  ];
}

function norm(name: string, channels: number): TensorSpec[] {
  return [
    { name: `${name}.gain`, dtype: "i16", shape: [channels] },
    { name: `${name}.bias`, dtype: "i16", shape: [channels] },
  ];
}

function residualBlock(name: string, shortcut: boolean): TensorSpec[] {
  return [
    ...convolution(`${name}.conv1`, "i16", FRONT_CHANNELS, 3, 3 * FRONT_CHANNELS),
    ...(shortcut ? convolution(`${name}.shortcut`, "i16", FRONT_CHANNELS, 1, FRONT_CHANNELS) : []),
    ...convolution(`${name}.conv2`, "i16", FRONT_CHANNELS, 3, 3 * FRONT_CHANNELS),
    vector(`${name}.conv2.residual`, FRONT_CHANNELS),
  ];
}

function denseLayer(name: string, channels: number): TensorSpec[] {
  return [
    ...norm(`${name}.norm`, channels),
    ...convolution(`${name}.bottleneck`, "i8", BOTTLENECK, 1, channels),
    ...convolution(`${name}.local`, "i8", GROWTH, 3, BOTTLENECK),
    ...dense(`${name}.squeeze`, "i8", CONTEXT, BOTTLENECK),
    ...dense(`${name}.excite`, "i8", GROWTH, CONTEXT),
  ];
}

export function speakerTensors(): TensorSpec[] {
  const tensors = [
    ...convolution("front.conv1", "i16", FRONT_CHANNELS, 3, 4),
    ...residualBlock("front.stage1.0", true),
    ...residualBlock("front.stage1.1", false),
    ...residualBlock("front.stage2.0", true),
    ...residualBlock("front.stage2.1", false),
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
