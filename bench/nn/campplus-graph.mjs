// The speaker network of a model file as an ONNX graph: the same tensors in f32 (or in ONNX's own static int8 form), so that the
// peers compute the same embedding. Batch norms are folded as in ours, which only helps the peers.
import { Graph, scalar } from "./onnx.mjs";

const LAYERS = [12, 24, 16];
const DILATIONS = [1, 2, 2];
const SEGMENT = 100;
const ACTIVATION_HIGH = 4095;

/** tensors: Map of name -> { shape, values } */
export function campplusGraph(tensors, frames, eightBits = false) {
  const g = new Graph();
  const values = (name) => tensors.get(name).values;
  const shape = (name) => tensors.get(name).shape;

  /** Weights [outputs][…inputs in ONNX order], already multiplied by their gain; or integers with separate scales. */
  function convolution(
    x,
    name,
    order,
    dims,
    attributes,
    { bias = values(`${name}.bias`), step = 1, high = ACTIVATION_HIGH } = {},
  ) {
    const weights = values(`${name}.weight`);
    const gain = values(`${name}.gain`);
    const [outputs] = shape(`${name}.weight`);
    const inputs = order.length;
    if (!eightBits) {
      const w = new Float32Array(outputs * inputs);
      for (let o = 0; o < outputs; o++) {
        for (let i = 0; i < inputs; i++)
          w[o * inputs + i] = weights[o * (weights.length / outputs) + order[i]] * gain[o] * step;
      }
      return g.node("Conv", [x, g.constant(w, [outputs, ...dims]), g.constant(bias.slice())], attributes);
    }
    // Static int8: activations u8 with one scale a tensor, weights i8 with one an output; sums come back as i32 through f32.
    let top = 0;
    for (const w of weights) top = Math.max(top, Math.abs(w));
    const most = top > 127 ? top / 127 : 1;
    const w = new Int8Array(outputs * inputs);
    for (let o = 0; o < outputs; o++) {
      for (let i = 0; i < inputs; i++)
        w[o * inputs + i] = Math.round(weights[o * (weights.length / outputs) + order[i]] / most);
    }
    const signed = high < 0;
    const xScale = Math.abs(high) / (signed ? 127 : 255);
    const zero = Uint8Array.of(signed ? 128 : 0);
    const quantized = g.node("QuantizeLinear", [x, g.constant(scalar(xScale), []), g.constant(zero, [])]);
    const wScale = gain.map((v) => v * step * most);
    const yScale = 32767 / 127;
    const sums = Int32Array.from(bias, (b, o) => Math.round(b / (xScale * wScale[o])));
    const y = g.node(
      "QLinearConv",
      [
        quantized,
        g.constant(scalar(xScale), []),
        g.constant(zero, []),
        g.constant(w, [outputs, ...dims]),
        g.constant(wScale),
        g.constant(new Int8Array(outputs)),
        g.constant(scalar(yScale), []),
        g.constant(Uint8Array.of(128), []),
        g.constant(sums),
      ],
      attributes,
    );
    return g.node("DequantizeLinear", [y, g.constant(scalar(yScale), []), g.constant(Uint8Array.of(128), [])]);
  }

  const relu = (x) => g.node("Relu", [x]);

  /** [outputs][time][bin · channel] -> [outputs][channel][bin][time] */
  function plane(x, name, channels, size, stride, options) {
    const run = shape(`${name}.weight`)[2];
    const order = [];
    for (let c = 0; c < channels; c++) {
      for (let b = 0; b < size; b++) for (let t = 0; t < size; t++) order.push(t * run + b * channels + c);
    }
    const pad = size >> 1;
    const attributes = { kernel_shape: [size, size], strides: [stride, 1], pads: [pad, pad, pad, pad] };
    return convolution(x, name, order, [channels, size, size], attributes, options);
  }

  /** [outputs][taps][channels] -> [outputs][channels][taps] */
  function line(x, name, { stride = 1, dilation = 1, channelAt = (c) => c } = {}) {
    const [, taps, channels] = shape(`${name}.weight`);
    const order = [];
    for (let c = 0; c < channels; c++) for (let k = 0; k < taps; k++) order.push(k * channels + channelAt(c));
    const pad = ((taps - 1) * dilation) / 2;
    const attributes = { kernel_shape: [taps], strides: [stride], dilations: [dilation], pads: [pad, pad] };
    return convolution(x, name, order, [channels, taps], attributes);
  }

  function norm(x, name) {
    const gain = Float32Array.from(values(`${name}.gain`), (v) => v / 32768);
    const bias = Float32Array.from(values(`${name}.bias`));
    const n = gain.length;
    const rest = [g.constant(new Float32Array(n)), g.constant(new Float32Array(n).fill(1))];
    return relu(
      g.node("BatchNormalization", [x, g.constant(gain), g.constant(bias), ...rest], { epsilon: { float: 0 } }),
    );
  }

  function dense(x, name, dims) {
    const [outputs, inputs] = shape(`${name}.weight`);
    const [w, gain] = [values(`${name}.weight`), values(`${name}.gain`)];
    const scaled = Float32Array.from(w, (v, i) => v * gain[Math.floor(i / inputs)]);
    const attributes = { kernel_shape: [1] };
    return g.node(
      "Conv",
      [x, g.constant(scaled, [outputs, inputs, ...dims]), g.constant(values(`${name}.bias`).slice())],
      attributes,
    );
  }

  const mean = (x) => g.node("ReduceMean", [x], { axes: [2], keepdims: 1 });
  const features = g.input("features", [1, frames, 80]);
  const centred = g.node("Sub", [features, g.node("ReduceMean", [features], { axes: [1], keepdims: 1 })]);
  let x = g.node("Transpose", [centred], { perm: [0, 2, 1] });
  x = g.node("Unsqueeze", [x, g.constant(BigInt64Array.of(1n))]);
  // One input channel; our fourth element of a run is zero. Log-mel in steps of 1/1024.
  const order = [0, 4, 8, 1, 5, 9, 2, 6, 10];
  const whole = { kernel_shape: [3, 3], strides: [1, 1], pads: [1, 1, 1, 1] };
  x = relu(convolution(x, "front.conv1", order, [1, 3, 3], whole, { step: 1024, high: -16 }));
  for (const name of ["front.stage1.0", "front.stage1.1", "front.stage2.0", "front.stage2.1"]) {
    const stride = name.endsWith("0") ? 2 : 1;
    const h = relu(plane(x, `${name}.conv1`, 32, 3, stride));
    const shortcut = stride === 2 ? plane(x, `${name}.shortcut`, 32, 1, stride) : x;
    const gained = g.node("Mul", [shortcut, g.constant(values(`${name}.conv2.residual`).slice(), [1, 32, 1, 1])]);
    x = relu(g.node("Add", [plane(h, `${name}.conv2`, 32, 3, 1), gained]));
  }
  x = relu(plane(x, "front.conv2", 32, 3, 2));
  x = g.node("Reshape", [x, g.constant(BigInt64Array.of(1n, 320n, BigInt(frames)))]);
  x = relu(line(x, "tdnn", { stride: 2, channelAt: (c) => (c % 10) * 32 + Math.floor(c / 10) }));
  const steps = Math.ceil(frames / 2);
  const segments = g.constant(BigInt64Array.from({ length: steps }, (_, t) => BigInt(Math.floor(t / SEGMENT))));
  for (const [block, count] of LAYERS.entries()) {
    for (let i = 0; i < count; i++) {
      const name = `block${block + 1}.${i}`;
      const h = relu(line(norm(x, `${name}.norm`), `${name}.bottleneck`));
      const local = line(h, `${name}.local`, { dilation: DILATIONS[block] });
      const pooled = g.node("AveragePool", [h], { kernel_shape: [SEGMENT], strides: [SEGMENT], ceil_mode: 1 });
      const context = g.node("Add", [mean(h), g.node("Gather", [pooled, segments], { axis: 2 })]);
      const hidden = relu(dense(context, `${name}.squeeze`, [1]));
      const mask = g.node("Sigmoid", [dense(hidden, `${name}.excite`, [1])]);
      x = g.node("Concat", [x, g.node("Mul", [local, mask])], { axis: 1 });
    }
    x = line(norm(x, `transit${block + 1}.norm`), `transit${block + 1}.linear`);
  }
  x = norm(x, "out.norm");
  const m = mean(x);
  const apart = g.node("Sub", [x, m]);
  const variance = mean(g.node("Mul", [apart, apart]));
  const deviation = g.node("Sqrt", [g.node("Mul", [variance, g.constant(scalar(steps / (steps - 1)))])]);
  const unit = (v) => g.node("Div", [v, g.node("ReduceL2", [v], { axes: [1], keepdims: 1 })]);
  x = unit(dense(g.node("Concat", [m, deviation], { axis: 1 }), "dense", [1]));
  x = unit(dense(x, "map", [1]));
  g.output(x, [1, 256, 1]);
  return { model: g.encode(), input: "features", output: x };
}
