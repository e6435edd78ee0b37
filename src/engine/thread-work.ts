/** Everything that one thread can do: an instance of the kernels with a loaded model. Synchronous, one call at a time. */
import { type AttackModel, AttackNetworks } from "./attack-network.js";
import { Kernels } from "./kernels.js";
import { Network, type SpeakerModel } from "./network.js";
import type { VoiceWindow } from "./port.js";
import { Scoring, type ScoringModel } from "./scoring.js";
import { type StreamFormat, StreamKernel, type StreamPeek, type StreamState } from "./stream-kernel.js";

/** What a thread needs from a model. Crosses threads. */
export interface ThreadModel {
  readonly scoring: ScoringModel;
  readonly speaker: SpeakerModel;
  readonly windowFrames: number;
  readonly attacks: readonly AttackModel[];
}

/** The result if the recording ended here, and the embedding of the unfinished window. */
interface VoicePeek extends Omit<StreamPeek, "tail"> {
  /** `null` if it has too little speech. */
  readonly tail: VoiceWindow | null;
}

export type ThreadWork = ReturnType<typeof openThreadWork>;

export function openThreadWork(module: WebAssembly.Module, model: ThreadModel) {
  const kernels = new Kernels(module);
  const streams = new StreamKernel(kernels, model.windowFrames, model.speaker.frontEnd.rows);
  const network = new Network(kernels, model.speaker, model.windowFrames);
  const attacks = new AttackNetworks(kernels, model.attacks);
  const scoring = new Scoring(kernels, model.scoring);
  kernels.run.seal();
  return {
    advance: streams.advance.bind(streams),
    peek: streams.peek.bind(streams),
    /** Like `peek`, with the embedding of the unfinished window: one piece of work, one wait in the queue. */
    peekVoice(state: StreamState | null, format: StreamFormat): VoicePeek {
      const { tail, ...seen } = streams.peek(state, format);
      if (tail === null) return { ...seen, tail };
      const { features, ...window } = tail;
      return { ...seen, tail: { embedding: network.embed(features), ...window } };
    },
    embed: network.embed.bind(network),
    attackScore: attacks.score.bind(attacks),
    summarize: scoring.summarize.bind(scoring),
    partVoices: scoring.partVoices.bind(scoring),
    areTwoVoices: scoring.areTwoVoices.bind(scoring),
    train: scoring.train.bind(scoring),
    scores: scoring.scores.bind(scoring),
    /** WebAssembly memory of the thread, sealed after loading. */
    memoryBytes: () => kernels.memoryBytes,
  };
}
