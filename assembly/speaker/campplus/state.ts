/** What a forward pass writes: three regions that the layers take turns in, and small vectors. Nothing survives a pass but the embedding. */
import { create, reserve } from "../../memory";
import { BINS } from "../config";
import { State as Common, beginState, endState } from "../state";
import { BOTTLENECK, CONTEXT, FRONT_CHANNELS, GROWTH, SPEAKER_CHANNELS } from "./config";

@unmanaged
export class State extends Common {
  /** Largest use of each, in i16 a frame: 82 × 32, 42 × 32, 42 × 32. */
  wide: usize;
  left: usize;
  right: usize;
  /** i16: six frames of the widest plane. */
  quads: usize;
  /** i32[BOTTLENECK] sums over all frames and over a segment. */
  sums: usize;
  segmentSums: usize;
  /** f32 */
  context: usize;
  hidden: usize;
  mask: usize;
  statistics: usize;
  speaker: usize;
}

function bytesOf(frames: i32, bins: i32): usize {
  return <usize>((frames + 2) * (bins + 2) * FRONT_CHANNELS) << 1;
}

export function createState(maxFrames: i32, floor: f32, stagedBytes: i32): State {
  const s = create<State>();
  beginState(s, maxFrames, floor);
  s.wide = reserve(max(bytesOf(maxFrames, BINS), <usize>stagedBytes));
  s.left = reserve(bytesOf(maxFrames, BINS / 2));
  s.right = reserve(bytesOf(maxFrames, BINS / 2));
  s.quads = reserve(<usize>(6 * (BINS + 2) * FRONT_CHANNELS) << 1);
  s.sums = reserve(BOTTLENECK << 2);
  s.segmentSums = reserve(BOTTLENECK << 2);
  s.context = reserve(BOTTLENECK << 2);
  s.hidden = reserve(CONTEXT << 2);
  s.mask = reserve(GROWTH << 2);
  s.statistics = reserve(1024 << 2);
  s.speaker = reserve(SPEAKER_CHANNELS << 2);
  endState(s, s.wide);
  return s;
}
