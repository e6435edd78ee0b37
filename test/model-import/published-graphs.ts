/**
 * The two shipped networks as ONNX graphs in the form in which such networks are published: real weights, without a third-party
 * file. Integers and gains of the kernels become floats again, in units in which inputs can be added directly.
 */
import { readFileSync } from "node:fs";
import { Graph } from "../../bench/nn/onnx.mjs";
import { type ModelFile, readModelFile, tensorValues } from "../../src/engine/model-file.js";

type Values = { readonly shape: readonly number[]; readonly data: ArrayLike<number> };

export async function tensorsOf(name: string) {
  const file: ModelFile = await readModelFile(readFileSync(new URL(`../../models/${name}`, import.meta.url)));
  const tensors = new Map(
    file.network.tensors.map((tensor): [string, Values] => [
      tensor.name,
      { shape: tensor.shape, data: tensorValues(tensor) },
    ]),
  );
  return (tensor: string): Values => tensors.get(tensor)!;
}
type Tensors = Awaited<ReturnType<typeof tensorsOf>>;

const ones = (count: number) => new Float32Array(count).fill(1);
const integers = (...values: number[]) => BigInt64Array.from(values.map(BigInt));

/** Units of the input and output of a plane's convolution, per channel. */
interface Units {
  readonly from: ArrayLike<number>;
  readonly to: ArrayLike<number>;
}

class Published {
  readonly graph = new Graph();

  constructor(readonly of: Tensors) {}

  relu(x: string): string {
    return this.graph.node("Relu", [x]);
  }

  /** [outputs][time][bin · channel] as [outputs][channel][bin][time]. */
  plane(x: string, name: string, strides: readonly number[], { from, to }: Units): string {
    const [outputs, size, run] = this.of(`${name}.weight`).shape as [number, number, number];
    const channels = from.length;
    const [weights, gain, bias] = ["weight", "gain", "bias"].map((part) => this.of(`${name}.${part}`).data);
    const w = new Float32Array(outputs * channels * size * size);
    let at = 0;
    for (let o = 0; o < outputs; o++)
      for (let c = 0; c < channels; c++)
        for (let b = 0; b < size; b++)
          for (let t = 0; t < size; t++)
            w[at++] = (weights![(o * size + t) * run + b * channels + c]! * gain![o]! * to[o]!) / from[c]!;
    const pad = size >> 1;
    return this.graph.node(
      "Conv",
      [
        x,
        this.graph.constant(w, [outputs, channels, size, size]),
        this.graph.constant(Float32Array.from(bias!, (b, o) => b * to[o]!)),
      ],
      { kernel_shape: [size, size], strides: [...strides], pads: [pad, pad, pad, pad] },
    );
  }

  /** A residual block, and the units of its output: those in which its input can be added directly. */
  block(x: string, name: string, strides: readonly number[], from: Float32Array): { x: string; units: Float32Array } {
    const residual = this.of(`${name}.conv2.residual`).data;
    const outputs = residual.length;
    const h = this.relu(this.plane(x, `${name}.conv1`, strides, { from, to: ones(outputs) }));
    const skips = this.of(`${name}.shortcut.weight`) !== undefined;
    const added = skips ? ones(outputs) : from;
    const units = Float32Array.from(residual, (r, c) => added[c]! / r);
    const summed = this.plane(h, `${name}.conv2`, [1, 1], { from: ones(outputs), to: units });
    const shortcut = skips ? this.plane(x, `${name}.shortcut`, strides, { from, to: added }) : x;
    return { x: this.relu(this.graph.node("Add", [summed, shortcut])), units };
  }

  /** Features [1][frames][80], mean removed, as a plane; the first convolution reads steps of 1/1024. */
  stem(name: string): string {
    const { graph } = this;
    const features = graph.input("features", [1, 0, 80]);
    const turned = graph.node("Transpose", [features], { perm: [0, 2, 1] });
    const x = graph.node("Unsqueeze", [turned, graph.constant(integers(1))]);
    return this.relu(this.plane(x, name, [1, 1], { from: [1 / 1024], to: ones(32) }));
  }

  /** Mean and deviation over the last axis, concatenated. */
  statistics(x: string, flatten: boolean): string {
    const { graph } = this;
    const flat = (v: string) => (flatten ? graph.node("Flatten", [v], { axis: 1 }) : v);
    const mean = (v: string, keepdims: number) => graph.node("ReduceMean", [v], { axes: [-1], keepdims });
    const apart = graph.node("Sub", [x, mean(x, 1)]);
    const variance = mean(graph.node("Mul", [apart, apart]), 0);
    const shape = graph.node("Shape", [x]);
    const frames = graph.node("Gather", [shape, graph.constant(integers(flatten ? 3 : 2), [])], { axis: 0 });
    const count = graph.node("Cast", [frames], { to: 1 });
    const one = graph.constant(Float32Array.of(1), []);
    const unbiased = graph.node("Div", [graph.node("Mul", [variance, count]), graph.node("Sub", [count, one])]);
    return graph.node("Concat", [flat(mean(x, 0)), flat(graph.node("Sqrt", [unbiased]))], { axis: 1 });
  }

  line(x: string, name: string, attributes: Record<string, number[]>, order = (c: number) => c): string {
    const [outputs, taps, channels] = this.of(`${name}.weight`).shape as [number, number, number];
    const [weights, gain, bias] = ["weight", "gain", "bias"].map((part) => this.of(`${name}.${part}`).data);
    const w = new Float32Array(outputs * channels * taps);
    for (let o = 0; o < outputs; o++)
      for (let c = 0; c < channels; c++)
        for (let t = 0; t < taps; t++)
          w[(o * channels + order(c)) * taps + t] = weights![(o * taps + t) * channels + c]! * gain![o]!;
    const { graph } = this;
    const inputs = [x, graph.constant(w, [outputs, channels, taps]), graph.constant(Float32Array.from(bias!))];
    return graph.node("Conv", inputs, { kernel_shape: [taps], ...attributes });
  }

  flat(x: string, name: string): string {
    const [outputs, inputs] = this.of(`${name}.weight`).shape as [number, number];
    const [weights, gain, bias] = ["weight", "gain", "bias"].map((part) => this.of(`${name}.${part}`).data);
    const w = Float32Array.from(weights!, (v, i) => v * gain![Math.floor(i / inputs)]!);
    const { graph } = this;
    return graph.node("Conv", [x, graph.constant(w, [outputs, inputs, 1]), graph.constant(Float32Array.from(bias!))], {
      kernel_shape: [1],
    });
  }

  batchNorm(x: string, gain: Float32Array, bias: Float32Array): string {
    const { graph } = this;
    const zeros = new Float32Array(gain.length);
    const parts = [gain, bias, zeros, ones(gain.length)].map((values) => graph.constant(values));
    return graph.node("BatchNormalization", [x, ...parts], { epsilon: { float: 0 } });
  }

  norm(x: string, name: string): string {
    const gain = Float32Array.from(this.of(`${name}.gain`).data, (g) => g / 32768);
    return this.relu(this.batchNorm(x, gain, Float32Array.from(this.of(`${name}.bias`).data)));
  }
}

export function publishedResnet34(tensors: Tensors, last = "Gemm"): Uint8Array {
  const made = new Published(tensors);
  const { graph } = made;
  let x = made.stem("stem");
  let units: Float32Array = ones(32);
  let number = 0;
  for (const [stage, blocks] of [3, 4, 6, 3].entries())
    for (let i = 0; i < blocks; i++, number++) {
      const stride = stage > 0 && i === 0 ? 2 : 1;
      ({ x, units } = made.block(x, `blocks.${number}`, [stride, stride], units));
    }
  const pooled = made.statistics(x, true);
  const [weights, gain, bias] = ["weight", "gain", "bias"].map((part) => tensors(`fc.${part}`).data);
  // Ours is [statistic][bin][channel], theirs [statistic][channel][bin].
  const w = new Float32Array(256 * 5120);
  for (let o = 0; o < 256; o++)
    for (let s = 0; s < 2; s++)
      for (let c = 0; c < 256; c++)
        for (let b = 0; b < 10; b++)
          w[o * 5120 + (s * 256 + c) * 10 + b] = (weights![o * 5120 + (s * 10 + b) * 256 + c]! * gain![o]!) / units[c]!;
  const mapped = graph.node(last, [pooled, graph.constant(w, [256, 5120]), graph.constant(Float32Array.from(bias!))], {
    transB: 1,
  });
  graph.output(mapped, [1, 256]);
  return graph.encode();
}

export function publishedCampplus(tensors: Tensors): Uint8Array {
  const made = new Published(tensors);
  const { graph } = made;
  let x = made.stem("front.conv1");
  let units: Float32Array = ones(32);
  for (const [stage, i] of [
    [1, 0],
    [1, 1],
    [2, 0],
    [2, 1],
  ] as const)
    ({ x, units } = made.block(x, `front.stage${stage}.${i}`, [i === 0 ? 2 : 1, 1], units));
  x = made.relu(made.plane(x, "front.conv2", [2, 1], { from: units, to: ones(32) }));
  x = graph.node("Reshape", [x, graph.constant(integers(0, 320, -1))]);
  x = made.relu(made.line(x, "tdnn", { strides: [2], pads: [2, 2] }, (c) => (c % 32) * 10 + Math.floor(c / 32)));
  for (const [block, layers] of [12, 24, 16].entries()) {
    const dilation = block === 0 ? 1 : 2;
    for (let i = 0; i < layers; i++) {
      const name = `block${block + 1}.${i}`;
      const h = made.relu(made.line(made.norm(x, `${name}.norm`), `${name}.bottleneck`, {}));
      const local = made.line(h, `${name}.local`, { pads: [dilation, dilation], dilations: [dilation] });
      const context = graph.node("Add", [
        graph.node("ReduceMean", [h], { axes: [-1], keepdims: 1 }),
        segments(graph, h),
      ]);
      const excited = made.flat(made.relu(made.flat(context, `${name}.squeeze`)), `${name}.excite`);
      x = graph.node("Concat", [x, graph.node("Mul", [local, graph.node("Sigmoid", [excited])])], { axis: 1 });
    }
    x = made.line(made.norm(x, `transit${block + 1}.norm`), `transit${block + 1}.linear`, {});
  }
  x = made.statistics(made.norm(x, "out.norm"), false);
  x = made.flat(graph.node("Unsqueeze", [x, graph.constant(integers(-1))]), "dense");
  x = graph.node("Squeeze", [x, graph.constant(integers(-1))]);
  x = made.batchNorm(x, ones(192), new Float32Array(192));
  graph.output(x, [1, 192]);
  return graph.encode();
}

/** Means of a hundred frames, repeated for each of these frames. */
function segments(graph: InstanceType<typeof Graph>, h: string): string {
  const means = graph.node("AveragePool", [h], { kernel_shape: [100], strides: [100], ceil_mode: 1 });
  const spread = graph.node("Unsqueeze", [means, graph.constant(integers(-1))]);
  const expanded = graph.node("Expand", [spread, graph.constant(integers(1, 1, 1, 100))]);
  const line = graph.node("Reshape", [expanded, graph.constant(integers(0, 128, -1))]);
  const frames = graph.node("Gather", [graph.node("Shape", [h]), graph.constant(integers(2))], { axis: 0 });
  const [from, axis] = [graph.constant(integers(0)), graph.constant(integers(2))];
  return graph.node("Slice", [line, from, frames, axis]);
}
