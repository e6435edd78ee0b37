/** The network's weights: `createWeights` walks the layers in the order of the model file and gives each tensor a place. */
import { create, reserve } from "../../memory";
import { Convolution } from "../../nn/convolution";
import { Dense } from "../../nn/dense";
import { Loading, createConvolution, createDense, createHalvingConvolution, createPatchConvolution, expectResidual } from "../../nn/loading";
import { PATCH_HIGH } from "../../nn/patch-convolution";
import { CONCATENATION_HIGH, DIMENSIONS } from "../config";
import { RESNET34, STAGES, blocksOf, stageBlocks, stageChannels, stageHasWords } from "./config";
import { statisticsOf } from "./state";

/** relu(conv2(relu(conv1(x))) + shortcut(x)); without a shortcut convolution the input itself is added. */
@unmanaged
export class Block {
  conv1: Convolution;
  conv2: Convolution;
  shortcut: Convolution | null;
}

/** Everything before the statistics. */
@unmanaged
export class Trunk {
  shape: usize;
  stem: Convolution;
  /** Pointers of all blocks, stage after stage. */
  blocks: usize;
}

@unmanaged
export class Weights {
  trunk: Trunk;
  linear: Dense;
}

/** The first block of a stage but the first halves the plane. `high`: nothing but the statistics reads the last block's output. */
function createBlock(loading: Loading, channels: i32, halves: bool, words: bool, high: i32): Block {
  const b = create<Block>();
  if (halves) {
    const wide = channels >> 1;
    b.conv1 = createHalvingConvolution(loading, channels, wide, words, 0, PATCH_HIGH);
    const shortcut = createConvolution(loading, channels, 1, wide, words, -CONCATENATION_HIGH, CONCATENATION_HIGH);
    shortcut.stride = 2;
    shortcut.binStride = 2;
    b.shortcut = shortcut;
  } else {
    b.conv1 = createPatchConvolution(loading, channels, channels, words, 0, PATCH_HIGH);
    b.shortcut = null;
  }
  b.conv2 = createPatchConvolution(loading, channels, channels, words, 0, high);
  expectResidual(loading, b.conv2);
  return b;
}

/** Reserves every weight. The order of calls is the order of tensors in the model file. */
export function createTrunk(loading: Loading, shape: usize): Trunk {
  const w = create<Trunk>();
  w.shape = shape;
  w.stem = createConvolution(loading, stageChannels(shape, 0), 3, 4, true, 0, PATCH_HIGH);
  w.blocks = reserve(<usize>blocksOf(shape) * sizeof<usize>());
  let at = w.blocks;
  for (let stage = 0; stage < STAGES; stage++) {
    const blocks = stageBlocks(shape, stage);
    for (let i = 0; i < blocks; i++, at += sizeof<usize>()) {
      const isLast = stage == STAGES - 1 && i == blocks - 1;
      const block = createBlock(loading, stageChannels(shape, stage), stage > 0 && i == 0, stageHasWords(stage), isLast ? CONCATENATION_HIGH : PATCH_HIGH);
      store<usize>(at, changetype<usize>(block));
    }
  }
  return w;
}

export function createWeights(loading: Loading): Weights {
  const w = create<Weights>();
  w.trunk = createTrunk(loading, RESNET34);
  w.linear = createDense(loading, DIMENSIONS, statisticsOf(RESNET34), false);
  return w;
}
