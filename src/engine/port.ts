/**
 * What the rest of vivavoce asks of an engine. The pool (workers) and the in-thread engine both implement it.
 * PCM handed in is transferred where it can be: the caller's array becomes empty.
 */

/** What was measured of a recording. `null` where the recording gives no answer (no speech: no level, no SNR). */
export interface Measures {
  readonly rateHz: number;
  readonly grossSeconds: number;
  readonly netSpeechSeconds: number;
  /** ITU-T P.56 active speech level, dB relative to overload. */
  readonly speechLevelDb: number | null;
  readonly snrDb: number | null;
  readonly saturatedPerMinute: number;
  /** Saturated samples over all samples. */
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

/** Everything that is kept of a recording; never audio. */
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
   * Of a stream that separates voices, each by itself, most speech first; two at most. Their net speech is their own, the other measures are the
   * channel's.
   */
  readonly voices?: readonly VoiceAnalysis[];
}

/** How long a call may take, and how it is given up. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** How much of a recording is heard. */
export interface AnalyzeOptions extends CallOptions {
  /** Stop after this much net speech; the rest of the recording is not read. */
  readonly maxNetSpeechSeconds?: number;
}

/** When a stream is looked at while it arrives. The place is the same in any chunking, and so is what is found there. */
export interface Checkpoints {
  /** Net speech, ascending. */
  readonly seconds: readonly number[];
  /** True ends the stream: it reads nothing more, and what was heard so far is its analysis. */
  readonly look: (analysis: VoiceAnalysis) => Promise<boolean>;
}

/** How much is heard of audio that is still arriving, and when it is looked at. */
export interface StreamOptions extends AnalyzeOptions {
  readonly checkpoints?: Checkpoints;
  /** Two people may speak: tells them apart, in the first two minutes of speech. */
  readonly separateVoices?: boolean;
}

/** A recording that arrives in chunks. The same samples give the same analysis in any chunking, and as one shot. */
export interface VoiceStream {
  /** Mono samples in -1..1 at the stream's rate. Resolves to the net speech heard so far, after the looks that it led to. */
  push(samples: Float32Array): Promise<number>;
  /** A look ended it, or the limit of net speech: nothing more is read. */
  readonly ended: boolean;
  measures(): Promise<Measures>;
  /** The analysis of what was pushed so far; the stream goes on. */
  analysis(): Promise<VoiceAnalysis>;
  close(): Promise<void>;
}

/** The quality of one side of a comparison, as measured. */
export interface Quality {
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
  readonly bandwidthHz: number | null;
}

/** What was heard of somebody: an embedding and how well it was heard. */
export interface Voice extends Quality {
  readonly embedding: Float32Array;
}

/** A trained voice, with the network that made it. */
export interface Template extends Voice {
  readonly revision: string;
  /** Name of the model that made it; absent where it was not noted. */
  readonly calibrationModelId?: string;
  /** Of a print that took in sessions: what was enrolled and what they added, whose mean this is. */
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
  /** 0..1: how far quality and amount of speech let the ratio be trusted. */
  readonly reliability: number;
  /** The ratio of a cosine of 0, and of 1 (an identical recording), heard as well as these two; it is straight between them. */
  readonly ratios: { readonly unlike: number; readonly identical: number };
  /** Where impostors lie who are heard as well as these two: atanh of their cosine is normal in its upper tail. */
  readonly impostors: { readonly center: number; readonly spread: number };
}

/** What a threshold follows from, besides the rate. */
export type Expectation = Pick<Score, "ratios" | "impostors">;

/** Whether a segment sounds like the others. */
export interface SegmentConsistency {
  /** Mean cosine to the other consistent segments. */
  readonly score: number;
  readonly consistent: boolean;
}

/** What training made of segments. */
export interface TrainedVoice {
  /** In the order of the segments given. */
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
  /** The window that sounds most like an attack, and its own ratio; `null` where no speech was heard. */
  readonly strongest: { readonly startSeconds: number; readonly endSeconds: number; readonly llr: number } | null;
}

/** Audio checked for an attack as it arrives: calls follow one another. */
export interface AttackStream {
  push(samples: Float32Array): Promise<void>;
  /** Of what was pushed so far; the stream goes on. */
  score(): Promise<AttackScore>;
}

/** What the engine can be asked to check audio for. */
export type AttackKind = "synthetic" | "playback";

/** A print of a gallery that was found. */
export interface GalleryHit {
  readonly id: string;
  readonly raw: number;
}

/** Many templates searched at once; rows are int8, grown in blocks outside the sealed kernel memory. */
export interface Gallery {
  readonly size: number;
  set(id: string, embedding: Float32Array): void;
  delete(id: string): boolean;
  has(id: string): boolean;
  /** The best `k` by cosine, best first; `only` restricts the search to these ids. */
  top(embedding: Float32Array, k: number, only?: ReadonlySet<string>): GalleryHit[];
  close(): void;
}

/** What a model says of itself. */
export interface ModelInfo {
  /** Such as `vivavoce-2`; with a calibration of the operator's own, its revision's beginning behind it: `vivavoce-2+0123abcd`. */
  readonly calibrationModelId: string;
  /** SHA-256 (hex) of network and front end: templates of another revision are obsolete. */
  readonly revision: string;
  readonly dimensions: number;
  readonly windowSeconds: number;
  /** SHA-256 (hex) of the calibration in use, the model's or an operator's own; empty where it is not fitted. Another makes no template obsolete. */
  readonly calibrationRevision: string;
  /** Which attack checks the model carries. */
  readonly attacks: readonly AttackKind[];
}

/** What listens: measures speech, makes embeddings of it, compares them. Everything on this machine. */
export interface Engine {
  readonly model: ModelInfo;
  /** Why no call can be worked on at present, in words; absent or `null` while all is well. */
  readonly fault?: string | null;
  /** Mono samples in -1..1 at any rate from 4 to 192 kHz. */
  analyze(samples: Float32Array, rateHz: number, options?: AnalyzeOptions): Promise<VoiceAnalysis>;
  /** For audio that is still arriving. */
  stream(rateHz: number, options?: StreamOptions): Promise<VoiceStream>;
  /** Consistency, outlier rejection, speech-weighted mean. The order of segments does not change the template. */
  train(segments: readonly Voice[], options?: CallOptions): Promise<TrainedVoice>;
  /** One probe against many templates, in their order. Templates of another revision are refused. */
  score(templates: readonly Template[], probe: Voice, options?: CallOptions): Promise<Score[]>;
  /** The ratio that impostors exceed at this rate, heard as well as in this score: below that of an identical recording. */
  threshold(falseAcceptRate: number, score: Expectation): number;
  /** An empty gallery of this model. */
  gallery(): Gallery;
  /** Rejects with `NotSupportedError` when the model does not carry this attack network. */
  attack(kind: AttackKind, samples: Float32Array, rateHz: number, options?: CallOptions): Promise<AttackScore>;
  /** The same for audio that arrives in parts. */
  attackStream(kind: AttackKind, rateHz: number, options?: CallOptions): Promise<AttackStream>;
  /** The ratio that genuine speech exceeds at this rate, by more than what its reliability leaves open. */
  attackThreshold(kind: AttackKind, falseAlarmRate: number): number;
  close(): Promise<void>;
}
