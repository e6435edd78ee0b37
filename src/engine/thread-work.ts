/** Everything that one thread can do: an instance of the kernels with a loaded model. Synchronous, one call at a time. */
import { type AttackModel, AttackNetworks } from "./attack-network.js";
import { Kernels } from "./kernels.js";
import { Network, type SpeakerModel } from "./network.js";
import type { AttackKind, Score, Template, TrainedVoice, Voice, VoiceWindow } from "./port.js";
import { Scoring, type ScoringModel } from "./scoring.js";
import {
  type StreamFormat,
  StreamKernel,
  type StreamPeek,
  type StreamState,
  type StreamStep,
} from "./stream-kernel.js";

/** What a thread needs from a model. Crosses threads. */
export interface ThreadModel {
  readonly scoring: ScoringModel;
  readonly speaker: SpeakerModel;
  readonly windowFrames: number;
  readonly attacks: readonly AttackModel[];
}

/** The result if the recording ended here, and the embedding of the unfinished window. */
export interface VoicePeek extends Omit<StreamPeek, "tail"> {
  /** `null` if it has too little speech. */
  readonly tail: VoiceWindow | null;
}

/** Summary of the windows of a recording. */
export interface VoiceSummary {
  readonly embedding: Float32Array | null;
  readonly voiceClass: number | null;
  readonly speakers: number;
}

export class ThreadWork {
  readonly #streams: StreamKernel;
  readonly #network: Network;
  readonly #attacks: AttackNetworks;
  readonly #scoring: Scoring;
  readonly #kernels: Kernels;

  constructor(module: WebAssembly.Module, model: ThreadModel) {
    const kernels = new Kernels(module);
    this.#kernels = kernels;
    this.#streams = new StreamKernel(kernels, model.windowFrames, model.speaker.frontEnd.rows);
    this.#network = new Network(kernels, model.speaker, model.windowFrames);
    this.#attacks = new AttackNetworks(kernels, model.attacks);
    this.#scoring = new Scoring(kernels, model.scoring);
    kernels.run.seal();
  }

  hear(
    state: StreamState | null,
    format: StreamFormat,
    samples: Float32Array,
    untilSpeechSeconds?: number,
  ): StreamStep {
    return this.#streams.hear(state, format, samples, untilSpeechSeconds);
  }

  peek(state: StreamState | null, format: StreamFormat): StreamPeek {
    return this.#streams.peek(state, format);
  }

  /** Like `peek`, with the embedding of the unfinished window: one piece of work, one wait in the queue. */
  peekVoice(state: StreamState | null, format: StreamFormat): VoicePeek {
    const { tail, ...seen } = this.#streams.peek(state, format);
    if (tail === null) return { ...seen, tail };
    const { features, ...window } = tail;
    return { ...seen, tail: { embedding: this.#network.embed(features), ...window } };
  }

  embed(features: Float32Array): Float32Array {
    return this.#network.embed(features);
  }

  attackScore(kind: AttackKind, features: Float32Array): number | null {
    return this.#attacks.score(kind, features);
  }

  summarize(windows: readonly VoiceWindow[]): VoiceSummary {
    return this.#scoring.summarize(windows);
  }

  partVoices(windows: readonly VoiceWindow[]): Int32Array {
    return this.#scoring.partVoices(windows);
  }

  areTwoVoices(one: Float32Array, other: Float32Array): boolean {
    return this.#scoring.areTwoVoices(one, other);
  }

  train(segments: readonly Voice[]): TrainedVoice {
    return this.#scoring.train(segments);
  }

  scores(templates: readonly Template[], probe: Voice): Score[] {
    return this.#scoring.scores(templates, probe);
  }

  /** WebAssembly memory of the thread, sealed after loading. */
  memoryBytes(): number {
    return this.#kernels.memoryBytes;
  }
}
