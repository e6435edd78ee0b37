/** The forward pass, one line per layer. */
import { ACTIVATION_HIGH, preactivate, preactivateListed } from "../../nn/activation";
import { Convolution, convolve, convolveGained, convolveListed, convolvePlane } from "../../nn/convolution";
import { dense, normalize } from "../../nn/dense";
import { addMeans, gate, multiply } from "../../nn/gate";
import { convolveQuads } from "../../nn/quad-convolution";
import { meanDeviation, sumFrames } from "../../nn/pooling";
import { BINS, CONCATENATION_HIGH, DIMENSIONS } from "../config";
import { prepare } from "../features";
import { PLANE_ROW } from "../state";
import {
  BOTTLENECK,
  FRONT_CHANNELS,
  GROWTH,
  SEGMENT_FRAMES,
  SPEAKER_CHANNELS,
  TDNN_CHANNELS,
  blockDilation,
  blockLayers,
} from "./config";
import { State } from "./state";
import { DenseLayer, Norm, ResidualBlock, Weights } from "./weights";

/** Bytes of a bin, and of a frame of bins with a zero bin on each side. */
const BIN = FRONT_CHANNELS << 1;
// @ts-ignore: decorator
@inline
function frameBytes(bins: i32): usize {
  return <usize>((bins + 2) * BIN);
}

/** Embeds `frames` log-mel frames of s.features into s.embedding. */
export function forward(w: Weights, s: State, frames: i32): void {
  prepare(s, frames);

  frontConv1(s.wide, s.plane, frames, w.frontConv1); //                                     80 bins × 32
  residualBlock(s.right, s.left, s.wide, s, frames, BINS, 2, w.stage1a); //                 40 bins × 32
  residualBlock(s.right, s.left, s.right, s, frames, BINS / 2, 1, w.stage1b);
  const half = s.wide + frameBytes(BINS / 4) * (frames + 2);
  residualBlock(half, s.wide, s.right, s, frames, BINS / 2, 2, w.stage2a); //               20 bins × 32
  residualBlock(half, s.wide, half, s, frames, BINS / 4, 1, w.stage2b);
  frontConv2(s.left, half, s, frames, w.frontConv2); //                                     10 bins × 32 = 320 channels

  const steps = (frames + 1) >> 1; //                                                       from here on 20 ms each
  tdnn(s.right, s.left, steps, w); //                                                       128 channels
  denseBlock(s.right, s, steps, 0, TDNN_CHANNELS, 512, w); //                               512
  transit(s.left, 1024, s.right, s, steps, 0, w); //                                        256
  denseBlock(s.left, s, steps, 1, 256, 1024, w); //                                         1024
  transit(s.right, 1024, s.left, s, steps, 1, w); //                                        512
  denseBlock(s.right, s, steps, 2, 512, 1024, w); //                                        1024
  transit(s.left, 512, s.right, s, steps, 2, w); //                                         512

  norm(s.right, s.left, 512, steps, w.outNorm, CONCATENATION_HIGH);
  meanDeviation(s.statistics, s.right, 1024, steps, 512); //                                1024
  dense(s.speaker, s.statistics, w.dense); //                                               192
  normalize(s.speaker, SPEAKER_CHANNELS);
  dense(s.embedding, s.speaker, w.map); //                                                  256
  normalize(s.embedding, DIMENSIONS);
}

/** Zeroes the frame before and after, and the bin below and above, of a [frames][bins] plane of FRONT_CHANNELS. */
function clearBorder(plane: usize, frames: i32, bins: i32): void {
  const row = frameBytes(bins);
  memory.fill(plane, 0, row);
  for (let t = 0, p = plane + row; t < frames; t++, p += row) {
    memory.fill(p, 0, BIN);
    memory.fill(p + row - BIN, 0, BIN);
  }
  memory.fill(plane + row * (frames + 1), 0, row);
}

// @ts-ignore: decorator
@inline
function interior(plane: usize, bins: i32): usize {
  return plane + frameBytes(bins) + BIN;
}

function frontConv1(out: usize, plane: usize, frames: i32, layer: Convolution): void {
  clearBorder(out, frames, BINS);
  convolvePlane(interior(out, BINS), frameBytes(BINS), plane, PLANE_ROW << 1, frames, BINS, 1, 1, layer, 0);
}

/** out may be x when the stride is 1; `between` holds what conv1 gives. */
function residualBlock(out: usize, between: usize, x: usize, s: State, frames: i32, bins: i32, stride: i32, block: ResidualBlock): void {
  const row = frameBytes(bins);
  const narrow = bins / stride;
  const narrowRow = frameBytes(narrow);
  const inside = interior(out, narrow);
  const shortcut = block.shortcut;
  clearBorder(between, frames, narrow);
  convolveQuads(interior(between, narrow), narrowRow, x, row, frames, narrow, FRONT_CHANNELS, stride, block.conv1, 0, s.quads);
  if (shortcut) {
    clearBorder(out, frames, narrow);
    convolvePlane(inside, narrowRow, interior(x, bins), row, frames, narrow, FRONT_CHANNELS, stride, shortcut, 0);
  }
  convolveQuads(inside, narrowRow, between, narrowRow, frames, narrow, FRONT_CHANNELS, 1, block.conv2, inside, s.quads);
}

/** To [2 + frames + 2][320], with the padding of the time-delay layer that follows. */
function frontConv2(out: usize, x: usize, s: State, frames: i32, layer: Convolution): void {
  const bins = BINS / 8;
  const outRow = <usize>(bins * BIN);
  const row = frameBytes(bins * 2);
  memory.fill(out, 0, outRow * 2);
  convolveQuads(out + outRow * 2, outRow, x, row, frames, bins, FRONT_CHANNELS, 2, layer, 0, s.quads);
  memory.fill(out + outRow * (frames + 2), 0, outRow * 2);
}

function tdnn(out: usize, x: usize, steps: i32, w: Weights): void {
  convolve(out, 512 << 1, x, (BINS / 8) * BIN, steps, 2, 1, w.tdnn);
}

function norm(out: usize, x: usize, width: i32, steps: i32, n: Norm, high: i32): void {
  preactivate(out, <usize>n.channels << 1, x, <usize>width << 1, steps, n.channels, n.gain, n.bias, high);
}

/** out = layer(norm(x)) for a layer with one tap; s.wide holds norm(x), at most 1024 channels, followed by its lists. */
function normed(out: usize, outStep: usize, x: usize, width: i32, s: State, steps: i32, n: Norm, layer: Convolution): void {
  const row = <usize>n.channels << 1;
  const lists = s.wide + <usize>steps * 2048;
  preactivateListed(s.wide, row, lists, x, <usize>width << 1, steps, n.channels, n.gain, n.bias, ACTIVATION_HIGH);
  convolveListed(out, outStep, s.wide, row, lists, steps, layer);
}

/** x has rows of `width` channels; each layer reads the existing channels and appends GROWTH channels. */
function denseBlock(x: usize, s: State, steps: i32, block: i32, channels: i32, width: i32, w: Weights): void {
  let at = w.layers;
  for (let b = 0; b < block; b++) at += <usize>blockLayers(b) * sizeof<usize>();
  for (let i = 0; i < blockLayers(block); i++, at += sizeof<usize>(), channels += GROWTH) {
    denseLayer(x, s, steps, channels, width, blockDilation(block), changetype<DenseLayer>(load<usize>(at)));
  }
}

function denseLayer(x: usize, s: State, steps: i32, channels: i32, width: i32, dilation: i32, l: DenseLayer): void {
  const row = BOTTLENECK << 1;
  const padded = s.wide + <usize>(steps + 4) * 2816;
  const inner = padded + <usize>(dilation * row);
  normed(inner, row, x, width, s, steps, l.norm, l.bottleneck);
  memory.fill(padded, 0, dilation * row);
  memory.fill(inner + <usize>(steps * row), 0, dilation * row);

  sumFrames(s.sums, inner, row, steps, BOTTLENECK);
  for (let from = 0; from < steps; from += SEGMENT_FRAMES) {
    const length = min(SEGMENT_FRAMES, steps - from);
    sumFrames(s.segmentSums, inner + <usize>(from * row), row, length, BOTTLENECK);
    addMeans(s.context, s.sums, steps, s.segmentSums, length, BOTTLENECK);
    gate(s.mask, s.hidden, s.context, l.squeeze, l.excite);
    multiply(s.mask, s.mask, l.local.gain, GROWTH);
    const out = x + (<usize>(from * width + channels) << 1);
    convolveGained(out, <usize>width << 1, padded + <usize>(from * row), row, length, 1, dilation, l.local, s.mask);
  }
}

function transit(out: usize, outWidth: i32, x: usize, s: State, steps: i32, block: i32, w: Weights): void {
  const n = changetype<Norm>(load<usize>(w.transitNorms + <usize>block * sizeof<usize>()));
  const layer = changetype<Convolution>(load<usize>(w.transits + <usize>block * sizeof<usize>()));
  normed(out, <usize>outWidth << 1, x, n.channels, s, steps, n, layer);
}
