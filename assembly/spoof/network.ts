/** An attack network's weights, scratch and forward pass. */
import { create, reserve } from "../memory";
import { quantize } from "../nn/activation";
import { Convolution, convolve, convolvePlane } from "../nn/convolution";
import { Dense, dense, rectify } from "../nn/dense";
import { Loading, createByteQuadConvolution, createConvolution, createDense } from "../nn/loading";
import { meanDeviation } from "../nn/pooling";
import { convolveQuads } from "../nn/quad-convolution";
import { ACTIVATION_HIGH, BINS, FEATURE_GAIN, FLOOR, HIDDEN, OUTPUTS, PLANE0, PLANE1, PLANE2, PLANE3, TAIL0, TAIL1, TAIL2 } from "./config";

@unmanaged
export class Weights {
  plane0: Convolution;
  plane1: Convolution;
  plane2: Convolution;
  plane3: Convolution;
  tail0: Convolution;
  tail1: Convolution;
  tail2: Convolution;
  hidden: Dense;
  out: Dense;
}

/** Reserves every weight. The order of calls is the order of tensors in the model file. */
export function createWeights(loading: Loading): Weights {
  const w = create<Weights>();
  w.plane0 = createConvolution(loading, PLANE0, 3, 4, true, 0, ACTIVATION_HIGH);
  w.plane1 = createByteQuadConvolution(loading, PLANE1, 3 * PLANE0, 0, ACTIVATION_HIGH);
  w.plane2 = createByteQuadConvolution(loading, PLANE2, 3 * PLANE1, 0, ACTIVATION_HIGH);
  w.plane3 = createByteQuadConvolution(loading, PLANE3, 3 * PLANE2, 0, ACTIVATION_HIGH);
  w.tail0 = createConvolution(loading, TAIL0, 3, 10 * PLANE3, false, 0, ACTIVATION_HIGH);
  w.tail1 = createConvolution(loading, TAIL1, 3, TAIL0, false, 0, ACTIVATION_HIGH);
  w.tail2 = createConvolution(loading, TAIL2, 3, TAIL1, false, 0, ACTIVATION_HIGH);
  w.hidden = createDense(loading, HIDDEN, 2 * TAIL2, true);
  w.out = createDense(loading, OUTPUTS, HIDDEN, true);
  return w;
}

/** i16 elements of a row of the input plane: 1 zero, the bins, 3 zeros, because a tap reads runs of 4. */
const INPUT_ROW = BINS + 4;

@unmanaged
export class State {
  maxFrames: i32;
  /** f32 [maxFrames][BINS] */
  features: usize;
  /** Two planes that the layers take turns in; the widest is 82 bins × PLANE0 or 42 × PLANE1 of i16 a frame. */
  even: usize;
  odd: usize;
  /** Six frames of a plane. */
  quads: usize;
  statistics: usize;
  hidden: usize;
  out: usize;
  /** From `features` to `end`: what is wiped. */
  end: usize;
}

export function createState(maxFrames: i32, stagedBytes: i32): State {
  const s = create<State>();
  const plane = <usize>((maxFrames + 8) * (BINS + 2) * PLANE0) << 1;
  s.maxFrames = maxFrames;
  s.features = reserve(<usize>(maxFrames * BINS) << 2);
  s.even = reserve(max(plane, <usize>stagedBytes));
  s.odd = reserve(plane);
  s.quads = reserve(<usize>(6 * (BINS + 2) * PLANE0) << 1);
  s.statistics = reserve((2 * TAIL2) << 2);
  s.hidden = reserve(HIDDEN << 2);
  s.out = reserve(OUTPUTS << 2);
  s.end = reserve(0);
  return s;
}

/** The score of `frames` log-mel frames of s.features: positive speaks for an attack. */
export function forward(w: Weights, s: State, frames: i32): f32 {
  prepare(s, frames); //                                                            80 bins
  firstPlane(s.odd, s.even, frames, w.plane0); //                                  80 bins × 16
  plane(s.even, PLANE1, s.odd, s, (BINS + 2) * PLANE0, PLANE0, frames, 40, w.plane1); //  40 × 24
  plane(s.odd, PLANE2, s.even, s, (40 + 2) * PLANE1, PLANE1, frames, 20, w.plane2); //    20 × 32
  flat(s.even, s.odd, s, frames, w.plane3); //                                     10 × 32 = 320 channels
  const steps = (frames + 1) >> 1; //                                              20 ms each
  layer(s.odd, TAIL0, 2, s.even, 10 * PLANE3, steps, 2, 1, w.tail0);
  layer(s.even, TAIL1, 4, s.odd, TAIL0, steps, 1, 2, w.tail1);
  layer(s.odd, TAIL2, 0, s.even, TAIL1, steps, 1, 4, w.tail2);
  meanDeviation(s.statistics, s.odd, TAIL2 << 1, steps, TAIL2);
  dense(s.hidden, s.statistics, w.hidden);
  rectify(s.hidden, HIDDEN);
  dense(s.out, s.hidden, w.out);
  return load<f32>(s.out);
}

/**
 * Features, none further than FLOOR below the loud (the mean over frames of each frame's loudest bin), less their mean over time, as
 * activations in a zero-padded plane.
 */
function prepare(s: State, frames: i32): void {
  const row: usize = BINS << 2;
  let loud: f64 = 0;
  for (let t = 0, p = s.features; t < frames; t++, p += row) loud += <f64>loudest(p);
  const least = f32x4.splat(<f32>(loud / <f64>frames) - FLOOR);
  for (let b: usize = 0; b < row; b += 16) {
    let total = f32x4.splat(0);
    for (let t = 0, p = s.features + b; t < frames; t++, p += row) {
      const kept = f32x4.max(v128.load(p), least);
      v128.store(p, kept);
      total = f32x4.add(total, kept);
    }
    const mean = f32x4.div(total, f32x4.splat(<f32>frames));
    for (let t = 0, p = s.features + b; t < frames; t++, p += row) v128.store(p, f32x4.sub(v128.load(p), mean));
  }
  memory.fill(s.even, 0, <usize>((frames + 2) * INPUT_ROW) << 1);
  for (let t = 0; t < frames; t++) {
    quantize(s.even + (<usize>((t + 1) * INPUT_ROW + 1) << 1), s.features + <usize>t * row, BINS, FEATURE_GAIN);
  }
}

/** The largest of a frame's bins. */
function loudest(frame: usize): f32 {
  let most = v128.load(frame);
  for (let b: usize = 16, row: usize = BINS << 2; b < row; b += 16) most = f32x4.max(most, v128.load(frame + b));
  return max(max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1)), max(f32x4.extract_lane(most, 2), f32x4.extract_lane(most, 3)));
}

/** To [1 + frames + 1][1 + 80 + 1][PLANE0], its border zero. */
function firstPlane(out: usize, x: usize, frames: i32, weights: Convolution): void {
  const bin: usize = PLANE0 << 1;
  const row = <usize>(BINS + 2) * bin;
  memory.fill(out, 0, row * (frames + 2));
  convolvePlane(out + row + bin, row, x, INPUT_ROW << 1, frames, BINS, 1, 1, weights, 0);
}

/** A 3 × 3 convolution of every second bin to [1 + frames + 1][1 + bins + 1][channels], its border zero. xRow is in elements. */
function plane(out: usize, channels: i32, x: usize, s: State, xRow: i32, xChannels: i32, frames: i32, bins: i32, weights: Convolution): void {
  const bin = <usize>channels << 1;
  const row = <usize>(bins + 2) * bin;
  memory.fill(out, 0, row * (frames + 2));
  convolveQuads(out + row + bin, row, x, <usize>xRow << 1, frames, bins, xChannels, 2, weights, 0, s.quads);
}

/** The last plane to [1 + frames + 1][320], the padding of the tail's first layer. */
function flat(out: usize, x: usize, s: State, frames: i32, weights: Convolution): void {
  const row: usize = (10 * PLANE3) << 1;
  memory.fill(out, 0, row);
  convolveQuads(out + row, row, x, ((20 + 2) * PLANE2) << 1, frames, 10, PLANE2, 2, weights, 0, s.quads);
  memory.fill(out + row * (frames + 1), 0, row);
}

/** Three taps over time to [pad + steps + pad][channels]; x is padded by one dilation. */
function layer(out: usize, channels: i32, pad: i32, x: usize, xChannels: i32, steps: i32, stride: i32, dilation: i32, weights: Convolution): void {
  const row = <usize>channels << 1;
  memory.fill(out, 0, row * pad);
  convolve(out + row * pad, row, x, <usize>xChannels << 1, steps, stride, dilation, weights);
  memory.fill(out + row * (steps + pad), 0, row * pad);
}
