/** An ONNX file, limited to what embedding networks use: nodes, their attributes, and numeric tensors. */
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { ImportRefusal } from "./import-refusal.js";

export interface FloatTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
  /** Integers, such as shapes: their division is an integer division. */
  readonly integers?: boolean;
}

export interface OnnxNode {
  readonly type: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, Attribute>;
}

export interface Attribute {
  readonly float?: number;
  readonly integer?: number;
  readonly text?: string;
  readonly integers?: readonly number[];
  readonly tensor?: FloatTensor;
}

export interface OnnxGraph {
  /** In the order of computation. */
  readonly nodes: readonly OnnxNode[];
  readonly constants: ReadonlyMap<string, FloatTensor>;
  /** The first input that is not a constant, and its sizes; 0 where a size is not fixed. */
  readonly input: string;
  readonly inputShape: readonly number[];
  /** The second input, if there is one: the number of frames in the first. */
  readonly frames: string | null;
  /** The embedding. */
  readonly output: string;
}

export function readOnnx(bytes: Uint8Array): OnnxGraph {
  let graph: Uint8Array | null = null;
  try {
    eachField(bytes, { 7: (reader) => (graph = reader.bytes()) });
    if (graph === null) throw new ImportRefusal("the file is not an ONNX model: it has no graph");
    return readGraph(graph);
  } catch (error) {
    if (error instanceof ImportRefusal) throw error;
    throw new ImportRefusal("the file is not an ONNX model: its bytes are not a protobuf message", { cause: error });
  }
}

type FieldReader = (reader: BinaryReader, wire: WireType) => void;

/** Calls the reader of each known field and skips the others. */
function eachField(bytes: Uint8Array, readers: Readonly<Record<number, FieldReader>>): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    const read = readers[field];
    if (read) read(reader, wire);
    else reader.skip(wire, field);
  }
}

/** A repeated number, packed or not. */
function repeated(into: number[], next: (reader: BinaryReader) => number): FieldReader {
  return (reader, wire) => {
    if (wire !== WireType.LengthDelimited) {
      into.push(next(reader));
      return;
    }
    const end = reader.uint32() + reader.pos;
    while (reader.pos < end) into.push(next(reader));
  };
}

const int64 = (reader: BinaryReader): number => Number(reader.int64());

function readGraph(bytes: Uint8Array): OnnxGraph {
  const nodes: OnnxNode[] = [];
  const constants = new Map<string, FloatTensor>();
  const inputs: { name: string; shape: readonly number[] }[] = [];
  const outputs: string[] = [];
  eachField(bytes, {
    1: (reader) => nodes.push(readNode(reader.bytes())),
    5: (reader) => {
      const { name, tensor } = readTensor(reader.bytes());
      constants.set(name, tensor);
    },
    11: (reader) => inputs.push(readValue(reader.bytes())),
    12: (reader) => outputs.push(readValue(reader.bytes()).name),
  });
  for (const { type, outputs: made, attributes } of nodes) {
    const value = attributes.get("value")?.tensor;
    if (type === "Constant" && value) constants.set(made[0]!, value);
  }
  const [first, second] = inputs.filter(({ name }) => !constants.has(name));
  if (first === undefined || outputs.length === 0) throw new ImportRefusal("the graph has no input or no output");
  return {
    nodes: nodes.filter(({ type }) => type !== "Constant"),
    constants,
    input: first.name,
    inputShape: first.shape,
    frames: second?.name ?? null,
    // Some networks also output what they were trained with.
    output: outputs.find((name) => /emb/i.test(name)) ?? outputs[0]!,
  };
}

/** Name and sizes of an input or output. */
function readValue(bytes: Uint8Array): { name: string; shape: readonly number[] } {
  const shape: number[] = [];
  let name = "";
  const within = (field: number, read: FieldReader): FieldReader => {
    return (reader) => eachField(reader.bytes(), { [field]: read });
  };
  const dimension: FieldReader = (reader) => {
    let size = 0;
    eachField(reader.bytes(), { 1: (value) => (size = int64(value)) });
    shape.push(size);
  };
  eachField(bytes, { 1: (reader) => (name = reader.string()), 2: within(1, within(2, within(1, dimension))) });
  return { name, shape };
}

function readNode(bytes: Uint8Array): OnnxNode {
  const inputs: string[] = [];
  const outputs: string[] = [];
  const attributes = new Map<string, Attribute>();
  let type = "";
  eachField(bytes, {
    1: (reader) => inputs.push(reader.string()),
    2: (reader) => outputs.push(reader.string()),
    4: (reader) => (type = reader.string()),
    5: (reader) => {
      const { name, attribute } = readAttribute(reader.bytes());
      attributes.set(name, attribute);
    },
  });
  return { type, inputs, outputs, attributes };
}

function readAttribute(bytes: Uint8Array): { name: string; attribute: Attribute } {
  let name = "";
  const found: { -readonly [key in keyof Attribute]: Attribute[key] } = {};
  const integers: number[] = [];
  eachField(bytes, {
    1: (reader) => (name = reader.string()),
    2: (reader) => (found.float = reader.float()),
    3: (reader) => (found.integer = int64(reader)),
    4: (reader) => (found.text = new TextDecoder().decode(reader.bytes())),
    5: (reader) => (found.tensor = readTensor(reader.bytes()).tensor),
    8: repeated(integers, int64),
  });
  return { name, attribute: { ...found, ...(integers.length > 0 && { integers }) } };
}

/** From TensorProto.DataType. */
const FLOAT = 1;
const INT32 = 6;
const INT64 = 7;
const BOOL = 9;
const DOUBLE = 11;

/** All numeric types as 32-bit floats: shapes and indices are small. */
function readTensor(bytes: Uint8Array): { name: string; tensor: FloatTensor } {
  const shape: number[] = [];
  const values: number[] = [];
  let raw: Uint8Array | null = null;
  let [name, type] = ["", 0];
  eachField(bytes, {
    1: repeated(shape, int64),
    2: (reader) => (type = reader.int32()),
    4: repeated(values, (reader) => reader.float()),
    5: repeated(values, (reader) => reader.int32()),
    7: repeated(values, int64),
    8: (reader) => (name = reader.string()),
    9: (reader) => (raw = reader.bytes()),
    10: repeated(values, (reader) => reader.double()),
    14: (reader) => {
      if (reader.int32() === 1)
        throw new ImportRefusal(`tensor ${name} is in another file: save the model with its weights inside`);
    },
  });
  const data = raw === null ? Float32Array.from(values) : rawValues(raw, type, name);
  if (data.length !== shape.reduce((product, size) => product * size, 1))
    throw new ImportRefusal(
      `tensor ${name} has ${data.length} numbers, which does not match its shape ${shape.join(" × ")}`,
    );
  const integers = type === INT32 || type === INT64;
  return { name, tensor: { shape, data, ...(integers && { integers }) } };
}

function rawValues(raw: Uint8Array, type: number, name: string): Float32Array {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const every = (bytes: number, read: (at: number) => number) =>
    Float32Array.from({ length: raw.byteLength / bytes }, (_, i) => read(bytes * i));
  switch (type) {
    case FLOAT:
      return every(4, (at) => view.getFloat32(at, true));
    case DOUBLE:
      return every(8, (at) => view.getFloat64(at, true));
    case INT32:
      return every(4, (at) => view.getInt32(at, true));
    case INT64:
      return every(8, (at) => Number(view.getBigInt64(at, true)));
    case BOOL:
      return every(1, (at) => view.getUint8(at));
    default:
      throw new ImportRefusal(`tensor ${name} has ONNX type ${type}; only float (1) and double (11) are supported`);
  }
}
