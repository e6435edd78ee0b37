/** Input and output of a forward pass, for all architectures: features and an embedding. */
import { SPEAKER, reserveVoice } from "../memory";
import { BINS, DIMENSIONS } from "./config";

/** i16 elements of a row of the input plane: 1 zero, the bins, 3 zeros, because a tap reads runs of 4. */
export const PLANE_ROW = BINS + 4;

@unmanaged
export class State {
  maxFrames: i32;
  /** Added to every mel power, as a share of the window's mean power. */
  floor: f32;
  /** f32 [maxFrames][BINS] */
  features: usize;
  /** i16 [1 + maxFrames + 1][PLANE_ROW] */
  plane: usize;
  /** f32[DIMENSIONS] */
  embedding: usize;
  /** Where a tensor is staged before it is taken: scratch of the architecture. */
  staging: usize;
}

/** Call before the scratch of the architecture is reserved. */
export function beginState(s: State, maxFrames: i32, floor: f32): void {
  s.maxFrames = maxFrames;
  s.floor = floor;
  s.features = reserveVoice(<usize>(maxFrames * BINS) << 2, SPEAKER);
  s.plane = reserveVoice(<usize>((maxFrames + 2) * PLANE_ROW) << 1, SPEAKER);
}

/** Call after the scratch of the architecture is reserved. */
export function endState(s: State, staging: usize): void {
  s.staging = staging;
  s.embedding = reserveVoice(DIMENSIONS << 2, SPEAKER);
}
