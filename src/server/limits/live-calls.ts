/** The live calls of a box: how many there may be, and what the operator may see of each. Never who speaks. */
import type { Duration } from "@bufbuild/protobuf/wkt";
import { Decision, type ListenResponse } from "../../contract/index.js";

export interface LiveCallView {
  readonly id: string;
  /** `grpc`, `websocket`, or the name of a telephone line. */
  readonly from: string;
  readonly startedAt: number;
  readonly grossSeconds: number;
  readonly netSpeechSeconds: number;
  /** The best score of the last checkpoint or result. */
  readonly score: number | null;
  /** The last one, final or not. */
  readonly decision: string | null;
}

export interface LiveCallEntry {
  observe(response: ListenResponse): void;
  /** Gross seconds since speech was last heard. */
  readonly silentSeconds: number;
  /** Ends the audio: the results are due. */
  readonly onEnd: (() => void) | null;
  leave(): void;
}

class Entry implements LiveCallEntry {
  grossSeconds = 0;
  netSpeechSeconds = 0;
  score: number | null = null;
  decision: string | null = null;
  #speechAt = 0;

  constructor(
    readonly id: string,
    readonly from: string,
    readonly startedAt: number,
    readonly onEnd: () => void,
    readonly leave: () => void,
  ) {}

  get silentSeconds(): number {
    return this.grossSeconds - this.#speechAt;
  }

  observe({ event }: ListenResponse): void {
    if (event.case === "progress") {
      this.grossSeconds = seconds(event.value.grossAudio);
      const net = seconds(event.value.netAudio);
      if (net !== this.netSpeechSeconds) this.#speechAt = this.grossSeconds;
      this.netSpeechSeconds = net;
    } else if (event.case === "checkpoint") {
      this.netSpeechSeconds = seconds(event.value.netAudio);
      this.score = event.value.biometricScore ?? this.score;
      this.decision = Decision[event.value.decision] ?? null;
    }
  }
}

export class LiveCalls {
  readonly #open = new Set<Entry>();

  constructor(
    readonly capacity: number,
    readonly now: () => number = () => Date.now(),
  ) {}

  get count(): number {
    return this.#open.size;
  }

  /** `null` when there is no room. */
  enter(id: string, from: string, onEnd: () => void): LiveCallEntry | null {
    if (this.#open.size >= this.capacity) return null;
    const entry: Entry = new Entry(id, from, this.now(), onEnd, () => this.#open.delete(entry));
    this.#open.add(entry);
    return entry;
  }

  /** Ends the audio of all: each answers with what it has heard. */
  endAll(): void {
    for (const entry of this.#open) entry.onEnd();
  }

  /** Oldest first. */
  list(): LiveCallView[] {
    return [...this.#open].map(({ id, from, startedAt, grossSeconds, netSpeechSeconds, score, decision }) => ({
      id,
      from,
      startedAt,
      grossSeconds,
      netSpeechSeconds,
      score,
      decision,
    }));
  }
}

const seconds = (time: Duration | undefined): number => (time ? Number(time.seconds) + time.nanos / 1e9 : 0);
