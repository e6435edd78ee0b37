/** The network's weights: `createWeights` walks the steps of the program in the order of the model file and gives each tensor a place. */
import { create, reserve } from "../../memory";
import { Bounded } from "../../nn/bounded-convolution";
import { Convolution } from "../../nn/convolution";
import { Dense } from "../../nn/dense";
import { Sum } from "../../nn/frames";
import { Loading, createConvolution, createDense, createDepthwise, expectCopy } from "../../nn/loading";
import { CONCATENATION_HIGH, DIMENSIONS } from "../config";
import { ADD, ATTENTION, CONTEXT, CONVOLUTION, DEPTHWISE, GATE, MAP, RECTIFIED, SECOND, Step, WORDS, rowBytes, stepAt, stepCount } from "./program";

@unmanaged
export class Gate {
  squeeze: Dense;
  excite: Dense;
  sum: Sum;
}

@unmanaged
export class Attention {
  /** For mean and deviation over all frames; 0 if the attention has no context. */
  context: Dense | null;
  hidden: Bounded;
  /** f32[hidden]: steps of the input of the hyperbolic tangent. */
  hiddenStep: usize;
  score: Convolution;
  /** f32[channels] */
  scoreStep: usize;
}

/** The weights of step i of the program, by its kind: Bounded, Convolution, Sum, Gate, Attention or Dense. */
@unmanaged
export class Weights {
  steps: usize;
}

export function weightsOfStep(w: Weights, i: i32): usize {
  return load<usize>(w.steps + (<usize>i << 2));
}

function createVector(loading: Loading, length: i32): usize {
  const place = reserve(<usize>length << 2);
  expectCopy(loading, place, length << 2);
  return place;
}

function createBounded(loading: Loading, outputs: i32, taps: i32, inputs: i32, words: bool): Bounded {
  const b = create<Bounded>();
  b.convolution = createConvolution(loading, outputs, taps, inputs, words, 0, 0);
  b.low = createVector(loading, outputs);
  b.high = createVector(loading, outputs);
  return b;
}

function createSum(loading: Loading, step: Step): Sum {
  const s = create<Sum>();
  s.channels = step.inputs;
  s.outStep = rowBytes(step.to);
  s.xStep = rowBytes(step.from);
  s.yStep = rowBytes(step.second);
  s.xGain = createVector(loading, step.inputs);
  s.yGain = step.flags & SECOND ? createVector(loading, step.inputs) : 0;
  s.low = step.flags & RECTIFIED ? 0 : <f32>-CONCATENATION_HIGH;
  return s;
}

function createGate(loading: Loading, step: Step): Gate {
  const g = create<Gate>();
  g.squeeze = createDense(loading, step.outputs, step.inputs, true);
  g.excite = createDense(loading, step.inputs, step.outputs, true);
  g.sum = createSum(loading, step);
  return g;
}

function createAttention(loading: Loading, step: Step): Attention {
  const a = create<Attention>();
  a.context = step.flags & CONTEXT ? createDense(loading, step.outputs, 2 * step.inputs, true) : null;
  a.hidden = createBounded(loading, step.outputs, 1, step.inputs, true);
  a.hiddenStep = createVector(loading, step.outputs);
  a.score = createConvolution(loading, step.inputs, 1, step.outputs, false, -CONCATENATION_HIGH, CONCATENATION_HIGH);
  a.scoreStep = createVector(loading, step.inputs);
  return a;
}

function createStep(loading: Loading, step: Step): usize {
  const words = (step.flags & WORDS) != 0;
  if (step.kind == CONVOLUTION) {
    const b = createBounded(loading, step.outputs, step.taps, step.inputs, words);
    b.convolution.dilation = step.dilation;
    return changetype<usize>(b);
  }
  if (step.kind == DEPTHWISE) {
    const c = createDepthwise(loading, step.inputs, step.taps, -CONCATENATION_HIGH, CONCATENATION_HIGH);
    c.dilation = step.dilation;
    return changetype<usize>(c);
  }
  if (step.kind == ADD) return changetype<usize>(createSum(loading, step));
  if (step.kind == GATE) return changetype<usize>(createGate(loading, step));
  if (step.kind == ATTENTION) return changetype<usize>(createAttention(loading, step));
  if (step.kind == MAP) return changetype<usize>(createDense(loading, DIMENSIONS, step.inputs, true));
  return unreachable();
}

export function createWeights(loading: Loading): Weights {
  const w = create<Weights>();
  w.steps = reserve(<usize>stepCount() << 2);
  for (let i = 0; i < stepCount(); i++) store<usize>(w.steps + (<usize>i << 2), createStep(loading, stepAt(i)));
  return w;
}
