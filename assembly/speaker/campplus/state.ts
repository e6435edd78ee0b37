/** Memory of a forward pass: three regions that the layers use in turn, and small vectors. Only the embedding survives a pass. */
import { SPEAKER, create, reserveVoice } from "../../memory";
import { BINS } from "../config";
import { State as Common, beginState, endState } from "../state";
import { BOTTLENECK, CONTEXT, FRONT_CHANNELS, GROWTH, SPEAKER_CHANNELS } from "./config";

@unmanaged
export class State extends Common {
  /** Largest use of each, in i16 per frame: 82 × 32, 42 × 32, 42 × 32. */
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
  s.wide = reserveVoice(max(bytesOf(maxFrames, BINS), <usize>stagedBytes), SPEAKER);
  s.left = reserveVoice(bytesOf(maxFrames, BINS / 2), SPEAKER);
  s.right = reserveVoice(bytesOf(maxFrames, BINS / 2), SPEAKER);
  s.quads = reserveVoice(<usize>(6 * (BINS + 2) * FRONT_CHANNELS) << 1, SPEAKER);
  s.sums = reserveVoice(BOTTLENECK << 2, SPEAKER);
  s.segmentSums = reserveVoice(BOTTLENECK << 2, SPEAKER);
  s.context = reserveVoice(BOTTLENECK << 2, SPEAKER);
  s.hidden = reserveVoice(CONTEXT << 2, SPEAKER);
  s.mask = reserveVoice(GROWTH << 2, SPEAKER);
  s.statistics = reserveVoice(1024 << 2, SPEAKER);
  s.speaker = reserveVoice(SPEAKER_CHANNELS << 2, SPEAKER);
  endState(s, s.wide);
  return s;
}
