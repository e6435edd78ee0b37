/** The forward pass, one line per stage. */
import { convolveChannel, convolvePlane, Convolution } from "../../nn/convolution";
import { dense, normalize } from "../../nn/dense";
import { convolveHalving } from "../../nn/halving-convolution";
import { convolvePatches } from "../../nn/patch-convolution";
import { Plane, clearBorder, interior, planeAt } from "../../nn/plane";
import { meanDeviationOver } from "../../nn/pooling";
import { DIMENSIONS } from "../config";
import { prepare } from "../features";
import { PLANE_ROW } from "../state";
import { STAGES, stageBlocks } from "./config";
import { Planes, State, setShapes } from "./state";
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
  setShapes(s, w.shape, frames);
  let blocks = w.blocks;
  stem(s.wide, plane, planeAt(s.shapes, 0), w.stem); //   80 bins; ResNet34 has 32 channels
  blocks = stage(s.wide, s.wide, w, s, 0, blocks);
  blocks = stage(s.narrow, s.wide, w, s, 1, blocks); //   40 bins, 64, every second frame
  blocks = stage(s.wide, s.narrow, w, s, 2, blocks); //   20 bins, 128, every fourth
  stage(s.narrow, s.wide, w, s, 3, blocks); //            10 bins, 256, every eighth
  return planeAt(s.shapes, STAGES - 1).frames;
}

/** f32 [2][bins][channels]: mean and deviation over time of the last stage, with `denominator` in the deviation. */
export function statistics(out: usize, s: Planes, denominator: i32): void {
  const p = planeAt(s.shapes, STAGES - 1);
  meanDeviationOver(out, interior(s.narrow, p), p.row, p.frames, p.bins * p.channels, denominator);
}

function stem(out: usize, plane: usize, p: Plane, layer: Convolution): void {
  convolveChannel(interior(out, p), p, plane, PLANE_ROW << 1, layer);
  clearBorder(out, p);
}

/** The blocks of a stage, from `blocks` on; returns where those of the next begin. The first halves the plane where out is not x. */
function stage(out: usize, x: usize, w: Trunk, s: Planes, number: i32, blocks: usize): usize {
  for (let i = 0; i < stageBlocks(w.shape, number); i++, blocks += sizeof<usize>()) {
    const block = changetype<Block>(load<usize>(blocks));
    const p = planeAt(s.shapes, number);
    if (block.shortcut) halvingBlock(out, p, x, planeAt(s.shapes, number - 1), s, block);
    else residualBlock(out, p, s, block);
  }
  return blocks;
}

/** In place; `between` holds what conv1 gives. */
function residualBlock(x: usize, p: Plane, s: Planes, block: Block): void {
  patches(s.between, x, p, block.conv1, 0, s);
  patches(x, s.between, p, block.conv2, interior(x, p), s);
}

function halvingBlock(out: usize, to: Plane, x: usize, from: Plane, s: Planes, block: Block): void {
  const inside = interior(out, to);
  convolveHalving(interior(s.between, to), to, x, from, block.conv1, s.patches);
  clearBorder(s.between, to);
  convolvePlane(inside, to, interior(x, from), from, block.shortcut!, 0);
  patches(out, s.between, to, block.conv2, inside, s);
}

/** A 3 × 3 convolution between planes of one shape, their borders zero. */
function patches(out: usize, x: usize, p: Plane, layer: Convolution, residual: usize, s: Planes): void {
  convolvePatches(interior(out, p), p, x, p, layer, residual, s.patches);
  clearBorder(out, p);
}
