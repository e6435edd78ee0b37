/**
 * Checks arriving audio for one kind of attack. Every window of speech is scored. The audio is an attack if all of it is (by the mean of the
 * windows) or if one stretch is: a spliced word, or an attack that begins late.
 */
import { joined } from "../audio/joined.js";
import { type AttackModel, attackWindowFrames } from "./attack-network.js";
import { checkRate, checkSampleArray, piece } from "./engine-stream.js";
import type { AttackScore, AttackStream, CallOptions, VoiceWindow } from "./port.js";
import type { StreamFormat, StreamState, WindowFeatures } from "./stream-kernel.js";
import type { Threads } from "./threads.js";
import { Turns, type TurnWork } from "./turns.js";

/** Seconds of speech at which the reliability reaches one half. */
const halfKnownSeconds = 2;
/** The assumed share of attacks in which only one stretch of otherwise genuine speech is fake. */
const shareOfStretches = 0.1;
/** Audio is processed in pieces of at least this many seconds, because the stream's state travels to a thread with each piece. */
const leastPieceSeconds = 1;

export interface ScoredWindow extends Omit<VoiceWindow, "embedding"> {
  readonly score: number;
}

const reliabilityOf = (speechSeconds: number) => speechSeconds / (speechSeconds + halfKnownSeconds);

/**
 * The likelihood ratio of an attack against genuine speech. Either all windows are the attack (mean of their scores), or one unknown window is
 * (mean of their ratios). The mean of ratios keeps long genuine calls from raising more false alarms than short ones.
 */
export function attackScore(windows: readonly ScoredWindow[], { revision, slope, offset }: AttackModel): AttackScore {
  const llr = ({ score }: Pick<ScoredWindow, "score">) => slope * score + offset;
  const [first, ...others] = windows;
  // With too little speech, the ratio and the reliability are 0.
  if (!first) return { llr: 0, reliability: 0, revision, strongest: null };
  const seconds = windows.reduce((sum, { speechSeconds }) => sum + speechSeconds, 0);
  const mean = windows.reduce((sum, { score, speechSeconds }) => sum + score * speechSeconds, 0) / seconds;
  const worst = others.reduce((most, window) => (window.score > most.score ? window : most), first);
  const top = llr(worst);
  const ratios = windows.reduce((sum, window) => sum + Math.exp(llr(window) - top), 0) / windows.length;
  const whole = Math.log(1 - shareOfStretches) + llr({ score: mean });
  const stretch = Math.log(shareOfStretches) + top + Math.log(ratios);
  const most = Math.max(whole, stretch);
  const both = most + Math.log(Math.exp(whole - most) + Math.exp(stretch - most));
  const ofWhole = Math.exp(whole - both);
  const { startSeconds, endSeconds } = worst;
  return {
    llr: both,
    reliability: ofWhole * reliabilityOf(seconds) + (1 - ofWhole) * reliabilityOf(worst.speechSeconds),
    revision,
    strongest: { startSeconds, endSeconds, llr: top },
  };
}

export class AttackListening implements AttackStream {
  readonly #format: StreamFormat;
  readonly #windows: ScoredWindow[] = [];
  #state: StreamState | null = null;
  #waiting: Float32Array[] = [];
  #waitingSamples = 0;
  readonly #turns: Turns;

  constructor(
    private readonly threads: Threads,
    private readonly model: AttackModel,
    rateHz: number,
    options: CallOptions,
  ) {
    checkRate(rateHz);
    this.#turns = new Turns(threads, options);
    const { rows, lowered } = model;
    this.#format = { rateHz, maxSpeechSeconds: 0, windowFrames: attackWindowFrames, rows, lowered };
  }

  async push(samples: Float32Array): Promise<void> {
    checkSampleArray(samples);
    if (this.#waitingSamples + samples.length < leastPieceSeconds * this.#format.rateHz) return this.#wait(samples);
    await this.#turns.next(() => {
      this.#wait(samples);
      const taken = this.#taken();
      return (signal, pause) => this.#advance(taken, signal, pause);
    });
  }

  score(): Promise<AttackScore> {
    return this.#turns.next(() => this.#scoreWith(this.#taken()));
  }

  /** The score of a whole recording. */
  all(samples: Float32Array): Promise<AttackScore> {
    return this.#turns.next(() => this.#scoreWith(samples));
  }

  #scoreWith(samples: Float32Array): TurnWork<AttackScore> {
    return async (signal, pause) => {
      await this.#advance(samples, signal, pause);
      const { tail } = await this.threads.call("peek", [this.#state, this.#format], [], signal);
      const last = tail && (await this.#scored(tail, signal));
      return attackScore(last ? [...this.#windows, last] : this.#windows, this.model);
    };
  }

  #wait(samples: Float32Array): void {
    this.#waiting.push(samples.slice());
    this.#waitingSamples += samples.length;
  }

  #taken(): Float32Array {
    const samples = joined(this.#waiting);
    for (const part of this.#waiting) part.fill(0);
    this.#waiting = [];
    this.#waitingSamples = 0;
    return samples;
  }

  async #advance(samples: Float32Array, signal: AbortSignal, pause: () => Promise<void>): Promise<void> {
    checkSampleArray(samples);
    const { length } = samples;
    for (let first = 0; first < length; first += piece) {
      await pause();
      checkSampleArray(samples);
      const part = samples.slice(first, first + piece);
      const moved = [part.buffer, ...(this.#state ? [this.#state.buffer] : [])] as ArrayBuffer[];
      const advanced = await this.threads.call("advance", [this.#state, this.#format, part], moved, signal);
      this.#state = advanced.state;
      for (const window of advanced.windows) {
        const scored = await this.#scored(window, signal);
        if (scored) this.#windows.push(scored);
      }
    }
  }

  async #scored({ features, ...window }: WindowFeatures, signal: AbortSignal): Promise<ScoredWindow | null> {
    const score = await this.threads.call("attackScore", [this.model.kind, features], [features.buffer], signal);
    return score === null ? null : { ...window, score };
  }
}
