/** What the architectures have in common. */

/** Log-mel bins of a frame. */
export const BINS = 80;
export const DIMENSIONS = 256;

/** Half a second: less gives no embedding. */
export const MIN_FRAMES = 50;
/** Ten seconds: what may be reserved at most. */
export const MOST_FRAMES = 1000;

/** What only feeds elementwise passes may use all of i16. */
export const CONCATENATION_HIGH = 32767;
