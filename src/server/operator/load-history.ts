import type { WorkQueue } from "../limits/work-queue.js";
import type { LoadSpan, Spread } from "./view.js";

/**
 * Bins grow by a tenth, starting at a tenth of a millisecond (or of a thousandth): a quantile is wrong by at most a
 * twentieth.
 */
const SMALLEST = 1e-4;
const GROWTH = Math.log(1.1);
const BINS = 180;

/** A histogram with bins of growing width: quantiles in bounded memory. */
export class Spreading {
  readonly #counts = new Uint32Array(BINS);
  #total = 0;

  add(value: number): void {
    if (!(value >= 0)) return;
    const bin = value <= SMALLEST ? 0 : Math.floor(Math.log(value / SMALLEST) / GROWTH);
    this.#counts[Math.min(BINS - 1, bin)]! += 1;
    this.#total++;
  }

  quantile(share: number): number | null {
    if (this.#total === 0) return null;
    let left = Math.max(1, Math.ceil(share * this.#total));
    const bin = this.#counts.findIndex((count) => {
      left -= count;
      return left <= 0;
    });
    return SMALLEST * Math.exp((bin + 0.5) * GROWTH);
  }

  get spread(): Spread | null {
    const [median, p95] = [this.quantile(0.5), this.quantile(0.95)];
    return median === null || p95 === null ? null : { median, p95 };
  }
}

interface Span {
  readonly at: number;
  calls: number;
  running: number;
  waiting: number;
  latency: Spreading | null;
  realTimeFactor: Spreading | null;
}

/** The last hour of this process in spans of ten seconds: audio operations, their duration, the length of the queue. */
export class LoadHistory {
  readonly #spans: Span[] = [];

  constructor(
    readonly queue: Pick<WorkQueue, "running" | "waiting">,
    readonly now: () => number = Date.now,
    readonly spanMs = 10_000,
    readonly most = 360,
  ) {}

  /** From the complete request to its response. */
  answered(seconds: number): void {
    const span = this.sample();
    span.calls++;
    span.latency ??= new Spreading();
    span.latency.add(seconds);
  }

  /** Processing time of a recording divided by its length. */
  worked(realTimeFactor: number): void {
    const span = this.sample();
    span.realTimeFactor ??= new Spreading();
    span.realTimeFactor.add(realTimeFactor);
  }

  /**
   * Samples the queue. Also called every second; otherwise a queue that fills between two responses would not be seen.
   */
  sample(): Span {
    const at = Math.floor(this.now() / this.spanMs) * this.spanMs;
    let span = this.#spans.at(-1);
    // After the clock was set back, the current span continues.
    if (!span || span.at < at) {
      span = { at, calls: 0, running: 0, waiting: 0, latency: null, realTimeFactor: null };
      this.#spans.push(span);
      if (this.#spans.length > this.most) this.#spans.shift();
    }
    span.running = Math.max(span.running, this.queue.running);
    span.waiting = Math.max(span.waiting, this.queue.waiting);
    return span;
  }

  /** Spans that began at `since` or later, oldest first; the newest is still growing. */
  since(since: number): LoadSpan[] {
    return this.#spans
      .filter(({ at }) => at >= since)
      .map(({ latency, realTimeFactor, ...span }) => ({
        ...span,
        latency: latency?.spread ?? null,
        realTimeFactor: realTimeFactor?.spread ?? null,
      }));
  }
}
