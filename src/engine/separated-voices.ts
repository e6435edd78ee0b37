/**
 * Separates two people in one channel by voice. Speech is cut into pieces of half a second; three neighbors form a window that tells whose they are.
 * The windows are split into two groups, and every piece joins the group of most windows that contain it. Each person's speech is then embedded again
 * in windows of the usual length, so that scores mean the same as for other recordings.
 */
import { joined } from "../audio/joined.js";
import type { Measures, VoiceAnalysis, VoiceWindow } from "./port.js";
import { pieceFrames, type WindowFeatures, windowPieces } from "./stream-kernel.js";
import type { Threads } from "./threads.js";
import {
  type AnalyzedStream,
  type Conclusion,
  EmbeddedWindows,
  embedWindow,
  type Summaries,
  stateBuffers,
  voiceAnalysis,
  type WindowVoices,
} from "./window-voices.js";

/** Limit of net speech: the features of all pieces are kept. */
export const mostSeparatedSeconds = 120;

export class SeparatedVoices implements WindowVoices {
  readonly #pieces: WindowFeatures[] = [];
  readonly #windows: EmbeddedWindows;
  /** Embeddings by the pieces they contain: later analyses find most of them unchanged. */
  readonly #again = new Map<string, Promise<VoiceWindow>>();

  constructor(
    private readonly threads: Threads,
    private readonly summaries: Summaries,
    /** A window of one person's speech. */
    private readonly longestFrames: number,
  ) {
    this.#windows = new EmbeddedWindows(threads);
  }

  async add(piece: WindowFeatures, signal: AbortSignal, pause: () => Promise<void>): Promise<void> {
    this.#pieces.push(piece);
    if (this.#pieces.length < windowPieces) return;
    await this.#windows.add(windowOf(this.#pieces.slice(-windowPieces)), signal, pause);
  }

  /** The unfinished piece is left out: it is not assigned to anybody yet. */
  async conclude(stream: AnalyzedStream, signal: AbortSignal): Promise<Conclusion> {
    const values = [stream.state, stream.format] as const;
    const { state, measures } = await this.threads.call("peek", [...values], stateBuffers(stream), signal);
    return { state, analysis: await this.#analysis(measures, signal) };
  }

  async #analysis(measures: Measures, signal: AbortSignal): Promise<VoiceAnalysis> {
    const windows = await this.#windows.all();
    const groups = await this.threads.call("partVoices", [windows], [], signal);
    const everything = this.#pieces.map((_, i) => i);
    const owners = ownersOf(groups, this.#pieces.length);
    const parts = [0, 1].map((group) => everything.filter((i) => owners[i] === group));
    const [one, other] = await Promise.all(parts.map((pieces) => this.#voice(measures, pieces, signal)));
    const areTwo = one?.embedding && other?.embedding && (await this.#areTwo(one.embedding, other.embedding, signal));
    const voices = areTwo ? [one, other] : [await this.#voice(measures, everything, signal)].filter(isVoice);
    voices.sort((a, b) => b.measures.netSpeechSeconds - a.measures.netSpeechSeconds);
    const inOrder = voices.flatMap((voice) => voice.windows).sort((a, b) => a.startSeconds - b.startSeconds);
    const whole = await voiceAnalysis(this.summaries, measures, inOrder, signal);
    return { ...whole, speakers: areTwo ? 2 : whole.speakers, voices };
  }

  clear(): void {
    for (const { features } of this.#pieces) features.fill(0);
    this.#pieces.length = 0;
    this.#windows.clear();
    this.#again.clear();
  }

  /** `null` if these pieces are too few for a voice. */
  async #voice(channel: Measures, pieces: readonly number[], signal: AbortSignal): Promise<VoiceAnalysis | null> {
    if (pieces.length < windowPieces) return null;
    const most = Math.floor(this.longestFrames / pieceFrames);
    const windows: Promise<VoiceWindow>[] = [];
    for (let first = 0; first < pieces.length; first += most)
      windows.push(this.#embed(pieces.slice(first, first + most), signal));
    const embedded = await Promise.all(windows);
    const netSpeechSeconds = embedded.reduce((sum, { speechSeconds }) => sum + speechSeconds, 0);
    return voiceAnalysis(this.summaries, { ...channel, netSpeechSeconds }, embedded, signal);
  }

  #embed(pieces: readonly number[], signal: AbortSignal): Promise<VoiceWindow> {
    const key = pieces.join();
    const known = this.#again.get(key);
    if (known) return known;
    const window = windowOf(pieces.map((i) => this.#pieces[i]!));
    const embedded = embedWindow(this.threads, window, signal);
    this.#again.set(key, embedded);
    return embedded;
  }

  #areTwo(one: Float32Array, other: Float32Array, signal: AbortSignal): Promise<boolean> {
    return this.threads.call("areTwoVoices", [one, other], [], signal);
  }
}

const isVoice = (voice: VoiceAnalysis | null): voice is VoiceAnalysis => voice !== null;

/** The group of most windows that contain a piece; of the window centered on it if they are tied. */
function ownersOf(groups: Int32Array, pieces: number): number[] {
  return Array.from({ length: pieces }, (_, piece) => {
    const first = Math.max(0, piece - windowPieces + 1);
    const last = Math.min(groups.length - 1, piece);
    let ones = 0;
    for (let i = first; i <= last; i++) ones += groups[i]!;
    const windows = last - first + 1;
    if (2 * ones !== windows) return 2 * ones > windows ? 1 : 0;
    return groups[Math.min(groups.length - 1, Math.max(0, piece - 1))] ?? 0;
  });
}

function windowOf(pieces: readonly WindowFeatures[]): WindowFeatures {
  return {
    features: joined(pieces.map((piece) => piece.features)),
    speechSeconds: pieces.reduce((sum, piece) => sum + piece.speechSeconds, 0),
    startSeconds: pieces[0]!.startSeconds,
    endSeconds: pieces.at(-1)!.endSeconds,
  };
}
