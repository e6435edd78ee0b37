/** The attack networks: a narrow 2-D front for each picture of the speech, and a 1-D tail. `training/spoof/network.py` draws the same shapes. */

/** Synthetic speech is looked for in two pictures, 80 bands of equal width and short columns; playback in 80 log-mel bins. */
export const SYNTHETIC: i32 = 0;
export const PLAYBACK: i32 = 1;
export const KINDS = 2;

export const BINS = 80;
/** Short columns of a frame, and their bins. */
export const COLUMNS = 4;
export const COLUMN_BINS = 32;

/** f32 values of a frame of features. */
export function frameValues(kind: i32): i32 {
  return kind == SYNTHETIC ? BINS + COLUMNS * COLUMN_BINS : BINS;
}

/** Nothing lies further below the loud than this, natural logarithm of power (43 dB): rooms, lines and empty bands tell nothing there. */
export const FLOOR: f32 = 10;

/** Two networks look for synthetic speech, a narrow one and a wide one, and one for playback: a loudspeaker is heard in a coarser picture. */
export const NARROW = 0;
export const WIDE = 1;
export const LOUDSPEAKER = 2;

/** Of the three networks, one after the other. Multiples of 8. */
const PLANES: usize = memory.data<i32>([16, 24, 40, 40, 16, 32, 64, 64, 8, 16, 16, 16]);
const TAILS: usize = memory.data<i32>([80, 64, 64, 128, 96, 96, 48, 32, 32]);

/** Channels after plane 0 … 3; the bins are 80, 40, 20, 10, or 32, 16, 8, 4. */
export function planeChannels(network: i32, plane: i32): i32 {
  return load<i32>(PLANES + (<usize>(4 * network + plane) << 2));
}

/** Channels after layer 0 … 2 of the tail. */
export function tailChannels(network: i32, layer: i32): i32 {
  return load<i32>(TAILS + (<usize>(3 * network + layer) << 2));
}

export const HIDDEN = 32;
/** One score; outputs come in fours. */
export const OUTPUTS = 4;

/** One second: less tells nothing. */
export const MIN_FRAMES = 100;
