/** Memory of a forward pass: three regions that the layers use in turn, and small vectors. Only the embedding survives a pass. */
import { SPEAKER, create, reserveVoice } from "../../memory";
import { Plane, planeAt, rowBytes, setPlane } from "../../nn/plane";
import { BINS } from "../config";
import { State as Common, beginState, endState } from "../state";
import { BOTTLENECK, CONTEXT, FRONT_CHANNELS, GROWTH, SPEAKER_CHANNELS } from "./config";

/** The planes of the front have 80, 40, 20 and 10 bins. */
const PLANES = 4;

@unmanaged
export class State extends Common {
  /** Shapes of the front's planes, set by each pass: their frames are those of the voice. */
  shapes: usize;
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

export function setShapes(s: State, frames: i32): void {
  for (let i = 0; i < PLANES; i++) setPlane(planeAt(s.shapes, i), frames, BINS >> i, FRONT_CHANNELS);
  // The bins of the last are channels of what follows, with nothing between its frames.
  const last = planeAt(s.shapes, PLANES - 1);
  last.row = last.bin * last.bins;
}

export function createState(maxFrames: i32, floor: f32, stagedBytes: i32): State {
  const s = create<State>();
  beginState(s, maxFrames, floor);
  const whole = rowBytes(BINS, FRONT_CHANNELS);
  const half = rowBytes(BINS / 2, FRONT_CHANNELS);
  s.shapes = reserveVoice(PLANES * offsetof<Plane>(), SPEAKER);
  s.wide = reserveVoice(max(whole * (maxFrames + 2), <usize>stagedBytes), SPEAKER);
  s.left = reserveVoice(half * (maxFrames + 2), SPEAKER);
  s.right = reserveVoice(half * (maxFrames + 2), SPEAKER);
  s.quads = reserveVoice(6 * whole, SPEAKER);
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
