/** The forward pass, one line per stage. */
import { convolveChannel, convolvePlane, Convolution } from "../../nn/convolution";
import { dense, normalize } from "../../nn/dense";
import { convolvePlanePairs } from "../../nn/pair-convolution";
import { convolvePatches } from "../../nn/patch-convolution";
import { meanDeviation } from "../../nn/pooling";
import { DIMENSIONS } from "../config";
import { prepare } from "../features";
import { PLANE_ROW } from "../state";
import { stageBlocks } from "./config";
import { Plane, State, planeBytes, setFrames, shapeOf } from "./state";
import { Block, Weights } from "./weights";

/** Embeds `frames` log-mel frames of s.features into s.embedding. */
export function forward(w: Weights, s: State, frames: i32): void {
  prepare(s, frames);
  setFrames(s, frames);
  let blocks = w.blocks;

  stem(s.wide, s.plane, shapeOf(s, 0), w.stem); //        80 bins × 32
  blocks = stage(s.wide, s.wide, s, 0, blocks);
  blocks = stage(s.narrow, s.wide, s, 1, blocks); //      40 bins × 64, every second frame
  blocks = stage(s.wide, s.narrow, s, 2, blocks); //      20 bins × 128, every fourth
  stage(s.narrow, s.wide, s, 3, blocks); //               10 bins × 256, every eighth

  statistics(s.statistics, s.narrow, shapeOf(s, 3)); //   5120
  dense(s.embedding, s.statistics, w.linear); //          256
  normalize(s.embedding, DIMENSIONS);
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
function stage(out: usize, x: usize, s: State, number: i32, blocks: usize): usize {
  for (let i = 0; i < stageBlocks(number); i++, blocks += sizeof<usize>()) {
    const block = changetype<Block>(load<usize>(blocks));
    if (block.shortcut) halvingBlock(out, x, s, shapeOf(s, number - 1), shapeOf(s, number), block);
    else residualBlock(out, s, shapeOf(s, number), block);
  }
  return blocks;
}

/** In place; `between` holds what conv1 gives. */
function residualBlock(x: usize, s: State, p: Plane, block: Block): void {
  patches(s.between, x, 0, s, p, block.conv1);
  patches(x, s.between, interior(x, p), s, p, block.conv2);
}

/** From the plane x of shape `wide` to out, of shape p. */
function halvingBlock(out: usize, x: usize, s: State, wide: Plane, p: Plane, block: Block): void {
  const inside = interior(out, p);
  convolvePlanePairs(interior(s.between, p), p.row, x, wide.row, p.frames, p.bins, wide.channels, 2, block.conv1, s.patches);
  clearBorder(s.between, p);
  convolvePlane(inside, p.row, interior(x, wide), wide.row << 1, p.frames, p.bins, wide.channels, 2, block.shortcut!, 0);
  patches(out, s.between, inside, s, p, block.conv2);
}

/** A 3 × 3 convolution between planes of one shape, their borders zero. */
function patches(out: usize, x: usize, residual: usize, s: State, p: Plane, layer: Convolution): void {
  convolvePatches(interior(out, p), p.row, x, p.row, p.frames, p.bins, p.channels, layer, residual, s.patches);
  clearBorder(out, p);
}

/** Mean and deviation over time of every bin and channel. */
function statistics(out: usize, x: usize, p: Plane): void {
  meanDeviation(out, interior(x, p), p.row, p.frames, p.bins * p.channels);
}
