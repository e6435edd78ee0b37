/** Shared by all architectures. */

/** Log-mel bins of a frame. */
export const BINS = 80;
export const DIMENSIONS = 256;

/** Half a second: shorter input gives no embedding. */
export const MIN_FRAMES = 50;
/** Ten seconds: the most that can be reserved. */
export const MOST_FRAMES = 1000;

/** Activations used only by elementwise operations may use the full range of i16. */
export const CONCATENATION_HIGH = 32767;
