/** The forward pass: runs the steps of the program in order. */
import { FEATURE_GAIN, quantize } from "../../nn/activation";
import { attend, squash } from "../../nn/attention";
import { convolveBounded } from "../../nn/bounded-convolution";
import { Convolution, convolve, convolveDepthwise } from "../../nn/convolution";
import { Dense, dense, normalize } from "../../nn/dense";
import { addFrames, padMirrored, padZeros } from "../../nn/frames";
import { gate, multiply } from "../../nn/gate";
import { meanDeviation, meanOfSums, sumFrames } from "../../nn/pooling";
import { BINS, CONCATENATION_HIGH, DIMENSIONS } from "../config";
import { prepare, standardize } from "../features";
import { ADD, ATTENTION, CONVOLUTION, DEPTHWISE, GATE, MIRRORED, RECTIFIED, SECOND, Step, isStandardized, lineChannels, stepAt, stepCount } from "./program";
import { State, lineAt } from "./state";
import { Attention, Bounded, Gate, Sum, Weights, weightsOfStep } from "./weights";

/** Embeds `frames` log-mel frames of s.features into s.embedding. */
export function forward(w: Weights, s: State, frames: i32): void {
  prepare(s, frames);
  if (isStandardized()) standardize(s.features, frames);
  quantize(lineAt(s, 0), s.features, frames * BINS, FEATURE_GAIN);
  for (let i = 0; i < stepCount(); i++) {
    const step = stepAt(i);
    const weights = weightsOfStep(w, i);
    if (step.kind == CONVOLUTION) convolution(s, frames, step, changetype<Bounded>(weights));
    else if (step.kind == DEPTHWISE) depthwise(s, frames, step, changetype<Convolution>(weights));
    else if (step.kind == ADD) sum(s, frames, step, changetype<Sum>(weights));
    else if (step.kind == GATE) gated(s, frames, step, changetype<Gate>(weights));
    else if (step.kind == ATTENTION) attention(s, frames, step, changetype<Attention>(weights));
    else dense(s.embedding, s.statistics, changetype<Dense>(weights));
  }
  normalize(s.embedding, DIMENSIONS);
}

// @ts-ignore: decorator
@inline
function place(s: State, line: i32, channel: i32): usize {
  return lineAt(s, line) + (<usize>channel << 1);
}
// @ts-ignore: decorator
@inline
function rowBytes(line: i32): usize {
  return <usize>lineChannels(line) << 1;
}

/** The first tap of the first frame, after the frames around x are filled. */
function padded(s: State, frames: i32, step: Step): usize {
  const x = place(s, step.from, step.fromChannel);
  const row = rowBytes(step.from);
  const around = (step.dilation * (step.taps - 1)) >> 1;
  if (step.flags & MIRRORED) padMirrored(x, row, <usize>step.inputs << 1, frames, around);
  else padZeros(x, row, <usize>step.inputs << 1, frames, around);
  return x - row * around;
}

function convolution(s: State, frames: i32, step: Step, b: Bounded): void {
  const x = padded(s, frames, step);
  convolveBounded(place(s, step.to, step.toChannel), rowBytes(step.to), x, rowBytes(step.from), frames, step.dilation, b.convolution, b.convolution.bias, b.bounds);
}

function depthwise(s: State, frames: i32, step: Step, layer: Convolution): void {
  const x = padded(s, frames, step);
  convolveDepthwise(place(s, step.to, step.toChannel), rowBytes(step.to), x, rowBytes(step.from), frames, 1, step.dilation, layer);
}

function sum(s: State, frames: i32, step: Step, gains: Sum): void {
  addTo(s, frames, step, gains.first, gains.second);
}

function addTo(s: State, frames: i32, step: Step, firstGain: usize, secondGain: usize): void {
  const second = step.flags & SECOND ? place(s, step.second, step.secondChannel) : 0;
  const low = step.flags & RECTIFIED ? 0 : -CONCATENATION_HIGH;
  const x = place(s, step.from, step.fromChannel);
  addFrames(place(s, step.to, step.toChannel), rowBytes(step.to), x, rowBytes(step.from), firstGain, second, rowBytes(step.second), secondGain, frames, step.inputs, low);
}

function gated(s: State, frames: i32, step: Step, g: Gate): void {
  sumFrames(s.sums, place(s, step.from, step.fromChannel), rowBytes(step.from), frames, step.inputs);
  meanOfSums(s.context, s.sums, frames, step.inputs);
  gate(s.mask, s.hidden, s.context, g.squeeze, g.excite);
  multiply(s.mask, s.mask, g.gains.first, step.inputs);
  addTo(s, frames, step, s.mask, g.gains.second);
}

function attention(s: State, frames: i32, step: Step, a: Attention): void {
  const x = place(s, step.from, step.fromChannel);
  const row = rowBytes(step.from);
  const hidden = s.scores;
  const hiddenRow = <usize>step.outputs << 1;
  const scores = hidden + hiddenRow * frames;
  const layer = a.hidden.convolution;
  meanDeviation(s.context, x, row, frames, step.inputs);
  let bias = layer.bias;
  const context = a.context;
  if (context) {
    // Its gains are in steps of the hidden channels, and its bias is that of the hidden layer.
    dense(s.hidden, s.context, context);
    bias = s.hidden;
  }
  convolveBounded(hidden, hiddenRow, x, row, frames, 1, layer, bias, a.hidden.bounds);
  squash(hidden, frames, step.outputs, a.hiddenStep);
  convolve(scores, <usize>step.inputs << 1, hidden, hiddenRow, frames, 1, 1, a.score);
  attend(s.statistics, x, row, scores, a.scoreStep, s.context, frames, step.inputs, s.work);
}
