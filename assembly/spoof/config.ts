/**
 * The attack networks. Two have a narrow 2-D front for each representation of the speech and a 1-D tail (`training/spoof/network.py` has the same
 * shapes); a third is a slim residual network over log-mel.
 */

/** Synthetic speech is detected from 80 bands of equal width, short columns and 80 log-mel bins; playback from 80 log-mel bins. */
export const SYNTHETIC: i32 = 0;
export const PLAYBACK: i32 = 1;
export const KINDS = 2;

export const BINS = 80;
/** Short columns of a frame, and their bins. */
export const COLUMNS = 4;
export const COLUMN_BINS = 32;

/** f32 values of a frame of features. */
export function frameValues(kind: i32): i32 {
  return kind == SYNTHETIC ? LOG_MEL + BINS : BINS;
}

/** Where log-mel begins in a frame for synthetic speech. */
export const LOG_MEL = BINS + COLUMNS * COLUMN_BINS;

/** Values further below the loudest than this (a natural logarithm of power, 43 dB) are raised to it: they only show rooms, lines and empty bands. */
export const FLOOR: f32 = 10;

/** The networks with fronts: one for synthetic speech, one for playback, which shows in a coarser representation. */
export const NARROW = 0;
export const LOUDSPEAKER = 1;

/** Of the two networks, one after the other. Multiples of 8. */
const PLANES: usize = memory.data<i32>([16, 24, 40, 40, 8, 16, 16, 16]);
const TAILS: usize = memory.data<i32>([80, 64, 64, 48, 32, 32]);

/** Channels after plane 0 … 3; the bins are 80, 40, 20, 10, or 32, 16, 8, 4. */
export function planeChannels(network: i32, plane: i32): i32 {
  return load<i32>(PLANES + (<usize>(4 * network + plane) << 2));
}

/** Channels after layer 0 … 2 of the tail. */
export function tailChannels(network: i32, layer: i32): i32 {
  return load<i32>(TAILS + (<usize>(3 * network + layer) << 2));
}

export const HIDDEN = 32;
/** Shapes of the residual network, as speaker/resnet/config.ts has them: six blocks with all channels of ResNet34, five with three quarters of them. */
const WHOLE: usize = memory.data<i32>([32, 1, 2, 2, 1]);
const THREE_QUARTERS: usize = memory.data<i32>([24, 1, 2, 1, 1]);

/** By the channels of its first stage; 0 where there is no such shape. */
export function slimShape(channels: i32): usize {
  return channels == 32 ? WHOLE : channels == 24 ? THREE_QUARTERS : 0;
}

/** One score; outputs come in fours. */
export const OUTPUTS = 4;

/** One second: less speech shows nothing. */
export const MIN_FRAMES = 100;
