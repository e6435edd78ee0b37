/**
 * The network's weights, and how they come in.
 *
 * `createWeights` walks the layers in the order of the model file and gives each tensor a place. Loading then takes one tensor at
 * a time: its bytes are copied to the staging slot, and `take(i)` packs, widens or copies them to where the forward pass reads them.
 */
import { reserve } from "../memory";
import { Convolution, packBytes, packWords, packedBytes } from "../nn/convolution";
import { Dense } from "../nn/dense";
import {
  ACTIVATION_HIGH,
  BLOCKS,
  BOTTLENECK,
  CONCATENATION_HIGH,
  CONTEXT,
  DIMENSIONS,
  FRONT_CHANNELS,
  GROWTH,
  SPEAKER_CHANNELS,
  TDNN_CHANNELS,
  TDNN_TAPS,
  blockLayers,
} from "./config";

/** Pre-activation over concatenated channels: Q15 gains and biases. */
@unmanaged
export class Norm {
  channels: i32;
  gain: usize;
  bias: usize;
}

/** relu(conv2(relu(conv1(x))) + shortcut(x)); without a shortcut convolution the input itself is added. */
@unmanaged
export class ResidualBlock {
  conv1: Convolution;
  conv2: Convolution;
  shortcut: Convolution | null;
}

/** One layer of a dense block. */
@unmanaged
export class DenseLayer {
  norm: Norm;
  bottleneck: Convolution;
  local: Convolution;
  squeeze: Dense;
  excite: Dense;
}

@unmanaged
export class Weights {
  frontConv1: Convolution;
  stage1a: ResidualBlock;
  stage1b: ResidualBlock;
  stage2a: ResidualBlock;
  stage2b: ResidualBlock;
  frontConv2: Convolution;
  tdnn: Convolution;
  /** Pointers of all dense layers, block after block. */
  layers: usize;
  /** Pointers of the three transit norms, then of the three transit convolutions. */
  transitNorms: usize;
  transits: usize;
  outNorm: Norm;
  dense: Dense;
  map: Dense;
}

/** How a staged tensor is put in its place. */
const COPY = 0; // as it is
const PANELS_OF_BYTES = 1;
const PANELS_OF_WORDS = 2;
const WIDENED = 3; // i8 to i16, same order

@unmanaged
class Slot {
  how: i32;
  bytes: i32;
  outputs: i32;
  taps: i32;
  run: i32;
  place: usize;
}

const MOST_TENSORS = 1024;
let slots: usize = 0;
let tensors = 0;
let largest = 0;

// @ts-ignore: decorator
@inline
function create<T>(): T {
  return changetype<T>(reserve(offsetof<T>()));
}

function expect(how: i32, bytes: i32, place: usize, outputs: i32 = 0, taps: i32 = 0, run: i32 = 0): void {
  if (tensors == MOST_TENSORS) unreachable();
  const slot = changetype<Slot>(slots + <usize>tensors * offsetof<Slot>());
  slot.how = how;
  slot.bytes = bytes;
  slot.outputs = outputs;
  slot.taps = taps;
  slot.run = run;
  slot.place = place;
  tensors++;
  largest = max(largest, bytes);
}

/** weight (i8, or i16 where `words`) [outputs][taps][run], gain f32[outputs], bias f32[outputs]. */
function createConvolution(outputs: i32, taps: i32, run: i32, words: bool, low: i32, high: i32): Convolution {
  const c = create<Convolution>();
  c.outputs = outputs;
  c.taps = taps;
  c.run = run;
  c.weights = reserve(packedBytes(outputs, taps, run));
  c.gain = reserve(<usize>outputs << 2);
  c.bias = reserve(<usize>outputs << 2);
  c.residualGain = 0;
  c.low = <f32>low;
  c.high = <f32>high;
  expect(words ? PANELS_OF_WORDS : PANELS_OF_BYTES, (outputs * taps * run) << <i32>words, c.weights, outputs, taps, run);
  expect(COPY, outputs << 2, c.gain);
  expect(COPY, outputs << 2, c.bias);
  return c;
}

/** … then residual gain f32[outputs]. */
function createResidual(outputs: i32, taps: i32, run: i32): Convolution {
  const c = createConvolution(outputs, taps, run, true, 0, ACTIVATION_HIGH);
  c.residualGain = reserve(<usize>outputs << 2);
  expect(COPY, outputs << 2, c.residualGain);
  return c;
}

function createResidualBlock(shortcut: bool): ResidualBlock {
  const b = create<ResidualBlock>();
  const run = 3 * FRONT_CHANNELS;
  b.conv1 = createConvolution(FRONT_CHANNELS, 3, run, true, 0, ACTIVATION_HIGH);
  b.shortcut = shortcut ? createConvolution(FRONT_CHANNELS, 1, FRONT_CHANNELS, true, -CONCATENATION_HIGH, CONCATENATION_HIGH) : null;
  b.conv2 = createResidual(FRONT_CHANNELS, 3, run);
  return b;
}

/** gain i16[channels] (Q15), bias i16[channels]. */
function createNorm(channels: i32): Norm {
  const n = create<Norm>();
  n.channels = channels;
  n.gain = reserve(<usize>channels << 1);
  n.bias = reserve(<usize>channels << 1);
  expect(COPY, channels << 1, n.gain);
  expect(COPY, channels << 1, n.bias);
  return n;
}

/** weight (i8, or i16 where `words`) [outputs][inputs], gain f32[outputs], bias f32[outputs]. */
function createDense(outputs: i32, inputs: i32, words: bool): Dense {
  const d = create<Dense>();
  d.inputs = inputs;
  d.outputs = outputs;
  d.weights = reserve(<usize>(outputs * inputs) << 1);
  d.gain = reserve(<usize>outputs << 2);
  d.bias = reserve(<usize>outputs << 2);
  expect(words ? COPY : WIDENED, (outputs * inputs) << <i32>words, d.weights);
  expect(COPY, outputs << 2, d.gain);
  expect(COPY, outputs << 2, d.bias);
  return d;
}

function createDenseLayer(channels: i32): DenseLayer {
  const l = create<DenseLayer>();
  l.norm = createNorm(channels);
  l.bottleneck = createConvolution(BOTTLENECK, 1, channels, false, 0, ACTIVATION_HIGH);
  l.local = createConvolution(GROWTH, 3, BOTTLENECK, false, -CONCATENATION_HIGH, CONCATENATION_HIGH);
  l.squeeze = createDense(CONTEXT, BOTTLENECK, false);
  l.excite = createDense(GROWTH, CONTEXT, false);
  return l;
}

/** Reserves every weight. The order of calls is the order of tensors in the model file. */
export function createWeights(): Weights {
  slots = reserve(MOST_TENSORS * offsetof<Slot>());
  const w = create<Weights>();
  w.frontConv1 = createConvolution(FRONT_CHANNELS, 3, 4, true, 0, ACTIVATION_HIGH);
  w.stage1a = createResidualBlock(true);
  w.stage1b = createResidualBlock(false);
  w.stage2a = createResidualBlock(true);
  w.stage2b = createResidualBlock(false);
  w.frontConv2 = createConvolution(FRONT_CHANNELS, 3, 3 * FRONT_CHANNELS, true, 0, ACTIVATION_HIGH);
  w.tdnn = createConvolution(TDNN_CHANNELS, TDNN_TAPS, 10 * FRONT_CHANNELS, false, 0, CONCATENATION_HIGH);
  w.layers = reserve(64 * sizeof<usize>());
  w.transitNorms = reserve(BLOCKS * sizeof<usize>());
  w.transits = reserve(BLOCKS * sizeof<usize>());
  let channels = TDNN_CHANNELS;
  let at = w.layers;
  for (let block = 0; block < BLOCKS; block++) {
    for (let i = 0; i < blockLayers(block); i++, at += sizeof<usize>(), channels += GROWTH) {
      store<usize>(at, changetype<usize>(createDenseLayer(channels)));
    }
    store<usize>(w.transitNorms + <usize>block * sizeof<usize>(), changetype<usize>(createNorm(channels)));
    const half = channels >> 1;
    const transit = createConvolution(half, 1, channels, false, -CONCATENATION_HIGH, CONCATENATION_HIGH);
    store<usize>(w.transits + <usize>block * sizeof<usize>(), changetype<usize>(transit));
    channels = half;
  }
  w.outNorm = createNorm(channels);
  w.dense = createDense(SPEAKER_CHANNELS, 2 * channels, false);
  w.map = createDense(DIMENSIONS, SPEAKER_CHANNELS, true);
  return w;
}

export function tensorCount(): i32 {
  return tensors;
}

/** Bytes of tensor i in the model file. */
export function tensorBytes(i: i32): i32 {
  return <u32>i < <u32>tensors ? changetype<Slot>(slots + <usize>i * offsetof<Slot>()).bytes : 0;
}

export function largestTensorBytes(): i32 {
  return largest;
}

/** Puts the staged tensor i in its place. */
export function take(i: i32, staged: usize): void {
  const slot = changetype<Slot>(slots + <usize>i * offsetof<Slot>());
  if (slot.how == PANELS_OF_BYTES) packBytes(slot.place, staged, slot.outputs, slot.taps, slot.run);
  else if (slot.how == PANELS_OF_WORDS) packWords(slot.place, staged, slot.outputs, slot.taps, slot.run);
  else if (slot.how == WIDENED) for (let k = 0; k < slot.bytes; k++) store<i16>(slot.place + (<usize>k << 1), load<i8>(staged + k));
  else memory.copy(slot.place, staged, slot.bytes);
}
