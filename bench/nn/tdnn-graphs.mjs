// Small ECAPA-TDNN and TitaNet graphs with random weights, in their published form: test input of the importer.
import { Graph } from "./onnx.mjs";
import { random } from "./random-model.mjs";

const BINS = 80;
/** Deviation of speech from its mean. */
const DECIBELS = 10;
const integers = (...values) => BigInt64Array.from(values.map(BigInt));

class Layers {
  graph = new Graph();
  #next;

  constructor(seed) {
    this.#next = random(seed);
  }

  /** Approximately normal, with deviation 1. */
  draw(length, deviation = 1, mean = 0) {
    const one = () => Array.from({ length: 4 }, () => this.#next()).reduce((sum, x) => sum + x - 0.5, 0) * Math.sqrt(3);
    return Float32Array.from({ length }, () => mean + deviation * one());
  }

  integers(...values) {
    return this.graph.constant(integers(...values));
  }

  relu(x) {
    return this.graph.node("Relu", [x]);
  }

  /** `heard`: the deviation of its input. */
  convolution(
    x,
    [outputs, inputs, taps],
    { dilation = 1, group = 1, pad = (dilation * (taps - 1)) / 2, heard = 1 } = {},
  ) {
    const { graph } = this;
    const weight = this.draw(outputs * inputs * taps, Math.sqrt(2 / (inputs * taps)) / heard);
    return graph.node(
      "Conv",
      [x, graph.constant(weight, [outputs, inputs, taps]), graph.constant(this.draw(outputs, 0.1))],
      { kernel_shape: [taps], dilations: [dilation], pads: [pad, pad], group },
    );
  }

  /** Frames mirrored before the first and after the last. */
  mirrored(x, frames) {
    return this.graph.node("Pad", [x, this.integers(0, 0, frames, 0, 0, frames)], { mode: "reflect" });
  }

  norm(x, channels) {
    const { graph } = this;
    // Some gains are negative, as trained ones are.
    const gain = this.draw(channels, 0.3, 0.8);
    const variance = this.draw(channels).map((v) => 0.5 + Math.abs(v));
    const parts = [gain, this.draw(channels, 0.2), this.draw(channels, 0.2), variance];
    return graph.node("BatchNormalization", [x, ...parts.map((part) => graph.constant(part))], {
      epsilon: { float: 1e-5 },
    });
  }

  mean(x, keepdims = 1) {
    return this.graph.node("ReduceMean", [x], { axes: [2], keepdims });
  }

  deviation(x, mean) {
    const { graph } = this;
    const apart = graph.node("Sub", [x, mean]);
    const variance = this.mean(graph.node("Mul", [apart, apart]));
    return graph.node("Sqrt", [graph.node("Clip", [variance, graph.constant(Float32Array.of(1e-12), [])])]);
  }

  /** Scores from a tanh layer that reads x, its mean and its deviation; mean and deviation weighted by their softmax; a map. */
  statistics(x, channels, hidden, dimensions) {
    const { graph } = this;
    const all = graph.node("Shape", [x]);
    const mean = this.mean(x);
    const wide = [x, ...[mean, this.deviation(x, mean)].map((part) => graph.node("Expand", [part, all]))];
    const context = graph.node("Concat", wide, { axis: 1 });
    const squashed = graph.node("Tanh", [
      this.norm(this.relu(this.convolution(context, [hidden, 3 * channels, 1])), hidden),
    ]);
    const shares = graph.node("Softmax", [this.convolution(squashed, [channels, hidden, 1])], { axis: 2 });
    const over = this.integers(2);
    const weighed = (y) => graph.node("ReduceSum", [graph.node("Mul", [shares, y]), over], { keepdims: 1 });
    const center = weighed(x);
    const apart = graph.node("Sub", [x, center]);
    const spread = graph.node("Sqrt", [
      graph.node("Clip", [weighed(graph.node("Mul", [apart, apart])), graph.constant(Float32Array.of(1e-12), [])]),
    ]);
    const both = this.norm(graph.node("Concat", [center, spread], { axis: 1 }), 2 * channels);
    const mapped = this.convolution(both, [dimensions, 2 * channels, 1]);
    graph.output(graph.node("Squeeze", [mapped, this.integers(2)]), [1, dimensions]);
    return graph.encode();
  }
}

/** As SpeechBrain publishes it: frames mirrored at the ends, features in decibels [1][frames][80]. */
export function ecapaGraph({ channels = 128, hidden = 32, dimensions = 96, seed = 3 } = {}) {
  const made = new Layers(seed);
  const { graph } = made;
  const width = channels / 8;
  const layer = (x, outputs, inputs, taps = 1, dilation = 1, heard = 1) => {
    const around = (dilation * (taps - 1)) / 2;
    const padded = around > 0 ? made.mirrored(x, around) : x;
    return made.norm(
      made.relu(made.convolution(padded, [outputs, inputs, taps], { dilation, pad: 0, heard })),
      outputs,
    );
  };
  const features = graph.input("features", [1, 0, BINS]);
  let x = layer(graph.node("Transpose", [features], { perm: [0, 2, 1] }), channels, BINS, 5, 1, DECIBELS);
  const blocks = [];
  for (const dilation of [2, 3, 4]) {
    const wide = layer(x, channels, channels);
    const parts = Array.from({ length: 8 }, (_, p) =>
      graph.node("Slice", [wide, made.integers(p * width), made.integers((p + 1) * width), made.integers(1)]),
    );
    const joined = [parts[0]];
    for (const [p, part] of parts.slice(1).entries())
      joined.push(layer(p === 0 ? part : graph.node("Add", [part, joined.at(-1)]), width, width, 3, dilation));
    const u = layer(graph.node("Concat", joined, { axis: 1 }), channels, channels);
    const squeezed = made.relu(made.convolution(made.mean(u), [hidden, channels, 1]));
    const gate = graph.node("Sigmoid", [made.convolution(squeezed, [channels, hidden, 1])]);
    x = graph.node("Add", [graph.node("Mul", [u, gate]), x]);
    blocks.push(x);
  }
  const all = layer(graph.node("Concat", blocks, { axis: 1 }), 2 * channels, 3 * channels);
  return made.statistics(all, 2 * channels, hidden, dimensions);
}

/** As NeMo exports it, without its masks: features [1][80][frames], gates as products of matrices. */
export function titanetGraph({ channels = 128, hidden = 32, dimensions = 96, seed = 5 } = {}) {
  const made = new Layers(seed);
  const { graph } = made;
  const pair = (x, outputs, inputs, taps) => {
    const spread = made.convolution(x, [inputs, 1, taps], { group: inputs });
    return made.norm(made.convolution(spread, [outputs, inputs, 1]), outputs);
  };
  const gated = (x, width) => {
    const turned = graph.node("Transpose", [made.mean(x)], { perm: [0, 2, 1] });
    const flat = (y, inputs, outputs) =>
      graph.node("MatMul", [y, graph.constant(made.draw(inputs * outputs, Math.sqrt(2 / inputs)), [inputs, outputs])]);
    const excited = flat(made.relu(flat(turned, width, hidden)), hidden, width);
    const mask = graph.node("Sigmoid", [graph.node("Transpose", [excited], { perm: [0, 2, 1] })]);
    return graph.node("Mul", [x, mask]);
  };
  let x = graph.input("audio_signal", [1, BINS, 0]);
  x = made.relu(gated(pair(x, channels, BINS, 3), channels));
  for (const taps of [7, 11]) {
    let y = x;
    for (let i = 0; i < 2; i++)
      y = i === 1 ? pair(y, channels, channels, taps) : made.relu(pair(y, channels, channels, taps));
    const shortcut = made.norm(made.convolution(x, [channels, channels, 1]), channels);
    x = made.relu(graph.node("Add", [gated(y, channels), shortcut]));
  }
  x = made.relu(gated(pair(x, 2 * channels, channels, 1), 2 * channels));
  return made.statistics(x, 2 * channels, hidden, dimensions);
}
