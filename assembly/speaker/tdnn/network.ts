/** The forward pass: runs the steps of the program in order. */
import { FEATURE_GAIN, quantize } from "../../nn/activation";
import { attend, squash } from "../../nn/attention";
import { Bounded, convolveBounded } from "../../nn/bounded-convolution";
import { Convolution, convolve, convolveDepthwise } from "../../nn/convolution";
import { Dense, dense, normalize } from "../../nn/dense";
import { Sum, addFrames, padMirrored, padZeros } from "../../nn/frames";
import { gate, multiply } from "../../nn/gate";
import { meanDeviation, meanOfSums, sumFrames } from "../../nn/pooling";
import { BINS, DIMENSIONS } from "../config";
import { prepare, standardize } from "../features";
import { ADD, ATTENTION, CONVOLUTION, DEPTHWISE, GATE, MIRRORED, SECOND, Step, isStandardized, rowBytes, stepAt, stepCount } from "./program";
import { State, lineAt } from "./state";
import { Attention, Gate, Weights, weightsOfStep } from "./weights";

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
    else if (step.kind == ADD) add(s, frames, step, changetype<Sum>(weights), changetype<Sum>(weights).xGain);
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
  convolveBounded(place(s, step.to, step.toChannel), rowBytes(step.to), x, rowBytes(step.from), frames, b, b.convolution.bias);
}

function depthwise(s: State, frames: i32, step: Step, layer: Convolution): void {
  const x = padded(s, frames, step);
  convolveDepthwise(place(s, step.to, step.toChannel), rowBytes(step.to), x, rowBytes(step.from), frames, layer);
}

function add(s: State, frames: i32, step: Step, sum: Sum, xGain: usize): void {
  const y = step.flags & SECOND ? place(s, step.second, step.secondChannel) : 0;
  addFrames(place(s, step.to, step.toChannel), place(s, step.from, step.fromChannel), y, frames, sum, xGain);
}

function gated(s: State, frames: i32, step: Step, g: Gate): void {
  sumFrames(s.sums, place(s, step.from, step.fromChannel), rowBytes(step.from), frames, step.inputs);
  meanOfSums(s.context, s.sums, frames, step.inputs);
  gate(s.mask, s.hidden, s.context, g.squeeze, g.excite);
  multiply(s.mask, s.mask, g.sum.xGain, step.inputs);
  add(s, frames, step, g.sum, s.mask);
}

function attention(s: State, frames: i32, step: Step, a: Attention): void {
  const x = place(s, step.from, step.fromChannel);
  const row = rowBytes(step.from);
  const hidden = s.scores;
  const hiddenRow = <usize>step.outputs << 1;
  const scores = hidden + hiddenRow * frames;
  meanDeviation(s.statistics, x, row, frames, step.inputs);
  let bias = a.hidden.convolution.bias;
  const context = a.context;
  if (context) {
    // Its gains are in steps of the hidden channels, and its bias is that of the hidden layer.
    dense(s.hidden, s.statistics, context);
    bias = s.hidden;
  }
  convolveBounded(hidden, hiddenRow, x, row, frames, a.hidden, bias);
  squash(hidden, frames, step.outputs, a.hiddenStep);
  convolve(scores, <usize>step.inputs << 1, hidden, hiddenRow, frames, a.score);
  attend(s.statistics, x, row, scores, a.scoreStep, frames, step.inputs);
}
