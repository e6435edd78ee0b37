/**
 * A deep copy of plain data, so that no caller shares memory with a store. Unlike `structuredClone`, it copies only the visible part of a
 * typed array, not its whole buffer (an embedding may be a view into a large one), and turns a Node `Buffer` into a Uint8Array.
 */
export function copy(value: unknown): unknown {
  // A callback is not called with what the store keeps.
  if (typeof value === "function") return (...given: unknown[]) => value(...given.map(copy));
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Float32Array) return new Float32Array(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(copy);
  // The key __proto__ is one of its own by now, so that to assign to it does not set the prototype.
  const copied: Record<string, unknown> = { ...value };
  for (const key of Object.keys(copied)) copied[key] = copy(copied[key]);
  return copied;
}
