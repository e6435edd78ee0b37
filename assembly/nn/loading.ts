/**
 * Loading of weights. Creating a network's layers, in the order of the model file, gives each tensor a place. Then, one tensor
 * at a time, its bytes are copied to a staging slot, and `take` packs, widens or copies them to where the forward pass reads them.
 */
import { create, reserve } from "../memory";
import { Convolution, packBytes, packWords, packedBytes } from "./convolution";
import { Dense } from "./dense";
import { halvingBytes, packHalvingBytes, packHalvingWords } from "./halving-convolution";
import { packPairBytes, packPairWords, pairBytes } from "./pair-convolution";
import { packPatchBytes, packPatchWords, patchBytes } from "./patch-convolution";
import { packQuads, quadBytes } from "./quad-convolution";

/** How a staged tensor is stored. */
const COPY = 0; // as it is
const PANELS_OF_BYTES = 1;
const PANELS_OF_WORDS = 2;
const WIDENED = 3; // i8 to i16, same order
const PANELS_AND_QUADS = 4; // of words
const QUADS_OF_BYTES = 5; // the same, widened first
const PAIRS_OF_BYTES = 6;
const PAIRS_OF_WORDS = 7;
const PATCHES_OF_BYTES = 8;
const PATCHES_OF_WORDS = 9;
const HALVES_OF_BYTES = 10;
const HALVES_OF_WORDS = 11;

@unmanaged
class Slot {
  how: i32;
  bytes: i32;
  outputs: i32;
  taps: i32;
  run: i32;
  place: usize;
}

@unmanaged
export class Loading {
  slots: usize;
  most: i32;
  tensors: i32;
  taken: i32;
  /** Bytes of the largest tensor. */
  largest: i32;
}

/** For a network of at most `most` tensors. */
export function createLoading(most: i32): Loading {
  const loading = create<Loading>();
  loading.slots = reserve(<usize>most * offsetof<Slot>());
  loading.most = most;
  return loading;
}

// @ts-ignore: decorator
@inline
function slotOf(loading: Loading, i: i32): Slot {
  return changetype<Slot>(loading.slots + <usize>i * offsetof<Slot>());
}

function expect(loading: Loading, how: i32, bytes: i32, place: usize, outputs: i32 = 0, taps: i32 = 0, run: i32 = 0): void {
  if (loading.tensors == loading.most) unreachable();
  const slot = slotOf(loading, loading.tensors++);
  slot.how = how;
  slot.bytes = bytes;
  slot.outputs = outputs;
  slot.taps = taps;
  slot.run = run;
  slot.place = place;
  loading.largest = max(loading.largest, bytes);
}

/** A tensor that is stored as in the file. */
export function expectCopy(loading: Loading, place: usize, bytes: i32): void {
  expect(loading, COPY, bytes, place);
}

function createSums(loading: Loading, outputs: i32, taps: i32, run: i32, weights: usize, low: i32, high: i32): Convolution {
  const c = create<Convolution>();
  c.outputs = outputs;
  c.taps = taps;
  c.run = run;
  c.weights = weights;
  c.gain = reserve(<usize>outputs << 2);
  c.bias = reserve(<usize>outputs << 2);
  c.residualGain = 0;
  c.low = <f32>low;
  c.high = <f32>high;
  c.stride = 1;
  c.dilation = 1;
  c.binStride = 1;
  expectCopy(loading, c.gain, outputs << 2);
  expectCopy(loading, c.bias, outputs << 2);
  return c;
}

/** weight (i8, or i16 where `words`) [outputs][taps][run], gain f32[outputs], bias f32[outputs]. Strides and dilation are 1 until they are set. */
export function createConvolution(loading: Loading, outputs: i32, taps: i32, run: i32, words: bool, low: i32, high: i32): Convolution {
  const panels = reserve(packedBytes(outputs, taps, run));
  expect(loading, words ? PANELS_OF_WORDS : PANELS_OF_BYTES, (outputs * taps * run) << <i32>words, panels, outputs, taps, run);
  return createSums(loading, outputs, taps, run, panels, low, high);
}

/** The same for `convolveQuads`: weight i16 [outputs][3][run], gain, bias. */
export function createQuadConvolution(loading: Loading, outputs: i32, run: i32, low: i32, high: i32): Convolution {
  const panels = reserve(quadBytes(outputs, run));
  expect(loading, PANELS_AND_QUADS, (outputs * 3 * run) << 1, panels, outputs, 3, run);
  return createSums(loading, outputs, 3, run, panels, low, high);
}

/** The same from bytes: weight i8 [outputs][3][run], gain, bias. The staging slot holds them widened. */
export function createByteQuadConvolution(loading: Loading, outputs: i32, run: i32, low: i32, high: i32): Convolution {
  const panels = reserve(quadBytes(outputs, run));
  const weights = outputs * 3 * run;
  expect(loading, QUADS_OF_BYTES, weights, panels, outputs, 3, run);
  loading.largest = max(loading.largest, weights << 1);
  return createSums(loading, outputs, 3, run, panels, low, high);
}

/** The same for `convolvePairs`: weight (i8, or i16 where `words`) [outputs][3][run], gain, bias. */
export function createPairConvolution(loading: Loading, outputs: i32, run: i32, words: bool, low: i32, high: i32): Convolution {
  const panels = reserve(pairBytes(outputs, run));
  expect(loading, words ? PAIRS_OF_WORDS : PAIRS_OF_BYTES, (outputs * 3 * run) << <i32>words, panels, outputs, 3, run);
  const c = createSums(loading, outputs, 3, run, panels, low, high);
  c.stride = 2;
  return c;
}

/** The same for `convolvePatches`: weight (i8, or i16 where `words`) [outputs][3][3 · channels], gain, bias. */
export function createPatchConvolution(loading: Loading, outputs: i32, channels: i32, words: bool, low: i32, high: i32): Convolution {
  const panels = reserve(patchBytes(outputs, channels));
  const run = 3 * channels;
  expect(loading, words ? PATCHES_OF_WORDS : PATCHES_OF_BYTES, (outputs * 3 * run) << <i32>words, panels, outputs, 3, run);
  return createSums(loading, outputs, 3, run, panels, low, high);
}

/** The same for `convolveHalving`. */
export function createHalvingConvolution(loading: Loading, outputs: i32, channels: i32, words: bool, low: i32, high: i32): Convolution {
  const panels = reserve(halvingBytes(outputs, channels));
  const run = 3 * channels;
  expect(loading, words ? HALVES_OF_WORDS : HALVES_OF_BYTES, (outputs * 3 * run) << <i32>words, panels, outputs, 3, run);
  const c = createSums(loading, outputs, 3, run, panels, low, high);
  c.stride = 2;
  c.binStride = 2;
  return c;
}

/** For `convolveDepthwise`: weight i16 [taps][channels], gain, bias. */
export function createDepthwise(loading: Loading, channels: i32, taps: i32, low: i32, high: i32): Convolution {
  const weights = reserve(<usize>(taps * channels) << 1);
  expectCopy(loading, weights, (taps * channels) << 1);
  return createSums(loading, channels, taps, 1, weights, low, high);
}

/** Then, for a convolution with a residual: residual gain f32[outputs]. */
export function expectResidual(loading: Loading, c: Convolution): void {
  c.residualGain = reserve(<usize>c.outputs << 2);
  expectCopy(loading, c.residualGain, c.outputs << 2);
}

/** weight (i8, or i16 where `words`) [outputs][inputs], gain f32[outputs], bias f32[outputs]. */
export function createDense(loading: Loading, outputs: i32, inputs: i32, words: bool): Dense {
  const d = create<Dense>();
  d.inputs = inputs;
  d.outputs = outputs;
  d.weights = reserve(<usize>(outputs * inputs) << 1);
  d.gain = reserve(<usize>outputs << 2);
  d.bias = reserve(<usize>outputs << 2);
  expect(loading, words ? COPY : WIDENED, (outputs * inputs) << <i32>words, d.weights);
  expectCopy(loading, d.gain, outputs << 2);
  expectCopy(loading, d.bias, outputs << 2);
  return d;
}

/** Bytes of tensor i in the model file; 0 if it does not exist. */
export function tensorBytes(loading: Loading, i: i32): i32 {
  return <u32>i < <u32>loading.tensors ? slotOf(loading, i).bytes : 0;
}

/** Stores the staged tensor i. Tensors must be taken in order, each once: returns 1, or 0 for any other i. */
export function take(loading: Loading, i: i32, staged: usize): i32 {
  if (i != loading.taken || i >= loading.tensors) return 0;
  const slot = slotOf(loading, i);
  if (slot.how == PANELS_OF_BYTES) packBytes(slot.place, staged, slot.outputs, slot.taps, slot.run);
  else if (slot.how == PANELS_OF_WORDS) packWords(slot.place, staged, slot.outputs, slot.taps, slot.run);
  else if (slot.how == PANELS_AND_QUADS) packQuads(slot.place, staged, slot.outputs, slot.run);
  else if (slot.how == PAIRS_OF_BYTES) packPairBytes(slot.place, staged, slot.outputs, slot.run);
  else if (slot.how == PAIRS_OF_WORDS) packPairWords(slot.place, staged, slot.outputs, slot.run);
  else if (slot.how == PATCHES_OF_BYTES) packPatchBytes(slot.place, staged, slot.outputs, slot.run / 3);
  else if (slot.how == PATCHES_OF_WORDS) packPatchWords(slot.place, staged, slot.outputs, slot.run / 3);
  else if (slot.how == HALVES_OF_BYTES) packHalvingBytes(slot.place, staged, slot.outputs, slot.run / 3);
  else if (slot.how == HALVES_OF_WORDS) packHalvingWords(slot.place, staged, slot.outputs, slot.run / 3);
  else if (slot.how == WIDENED) widen(slot.place, staged, slot.bytes);
  else if (slot.how == QUADS_OF_BYTES) {
    widen(staged, staged, slot.bytes);
    packQuads(slot.place, staged, slot.outputs, slot.run);
  }
  else memory.copy(slot.place, staged, slot.bytes);
  loading.taken++;
  return 1;
}

/** i8 to i16, from the end: `out` may be `x`. */
function widen(out: usize, x: usize, count: i32): void {
  for (let k = count - 1; k >= 0; k--) store<i16>(out + (<usize>k << 1), load<i8>(x + k));
}

export function complete(loading: Loading): bool {
  return loading.taken == loading.tensors;
}
