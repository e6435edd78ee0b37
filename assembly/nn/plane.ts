/** Planes of time and bins: what a 2-D convolution reads and writes. */

/** [1 + frames + 1 or more][1 + bins + 1][channels] of i16, its border zero. */
@unmanaged
export class Plane {
  frames: i32;
  bins: i32;
  channels: i32;
  /** Bytes of a bin, from a frame to the next (with a zero bin on each side), and of all. */
  bin: usize;
  row: usize;
  bytes: usize;
}

// @ts-ignore: decorator
@inline
export function rowBytes(bins: i32, channels: i32): usize {
  return <usize>((bins + 2) * channels) << 1;
}

/** Plane i of several that are stored one after the other. */
// @ts-ignore: decorator
@inline
export function planeAt(planes: usize, i: i32): Plane {
  return changetype<Plane>(planes + <usize>i * offsetof<Plane>());
}

/** Describes a plane in p. `atOnce` frames are written together, so that there is room up to a multiple. */
export function setPlane(p: Plane, frames: i32, bins: i32, channels: i32, atOnce: i32 = 1): Plane {
  p.frames = frames;
  p.bins = bins;
  p.channels = channels;
  p.bin = <usize>channels << 1;
  p.row = rowBytes(bins, channels);
  p.bytes = p.row * (((frames + atOnce - 1) / atOnce) * atOnce + 2);
  return p;
}

/** The first frame and bin inside the border. */
// @ts-ignore: decorator
@inline
export function interior(plane: usize, p: Plane): usize {
  return plane + p.row + p.bin;
}

/** Zeroes the frame before and the frames after, and the bin below and above. channels % 8 == 0. */
export function clearBorder(plane: usize, p: Plane): void {
  const row = p.row;
  const bin = p.bin;
  memory.fill(plane, 0, row);
  const behind = plane + row * (p.frames + 1);
  // The last bin of a frame and the first of the next are neighbors.
  for (let edge = plane + row - bin; edge < behind; edge += row) {
    for (let b: usize = 0; b < bin << 1; b += 16) v128.store(edge + b, i32x4.splat(0));
  }
  memory.fill(behind, 0, plane + p.bytes - behind);
}
