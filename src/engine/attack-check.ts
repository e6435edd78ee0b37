/** One recording checked for one kind of attack: every window of its speech is scored, the mean by speech is calibrated. */
import { type AttackModel, attackWindowFrames } from "./attack-network.js";
import { piece } from "./engine-stream.js";
import type { AttackScore } from "./port.js";
import type { StreamFormat, StreamState, WindowFeatures } from "./stream-kernel.js";
import type { Threads } from "./threads.js";

/** Seconds of speech at which half of what can be known is known. */
const halfKnownSeconds = 2;

export async function checkAttack(
  threads: Threads,
  model: AttackModel,
  samples: Float32Array,
  rateHz: number,
  signal: AbortSignal,
  pause: () => Promise<void>,
): Promise<AttackScore> {
  const format: StreamFormat = { rateHz, mostSpeechSeconds: 0, windowFrames: attackWindowFrames, rows: model.rows };
  let state: StreamState | null = null;
  let sum = 0;
  let seconds = 0;
  const take = async ({ features, speechSeconds }: WindowFeatures) => {
    const score = await threads.call("attackScore", [model.kind, features], [features.buffer], signal);
    if (score === null) return;
    sum += score * speechSeconds;
    seconds += speechSeconds;
  };
  for (let first = 0; first < samples.length; first += piece) {
    await pause();
    const part = samples.slice(first, first + piece);
    const moved: ArrayBuffer[] = state ? [part.buffer, state.buffer] : [part.buffer];
    const heard: { state: StreamState; windows: readonly WindowFeatures[] } = await threads.call(
      "hear",
      [state, format, part],
      moved,
      signal,
    );
    state = heard.state;
    for (const window of heard.windows) await take(window);
  }
  const { tail } = await threads.call("peek", [state, format], [], signal);
  if (tail) await take(tail);
  const { revision, slope, offset } = model;
  // Too little speech says nothing either way, and says so.
  if (seconds === 0) return { llr: 0, reliability: 0, revision };
  return { llr: slope * (sum / seconds) + offset, reliability: seconds / (seconds + halfKnownSeconds), revision };
}
