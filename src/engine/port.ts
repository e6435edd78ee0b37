/**
 * What the rest of vivavoce needs from an engine. The worker pool and the in-thread engine both implement it.
 * PCM passed in is transferred where possible: the caller's array becomes empty.
 */

/** Measures of a recording. `null` where there is nothing to measure (no speech: no level, no SNR). */
export interface Measures {
  readonly rateHz: number;
  readonly grossSeconds: number;
  readonly netSpeechSeconds: number;
  /** ITU-T P.56 active speech level, dB relative to overload. */
  readonly speechLevelDb: number | null;
  readonly snrDb: number | null;
  readonly saturatedPerMinute: number;
  /** Share of saturated samples among those that are not silence. */
  readonly saturationRatio: number;
  /** Highest frequency that carries speech: about 3,400 for a telephone call, 7,000 and more for wideband. */
  readonly bandwidthHz: number | null;
}

/** The embedding of one window of net speech. */
export interface VoiceWindow {
  /** Unit length, `ModelInfo.dimensions` long. */
  readonly embedding: Float32Array;
  readonly speechSeconds: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Everything that is kept of a recording; it contains no audio. */
export interface VoiceAnalysis {
  readonly measures: Measures;
  /** Empty when there is too little speech to embed (under 0.5 s net). */
  readonly windows: readonly VoiceWindow[];
  /** Speech-weighted mean of the windows, unit length; `null` when there are none. */
  readonly embedding: Float32Array | null;
  /** 0..100, `null` without an embedding. */
  readonly voiceClass: number | null;
  /** 0 without speech, 1, or 2 for "several". */
  readonly speakers: number;
  /** SHA-256 (hex) of network and front end. */
  readonly revision: string;
  /**
   * Only for a stream that separates voices: each voice, most speech first; at most two. Net speech is per voice, the other measures are those of the
   * channel.
   */
  readonly voices?: readonly VoiceAnalysis[];
}

/** Time limit and cancellation of a call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** How much of a recording is processed. */
export interface AnalyzeOptions extends CallOptions {
  /** Stop after this much net speech; the rest of the recording is not read. */
  readonly maxNetSpeechSeconds?: number;
}

/** When to analyze a stream while it arrives. The position and the analysis are the same in any chunking. */
export interface Checkpoints {
  /** Net speech, ascending. */
  readonly seconds: readonly number[];
  /** Returning true ends the stream: nothing more is read, and the analysis so far is final. */
  readonly look: (analysis: VoiceAnalysis) => Promise<boolean>;
}

/** How much of the arriving audio is processed, and when it is analyzed. */
export interface StreamOptions extends AnalyzeOptions {
  readonly checkpoints?: Checkpoints;
  /** Set when two people may speak: separates them, in the first two minutes of speech. */
  readonly separateVoices?: boolean;
}

/** A recording that arrives in chunks. The same samples give the same analysis in any chunking, or all at once. */
export interface VoiceStream {
  /** Mono samples in -1..1 at the stream's rate. Resolves to the net speech so far, after the checkpoints that it reached. */
  push(samples: Float32Array): Promise<number>;
  /** True once a checkpoint or the limit of net speech ended the stream: nothing more is read. */
  readonly ended: boolean;
  measures(): Promise<Measures>;
  /** The analysis of what was pushed so far; the stream continues. */
  analysis(): Promise<VoiceAnalysis>;
  close(): Promise<void>;
}

/** The quality of one side of a comparison, as measured. */
export interface Quality {
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
  readonly bandwidthHz: number | null;
}

/** One side of a comparison: an embedding and the quality of its audio. */
export interface Voice extends Quality {
  readonly embedding: Float32Array;
}

/** A trained voice, with the revision of the network that made it. */
export interface Template extends Voice {
  readonly revision: string;
  /** Name of the model that made it; absent if not recorded. */
  readonly calibrationModelId?: string;
  /** Only for an adapted print: the enrolled part and the part added by sessions. The template is their mean. */
  readonly grown?: {
    readonly enrolled: Voice;
    readonly sessions: readonly (Voice & { readonly sessionId: string; readonly at: number })[];
  };
}

/** One comparison. */
export interface Score {
  /** Cosine of the two embeddings: the contract's `biometric_score`. */
  readonly raw: number;
  /** Calibrated natural-log likelihood ratio: same person against different people. */
  readonly llr: number;
  /** 0..1: how far the quality and amount of speech allow the ratio to be trusted. */
  readonly reliability: number;
  /** The ratio at a cosine of 0, and at 1 (an identical recording), for this quality; it is linear in between. */
  readonly ratios: { readonly unlike: number; readonly identical: number };
  /** Distribution of impostors at this quality: atanh of their cosine is normal in its upper tail. */
  readonly impostors: { readonly center: number; readonly spread: number };
}

/** What a threshold depends on, besides the rate. */
export type Expectation = Pick<Score, "ratios" | "impostors">;

/** Whether a segment sounds like the others. */
export interface SegmentConsistency {
  /** Mean cosine to the other consistent segments. */
  readonly score: number;
  readonly consistent: boolean;
}

/** The result of training. */
export interface TrainedVoice {
  /** In the order of the given segments. */
  readonly segments: readonly SegmentConsistency[];
  /** `null` when no two segments agree, or none was given. */
  readonly template: Template | null;
}

/** How much audio sounds like an attack. */
export interface AttackScore {
  /** Calibrated log-likelihood ratio: attack against genuine. */
  readonly llr: number;
  /** 0..1 */
  readonly reliability: number;
  /** SHA-256 (hex) of the attack network. */
  readonly revision: string;
  /** The window that sounds most like an attack, and its ratio; `null` if there was no speech. */
  readonly strongest: { readonly startSeconds: number; readonly endSeconds: number; readonly llr: number } | null;
}

/** Checks arriving audio for an attack. Calls run one after the other. */
export interface AttackStream {
  push(samples: Float32Array): Promise<void>;
  /** The score of what was pushed so far; the stream continues. */
  score(): Promise<AttackScore>;
}

/** Attacks that the engine can check for. */
export type AttackKind = "synthetic" | "playback";

/** A print found in a gallery. */
export interface GalleryHit {
  readonly id: string;
  readonly raw: number;
}

/** Searches many templates at once; rows are int8, grown in blocks outside the sealed kernel memory. */
export interface Gallery {
  readonly size: number;
  set(id: string, embedding: Float32Array): void;
  delete(id: string): boolean;
  has(id: string): boolean;
  /** The best `k` by cosine, best first; `only` restricts the search to the given ids. */
  top(embedding: Float32Array, k: number, only?: ReadonlySet<string>): GalleryHit[];
  close(): void;
}

/** What a model says about itself. */
export interface ModelInfo {
  /** For example `vivavoce-2`; with an operator's own calibration, followed by the start of its revision: `vivavoce-2+0123abcd`. */
  readonly calibrationModelId: string;
  /** SHA-256 (hex) of network and front end: templates of another revision are obsolete. */
  readonly revision: string;
  readonly dimensions: number;
  readonly windowSeconds: number;
  /** SHA-256 (hex) of the calibration in use, the model's or an operator's; empty if not fitted. Changing it makes no template obsolete. */
  readonly calibrationRevision: string;
  /** Attack checks that the model supports. */
  readonly attacks: readonly AttackKind[];
}

/** The engine: measures speech, computes embeddings, compares them. Everything runs on this machine. */
export interface Engine {
  readonly model: ModelInfo;
  /** Why no call can be processed at present, in words; absent or `null` if there is no fault. */
  readonly fault?: string | null;
  /** Mono samples in -1..1 at any rate from 4 to 192 kHz. */
  analyze(samples: Float32Array, rateHz: number, options?: AnalyzeOptions): Promise<VoiceAnalysis>;
  /** For arriving audio. */
  stream(rateHz: number, options?: StreamOptions): Promise<VoiceStream>;
  /** Checks consistency, rejects outliers and takes the speech-weighted mean. The order of segments does not change the template. */
  train(segments: readonly Voice[], options?: CallOptions): Promise<TrainedVoice>;
  /** One probe against many templates, in the same order. Templates of another revision are refused. */
  score(templates: readonly Template[], probe: Voice, options?: CallOptions): Promise<Score[]>;
  /** The ratio that impostors exceed at this rate, for the quality of this score; below that of an identical recording. */
  threshold(falseAcceptRate: number, score: Expectation): number;
  /** An empty gallery of this model. */
  gallery(): Gallery;
  /** Rejects with `NotSupportedError` when the model does not have this attack network. */
  attack(kind: AttackKind, samples: Float32Array, rateHz: number, options?: CallOptions): Promise<AttackScore>;
  /** The same for arriving audio. */
  attackStream(kind: AttackKind, rateHz: number, options?: CallOptions): Promise<AttackStream>;
  /** The ratio that genuine speech exceeds at this rate, beyond the margin for low reliability. */
  attackThreshold(kind: AttackKind, falseAlarmRate: number): number;
  close(): Promise<void>;
}
