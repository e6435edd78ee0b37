/** Computes an ONNX graph in floats, as published: the reference for the integer network, and the source of its scales. */
import { convolve } from "./float-convolution.js";
import { ImportRefusal } from "./import-refusal.js";
import type { FloatTensor, OnnxGraph, OnnxNode } from "./onnx.js";

type Operator = (inputs: readonly FloatTensor[], node: OnnxNode) => FloatTensor;

/** Refuses a graph that uses an unknown operator, and names it. */
export function checkOperators({ nodes }: OnnxGraph): void {
  const missing = [...new Set(nodes.map(({ type }) => type))].filter((type) => !Object.hasOwn(operators, type));
  if (missing.length > 0)
    throw new ImportRefusal(`the network uses operators that are not supported: ${missing.join(", ")}`);
}

/** Refuses a graph in which a node reads what nothing before it makes. */
export function checkReferences({ nodes, constants, input, frames, output }: OnnxGraph): void {
  // An input that is left out has an empty name.
  const known = new Set(["", ...constants.keys(), input, ...(frames === null ? [] : [frames])]);
  for (const { type, inputs, outputs } of nodes) {
    const missing = inputs.find((name) => !known.has(name));
    if (missing !== undefined)
      throw new ImportRefusal(`the graph is malformed: ${type} reads ${missing}, which no earlier node produces`);
    for (const name of outputs) known.add(name);
  }
  if (!known.has(output)) throw new ImportRefusal(`the graph is malformed: no node produces its output ${output}`);
}

/** A graph may have other inputs and shapes than its operators need in any place: what fails there is the graph's fault. */
export function orMalformed<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ImportRefusal) throw error;
    throw new ImportRefusal(`the graph is malformed: ${what} has the wrong inputs or shapes`, {
      cause: error,
    });
  }
}

/** The output of the graph. `see` is called with every intermediate tensor. */
export function compute(
  { nodes, constants, input, frames, output }: OnnxGraph,
  given: FloatTensor,
  frameCount: number,
  see: (name: string, tensor: FloatTensor) => void = () => {},
): FloatTensor {
  const values = new Map<string, FloatTensor>([...constants, [input, given]]);
  if (frames !== null) values.set(frames, { shape: [1], data: Float32Array.of(frameCount), integers: true });
  const lastUse = new Map<string, number>();
  for (const [i, node] of nodes.entries()) for (const name of node.inputs) lastUse.set(name, i);
  for (const [i, node] of nodes.entries()) {
    const inputs = node.inputs.map((name) => values.get(name)!);
    const made = orMalformed(`${node.type} ${node.outputs[0]}`, () =>
      node.type === "Split" ? split(inputs, node) : [computed(inputs, node)],
    );
    for (const [k, name] of node.outputs.entries()) {
      values.set(name, made[k]!);
      see(name, made[k]!);
    }
    for (const name of node.inputs) if (lastUse.get(name) === i && name !== output) values.delete(name);
  }
  return values.get(output)!;
}

/** Integer inputs give integer outputs. */
function computed(inputs: readonly FloatTensor[], node: OnnxNode): FloatTensor {
  const made = operators[node.type]!(inputs, node);
  const given = inputs.filter((input) => input !== undefined);
  const integers =
    node.type === "Cast"
      ? wholeTypes.includes(integer(node, "to", 1))
      : node.type === "Shape" || (given.length > 0 && given.every((input) => input.integers) && !isFloatFill(node));
  if (!integers) return { shape: made.shape, data: made.data };
  return { shape: made.shape, data: made.data.map(Math.trunc), integers };
}

/** INT32 and INT64 of TensorProto.DataType. */
const wholeTypes = [6, 7];
const isFloatFill = (node: OnnxNode) =>
  node.type === "ConstantOfShape" && !node.attributes.get("value")?.tensor?.integers;

const count = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
const tensor = (shape: readonly number[], data = new Float32Array(count(shape))): FloatTensor => ({ shape, data });
const each = (of: (x: number) => number): Operator =>
  function apply([x]) {
    return { shape: x!.shape, data: x!.data.map(of) };
  };

const integers = (node: OnnxNode, name: string, otherwise: readonly number[]): readonly number[] =>
  node.attributes.get(name)?.integers ?? otherwise;
const integer = (node: OnnxNode, name: string, otherwise: number): number =>
  node.attributes.get(name)?.integer ?? otherwise;
const positive = (axis: number, rank: number): number => (axis < 0 ? axis + rank : axis);

/** Elementwise, with broadcasting. */
function paired(of: (x: number, y: number) => number): Operator {
  return ([x, y]) => {
    const rank = Math.max(x!.shape.length, y!.shape.length);
    const padded = (shape: readonly number[]) => [...Array<number>(rank - shape.length).fill(1), ...shape];
    const [a, b] = [padded(x!.shape), padded(y!.shape)];
    const shape = a.map((size, i) => (size === 1 ? b[i]! : size));
    const out = tensor(shape);
    const [strideX, strideY] = [stretched(a), stretched(b)];
    const at = Array<number>(rank).fill(0);
    let [i, j] = [0, 0];
    for (let k = 0; k < out.data.length; k++) {
      out.data[k] = of(x!.data[i]!, y!.data[j]!);
      for (let axis = rank - 1; axis >= 0; axis--) {
        at[axis]!++;
        i += strideX[axis]!;
        j += strideY[axis]!;
        if (at[axis]! < shape[axis]!) break;
        i -= strideX[axis]! * shape[axis]!;
        j -= strideY[axis]! * shape[axis]!;
        at[axis] = 0;
      }
    }
    return out;
  };
}

/** Stride along each axis; 0 along a broadcast axis. */
function stretched(shape: readonly number[]): number[] {
  const strides = Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = shape[axis] === 1 ? 0 : stride;
    stride *= shape[axis]!;
  }
  return strides;
}

/** Only over adjacent axes: these networks use nothing else. Where the node names none, over all axes after the first `skipped`. */
function reduced(
  start: number,
  of: (sum: number, x: number) => number,
  end: (sum: number, n: number) => number,
  skipped = 0,
): Operator {
  return ([x, given], node) => {
    const rank = x!.shape.length;
    const all = x!.shape.map((_, i) => i).slice(skipped);
    const named = given ? [...given.data] : integers(node, "axes", all);
    const axes = named.map((axis) => positive(axis, rank)).sort((a, b) => a - b);
    const [first, last] = [axes[0]!, axes.at(-1)!];
    if (last - first + 1 !== axes.length)
      throw new ImportRefusal(`${node.type} over the axes ${axes.join(", ")} is not supported: they must be adjacent`);
    const [outer, size, inner] = [
      count(x!.shape.slice(0, first)),
      count(x!.shape.slice(first, last + 1)),
      count(x!.shape.slice(last + 1)),
    ];
    const kept = integer(node, "keepdims", 1) !== 0;
    const out = tensor(x!.shape.flatMap((length, i) => (i < first || i > last ? [length] : kept ? [1] : [])));
    for (let o = 0; o < outer; o++)
      for (let i = 0; i < inner; i++) {
        let sum = start;
        for (let k = 0; k < size; k++) sum = of(sum, x!.data[(o * size + k) * inner + i]!);
        out.data[o * inner + i] = end(sum, size);
      }
    return out;
  };
}

const add = (sum: number, x: number): number => sum + x;
const multiply = (product: number, x: number): number => product * x;
const mean = (sum: number, n: number): number => sum / n;
const asItIs = (value: number): number => value;

const reshaped: Operator = ([x, wanted]) => {
  const sizes = [...wanted!.data].map((size, i) => (size === 0 ? x!.shape[i]! : size));
  const known = sizes.reduce((product, size) => (size === -1 ? product : product * size), 1);
  return { shape: sizes.map((size) => (size === -1 ? x!.data.length / known : size)), data: x!.data };
};

const transposed: Operator = ([x], node) => {
  const { shape } = x!;
  const order = integers(node, "perm", shape.map((_, i) => i).reverse());
  const strides = shape.map((_, i) => count(shape.slice(i + 1)));
  const out = tensor(order.map((axis) => shape[axis]!));
  const at = Array<number>(shape.length).fill(0);
  for (let k = 0; k < out.data.length; k++) {
    out.data[k] = x!.data[at.reduce((sum, i, axis) => sum + i * strides[order[axis]!]!, 0)]!;
    for (let axis = shape.length - 1; axis >= 0 && ++at[axis]! === out.shape[axis]; axis--) at[axis] = 0;
  }
  return out;
};

const concatenated: Operator = (parts, node) => {
  const axis = positive(integer(node, "axis", 0), parts[0]!.shape.length);
  const shape = parts[0]!.shape.map((size, i) =>
    i === axis ? parts.reduce((sum, p) => sum + p.shape[axis]!, 0) : size,
  );
  const out = tensor(shape);
  const outer = count(shape.slice(0, axis));
  let at = 0;
  for (let o = 0; o < outer; o++)
    for (const part of parts) {
      const run = part.data.length / outer;
      out.data.set(part.data.subarray(o * run, (o + 1) * run), at);
      at += run;
    }
  return out;
};

/** The values at these indices along an axis. */
function taken({ shape, data }: FloatTensor, axis: number, indices: Float32Array, indexShape = [indices.length]) {
  const [outer, inner] = [count(shape.slice(0, axis)), count(shape.slice(axis + 1))];
  const out = tensor([...shape.slice(0, axis), ...indexShape, ...shape.slice(axis + 1)]);
  let at = 0;
  for (let o = 0; o < outer; o++)
    for (const index of indices) {
      const first = (o * shape[axis]! + positive(index, shape[axis]!)) * inner;
      out.data.set(data.subarray(first, first + inner), at);
      at += inner;
    }
  return out;
}

const gathered: Operator = ([x, indices], node) =>
  taken(x!, positive(integer(node, "axis", 0), x!.shape.length), indices!.data, [...indices!.shape]);

/** [rows][inner] × [inner][columns], each optionally transposed. */
function product(a: FloatTensor, b: FloatTensor, aTurned: boolean, bTurned: boolean): FloatTensor {
  const [rows, inner] = aTurned ? [a.shape[1]!, a.shape[0]!] : [a.data.length / a.shape.at(-1)!, a.shape.at(-1)!];
  const columns = bTurned ? b.shape[0]! : b.shape[1]!;
  const out = tensor([...(aTurned ? [rows] : a.shape.slice(0, -1)), columns]);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; c++) {
      let sum = 0;
      for (let k = 0; k < inner; k++)
        sum += a.data[aTurned ? k * rows + r : r * inner + k]! * b.data[bTurned ? c * inner + k : k * columns + c]!;
      out.data[r * columns + c] = sum;
    }
  return out;
}

const gemm: Operator = ([a, b, c], node) => {
  const turned = (name: string) => integer(node, name, 0) === 1;
  const scaled = product(a!, b!, turned("transA"), turned("transB"));
  const alpha = node.attributes.get("alpha")?.float ?? 1;
  const beta = node.attributes.get("beta")?.float ?? 1;
  for (let i = 0; i < scaled.data.length; i++) scaled.data[i]! *= alpha;
  return c ? paired((x, y) => x + beta * y)([scaled, c], node) : scaled;
};

const normalized: Operator = ([x, gain, bias, mean, variance], node) => {
  const epsilon = node.attributes.get("epsilon")?.float ?? 1e-5;
  const out = tensor(x!.shape);
  const [batch, channels] = x!.shape as [number, number];
  const run = x!.data.length / batch / channels;
  for (let i = 0; i < batch * channels; i++) {
    const channel = i % channels;
    const slope = gain!.data[channel]! / Math.sqrt(variance!.data[channel]! + epsilon);
    const level = bias!.data[channel]! - mean!.data[channel]! * slope;
    for (let k = i * run; k < (i + 1) * run; k++) out.data[k] = x!.data[k]! * slope + level;
  }
  return out;
};

const unsqueezed: Operator = ([x, given], node) => {
  const axes = given ? [...given.data] : integers(node, "axes", []);
  const rank = x!.shape.length + axes.length;
  const shape = [...x!.shape];
  for (const axis of axes.map((one) => positive(one, rank)).sort((a, b) => a - b)) shape.splice(axis, 0, 1);
  return { shape, data: x!.data };
};

const squeezed: Operator = ([x, given], node) => {
  const named = given ? [...given.data] : node.attributes.get("axes")?.integers;
  const axes = named?.map((axis) => positive(axis, x!.shape.length));
  return { shape: x!.shape.filter((size, i) => (axes ? !axes.includes(i) : size !== 1)), data: x!.data };
};

/** Over the last axis, as PyTorch does: an incomplete last window is divided by the number of its values. */
const averaged: Operator = ([x], node) => {
  const [size] = integers(node, "kernel_shape", []);
  const [stride] = integers(node, "strides", [1]);
  const pads = integers(node, "pads", [0, 0]);
  if (integers(node, "kernel_shape", []).length !== 1 || pads.some((pad) => pad !== 0))
    throw new ImportRefusal("AveragePool over two axes, or with pads, is not supported");
  const frames = x!.shape.at(-1)!;
  const round = integer(node, "ceil_mode", 0) === 1 ? Math.ceil : Math.floor;
  const windows = round((frames - size!) / stride!) + 1;
  const out = tensor([...x!.shape.slice(0, -1), windows]);
  for (let i = 0; i < out.data.length; i++) {
    const row = Math.floor(i / windows) * frames;
    const first = (i % windows) * stride!;
    const part = x!.data.subarray(row + first, row + Math.min(frames, first + size!));
    out.data[i] = part.reduce(add, 0) / part.length;
  }
  return out;
};

const sliced: Operator = ([x, starts, ends, axes, steps]) => {
  if (!starts || !ends || steps?.data.some((step) => Math.abs(step) !== 1))
    throw new ImportRefusal("Slice with steps, or with positions as attributes, is not supported");
  return [...starts.data].reduce((part, start, i) => {
    const axis = positive(axes?.data[i] ?? i, part.shape.length);
    const size = part.shape[axis]!;
    const place = (at: number) => Math.max(0, Math.min(size, at < 0 ? at + size : at));
    // Exporters use it to reverse a list.
    const isTurned = steps?.data[i] === -1;
    const length = isTurned ? size : Math.max(0, place(ends.data[i]!) - place(start));
    const places = Float32Array.from({ length }, (_, k) => (isTurned ? size - 1 - k : place(start) + k));
    return taken(part, axis, places);
  }, x!);
};

const expanded: Operator = ([x, shape], node) => {
  const ones = tensor([...shape!.data]);
  ones.data.fill(1);
  return paired((value) => value)([x!, ones], node);
};

const filled: Operator = ([shape], node) => {
  const out = tensor([...shape!.data]);
  out.data.fill(node.attributes.get("value")?.tensor?.data[0] ?? 0);
  return out;
};

const chosen: Operator = ([condition, yes, no], node) => {
  const picked = paired((is, value) => (is ? value : Number.NaN))([condition!, yes!], node);
  return paired((value, other) => (Number.isNaN(value) ? other : value))([picked, no!], node);
};

const flattened: Operator = ([x], node) => {
  const first = count(x!.shape.slice(0, positive(integer(node, "axis", 1), x!.shape.length)));
  return { shape: [first, x!.data.length / first], data: x!.data };
};

/** The parts of a tensor along an axis; equal parts if no sizes are given. */
function split([x, sizes]: readonly FloatTensor[], node: OnnxNode): FloatTensor[] {
  const axis = positive(integer(node, "axis", 0), x!.shape.length);
  const parts = node.outputs.length;
  const equal = Array<number>(parts).fill(Math.ceil(x!.shape[axis]! / parts));
  const lengths = sizes ? [...sizes.data] : integers(node, "split", equal);
  let from = 0;
  return lengths.map((length) => {
    const places = Float32Array.from({ length: Math.min(length, x!.shape[axis]! - from) }, (_, k) => from + k);
    from += length;
    return taken(x!, axis, places);
  });
}

/** Pads with zeros, or with the values mirrored at the ends. */
const padded: Operator = ([x, pads, value], node) => {
  const mode = node.attributes.get("mode")?.text ?? "constant";
  if (!pads || (mode !== "constant" && mode !== "reflect"))
    throw new ImportRefusal(`Pad with mode ${mode}, or with sizes as attributes, is not supported`);
  const rank = x!.shape.length;
  return x!.shape.reduce((part, size, axis): FloatTensor => {
    const [before, after] = [pads.data[axis]!, pads.data[axis + rank]!];
    if (before === 0 && after === 0) return part;
    const mirror = (at: number) => (at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at);
    const places = Float32Array.from({ length: before + size + after }, (_, i) => mirror(i - before));
    const isInside = (i: number) => i >= before && i < before + size;
    if (mode === "reflect") return taken(part, axis, places);
    const inside = places.map((place, i) => (isInside(i) ? place : 0));
    const kept = taken(part, axis, inside);
    const inner = count(part.shape.slice(axis + 1));
    for (let i = 0; i < kept.data.length; i++)
      if (!isInside(Math.floor(i / inner) % places.length)) kept.data[i] = value?.data[0] ?? 0;
    return kept;
  }, x!);
};

const softened: Operator = ([x], node) => {
  const axis = positive(integer(node, "axis", -1), x!.shape.length);
  const [outer, size, inner] = [count(x!.shape.slice(0, axis)), x!.shape[axis]!, count(x!.shape.slice(axis + 1))];
  const out = tensor(x!.shape);
  for (let o = 0; o < outer; o++)
    for (let i = 0; i < inner; i++) {
      const at = (k: number) => (o * size + k) * inner + i;
      let [most, sum] = [Number.NEGATIVE_INFINITY, 0];
      for (let k = 0; k < size; k++) most = Math.max(most, x!.data[at(k)]!);
      for (let k = 0; k < size; k++) sum += Math.exp(x!.data[at(k)]! - most);
      for (let k = 0; k < size; k++) out.data[at(k)] = Math.exp(x!.data[at(k)]! - most) / sum;
    }
  return out;
};

const clipped: Operator = ([x, low, high], node) => {
  const least = low?.data[0] ?? node.attributes.get("min")?.float ?? Number.NEGATIVE_INFINITY;
  const most = high?.data[0] ?? node.attributes.get("max")?.float ?? Number.POSITIVE_INFINITY;
  return { shape: x!.shape, data: x!.data.map((value) => Math.min(most, Math.max(least, value))) };
};

const ranged: Operator = ([from, to, by]) => {
  const length = Math.max(0, Math.ceil((to!.data[0]! - from!.data[0]!) / by!.data[0]!));
  return tensor(
    [length],
    Float32Array.from({ length }, (_, i) => from!.data[0]! + i * by!.data[0]!),
  );
};

const operators: Readonly<Record<string, Operator>> = {
  Add: paired((x, y) => x + y),
  And: paired((x, y) => (x && y ? 1 : 0)),
  AveragePool: averaged,
  BatchNormalization: normalized,
  Cast: ([x]) => x!,
  Clip: clipped,
  Concat: concatenated,
  ConstantOfShape: filled,
  Conv: convolve,
  Div: paired((x, y) => x / y),
  Equal: paired((x, y) => (x === y ? 1 : 0)),
  Exp: each(Math.exp),
  Expand: expanded,
  Flatten: flattened,
  Gather: gathered,
  Gemm: gemm,
  // Of [batch][channels][…].
  GlobalAveragePool: reduced(0, add, mean, 2),
  Identity: ([x]) => x!,
  Less: paired((x, y) => (x < y ? 1 : 0)),
  MatMul: ([a, b]) => product(a!, b!, false, false),
  Max: paired(Math.max),
  Min: paired(Math.min),
  Mul: paired((x, y) => x * y),
  Neg: each((x) => -x),
  Not: each((x) => (x ? 0 : 1)),
  Pad: padded,
  Pow: paired((x, y) => x ** y),
  Range: ranged,
  ReduceMean: reduced(0, add, mean),
  ReduceProd: reduced(1, multiply, asItIs),
  ReduceSum: reduced(0, add, asItIs),
  Relu: each((x) => Math.max(0, x)),
  Reshape: reshaped,
  Shape: ([x]) => tensor([x!.shape.length], Float32Array.from(x!.shape)),
  Sigmoid: each((x) => 1 / (1 + Math.exp(-x))),
  Slice: sliced,
  Softmax: softened,
  Split: (inputs, node) => split(inputs, node)[0]!,
  Sqrt: each(Math.sqrt),
  Squeeze: squeezed,
  Sub: paired((x, y) => x - y),
  Tanh: each(Math.tanh),
  Transpose: transposed,
  Unsqueeze: unsqueezed,
  Where: chosen,
};
