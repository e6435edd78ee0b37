import { ImportRefusal } from "./import-refusal.js";
import type { FloatTensor, OnnxNode } from "./onnx.js";

/** A convolution over one or two axes, any groups, strides, pads and dilations; one recording at a time. */
export function convolve([x, weight, bias]: readonly FloatTensor[], node: OnnxNode): FloatTensor {
  const groups = node.attributes.get("group")?.integer ?? 1;
  if (groups === 1) return convolveGroup([x, weight, bias], node);
  const part = ({ shape, data }: FloatTensor, axis: number, g: number): FloatTensor => {
    const run = data.length / groups;
    return {
      shape: shape.map((size, i) => (i === axis ? size / groups : size)),
      data: data.subarray(g * run, (g + 1) * run),
    };
  };
  const parts = Array.from({ length: groups }, (_, g) =>
    convolveGroup([part(x!, 1, g), part(weight!, 0, g), ...(bias ? [part(bias, 0, g)] : [])], node),
  );
  const data = new Float32Array(parts.reduce((sum, one) => sum + one.data.length, 0));
  for (const [g, one] of parts.entries()) data.set(one.data, g * one.data.length);
  return { shape: parts[0]!.shape.map((size, axis) => (axis === 1 ? size * groups : size)), data };
}

function convolveGroup([x, weight, bias]: readonly (FloatTensor | undefined)[], { attributes }: OnnxNode): FloatTensor {
  const axes = x!.shape.length - 2;
  const given = (name: string, otherwise: number): number[] => {
    const values = [...(attributes.get(name)?.integers ?? [])];
    return values.length > 0 ? values : Array<number>(name === "pads" ? 2 * axes : axes).fill(otherwise);
  };
  const automatic = attributes.get("auto_pad")?.text ?? "NOTSET";
  if (axes < 1 || axes > 2 || x!.shape[0] !== 1 || automatic !== "NOTSET")
    throw new ImportRefusal("Conv over three axes, or with auto_pad, is not supported");
  // A single axis is treated as the second of two.
  const both = (values: readonly number[], first: number): [number, number] =>
    axes === 2 ? [values[0]!, values[1]!] : [first, values[0]!];
  const pads = given("pads", 0);
  const [strideH, strideW] = both(given("strides", 1), 1);
  const [dilationH, dilationW] = both(given("dilations", 1), 1);
  const [top, left] = both(pads.slice(0, axes), 0);
  const [bottom, right] = both(pads.slice(axes), 0);
  const [height, width] = both(x!.shape.slice(2), 1);
  const [kernelH, kernelW] = both(weight!.shape.slice(2), 1);
  const channels = x!.shape[1]!;
  const outputs = weight!.shape[0]!;
  const [high, wide] = [height + top + bottom, width + left + right];
  const rows = Math.floor((high - dilationH * (kernelH - 1) - 1) / strideH) + 1;
  const columns = Math.floor((wide - dilationW * (kernelW - 1) - 1) / strideW) + 1;

  const plane = new Float64Array(channels * high * wide);
  for (let c = 0; c < channels; c++)
    for (let h = 0; h < height; h++)
      plane.set(
        x!.data.subarray((c * height + h) * width, (c * height + h + 1) * width),
        (c * high + top + h) * wide + left,
      );
  const taps = channels * kernelH * kernelW;
  const places = Int32Array.from({ length: taps }, (_, k) => {
    const [c, kh, kw] = [Math.floor(k / (kernelH * kernelW)), Math.floor(k / kernelW) % kernelH, k % kernelW];
    return (c * high + kh * dilationH) * wide + kw * dilationW;
  });
  const out = new Float32Array(outputs * rows * columns);
  const sums = [new Float64Array(columns), new Float64Array(columns)] as const;
  for (let o = 0; o < outputs; o += 2)
    for (let r = 0; r < rows; r++) {
      const last = Math.min(o + 1, outputs - 1);
      sums[0].fill(bias?.data[o] ?? 0);
      sums[1].fill(bias?.data[last] ?? 0);
      addTaps(sums, plane, places, r * strideH * wide, strideW, weight!.data, o * taps, last * taps);
      out.set(sums[0], (o * rows + r) * columns);
      if (last > o) out.set(sums[1], (last * rows + r) * columns);
    }
  return { shape: axes === 2 ? [1, outputs, rows, columns] : [1, outputs, columns], data: out };
}

/** A row of two outputs, four taps at a time: an import spends most of its time here. */
function addTaps(
  [one, other]: readonly [Float64Array, Float64Array],
  plane: Float64Array,
  places: Int32Array,
  row: number,
  stride: number,
  weights: Float32Array,
  ofOne: number,
  ofOther: number,
): void {
  const taps = places.length;
  for (let k = 0; k < taps; k += 4) {
    const weight = (from: number, i: number) => (k + i < taps ? weights[from + k + i]! : 0);
    const place = (i: number) => row + places[Math.min(k + i, taps - 1)]!;
    const [p0, p1, p2, p3] = [place(0), place(1), place(2), place(3)];
    const [a0, a1, a2, a3] = [weight(ofOne, 0), weight(ofOne, 1), weight(ofOne, 2), weight(ofOne, 3)];
    const [b0, b1, b2, b3] = [weight(ofOther, 0), weight(ofOther, 1), weight(ofOther, 2), weight(ofOther, 3)];
    // Separate variables: destructuring an array here nearly doubles the time.
    for (let i = 0, at = 0; i < one.length; i++, at += stride) {
      const x0 = plane[p0 + at]!;
      const x1 = plane[p1 + at]!;
      const x2 = plane[p2 + at]!;
      const x3 = plane[p3 + at]!;
      one[i]! += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3;
      other[i]! += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3;
    }
  }
}
