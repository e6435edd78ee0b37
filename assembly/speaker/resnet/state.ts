/** What a forward pass writes: three planes that the blocks take turns in, and small vectors. Nothing survives a pass but the embedding. */
import { SPEAKER, create, reserveVoice } from "../../memory";
import { halvingScratchBytes } from "../../nn/halving-convolution";
import { patchScratchBytes } from "../../nn/patch-convolution";
import { Plane, planeAt, setPlane } from "../../nn/plane";
import { BINS } from "../config";
import { State as Common, beginState, endState } from "../state";
import { RESNET34, STAGES, stageChannels } from "./config";

@unmanaged
export class Planes {
  /** Those of the stages, set by each pass: their frames are those of the voice. */
  shapes: usize;
  /** The first stage's size, twice, and that of the others. */
  wide: usize;
  between: usize;
  narrow: usize;
  /** What `convolvePatches` and `convolveHalving` work in. */
  patches: usize;
}

@unmanaged
export class State extends Common {
  planes: Planes;
  /** f32 [2][bins][channels] of the last stage. */
  statistics: usize;
}

/** Each stage but the first halves frames and bins; `convolvePatches` writes frames in fours. */
export function setShapes(s: Planes, shape: usize, frames: i32): void {
  for (let stage = 0; stage < STAGES; stage++, frames = (frames + 1) >> 1) {
    setPlane(planeAt(s.shapes, stage), frames, BINS >> stage, stageChannels(shape, stage), 4);
  }
}

/** Statistics of every bin and channel of the last stage. */
export function statisticsOf(shape: usize): i32 {
  return 2 * (BINS >> (STAGES - 1)) * stageChannels(shape, STAGES - 1);
}

/** For a part of the engine, which may want more bytes of a slot than the network needs. */
export function createPlanes(shape: usize, maxFrames: i32, part: i32, wide: usize, between: usize = 0, narrow: usize = 0, patches: usize = 0): Planes {
  const s = create<Planes>();
  s.shapes = reserveVoice(STAGES * offsetof<Plane>(), part);
  setShapes(s, shape, maxFrames);
  for (let stage = 0; stage < STAGES; stage++) {
    const p = planeAt(s.shapes, stage);
    patches = max(patches, patchScratchBytes(p.bins, p.channels));
    if (stage > 0) patches = max(patches, halvingScratchBytes(p.bins, p.channels >> 1));
  }
  const first = planeAt(s.shapes, 0).bytes;
  s.wide = reserveVoice(max(first, wide), part);
  s.between = reserveVoice(max(first, between), part);
  s.narrow = reserveVoice(max(planeAt(s.shapes, 1).bytes, narrow), part);
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
