/**
 * ResNet34: planes of 80 bins that become narrower and deeper in four stages of residual blocks, then statistics over time and a linear map.
 * `training/export.py` writes tensors for exactly this shape.
 */

export const STAGES = 4;
export const BLOCKS = 16;

// @ts-ignore: decorator
@inline
export function stageBlocks(stage: i32): i32 {
  return stage == 0 ? 3 : stage == 1 ? 4 : stage == 2 ? 6 : 3;
}

/** 32, 64, 128, 256 */
// @ts-ignore: decorator
@inline
export function stageChannels(stage: i32): i32 {
  return 32 << stage;
}

/** Narrow planes decide much and have few weights: those of the first two stages are i16. */
// @ts-ignore: decorator
@inline
export function stageHasWords(stage: i32): bool {
  return stage < 2;
}
