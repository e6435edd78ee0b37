/**
 * The live calls of a box: how many are allowed, and what the operator sees of each. Never the identity of a speaker.
 */
import { secondsOf } from "../../contract/duration.js";
import { Decision, type ListenResponse } from "../../contract/index.js";

export interface LiveCallView {
  readonly id: string;
  /** `grpc`, `websocket`, or the name of a telephone line. */
  readonly from: string;
  readonly startedAt: number;
  readonly grossSeconds: number;
  readonly netSpeechSeconds: number;
  /** The highest score at the last checkpoint that has one. */
  readonly score: number | null;
  /** At the last checkpoint, final or not. */
  readonly decision: string | null;
}

export class LiveCallEntry {
  grossSeconds = 0;
  netSpeechSeconds = 0;
  score: number | null = null;
  decision: string | null = null;

  constructor(
    readonly id: string,
    readonly from: string,
    readonly startedAt: number,
    readonly scope: string,
    /** The party that is shown, if there are two: the first. */
    readonly party: string,
    /** Ends the audio, so that the results are computed. */
    readonly onEnd: () => void,
    readonly leave: () => void,
  ) {}

  observe({ party, event }: ListenResponse): void {
    if (party !== this.party) return;
    if (event.case === "progress") {
      this.grossSeconds = secondsOf(event.value.grossAudio);
      this.netSpeechSeconds = secondsOf(event.value.netAudio);
    } else if (event.case === "checkpoint") {
      this.netSpeechSeconds = secondsOf(event.value.netAudio);
      this.score = event.value.biometricScore ?? this.score;
      this.decision = Decision[event.value.decision] ?? null;
    }
  }
}

export class LiveCalls {
  readonly #open = new Set<LiveCallEntry>();

  constructor(
    readonly capacity: number,
    /** Places that the calls of one scope may take. */
    readonly perScope: number = capacity,
  ) {}

  get size(): number {
    return this.#open.size;
  }

  /** Why there is no place for a call of this scope; `null` if there is one. */
  fullFor(scope: string): string | null {
    if (this.#open.size >= this.capacity) return `all ${this.capacity} live calls are in use`;
    let ofScope = 0;
    for (const entry of this.#open) if (entry.scope === scope) ofScope++;
    return ofScope >= this.perScope ? `all ${this.perScope} live calls of this scope are in use` : null;
  }

  /** Takes a place; `fullFor` says whether there is one. */
  enter(id: string, from: string, scope: string, party: string, onEnd: () => void): LiveCallEntry {
    const leave = () => this.#open.delete(entry);
    const entry: LiveCallEntry = new LiveCallEntry(id, from, Date.now(), scope, party, onEnd, leave);
    this.#open.add(entry);
    return entry;
  }

  /** Ends the audio of every call; each returns the results so far. */
  endAll(): void {
    for (const entry of this.#open) entry.onEnd();
  }

  /** Oldest first. */
  list(): LiveCallView[] {
    return [...this.#open].map(({ scope: _, party: __, onEnd: ___, leave: ____, ...view }) => view);
  }
}
