/** What a forward pass writes: three planes that the blocks take turns in, and small vectors. Nothing survives a pass but the embedding. */
import { SPEAKER, create, reserve, reserveVoice } from "../../memory";
import { patchScratchBytes } from "../../nn/patch-convolution";
import { BINS } from "../config";
import { State as Common, beginState, endState } from "../state";
import { RESNET34, STAGES, stageChannels } from "./config";

/** [1 + frames + …][1 + bins + 1][channels] of i16, its border zero; frames are written in fours, so that there is room up to a multiple. */
@unmanaged
export class Plane {
  frames: i32;
  bins: i32;
  channels: i32;
  /** Bytes of a bin, and of a frame of bins with a zero bin on each side. */
  bin: usize;
  row: usize;
}

@unmanaged
export class Planes {
  /** The shapes of the stages; their frames are set by each pass. */
  shapes: usize;
  /** The first stage's size, twice, and that of the others. */
  wide: usize;
  between: usize;
  narrow: usize;
  /** What `convolvePatches` works in. */
  patches: usize;
}

@unmanaged
export class State extends Common {
  planes: Planes;
  /** f32 [2][bins][channels] of the last stage. */
  statistics: usize;
}

// @ts-ignore: decorator
@inline
export function shapeOf(s: Planes, stage: i32): Plane {
  return changetype<Plane>(s.shapes + <usize>stage * offsetof<Plane>());
}

export function setFrames(s: Planes, frames: i32): void {
  for (let stage = 0; stage < STAGES; stage++, frames = (frames + 1) >> 1) shapeOf(s, stage).frames = frames;
}

/** Bytes from a plane's beginning to its end, the border and the room behind the last frame included. */
export function planeBytes(p: Plane): usize {
  return p.row * (((p.frames + 3) & ~3) + 2);
}

/** Statistics of every bin and channel of the last stage. */
export function statisticsOf(shape: usize): i32 {
  return 2 * (BINS >> (STAGES - 1)) * stageChannels(shape, STAGES - 1);
}

/** For a part of the engine, which may want more bytes of a slot than the network needs. */
export function createPlanes(shape: usize, maxFrames: i32, part: i32, wide: usize, between: usize = 0, narrow: usize = 0, patches: usize = 0): Planes {
  const s = create<Planes>();
  s.shapes = reserve(STAGES * offsetof<Plane>());
  for (let stage = 0; stage < STAGES; stage++) {
    const p = shapeOf(s, stage);
    p.bins = BINS >> stage;
    p.channels = stageChannels(shape, stage);
    p.bin = <usize>p.channels << 1;
    p.row = p.bin * (p.bins + 2);
    patches = max(patches, patchScratchBytes(p.bins, p.channels));
  }
  setFrames(s, maxFrames);
  s.wide = reserveVoice(max(planeBytes(shapeOf(s, 0)), wide), part);
  s.between = reserveVoice(max(planeBytes(shapeOf(s, 0)), between), part);
  s.narrow = reserveVoice(max(planeBytes(shapeOf(s, 1)), narrow), part);
  s.patches = reserveVoice(patches, part);
  return s;
}

export function createState(maxFrames: i32, floor: f32, stagedBytes: i32): State {
  const s = create<State>();
  beginState(s, maxFrames, floor);
  s.planes = createPlanes(RESNET34, maxFrames, SPEAKER, <usize>stagedBytes);
  s.statistics = reserveVoice(<usize>statisticsOf(RESNET34) << 2, SPEAKER);
  endState(s, s.planes.wide);
  return s;
}
