/**
 * A deep copy of plain data, so that no caller shares memory with a store. Bytes and embeddings are shared: what the store keeps of them was encoded,
 * or copied by `seal`.
 */
export function copy(value: unknown): unknown {
  // A callback is not called with what the store keeps.
  if (typeof value === "function") return (...given: unknown[]) => value(...given.map(copy));
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map(copy);
  // The key __proto__ is one of its own by now, so that to assign to it does not set the prototype.
  const copied: Record<string, unknown> = { ...value };
  for (const key of Object.keys(copied)) copied[key] = copy(copied[key]);
  return copied;
}
