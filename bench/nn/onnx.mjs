// ONNX graphs for the peers, written directly as protobuf: a graph needs a dozen fields, and no weight files have to be stored.

const FLOAT = 1;
const UINT8 = 2;
const INT8 = 3;
const INT32 = 6;
const INT64 = 7;

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);
const text = (field, value) => bytes(field, Buffer.from(value));
const float = (field, value) => {
  const data = Buffer.alloc(5);
  data[0] = (field << 3) | 5;
  data.writeFloatLE(value, 1);
  return data;
};

const TYPES = new Map([
  [Float32Array, FLOAT],
  [Uint8Array, UINT8],
  [Int8Array, INT8],
  [Int32Array, INT32],
  [BigInt64Array, INT64],
]);

/** Builds a graph node by node: each method returns the name of its output. */
export class Graph {
  #nodes = [];
  #tensors = [];
  #inputs = [];
  #outputs = [];
  #names = 0;

  #name() {
    return `v${this.#names++}`;
  }

  #value(name, shape, type) {
    // A size of 0 means that it is not fixed.
    const dims = shape.map((size) => bytes(1, size === 0 ? Buffer.alloc(0) : number(1, size)));
    const tensor = Buffer.concat([number(1, type), bytes(2, Buffer.concat(dims))]);
    return Buffer.concat([text(1, name), bytes(2, bytes(1, tensor))]);
  }

  input(name, shape, type = FLOAT) {
    this.#inputs.push(bytes(11, this.#value(name, shape, type)));
    return name;
  }

  output(name, shape, type = FLOAT) {
    this.#outputs.push(bytes(12, this.#value(name, shape, type)));
  }

  constant(array, shape = [array.length]) {
    const name = this.#name();
    const data = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
    const dims = shape.map((size) => number(1, size));
    this.#tensors.push(
      bytes(5, Buffer.concat([...dims, number(2, TYPES.get(array.constructor)), text(8, name), bytes(9, data)])),
    );
    return name;
  }

  node(type, inputs, attributes = {}) {
    const name = this.#name();
    const rows = Object.entries(attributes).map(([key, value]) => {
      if (Array.isArray(value)) return Buffer.concat([text(1, key), ...value.map((v) => number(8, v)), number(20, 7)]);
      if (typeof value === "string") return Buffer.concat([text(1, key), text(4, value), number(20, 3)]);
      if (typeof value === "object") return Buffer.concat([text(1, key), float(2, value.float), number(20, 1)]);
      return Buffer.concat([text(1, key), number(3, value), number(20, 2)]);
    });
    const parts = [...inputs.map((input) => text(1, input)), text(2, name), text(4, type)];
    this.#nodes.push(bytes(1, Buffer.concat([...parts, ...rows.map((row) => bytes(5, row))])));
    return name;
  }

  /** ModelProto: IR 8, opset 13. */
  encode() {
    const graph = Buffer.concat([...this.#nodes, text(2, "g"), ...this.#tensors, ...this.#inputs, ...this.#outputs]);
    const opset = Buffer.concat([text(1, ""), number(2, 13)]);
    return new Uint8Array(Buffer.concat([number(1, 8), bytes(7, graph), bytes(8, opset)]));
  }
}

export const scalar = (value) => Float32Array.of(value);
export { UINT8 };
