/** The attack networks' weights, scratch and forward pass. */
import { ATTACKS, create, reserveVoice } from "../memory";
import { ACTIVATION_HIGH, FEATURE_GAIN, quantizeAbove } from "../nn/activation";
import { Convolution, convolve, convolveChannel } from "../nn/convolution";
import { Dense, dense, rectify } from "../nn/dense";
import { Loading, createByteQuadConvolution, createConvolution, createDense, createPairConvolution } from "../nn/loading";
import { convolvePairs, convolvePlanePairs } from "../nn/pair-convolution";
import { meanDeviation } from "../nn/pooling";
import { convolveQuads } from "../nn/quad-convolution";
import {
  BINS,
  COLUMNS,
  COLUMN_BINS,
  FLOOR,
  HIDDEN,
  LOUDSPEAKER,
  NARROW,
  OUTPUTS,
  SYNTHETIC,
  WIDE,
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

@unmanaged
export class Weights {
  /** Values of a frame of features. */
  values: i32;
  /** The 80 bins that lie first in a frame: bands of equal width, or log-mel. */
  bands: Front;
  /** The columns that follow. */
  short: Front | null;
  tail0: Convolution;
  tail1: Convolution;
  tail2: Convolution;
  hidden: Dense;
  out: Dense;
  /** A second opinion on the same frames: what either hears alone the mean hears better. */
  second: Weights | null;
}

/** Channels that a front gives. */
function seenChannels(f: Front): i32 {
  return (f.bins / 8) * f.plane3.outputs;
}

/** Reserves every weight of what looks for a kind of attack. The order of calls is the order of tensors in the model file. */
export function createWeights(loading: Loading, kind: i32): Weights {
  if (kind != SYNTHETIC) return createNetwork(loading, kind, LOUDSPEAKER);
  const first = createNetwork(loading, kind, NARROW);
  first.second = createNetwork(loading, kind, WIDE);
  return first;
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
  f.plane1 = createStrided(loading, planeChannels(network, 1), 3 * planeChannels(network, 0), stride);
  f.plane2 = createStrided(loading, planeChannels(network, 2), 3 * planeChannels(network, 1), stride);
  f.plane3 = createStrided(loading, planeChannels(network, 3), 3 * planeChannels(network, 2), 1);
  return f;
}

function createStrided(loading: Loading, outputs: i32, run: i32, stride: i32): Convolution {
  return stride == 1 ? createByteQuadConvolution(loading, outputs, run, 0, ACTIVATION_HIGH) : createPairConvolution(loading, outputs, run, false, 0, ACTIVATION_HIGH);
}

@unmanaged
export class State {
  maxFrames: i32;
  /** f32 [maxFrames][values of a frame] */
  features: usize;
  /** Two planes that the layers take turns in: i16, at most plane 0 of [4 · frames][32 bins] and plane 1 of [frames][40 bins] with their borders. */
  wide: usize;
  narrow: usize;
  /** What the fronts give, i16 [1 + frames + 1][channels]. */
  seen: usize;
  /** f32 [BINS] */
  means: usize;
  /** Six rows of a plane. */
  quads: usize;
  statistics: usize;
  hidden: usize;
  out: usize;
}

/** Scratch for any of the networks: the wide one has no layer narrower than another's. */
export function createState(maxFrames: i32, stagedBytes: i32): State {
  const s = create<State>();
  const plane0 = planeChannels(WIDE, 0);
  const plane1 = planeChannels(WIDE, 1);
  const seen = ((BINS + COLUMN_BINS) / 8) * planeChannels(WIDE, 3);
  const widest = max(max((BINS + 2) * plane0, (BINS / 2 + 2) * plane1), (BINS / 4 + 2) * planeChannels(WIDE, 2));
  s.maxFrames = maxFrames;
  s.features = reserveVoice(<usize>(maxFrames * frameValues(SYNTHETIC)) << 2, ATTACKS);
  s.wide = reserveVoice(<usize>((COLUMNS * maxFrames + 2) * (COLUMN_BINS + 2) * plane0) << 1, ATTACKS);
  s.narrow = reserveVoice(max(<usize>((maxFrames + 2) * (BINS / 2 + 2) * plane1) << 1, <usize>stagedBytes), ATTACKS);
  s.seen = reserveVoice(<usize>((maxFrames + 2) * seen) << 1, ATTACKS);
  s.means = reserveVoice(BINS << 2, ATTACKS);
  s.quads = reserveVoice(<usize>(6 * widest) << 1, ATTACKS);
  s.statistics = reserveVoice((2 * tailChannels(WIDE, 2)) << 2, ATTACKS);
  s.hidden = reserveVoice(HIDDEN << 2, ATTACKS);
  s.out = reserveVoice(OUTPUTS << 2, ATTACKS);
  return s;
}

/** The score of `frames` frames of s.features: positive speaks for an attack. */
export function score(w: Weights, s: State, frames: i32): f32 {
  const first = forward(w, s, frames);
  const second = w.second;
  return second ? (first + forward(second, s, frames)) * 0.5 : first;
}

function forward(w: Weights, s: State, frames: i32): f32 {
  const row = <usize>w.tail0.run << 1;
  memory.fill(s.seen, 0, row);
  see(s.seen + row, row, s, s.features, w.values, frames, w.bands);
  const short = w.short;
  if (short) see(s.seen + row + (<usize>seenChannels(w.bands) << 1), row, s, s.features + (BINS << 2), w.values, frames, short);
  memory.fill(s.seen + row * (frames + 1), 0, row);

  const steps = (frames + 1) >> 1; //                                 20 ms each
  firstLayer(s.wide, s.seen, s.narrow, steps, w.tail0);
  layer(s.narrow, 4, s.wide, steps, 2, w.tail1);
  layer(s.wide, 0, s.narrow, steps, 4, w.tail2);
  meanDeviation(s.statistics, s.wide, <usize>w.tail2.outputs << 1, steps, w.tail2.outputs);
  dense(s.hidden, s.statistics, w.hidden);
  rectify(s.hidden, HIDDEN);
  dense(s.out, s.hidden, w.out);
  return load<f32>(s.out);
}

/** One front over the picture that lies at `features`, in frames of `values`, to the frames of `out`, `outStep` bytes apart. */
function see(out: usize, outStep: usize, s: State, features: usize, values: i32, frames: i32, f: Front): void {
  const rows = frames * f.columns;
  const bins = f.bins; //                                               a frame of bands, of columns: 80 bins, 4 × 32
  prepare(s.narrow, s, features, values, frames, f.columns, bins);
  firstPlane(s.wide, s.narrow, rows, bins, f.plane0); //                                              80 bins, 4 × 32
  plane(s.narrow, s.wide, s, rows / f.stride, bins / 2, f.plane0.outputs, f.stride, f.plane1); //     40 bins, 2 × 16
  plane(s.wide, s.narrow, s, frames, bins / 4, f.plane1.outputs, f.stride, f.plane2); //              20 bins, 8
  const channels = f.plane2.outputs;
  convolveQuads(out, outStep, s.wide, rowBytes(bins / 4, channels), frames, bins / 8, channels, 2, f.plane3, 0, s.quads); // 10 bins, 4
}

/** A row of the input plane: 1 zero, the bins, 3 zeros, because a tap reads runs of 4. */
// @ts-ignore: decorator
@inline
function inputBytes(bins: i32): usize {
  return <usize>(bins + 4) << 1;
}

/** A row of a plane: the bins, with a zero bin on each side. */
// @ts-ignore: decorator
@inline
function rowBytes(bins: i32, channels: i32): usize {
  return <usize>((bins + 2) * channels) << 1;
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

/** Zeroes the row before and after, and the bin below and above, of a plane; sizes are bytes. */
function clearBorder(plane: usize, row: usize, rows: i32, bin: usize): void {
  memory.fill(plane, 0, row);
  // The last bin of a row and the first of the next are neighbours.
  for (let p = plane + row - bin, end = p + row * (rows + 1); p < end; p += row) {
    for (let b: usize = 0; b < bin << 1; b += 16) v128.store(p + b, i32x4.splat(0));
  }
  memory.fill(plane + row * (rows + 1), 0, row);
}

/** To [1 + rows + 1][1 + bins + 1][channels], its border zero. */
function firstPlane(out: usize, x: usize, rows: i32, bins: i32, weights: Convolution): void {
  const row = rowBytes(bins, weights.outputs);
  const bin = <usize>weights.outputs << 1;
  clearBorder(out, row, rows, bin);
  convolveChannel(out + row + bin, row, x, inputBytes(bins), rows, bins, weights);
}

/** A 3 × 3 convolution of every second bin, and of every row or every second, to [1 + rows + 1][1 + bins + 1][channels], its border zero. */
function plane(out: usize, x: usize, s: State, rows: i32, bins: i32, xChannels: i32, stride: i32, weights: Convolution): void {
  const row = rowBytes(bins, weights.outputs);
  const xRow = rowBytes(2 * bins, xChannels);
  const bin = <usize>weights.outputs << 1;
  clearBorder(out, row, rows, bin);
  out += row + bin;
  if (stride == 1) convolveQuads(out, row, x, xRow, rows, bins, xChannels, 2, weights, 0, s.quads);
  else convolvePlanePairs(out, row, x, xRow, rows, bins, xChannels, 2, weights, s.quads);
}

/** Three taps over every second frame to [2 + steps + 2][outputs], the padding of the next layer. */
function firstLayer(out: usize, x: usize, scratch: usize, steps: i32, weights: Convolution): void {
  const row = <usize>weights.outputs << 1;
  memory.fill(out, 0, row << 1);
  convolvePairs(out + (row << 1), row, x, <usize>weights.run << 1, steps, weights, scratch);
  memory.fill(out + row * (steps + 2), 0, row << 1);
}

/** Three taps over time to [pad + steps + pad][outputs]; x is padded by one dilation. */
function layer(out: usize, pad: i32, x: usize, steps: i32, dilation: i32, weights: Convolution): void {
  const row = <usize>weights.outputs << 1;
  memory.fill(out, 0, row * pad);
  convolve(out + row * pad, row, x, <usize>weights.run << 1, steps, 1, dilation, weights);
  memory.fill(out + row * (steps + pad), 0, row * pad);
}
