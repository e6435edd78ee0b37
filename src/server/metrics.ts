import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { ModelInfo } from "../engine/port.js";
import type { FieldRate } from "../voiceprint/field-rates.js";
import { AUDIO_OPERATIONS } from "./audio-operations.js";
import type { LiveCalls } from "./limits/live-calls.js";
import type { WorkQueue } from "./limits/work-queue.js";
import { LoadHistory } from "./operator/load-history.js";

export type Protocol = "http" | "grpc" | "grpc-web" | "connect" | "websocket" | "telephony";

const WRITE_EVERY_MS = 1000;

/** The metrics for Prometheus at /metrics. Labels are names from the contract, never ids of people. */
export class ServerMetrics {
  readonly registry = new Registry();
  /** The same for the last hour, for the operator view. */
  readonly load: LoadHistory;
  readonly #latency: Histogram<"operation" | "protocol" | "status">;
  readonly #decisions: Counter<"operation" | "decision">;
  readonly #queued: Histogram<never>;
  readonly #realTimeFactor: Histogram<"operation">;
  readonly #audioSeconds: Counter<"operation">;
  readonly #uploaded: Counter<never>;
  readonly #certificate: Gauge<never>;
  readonly #promises: ReturnType<typeof promiseGauges>;
  #written: { readonly at: number; readonly text: Promise<string> } | null = null;

  constructor(
    queue: WorkQueue,
    liveCalls: Pick<LiveCalls, "size">,
    /** Read again with each scrape. */
    private readonly fieldRates: () => Promise<readonly FieldRate[]>,
    model?: Pick<ModelInfo, "revision" | "calibrationRevision">,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.load = new LoadHistory(queue);
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry, prefix: "vivavoce_" });
    // Gauges with a counter's name, which promtool refuses; each is the sum of the gauge without "_total".
    for (const kind of ["handles", "requests", "resources"])
      this.registry.removeSingleMetric(`vivavoce_nodejs_active_${kind}_total`);
    const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
      new Counter({ name, help, labelNames, registers });
    const histogram = <Label extends string>(name: string, help: string, buckets: number[], labelNames: Label[] = []) =>
      new Histogram({ name, help, labelNames, buckets, registers });
    this.#latency = histogram(
      "vivavoce_call_seconds",
      "Time from the complete request to its response; of a live call (Listen), its length.",
      [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      ["operation", "protocol", "status"],
    );
    this.#decisions = counter("vivavoce_decisions_total", "Decisions by operation.", ["operation", "decision"]);
    this.#queued = histogram(
      "vivavoce_queue_wait_seconds",
      "Time that audio operations waited for a worker.",
      [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30],
    );
    this.#realTimeFactor = histogram(
      "vivavoce_real_time_factor",
      "Processing time of a recording divided by its length.",
      [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2],
      ["operation"],
    );
    this.#audioSeconds = counter("vivavoce_audio_seconds_total", "Length of processed recordings.", ["operation"]);
    this.#uploaded = counter("vivavoce_uploaded_bytes_total", "Bytes of uploaded recordings.");
    this.#certificate = new Gauge({
      name: "vivavoce_certificate_expiry_timestamp_seconds",
      help: "When the TLS certificate in use expires. Absent without TLS.",
      registers,
    });
    this.#certificate.remove();
    this.#promises = promiseGauges(registers);
    if (model)
      new Gauge({
        name: "vivavoce_model",
        help: "Always 1; the labels name the network and the calibration in use.",
        labelNames: ["revision", "calibration"],
        registers,
      }).set({ revision: model.revision, calibration: model.calibrationRevision }, 1);
    for (const [name, help, value] of [
      ["queue_running", "Audio operations in progress.", () => queue.running],
      ["queue_waiting", "Audio operations waiting for a worker.", () => queue.waiting],
      ["live_calls", "Live calls in progress.", () => liveCalls.size],
    ] as const)
      new Gauge({
        name: `vivavoce_${name}`,
        help,
        registers,
        collect() {
          this.set(value());
        },
      });
  }

  /** All metrics in Prometheus format. Anybody may ask for them as often as they like, so they are written at most once a second. */
  text(): Promise<string> {
    const now = this.now();
    if (!this.#written || now - this.#written.at >= WRITE_EVERY_MS) this.#written = { at: now, text: this.#write() };
    return this.#written.text;
  }

  async #write(): Promise<string> {
    // A store that does not answer must not hide how busy the box is.
    this.#showFieldRates(await this.fieldRates().catch(() => []));
    return this.registry.metrics();
  }

  #showFieldRates(rates: readonly FieldRate[]): void {
    const { comparisons, exceeded, rate, low, high, holds } = this.#promises;
    for (const gauge of Object.values(this.#promises)) gauge.reset();
    for (const { list, promised, met, verdict, ...counted } of rates) {
      const labels = { list, promised: String(promised) };
      comparisons.set(labels, counted.comparisons);
      exceeded.set(labels, counted.exceeded);
      if (met === null) continue;
      rate.set(labels, met.rate);
      low.set(labels, met.low);
      high.set(labels, met.high);
      if (verdict !== "undecided") holds.set(labels, verdict === "holds" ? 1 : 0);
    }
  }

  call(operation: string, protocol: Protocol, status: string, seconds: number): void {
    this.#latency.observe({ operation, protocol, status }, seconds);
    if (AUDIO_OPERATIONS.has(operation)) this.load.answered(seconds);
  }

  decision(operation: string, decision: string): void {
    this.#decisions.inc({ operation, decision });
  }

  queued(seconds: number): void {
    this.#queued.observe(seconds);
  }

  audio(operation: string, audioSeconds: number, workedSeconds: number): void {
    if (!(audioSeconds > 0)) return;
    this.#audioSeconds.inc({ operation }, audioSeconds);
    this.#realTimeFactor.observe({ operation }, workedSeconds / audioSeconds);
    this.load.worked(workedSeconds / audioSeconds);
  }

  certificate(expiresMs: number): void {
    this.#certificate.set(expiresMs / 1000);
  }

  uploaded(bytes: number): void {
    this.#uploaded.inc(bytes);
  }
}

/** Whether the promised rates hold for the actual callers of the box: sums over all replicas. */
function promiseGauges(registers: Registry[]) {
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `vivavoce_${name}`, help, labelNames: ["list", "promised"], registers });
  return {
    comparisons: gauge("impostor_comparisons", "Comparisons with watchlists and groups that found nobody."),
    exceeded: gauge("impostor_exceeded", "How many of these comparisons exceeded the threshold of the promised rate."),
    rate: gauge("impostor_rate", "Measured rate of impostors above the threshold."),
    low: gauge("impostor_rate_low", "Lower end of the 95 % interval of impostor_rate."),
    high: gauge("impostor_rate_high", "Upper end of the 95 % interval of impostor_rate."),
    holds: gauge(
      "promise_holds",
      "1: the rate is within a factor of two of the promise. 0: exceeded; calibrate. Absent: too few comparisons.",
    ),
  };
}
