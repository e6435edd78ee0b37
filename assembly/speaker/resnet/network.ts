/** The forward pass, one line per stage. */
import { convolveChannel, convolvePlane, Convolution } from "../../nn/convolution";
import { dense, normalize } from "../../nn/dense";
import { convolvePlanePairs } from "../../nn/pair-convolution";
import { convolvePatches } from "../../nn/patch-convolution";
import { meanDeviationOver } from "../../nn/pooling";
import { DIMENSIONS } from "../config";
import { prepare } from "../features";
import { PLANE_ROW } from "../state";
import { STAGES, stageBlocks } from "./config";
import { Plane, Planes, State, planeBytes, setFrames, shapeOf } from "./state";
import { Block, Trunk, Weights } from "./weights";

/** Embeds `frames` log-mel frames of s.features into s.embedding. */
export function forward(w: Weights, s: State, frames: i32): void {
  prepare(s, frames);
  const steps = trunk(w.trunk, s.planes, s.plane, frames);
  statistics(s.statistics, s.planes, steps - 1); //       5120
  dense(s.embedding, s.statistics, w.linear); //          256
  normalize(s.embedding, DIMENSIONS);
}

/** From the activations in `plane`, a zero-padded plane of 80 bins that may be s.narrow, to those of the last stage in s.narrow; returns their frames. */
export function trunk(w: Trunk, s: Planes, plane: usize, frames: i32): i32 {
  setFrames(s, frames);
  let blocks = w.blocks;
  stem(s.wide, plane, shapeOf(s, 0), w.stem); //          80 bins × 32
  blocks = stage(s.wide, s.wide, w, s, 0, blocks);
  blocks = stage(s.narrow, s.wide, w, s, 1, blocks); //   40 bins × 64, every second frame
  blocks = stage(s.wide, s.narrow, w, s, 2, blocks); //   20 bins × 128, every fourth
  stage(s.narrow, s.wide, w, s, 3, blocks); //            10 bins × 256, every eighth
  return shapeOf(s, STAGES - 1).frames;
}

/** f32 [2][bins][channels]: mean and deviation over time of the last stage, with `denominator` in the deviation. */
export function statistics(out: usize, s: Planes, denominator: i32): void {
  const p = shapeOf(s, STAGES - 1);
  meanDeviationOver(out, interior(s.narrow, p), p.row, p.frames, p.bins * p.channels, denominator);
}

// @ts-ignore: decorator
@inline
function interior(plane: usize, p: Plane): usize {
  return plane + p.row + p.bin;
}

/** Zeroes the frame before and the frames after, and the bin below and above. */
function clearBorder(plane: usize, p: Plane): void {
  memory.fill(plane, 0, p.row);
  // The last bin of a frame and the first of the next are neighbours.
  for (let t = 0, edge = plane + p.row - p.bin; t <= p.frames; t++, edge += p.row) memory.fill(edge, 0, p.bin << 1);
  const behind = p.row * (p.frames + 1);
  memory.fill(plane + behind, 0, planeBytes(p) - behind);
}

function stem(out: usize, plane: usize, p: Plane, layer: Convolution): void {
  convolveChannel(interior(out, p), p.row, plane, PLANE_ROW << 1, p.frames, p.bins, layer);
  clearBorder(out, p);
}

/** The blocks of a stage, from `blocks` on; returns where those of the next begin. The first halves the plane where out is not x. */
function stage(out: usize, x: usize, w: Trunk, s: Planes, number: i32, blocks: usize): usize {
  for (let i = 0; i < stageBlocks(w.shape, number); i++, blocks += sizeof<usize>()) {
    const block = changetype<Block>(load<usize>(blocks));
    if (block.shortcut) halvingBlock(out, x, s, shapeOf(s, number - 1), shapeOf(s, number), block);
    else residualBlock(out, s, shapeOf(s, number), block);
  }
  return blocks;
}

/** In place; `between` holds what conv1 gives. */
function residualBlock(x: usize, s: Planes, p: Plane, block: Block): void {
  patches(s.between, x, 0, s, p, block.conv1);
  patches(x, s.between, interior(x, p), s, p, block.conv2);
}

/** From the plane x of shape `wide` to out, of shape p. */
function halvingBlock(out: usize, x: usize, s: Planes, wide: Plane, p: Plane, block: Block): void {
  const inside = interior(out, p);
  convolvePlanePairs(interior(s.between, p), p.row, x, wide.row, p.frames, p.bins, wide.channels, 2, block.conv1, s.patches);
  clearBorder(s.between, p);
  convolvePlane(inside, p.row, interior(x, wide), wide.row << 1, p.frames, p.bins, wide.channels, 2, block.shortcut!, 0);
  patches(out, s.between, inside, s, p, block.conv2);
}

/** A 3 × 3 convolution between planes of one shape, their borders zero. */
function patches(out: usize, x: usize, residual: usize, s: Planes, p: Plane, layer: Convolution): void {
  convolvePatches(interior(out, p), p.row, x, p.row, p.frames, p.bins, p.channels, layer, residual, s.patches);
  clearBorder(out, p);
}
