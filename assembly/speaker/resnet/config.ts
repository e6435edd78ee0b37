/**
 * Residual networks: planes of 80 bins that become narrower and deeper in four stages of residual blocks. Each stage but the first halves the plane and
 * doubles the channels. `training/residual.py` writes tensors for exactly these shapes.
 */

export const STAGES = 4;

/** A shape is the channels of the first stage, then the blocks of each. */
export const RESNET34: usize = memory.data<i32>([32, 3, 4, 6, 3]);

// @ts-ignore: decorator
@inline
export function stageChannels(shape: usize, stage: i32): i32 {
  return load<i32>(shape) << stage;
}

// @ts-ignore: decorator
@inline
export function stageBlocks(shape: usize, stage: i32): i32 {
  return load<i32>(shape + (<usize>stage << 2), 4);
}

export function blocksOf(shape: usize): i32 {
  let blocks = 0;
  for (let stage = 0; stage < STAGES; stage++) blocks += stageBlocks(shape, stage);
  return blocks;
}

/** Narrow planes decide much and have few weights: those of the first two stages are i16. */
// @ts-ignore: decorator
@inline
export function stageHasWords(stage: i32): bool {
  return stage < 2;
}
