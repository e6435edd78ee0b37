// The ResNet34 of a model file as an ONNX graph: the same tensors in f32, so that the peers compute the same embedding.
import { Graph, scalar } from "./onnx.mjs";

const STAGES = [3, 4, 6, 3];

/** tensors: Map of name -> { shape, values } */
export function resnetGraph(tensors, frames) {
  const g = new Graph();
  const values = (name) => tensors.get(name).values;
  const shape = (name) => tensors.get(name).shape;
  const relu = (x) => g.node("Relu", [x]);

  /** [outputs][time][bin · channel] -> [outputs][channel][bin][time], times gain and step. */
  function plane(x, name, channels, stride, step = 1) {
    const [outputs, size, run] = shape(`${name}.weight`);
    const [weights, gain] = [values(`${name}.weight`), values(`${name}.gain`)];
    const w = new Float32Array(outputs * channels * size * size);
    let at = 0;
    for (let o = 0; o < outputs; o++) {
      for (let c = 0; c < channels; c++) {
        for (let b = 0; b < size; b++) {
          for (let t = 0; t < size; t++) w[at++] = weights[(o * size + t) * run + b * channels + c] * gain[o] * step;
        }
      }
    }
    const pad = size >> 1;
    const attributes = { kernel_shape: [size, size], strides: [stride, stride], pads: [pad, pad, pad, pad] };
    const bias = g.constant(values(`${name}.bias`).slice());
    return g.node("Conv", [x, g.constant(w, [outputs, channels, size, size]), bias], attributes);
  }

  function block(x, name, channels, stride) {
    const outputs = shape(`${name}.conv2.weight`)[0];
    const h = relu(plane(x, `${name}.conv1`, channels, stride));
    const shortcut = stride === 2 ? plane(x, `${name}.shortcut`, channels, 2) : x;
    const gained = g.node("Mul", [shortcut, g.constant(values(`${name}.conv2.residual`).slice(), [1, outputs, 1, 1])]);
    return relu(g.node("Add", [plane(h, `${name}.conv2`, outputs, 1), gained]));
  }

  const features = g.input("features", [1, frames, 80]);
  const centred = g.node("Sub", [features, g.node("ReduceMean", [features], { axes: [1], keepdims: 1 })]);
  let x = g.node("Unsqueeze", [g.node("Transpose", [centred], { perm: [0, 2, 1] }), g.constant(BigInt64Array.of(1n))]);
  // Log-mel in steps of 1/1024; our fourth element of a run is zero.
  x = relu(plane(x, "stem", 1, 1, 1024));
  let channels = 32;
  let steps = frames;
  for (const [stage, blocks] of STAGES.entries()) {
    const first = STAGES.slice(0, stage).reduce((a, b) => a + b, 0);
    for (let i = 0; i < blocks; i++) {
      const stride = stage > 0 && i === 0 ? 2 : 1;
      x = block(x, `blocks.${first + i}`, channels, stride);
      if (stride === 2) steps = Math.ceil(steps / 2);
      channels = 32 << stage;
    }
  }
  // [1][channel][bin][time] -> [1][bin · channel][time], our order.
  x = g.node("Transpose", [x], { perm: [0, 2, 1, 3] });
  x = g.node("Reshape", [x, g.constant(BigInt64Array.of(1n, 2560n, BigInt(steps)))]);
  const mean = (v) => g.node("ReduceMean", [v], { axes: [2], keepdims: 1 });
  const m = mean(x);
  const apart = g.node("Sub", [x, m]);
  const scaled = g.node("Mul", [mean(g.node("Mul", [apart, apart])), g.constant(scalar(steps / (steps - 1)))]);
  const statistics = g.node("Concat", [m, g.node("Sqrt", [scaled])], { axis: 1 });
  const [weights, gain] = [values("fc.weight"), values("fc.gain")];
  const w = Float32Array.from(weights, (v, i) => v * gain[Math.floor(i / 5120)]);
  x = g.node("Conv", [statistics, g.constant(w, [256, 5120, 1]), g.constant(values("fc.bias").slice())], {
    kernel_shape: [1],
  });
  x = g.node("Div", [x, g.node("ReduceL2", [x], { axes: [1], keepdims: 1 })]);
  g.output(x, [1, 256, 1]);
  return { model: g.encode(), input: "features", output: x };
}
