/** The attack networks' weights, scratch and forward pass. */
import { ATTACKS, create, reserveVoice } from "../memory";
import { ACTIVATION_HIGH, FEATURE_GAIN, quantizeAbove } from "../nn/activation";
import { Convolution, convolve, convolveChannel } from "../nn/convolution";
import { Dense, dense, rectify } from "../nn/dense";
import { convolveHalving, halvingScratchBytes } from "../nn/halving-convolution";
import { Loading, createConvolution, createDense, createHalvingConvolution, createPairConvolution, createQuadConvolution } from "../nn/loading";
import { convolvePairs } from "../nn/pair-convolution";
import { Plane, clearBorder, interior, planeAt, rowBytes, setPlane } from "../nn/plane";
import { meanDeviation } from "../nn/pooling";
import { convolveQuads } from "../nn/quad-convolution";
import { statistics, trunk } from "../speaker/resnet/network";
import { Planes, createPlanes, statisticsOf } from "../speaker/resnet/state";
import { Trunk, createTrunk } from "../speaker/resnet/weights";
import {
  BINS,
  COLUMNS,
  COLUMN_BINS,
  FLOOR,
  HIDDEN,
  LOG_MEL,
  LOUDSPEAKER,
  NARROW,
  OUTPUTS,
  SYNTHETIC,
  frameValues,
  planeChannels,
  tailChannels,
} from "./config";

/** A picture of the speech, `columns` of `bins` in every frame, and the planes that look at it. */
@unmanaged
export class Front {
  columns: i32;
  bins: i32;
  /** Over time, of plane1 and of plane2: together they make one of a frame's columns. */
  stride: i32;
  plane0: Convolution;
  plane1: Convolution;
  plane2: Convolution;
  plane3: Convolution;
}

/** A residual network over log-mel with few blocks (`training/spoof/slim.py`): what the narrow network misses, above all over telephone lines. */
@unmanaged
export class Slim {
  trunk: Trunk;
  hidden: Dense;
  out: Dense;
}

@unmanaged
export class Weights {
  /** Values of a frame of features. */
  values: i32;
  /** The first 80 bins of a frame: bands of equal width, or log-mel. */
  bands: Front;
  /** The columns that follow. */
  short: Front | null;
  tail0: Convolution;
  tail1: Convolution;
  tail2: Convolution;
  hidden: Dense;
  out: Dense;
  /** Scores the same frames; the mean of both is better than either. */
  second: Slim | null;
}

/** Channels that a front gives. */
function seenChannels(f: Front): i32 {
  return (f.bins / 8) * f.plane3.outputs;
}

/** Reserves every weight of what looks for a kind of attack. The order of calls is the order of tensors in the model file. */
export function createWeights(loading: Loading, kind: i32, shape: usize): Weights {
  if (kind != SYNTHETIC) return createNetwork(loading, kind, LOUDSPEAKER);
  const first = createNetwork(loading, kind, NARROW);
  first.second = createSlim(loading, shape);
  return first;
}

function createSlim(loading: Loading, shape: usize): Slim {
  const w = create<Slim>();
  w.trunk = createTrunk(loading, shape);
  w.hidden = createDense(loading, HIDDEN, statisticsOf(shape), true);
  w.out = createDense(loading, OUTPUTS, HIDDEN, true);
  return w;
}

function createNetwork(loading: Loading, kind: i32, network: i32): Weights {
  const w = create<Weights>();
  const tail0 = tailChannels(network, 0);
  const tail1 = tailChannels(network, 1);
  const tail2 = tailChannels(network, 2);
  w.values = frameValues(kind);
  w.bands = createFront(loading, network, 1, BINS, 1);
  let channels = seenChannels(w.bands);
  if (kind == SYNTHETIC) {
    const short = createFront(loading, network, COLUMNS, COLUMN_BINS, 2);
    channels += seenChannels(short);
    w.short = short;
  }
  w.tail0 = createPairConvolution(loading, tail0, channels, false, 0, ACTIVATION_HIGH);
  w.tail1 = createConvolution(loading, tail1, 3, tail0, false, 0, ACTIVATION_HIGH);
  w.tail2 = createConvolution(loading, tail2, 3, tail1, false, 0, ACTIVATION_HIGH);
  w.tail1.dilation = 2;
  w.tail2.dilation = 4;
  w.hidden = createDense(loading, HIDDEN, 2 * tail2, true);
  w.out = createDense(loading, OUTPUTS, HIDDEN, true);
  return w;
}

function createFront(loading: Loading, network: i32, columns: i32, bins: i32, stride: i32): Front {
  const f = create<Front>();
  f.columns = columns;
  f.bins = bins;
  f.stride = stride;
  f.plane0 = createConvolution(loading, planeChannels(network, 0), 3, 4, true, 0, ACTIVATION_HIGH);
  f.plane1 = createStrided(loading, planeChannels(network, 1), planeChannels(network, 0), stride);
  f.plane2 = createStrided(loading, planeChannels(network, 2), planeChannels(network, 1), stride);
  f.plane3 = createStrided(loading, planeChannels(network, 3), planeChannels(network, 2), 1);
  return f;
}

/** 3 × 3 over every second bin, and every row or every second. */
function createStrided(loading: Loading, outputs: i32, channels: i32, stride: i32): Convolution {
  if (stride == 2) return createHalvingConvolution(loading, outputs, channels, false, 0, ACTIVATION_HIGH);
  const c = createQuadConvolution(loading, outputs, 3 * channels, false, 0, ACTIVATION_HIGH);
  c.binStride = 2;
  return c;
}

@unmanaged
export class State {
  maxFrames: i32;
  /** f32 [maxFrames][values of a frame] */
  features: usize;
  /** Of the slim network; the fronts' planes and what they give take turns in the same slots. */
  scratch: Planes;
  /** f32 [BINS] */
  means: usize;
  statistics: usize;
  hidden: usize;
  out: usize;
}

/** Scratch for any of the networks: the narrow one has no layer narrower than playback's. */
export function createState(maxFrames: i32, shape: usize, stagedBytes: i32): State {
  const s = create<State>();
  const channels0 = planeChannels(NARROW, 0);
  const channels1 = planeChannels(NARROW, 1);
  const bands0 = rowBytes(BINS, channels0);
  const bands1 = rowBytes(BINS / 2, channels1);
  const bands2 = rowBytes(BINS / 4, planeChannels(NARROW, 2));
  const short0 = rowBytes(COLUMN_BINS, channels0) * (COLUMNS * maxFrames + 2);
  const short1 = rowBytes(COLUMN_BINS / 2, channels1) * ((COLUMNS / 2) * maxFrames + 2);
  const halving = max(halvingScratchBytes(COLUMN_BINS / 2, channels0), halvingScratchBytes(COLUMN_BINS / 4, channels1));
  const rows = <usize>maxFrames + 2;
  const seen = (<usize>(((BINS + COLUMN_BINS) / 8) * planeChannels(NARROW, 3)) << 1) * rows;
  const wide = max(max(short0, max(bands0, bands2) * rows), <usize>stagedBytes);
  const between = max(max(short1, bands1 * rows), seen); // of what the fronts give, the differences of frames
  s.maxFrames = maxFrames;
  s.features = reserveVoice(<usize>(maxFrames * frameValues(SYNTHETIC)) << 2, ATTACKS);
  s.scratch = createPlanes(shape, maxFrames, ATTACKS, wide, between, seen, max(halving, 6 * max(bands0, max(bands1, bands2))));
  s.means = reserveVoice(BINS << 2, ATTACKS);
  s.statistics = reserveVoice(<usize>statisticsOf(shape) << 2, ATTACKS);
  s.hidden = reserveVoice(HIDDEN << 2, ATTACKS);
  s.out = reserveVoice(OUTPUTS << 2, ATTACKS);
  return s;
}

/** The score of `frames` frames of s.features: positive speaks for an attack. */
export function score(w: Weights, s: State, frames: i32): f32 {
  const first = forward(w, s, frames);
  const second = w.second;
  return second ? (first + forwardSlim(second, s, frames)) * 0.5 : first;
}

/** Of the log-mel bins that each frame has behind its other values. */
function forwardSlim(w: Slim, s: State, frames: i32): f32 {
  const plane = s.scratch.narrow;
  prepare(plane, s, s.features + (LOG_MEL << 2), frameValues(SYNTHETIC), frames, 1, BINS);
  statistics(s.statistics, s.scratch, trunk(w.trunk, s.scratch, plane, frames));
  return judged(s, w.hidden, w.out);
}

function forward(w: Weights, s: State, frames: i32): f32 {
  const row = <usize>w.tail0.run << 1;
  const wide = s.scratch.wide;
  const narrow = s.scratch.between;
  const seen = s.scratch.narrow; //                                  [1 + frames + 1][channels]
  memory.fill(seen, 0, row);
  see(seen + row, row, s, s.features, w.values, frames, w.bands);
  const short = w.short;
  if (short) see(seen + row + (<usize>seenChannels(w.bands) << 1), row, s, s.features + (BINS << 2), w.values, frames, short);
  memory.fill(seen + row * (frames + 1), 0, row);

  const steps = (frames + 1) >> 1; //                                 20 ms each
  firstLayer(wide, seen, narrow, steps, w.tail0);
  layer(narrow, 4, wide, steps, w.tail1);
  layer(wide, 0, narrow, steps, w.tail2);
  meanDeviation(s.statistics, wide, <usize>w.tail2.outputs << 1, steps, w.tail2.outputs);
  return judged(s, w.hidden, w.out);
}

/** From the statistics to the score. */
function judged(s: State, hidden: Dense, out: Dense): f32 {
  dense(s.hidden, s.statistics, hidden);
  rectify(s.hidden, hidden.outputs);
  dense(s.out, s.hidden, out);
  return load<f32>(s.out);
}

/** One front over the picture at `features`, in frames of `values`, to the frames of `out`, `outStep` bytes apart. */
function see(out: usize, outStep: usize, s: State, features: usize, values: i32, frames: i32, f: Front): void {
  const shapes = s.scratch.shapes; //                                                          a frame of bands, of columns:
  const plane0 = setPlane(planeAt(shapes, 0), frames * f.columns, f.bins, f.plane0.outputs); //              80 bins, 4 × 32
  const plane1 = setPlane(planeAt(shapes, 1), plane0.frames / f.stride, f.bins / 2, f.plane1.outputs); //    40 bins, 2 × 16
  const plane2 = setPlane(planeAt(shapes, 2), frames, f.bins / 4, f.plane2.outputs); //                      20 bins, 8
  const plane3 = setPlane(planeAt(shapes, 3), frames, f.bins / 8, f.plane3.outputs); //                      10 bins, 4
  plane3.row = outStep;
  const wide = s.scratch.wide;
  const narrow = s.scratch.between;
  const quads = s.scratch.patches;
  prepare(narrow, s, features, values, frames, f.columns, f.bins);
  firstPlane(wide, plane0, narrow, f.plane0);
  plane(narrow, plane1, wide, plane0, f.plane1, quads);
  plane(wide, plane2, narrow, plane1, f.plane2, quads);
  convolveQuads(out, plane3, wide, plane2, f.plane3, 0, quads);
}

/** A row of the input plane: 1 zero, the bins, 3 zeros, because a tap reads runs of 4. */
// @ts-ignore: decorator
@inline
function inputBytes(bins: i32): usize {
  return <usize>(bins + 4) << 1;
}

/**
 * A picture, nothing of it further than FLOOR below the loud (the mean over columns of each column's loudest bin), less its mean over
 * time, as activations in a zero-padded plane.
 */
function prepare(out: usize, s: State, features: usize, values: i32, frames: i32, columns: i32, bins: i32): void {
  const frame = <usize>values << 2;
  const column = <usize>bins << 2;
  const width = column * columns;
  const end = features + frame * frames;
  const rows = frames * columns;
  let loud: f64 = 0;
  for (let p = features; p < end; p += frame) {
    for (let c = p; c < p + width; c += column) loud += <f64>loudest(c, column);
  }
  const least = <f32>(loud / <f64>rows) - FLOOR;
  const floor = f32x4.splat(least);
  const means = s.means;
  memory.fill(means, 0, column);
  for (let p = features; p < end; p += frame) {
    for (let c = p; c < p + width; c += column) {
      for (let b: usize = 0; b < column; b += 16) {
        v128.store(means + b, f32x4.add(v128.load(means + b), f32x4.pmax(floor, v128.load(c + b))));
      }
    }
  }
  for (let b: usize = 0; b < column; b += 16) v128.store(means + b, f32x4.div(v128.load(means + b), f32x4.splat(<f32>rows)));
  const row = inputBytes(bins);
  memory.fill(out, 0, row * (rows + 2));
  out += row + 2;
  for (let p = features; p < end; p += frame) {
    for (let c = p; c < p + width; c += column, out += row) quantizeAbove(out, c, least, means, bins, FEATURE_GAIN);
  }
}

/** The largest of a column's bins. */
function loudest(column: usize, bytes: usize): f32 {
  let most = v128.load(column);
  for (let b: usize = 16; b < bytes; b += 16) most = f32x4.pmax(most, v128.load(column + b));
  return max(max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1)), max(f32x4.extract_lane(most, 2), f32x4.extract_lane(most, 3)));
}

function firstPlane(out: usize, to: Plane, x: usize, weights: Convolution): void {
  clearBorder(out, to);
  convolveChannel(interior(out, to), to, x, inputBytes(to.bins), weights);
}

function plane(out: usize, to: Plane, x: usize, from: Plane, weights: Convolution, scratch: usize): void {
  if (weights.stride == 1) convolveQuads(interior(out, to), to, x, from, weights, 0, scratch);
  else convolveHalving(interior(out, to), to, x, from, weights, scratch);
  clearBorder(out, to); // a frame after the last may have been written
}

/** Three taps over every second frame to [2 + steps + 2][outputs], the padding of the next layer. */
function firstLayer(out: usize, x: usize, scratch: usize, steps: i32, weights: Convolution): void {
  const row = <usize>weights.outputs << 1;
  memory.fill(out, 0, row << 1);
  convolvePairs(out + (row << 1), row, x, <usize>weights.run << 1, steps, weights, scratch);
  memory.fill(out + row * (steps + 2), 0, row << 1);
}

/** Three taps over time to [pad + steps + pad][outputs]; x is padded by one dilation. */
function layer(out: usize, pad: i32, x: usize, steps: i32, weights: Convolution): void {
  const row = <usize>weights.outputs << 1;
  memory.fill(out, 0, row * pad);
  convolve(out + row * pad, row, x, <usize>weights.run << 1, steps, weights);
  memory.fill(out + row * (steps + pad), 0, row * pad);
}
