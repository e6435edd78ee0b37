/**
 * CAM++: a 2-D convolutional front, a densely connected time-delay network whose layers are masked by their context, statistics
 * pooling, and our linear map. `training/export.py` writes tensors for exactly this shape.
 */

/** Log-mel bins of a frame. */
export const BINS = 80;
/**
 * Added to every mel power, as a share of the window's mean power (-60 dB): a band in which nothing was recorded, as a telephone's above 4 kHz, says
 * nothing then, whatever noise of rounding or filtering lies there.
 */
export const FLOOR: f32 = 1e-6;
/** What only feeds elementwise passes may use all of i16. */
export const CONCATENATION_HIGH = 32767;

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
export const DIMENSIONS = 256;

/** Half a second: less gives no embedding. */
export const MIN_FRAMES = 50;
/** Ten seconds: what may be reserved at most. */
export const MOST_FRAMES = 1000;
