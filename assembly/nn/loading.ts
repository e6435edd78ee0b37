/**
 * Loading of weights. Creating a network's layers, in the order of the model file, gives each tensor a place. Then, one tensor
 * at a time, its bytes are copied to a staging slot, and `take` packs, widens or copies them to where the forward pass reads them.
 */
import { create, reserve } from "../memory";
import { Convolution, packPanels, packedBytes } from "./convolution";
import { Dense } from "./dense";
import { halvingBytes, packHalves } from "./halving-convolution";
import { packPairs, pairBytes } from "./pair-convolution";
import { packPatches, patchBytes } from "./patch-convolution";
import { packQuads, quadBytes } from "./quad-convolution";

/** How a staged tensor is stored. */
const COPY = 0; // as it is
const WIDENED = 1; // i8 to i16, same order
const PANELS = 2;
const QUADS = 3;
const PAIRS = 4;
const PATCHES = 5;
const HALVES = 6;

@unmanaged
class Slot {
  how: i32;
  bytes: i32;
  place: usize;
  /** Of a convolution, whose weights are i16 where `words`, otherwise i8. */
  outputs: i32;
  taps: i32;
  run: i32;
  words: bool;
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

function expect(loading: Loading, how: i32, bytes: i32, place: usize): Slot {
  if (loading.tensors == loading.most) unreachable();
  const slot = slotOf(loading, loading.tensors++);
  slot.how = how;
  slot.bytes = bytes;
  slot.place = place;
  loading.largest = max(loading.largest, bytes);
  return slot;
}

/** A tensor that is stored as in the file. */
export function expectCopy(loading: Loading, place: usize, bytes: i32): void {
  expect(loading, COPY, bytes, place);
}

/** weight (i8, or i16 where `words`) [outputs][taps][run], stored in `bytes`; gain f32[outputs], bias f32[outputs]. */
function createStored(loading: Loading, how: i32, bytes: usize, outputs: i32, taps: i32, run: i32, words: bool, low: i32, high: i32): Convolution {
  const c = create<Convolution>();
  c.outputs = outputs;
  c.taps = taps;
  c.run = run;
  c.weights = reserve(bytes);
  c.gain = reserve(<usize>outputs << 2);
  c.bias = reserve(<usize>outputs << 2);
  c.residualGain = 0;
  c.low = <f32>low;
  c.high = <f32>high;
  c.stride = 1;
  c.dilation = 1;
  c.binStride = 1;
  const slot = expect(loading, how, (outputs * taps * run) << <i32>words, c.weights);
  slot.outputs = outputs;
  slot.taps = taps;
  slot.run = run;
  slot.words = words;
  expectCopy(loading, c.gain, outputs << 2);
  expectCopy(loading, c.bias, outputs << 2);
  return c;
}

/** For `convolve`. Strides and dilation are 1 until they are set. */
export function createConvolution(loading: Loading, outputs: i32, taps: i32, run: i32, words: bool, low: i32, high: i32): Convolution {
  return createStored(loading, PANELS, packedBytes(outputs, taps, run), outputs, taps, run, words, low, high);
}

/** For `convolveQuads`. */
export function createQuadConvolution(loading: Loading, outputs: i32, run: i32, words: bool, low: i32, high: i32): Convolution {
  return createStored(loading, QUADS, quadBytes(outputs, run), outputs, 3, run, words, low, high);
}

/** For `convolvePairs`. */
export function createPairConvolution(loading: Loading, outputs: i32, run: i32, words: bool, low: i32, high: i32): Convolution {
  const c = createStored(loading, PAIRS, pairBytes(outputs, run), outputs, 3, run, words, low, high);
  c.stride = 2;
  return c;
}

/** For `convolvePatches`. */
export function createPatchConvolution(loading: Loading, outputs: i32, channels: i32, words: bool, low: i32, high: i32): Convolution {
  return createStored(loading, PATCHES, patchBytes(outputs, channels), outputs, 3, 3 * channels, words, low, high);
}

/** For `convolveHalving`. */
export function createHalvingConvolution(loading: Loading, outputs: i32, channels: i32, words: bool, low: i32, high: i32): Convolution {
  const c = createStored(loading, HALVES, halvingBytes(outputs, channels), outputs, 3, 3 * channels, words, low, high);
  c.stride = 2;
  c.binStride = 2;
  return c;
}

/** For `convolveDepthwise`: weight i16 [taps][channels]. */
export function createDepthwise(loading: Loading, channels: i32, taps: i32, low: i32, high: i32): Convolution {
  return createStored(loading, COPY, <usize>(taps * channels) << 1, channels, taps, 1, true, low, high);
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
  if (slot.how == PANELS) packPanels(slot.place, staged, slot.outputs, slot.taps, slot.run, slot.words);
  else if (slot.how == QUADS) packQuads(slot.place, staged, slot.outputs, slot.run, slot.words);
  else if (slot.how == PAIRS) packPairs(slot.place, staged, slot.outputs, slot.run, slot.words);
  else if (slot.how == PATCHES) packPatches(slot.place, staged, slot.outputs, slot.run / 3, slot.words);
  else if (slot.how == HALVES) packHalves(slot.place, staged, slot.outputs, slot.run / 3, slot.words);
  else if (slot.how == WIDENED) widen(slot.place, staged, slot.bytes);
  else memory.copy(slot.place, staged, slot.bytes);
  loading.taken++;
  return 1;
}

/** i8 to i16. */
function widen(out: usize, x: usize, count: i32): void {
  for (let k = 0; k < count; k++) store<i16>(out + (<usize>k << 1), load<i8>(x + k));
}

export function complete(loading: Loading): bool {
  return loading.taken == loading.tensors;
}
