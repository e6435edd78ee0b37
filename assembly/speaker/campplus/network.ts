/** The forward pass, one line per layer. */
import { ACTIVATION_HIGH, preactivate, preactivateListed } from "../../nn/activation";
import { Convolution, convolve, convolveChannel, convolveGained, convolveListed, convolvePlane } from "../../nn/convolution";
import { dense, normalize } from "../../nn/dense";
import { addMeans, gate, multiply } from "../../nn/gate";
import { Plane, clearBorder, interior, planeAt } from "../../nn/plane";
import { meanDeviation, sumFrames } from "../../nn/pooling";
import { convolveQuads } from "../../nn/quad-convolution";
import { CONCATENATION_HIGH, DIMENSIONS } from "../config";
import { prepare } from "../features";
import { PLANE_ROW } from "../state";
import { BOTTLENECK, GROWTH, SEGMENT_FRAMES, SPEAKER_CHANNELS, TDNN_CHANNELS, blockLayers } from "./config";
import { State, setShapes } from "./state";
import { DenseLayer, Normed, ResidualBlock, Weights } from "./weights";

/** Embeds `frames` log-mel frames of s.features into s.embedding. */
export function forward(w: Weights, s: State, frames: i32): void {
  prepare(s, frames);
  setShapes(s, frames);
  const whole = planeAt(s.shapes, 0);
  const half = planeAt(s.shapes, 1);
  const quarter = planeAt(s.shapes, 2);
  const eighth = planeAt(s.shapes, 3);
  const behind = s.wide + quarter.bytes;

  frontConv1(s.wide, whole, s.plane, w.frontConv1); //                                      80 bins × 32
  residualBlock(s.right, s.left, half, s.wide, whole, s, w.stage1a); //                     40 bins × 32
  residualBlock(s.right, s.left, half, s.right, half, s, w.stage1b);
  residualBlock(behind, s.wide, quarter, s.right, half, s, w.stage2a); //                   20 bins × 32
  residualBlock(behind, s.wide, quarter, behind, quarter, s, w.stage2b);
  frontConv2(s.left, eighth, behind, quarter, s, w.frontConv2); //                          10 bins × 32 = 320 channels

  const steps = (frames + 1) >> 1; //                                                       from here on 20 ms each
  convolve(s.right, 512 << 1, s.left, eighth.row, steps, w.tdnn); //                        128 channels
  denseBlock(s.right, s, steps, 0, TDNN_CHANNELS, 512, w); //                               512
  transit(s.left, 1024, s.right, s, steps, 0, w); //                                        256
  denseBlock(s.left, s, steps, 1, 256, 1024, w); //                                         1024
  transit(s.right, 1024, s.left, s, steps, 1, w); //                                        512
  denseBlock(s.right, s, steps, 2, 512, 1024, w); //                                        1024
  transit(s.left, 512, s.right, s, steps, 2, w); //                                         512

  preactivate(s.right, s.left, 1024, steps, w.outNorm, CONCATENATION_HIGH);
  meanDeviation(s.statistics, s.right, 1024, steps, 512); //                                1024
  dense(s.speaker, s.statistics, w.dense); //                                               192
  normalize(s.speaker, SPEAKER_CHANNELS);
  dense(s.embedding, s.speaker, w.map); //                                                  256
  normalize(s.embedding, DIMENSIONS);
}

function frontConv1(out: usize, to: Plane, plane: usize, layer: Convolution): void {
  clearBorder(out, to);
  convolveChannel(interior(out, to), to, plane, PLANE_ROW << 1, layer);
}

/** out may be x where no shortcut halves the bins; `between` holds what conv1 gives. */
function residualBlock(out: usize, between: usize, to: Plane, x: usize, from: Plane, s: State, block: ResidualBlock): void {
  const inside = interior(out, to);
  const shortcut = block.shortcut;
  clearBorder(between, to);
  convolveQuads(interior(between, to), to, x, from, block.conv1, 0, s.quads);
  if (shortcut) {
    clearBorder(out, to);
    convolvePlane(inside, to, interior(x, from), from, shortcut, 0);
  }
  convolveQuads(inside, to, between, to, block.conv2, inside, s.quads);
}

/** To [2 + frames + 2][320], with the padding of the time-delay layer that follows instead of a border. */
function frontConv2(out: usize, to: Plane, x: usize, from: Plane, s: State, layer: Convolution): void {
  const row = to.row;
  memory.fill(out, 0, row * 2);
  convolveQuads(out + row * 2, to, x, from, layer, 0, s.quads);
  memory.fill(out + row * (to.frames + 2), 0, row * 2);
}

/** out = layer(norm(x)), rows of `width` channels to rows of `outStep` bytes; s.wide holds norm(x), at most 1024 channels, followed by its lists. */
function normed(out: usize, outStep: usize, x: usize, width: i32, s: State, steps: i32, l: Normed): void {
  const lists = s.wide + <usize>steps * 2048;
  preactivateListed(s.wide, lists, x, <usize>width << 1, steps, l.norm, ACTIVATION_HIGH);
  convolveListed(out, outStep, s.wide, <usize>l.norm.channels << 1, lists, steps, l.pointwise);
}

/** x has rows of `width` channels; each layer reads the existing channels and appends GROWTH channels. */
function denseBlock(x: usize, s: State, steps: i32, block: i32, channels: i32, width: i32, w: Weights): void {
  let at = w.layers;
  for (let b = 0; b < block; b++) at += <usize>blockLayers(b) * sizeof<usize>();
  for (let i = 0; i < blockLayers(block); i++, at += sizeof<usize>(), channels += GROWTH) {
    denseLayer(x, s, steps, channels, width, changetype<DenseLayer>(load<usize>(at)));
  }
}

function denseLayer(x: usize, s: State, steps: i32, channels: i32, width: i32, l: DenseLayer): void {
  const row = BOTTLENECK << 1;
  const dilation = l.local.dilation;
  const padded = s.wide + <usize>(steps + 4) * 2816;
  const inner = padded + <usize>(dilation * row);
  normed(inner, row, x, width, s, steps, l);
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
    convolveGained(out, <usize>width << 1, padded + <usize>(from * row), row, length, l.local, s.mask);
  }
}

function transit(out: usize, outWidth: i32, x: usize, s: State, steps: i32, block: i32, w: Weights): void {
  const l = changetype<Normed>(load<usize>(w.transits + <usize>block * sizeof<usize>()));
  normed(out, <usize>outWidth << 1, x, l.norm.channels, s, steps, l);
}
