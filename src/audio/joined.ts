/** Pieces of audio as one array. */
export const joined = (pieces: readonly Float32Array[]): Float32Array<ArrayBuffer> =>
  filled(new Float32Array(lengthOf(pieces)), pieces);

export const joinedBytes = (pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> =>
  filled(new Uint8Array(lengthOf(pieces)), pieces);

const lengthOf = (pieces: readonly ArrayLike<number>[]): number =>
  pieces.reduce((length, piece) => length + piece.length, 0);

function filled<T extends Float32Array | Uint8Array>(all: T, pieces: readonly ArrayLike<number>[]): T {
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
