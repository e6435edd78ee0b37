/** Processes a recording while it is made: measures it, and scores it against the candidate voices. */

import { joined } from "../audio/joined.js";
import type { Engine, Measures, Score, Template, VoiceStream } from "../engine/port.js";

export interface AnalysisEvents {
  readonly measured: (measures: Measures) => void;
  /** In the order of the templates. */
  readonly scored: (templates: readonly Template[], scores: readonly Score[]) => void;
  readonly failed: (error: unknown) => void;
}

/** Net speech between two scores. */
const scoreEverySeconds = 0.5;
const leastSpeechSeconds = 1;

export class LiveAnalysis {
  #waiting: Float32Array[] = [];
  #under: Promise<void> | null = null;
  #stream: VoiceStream | null = null;
  #scoredAt = 0;
  #open = true;

  constructor(
    private readonly engine: Promise<Engine>,
    private readonly rateHz: number,
    /** Asked for each score, because the person may choose another name meanwhile. */
    private readonly templates: () => readonly Template[],
    private readonly events: AnalysisEvents,
  ) {}

  /** Never waits: samples that arrive while the engine is busy or loading are processed with the next chunk. */
  push(samples: Float32Array): void {
    this.#waiting.push(samples);
    this.#under ??= this.#analyze().finally(() => {
      this.#under = null;
    });
  }

  /** Processes the rest and scores all of it. The check gets the same samples, so the score is the same. */
  async finish(): Promise<void> {
    await this.#under;
    if (!this.#open || !this.#stream) return;
    this.#scoredAt = Number.NEGATIVE_INFINITY;
    try {
      await this.#score(await this.engine, this.#stream, Number.POSITIVE_INFINITY);
    } catch (error) {
      this.events.failed(error);
    }
    await this.close();
  }

  async close(): Promise<void> {
    this.#open = false;
    this.#waiting = [];
    await this.#under;
    await this.#stream?.close();
  }

  async #analyze(): Promise<void> {
    try {
      const engine = await this.engine;
      this.#stream ??= await engine.stream(this.rateHz);
      while (this.#open && this.#waiting.length > 0) {
        const netSpeechSeconds = await this.#stream.push(joined(this.#waiting.splice(0)));
        const measures = await this.#stream.measures();
        if (!this.#open) return;
        this.events.measured(measures);
        await this.#score(engine, this.#stream, netSpeechSeconds);
      }
    } catch (error) {
      if (this.#open) this.events.failed(error);
      this.#open = false;
    }
  }

  async #score(engine: Engine, stream: VoiceStream, netSpeechSeconds: number): Promise<void> {
    const due = Math.max(leastSpeechSeconds, this.#scoredAt + scoreEverySeconds);
    const templates = this.templates();
    if (templates.length === 0 || netSpeechSeconds < due) return;
    this.#scoredAt = netSpeechSeconds;
    const { embedding, measures } = await stream.analysis();
    if (!embedding) return;
    const scores = await engine.score(templates, { embedding, ...measures });
    if (this.#open) this.events.scored(templates, scores);
  }
}
