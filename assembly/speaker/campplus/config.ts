/**
 * CAM++: a 2-D convolutional front, a densely connected time-delay network whose layers are masked by their context, statistics
 * pooling, and our linear map. `training/export.py` writes tensors for exactly this shape.
 */

export const FRONT_CHANNELS = 32;

export const TDNN_TAPS = 5;
export const TDNN_CHANNELS = 128;

/** Channels that a dense layer adds, channels inside it, and channels of its context. */
export const GROWTH = 32;
export const BOTTLENECK = 128;
export const CONTEXT = 64;
/** Frames (of 20 ms) of a context segment. */
export const SEGMENT_FRAMES = 100;

export const BLOCKS = 3;
// @ts-ignore: decorator
@inline
export function blockLayers(block: i32): i32 {
  return block == 0 ? 12 : block == 1 ? 24 : 16;
}
// @ts-ignore: decorator
@inline
export function blockDilation(block: i32): i32 {
  return block == 0 ? 1 : 2;
}

export const SPEAKER_CHANNELS = 192;
