/** Bytes that can be read anywhere: an array, or a file that is never wholly in memory. */
export interface ByteSource {
  readonly length: number;
  /** The bytes from `offset`; fewer than `length` only at the end. */
  read(offset: number, length: number): Uint8Array;
}

export function bytesOf(array: Uint8Array): ByteSource {
  return { length: array.length, read: (offset, length) => array.subarray(offset, offset + length) };
}
