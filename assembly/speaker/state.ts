/** What a forward pass writes: three regions that the layers take turns in, and small vectors. Nothing survives a pass but the embedding. */
import { create, reserve } from "../memory";
import { BINS, BOTTLENECK, CONTEXT, DIMENSIONS, FRONT_CHANNELS, GROWTH, SPEAKER_CHANNELS } from "./config";

/** i16 elements of a row of the input plane: 1 zero, the bins, 3 zeros, because a tap reads runs of 4. */
export const PLANE_ROW = BINS + 4;

@unmanaged
export class State {
  maxFrames: i32;
  /** f32 [maxFrames][BINS] */
  features: usize;
  /** f32[BINS] */
  means: usize;
  /** i16 [1 + maxFrames + 1][PLANE_ROW] */
  plane: usize;
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
  embedding: usize;
  /** From `features` to `end`: what is wiped. */
  end: usize;
}

function bytesOf(frames: i32, bins: i32): usize {
  return <usize>((frames + 2) * (bins + 2) * FRONT_CHANNELS) << 1;
}

export function createState(maxFrames: i32, stagedBytes: i32): State {
  const s = create<State>();
  s.maxFrames = maxFrames;
  s.features = reserve(<usize>(maxFrames * BINS) << 2);
  s.means = reserve(BINS << 2);
  s.plane = reserve(<usize>((maxFrames + 2) * PLANE_ROW) << 1);
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
  s.embedding = reserve(DIMENSIONS << 2);
  s.end = s.embedding + (DIMENSIONS << 2);
  return s;
}
