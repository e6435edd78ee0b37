/**
 * A deep copy of plain data, so that no caller shares memory with a store. Unlike `structuredClone` it copies of a typed array only what
 * the view shows, not the buffer behind it (an embedding may be a view into a large one), and turns a Node `Buffer` into bytes.
 */
export function copy<T>(value: T): T {
  return copyAny(value) as T;
}

function copyAny(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Float32Array) return new Float32Array(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(copyAny);
  // Not by assignment, to which a key named __proto__ means something else.
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copyAny(part)]));
}

/** What is left of a document after a trip through JSON, which is how every store keeps it. */
export function copyJson(document: unknown): unknown {
  const text = JSON.stringify(document);
  if (text === undefined) throw new TypeError("a document must be a JSON value");
  return JSON.parse(text);
}
