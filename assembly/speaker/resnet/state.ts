/** What a forward pass writes: three planes that the blocks take turns in, and small vectors. Nothing survives a pass but the embedding. */
import { SPEAKER, create, reserve, reserveVoice } from "../../memory";
import { patchScratchBytes } from "../../nn/patch-convolution";
import { BINS } from "../config";
import { State as Common, beginState, endState } from "../state";
import { STAGES, stageChannels } from "./config";

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
export class State extends Common {
  /** The shapes of the stages; their frames are set by each pass. */
  shapes: usize;
  /** The first stage's size, twice, and that of the others. */
  wide: usize;
  between: usize;
  narrow: usize;
  /** What `convolvePatches` works in. */
  patches: usize;
  /** f32 [2][bins][channels] of the last stage. */
  statistics: usize;
}

// @ts-ignore: decorator
@inline
export function shapeOf(s: State, stage: i32): Plane {
  return changetype<Plane>(s.shapes + <usize>stage * offsetof<Plane>());
}

export function setFrames(s: State, frames: i32): void {
  for (let stage = 0; stage < STAGES; stage++, frames = (frames + 1) >> 1) shapeOf(s, stage).frames = frames;
}

/** Bytes from a plane's beginning to its end, the border and the room behind the last frame included. */
export function planeBytes(p: Plane): usize {
  return p.row * (((p.frames + 3) & ~3) + 2);
}

export function createState(maxFrames: i32, floor: f32, stagedBytes: i32): State {
  const s = create<State>();
  s.shapes = reserve(STAGES * offsetof<Plane>());
  let scratch: usize = 0;
  for (let stage = 0; stage < STAGES; stage++) {
    const p = shapeOf(s, stage);
    p.bins = BINS >> stage;
    p.channels = stageChannels(stage);
    p.bin = <usize>p.channels << 1;
    p.row = p.bin * (p.bins + 2);
    scratch = max(scratch, patchScratchBytes(p.bins, p.channels));
  }
  setFrames(s, maxFrames);
  const last = shapeOf(s, STAGES - 1);
  beginState(s, maxFrames, floor);
  s.wide = reserveVoice(max(planeBytes(shapeOf(s, 0)), <usize>stagedBytes), SPEAKER);
  s.between = reserveVoice(planeBytes(shapeOf(s, 0)), SPEAKER);
  s.narrow = reserveVoice(planeBytes(shapeOf(s, 1)), SPEAKER);
  s.patches = reserveVoice(scratch, SPEAKER);
  s.statistics = reserveVoice(<usize>(2 * last.bins * last.channels) << 2, SPEAKER);
  endState(s, s.wide);
  return s;
}
