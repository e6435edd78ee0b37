/** Memory of a forward pass: the program's lines, and small vectors. Only the embedding survives a pass. */
import { SPEAKER, create, reserve, reserveVoice } from "../../memory";
import { attentionBytes } from "../../nn/attention";
import { State as Common, beginState, endState } from "../state";
import { ATTENTION, border, lineChannels, lineCount, stepAt, stepCount } from "./program";

@unmanaged
export class State extends Common {
  /** Pointers to the lines' first frames, after their borders. */
  lines: usize;
  /** i16 [frames][hidden], then the scores and scratch of `attend`. */
  scores: usize;
  /** i32[channels] */
  sums: usize;
  /** f32: [channels], [hidden], [channels], [2][channels] */
  context: usize;
  hidden: usize;
  mask: usize;
  statistics: usize;
}

export function lineAt(s: State, line: i32): usize {
  return load<usize>(s.lines + (<usize>line << 2));
}

export function createState(maxFrames: i32, floor: f32, stagedBytes: i32): State {
  const s = create<State>();
  beginState(s, maxFrames, floor);
  s.lines = reserve(<usize>lineCount() << 2);
  let widest = 0;
  for (let line = 0; line < lineCount(); line++) {
    const channels = lineChannels(line);
    const row = <usize>channels << 1;
    const slot = reserveVoice(row * (maxFrames + 2 * border()), SPEAKER);
    store<usize>(s.lines + (<usize>line << 2), slot + row * border());
    widest = max(widest, channels);
  }
  let scored: usize = 0;
  let hidden = 0;
  for (let i = 0; i < stepCount(); i++) {
    const step = stepAt(i);
    hidden = max(hidden, step.outputs);
    if (step.kind == ATTENTION) scored = max(scored, (<usize>(maxFrames * step.outputs) << 1) + attentionBytes(maxFrames, step.inputs));
  }
  s.scores = reserveVoice(max(scored, <usize>stagedBytes), SPEAKER);
  s.sums = reserveVoice(<usize>widest << 2, SPEAKER);
  s.context = reserveVoice(<usize>widest << 2, SPEAKER);
  s.hidden = reserveVoice(<usize>hidden << 2, SPEAKER);
  s.mask = reserveVoice(<usize>widest << 2, SPEAKER);
  s.statistics = reserveVoice(<usize>widest << 3, SPEAKER);
  endState(s, s.scores);
  return s;
}
