/** Random access to bytes: in an array, or in a file that is never loaded as a whole. */
export interface ByteSource {
  readonly length: number;
  /** The bytes from `offset` on; fewer than `length` only at the end. */
  read(offset: number, length: number): Uint8Array;
}

export function bytesOf(array: Uint8Array): ByteSource {
  return { length: array.length, read: (offset, length) => array.subarray(offset, offset + length) };
}
