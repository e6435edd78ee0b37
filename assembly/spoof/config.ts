/** The attack network: a narrow 2-D front and a 1-D tail over log-mel frames. `training/spoof/network.py` draws the same shape. */

export const BINS = 80;
/** As the speaker network's: a log-mel value in steps of 1/1024, activations of 12 bits. */
export const FEATURE_GAIN: f32 = 1024;
export const ACTIVATION_HIGH = 4095;

/** Nothing lies further below the loud than this, natural logarithm of power (43 dB): rooms, lines and empty bands tell nothing there. */
export const FLOOR: f32 = 10;

/** Channels after each plane; the bins are 80, 40, 20, 10. */
export const PLANE0 = 16;
export const PLANE1 = 24;
export const PLANE2 = 32;
export const PLANE3 = 32;

/** Channels after each layer of the tail. */
export const TAIL0 = 80;
export const TAIL1 = 64;
export const TAIL2 = 64;

export const HIDDEN = 32;
/** One score; outputs come in fours. */
export const OUTPUTS = 4;

/** One second: less tells nothing. */
export const MIN_FRAMES = 100;

/** Synthetic speech and playback. */
export const KINDS = 2;
