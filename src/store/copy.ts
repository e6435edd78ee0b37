/**
 * A deep copy of plain data, so that no caller shares memory with a store. Unlike `structuredClone`, it copies only the visible part of a
 * typed array, not its whole buffer (an embedding may be a view into a large one), and turns a Node `Buffer` into a Uint8Array.
 */
export const copy = copyAny as <T>(value: T) => T;

function copyAny(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Float32Array) return new Float32Array(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(copyAny);
  // Not by assignment: the key __proto__ would set the prototype.
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copyAny(part)]));
}

/** A document after a round trip through JSON, which is how every store keeps it. */
export const copyJson = (document: unknown): unknown => JSON.parse(jsonOf(document));

export function jsonOf(document: unknown): string {
  const text = JSON.stringify(document);
  if (text === undefined) throw new TypeError(`a document must be a JSON value, got ${typeof document}`);
  return text;
}
