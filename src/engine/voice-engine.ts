import { typeName } from "../type-name.js";
import { AttackListening } from "./attack-check.js";
import { type AttackModel, reachOf } from "./attack-network.js";
import { analyzeOptions, callOptions, checkOptions, inCall, streamOptions } from "./call.js";
import { badArgument, EngineError, NotSupportedError } from "./engine-error.js";
import { checkSampleArray, EngineStream, type StreamModel } from "./engine-stream.js";
import { WasmGallery } from "./gallery.js";
import { Kernels } from "./kernels.js";
import type {
  AnalyzeOptions,
  AttackKind,
  AttackScore,
  AttackStream,
  CallOptions,
  Engine,
  Expectation,
  Gallery,
  ModelInfo,
  Score,
  StreamOptions,
  Template,
  TrainedVoice,
  Voice,
  VoiceAnalysis,
  VoiceStream,
} from "./port.js";
import { Scoring } from "./scoring.js";
import type { ThreadModel } from "./thread-work.js";
import type { Threads } from "./threads.js";

/** Comparing this few takes less time than asking another thread. */
const fewTemplates = 64;
const fewWindows = 16;

/** No attack is reported below a likelihood ratio of e. */
const leastAttackThreshold = 1;

/** The engine on any kind of threads. Fast operations (thresholds, galleries) run here, the others on the threads. */
export class VoiceEngine implements Engine {
  readonly #scoring: Scoring;
  readonly #attacks: readonly AttackModel[];
  readonly #galleries = new Set<WasmGallery>();
  #closed = false;

  constructor(
    readonly model: ModelInfo,
    { scoring, attacks }: ThreadModel,
    private readonly module: WebAssembly.Module,
    private readonly threads: Threads,
  ) {
    const kernels = new Kernels(module);
    this.#scoring = new Scoring(kernels, scoring);
    kernels.run.seal();
    this.#attacks = attacks;
  }

  get fault(): string | null {
    return this.threads.fault ?? null;
  }

  async analyze(samples: Float32Array, rateHz: number, options: AnalyzeOptions = {}): Promise<VoiceAnalysis> {
    checkOptions(options, analyzeOptions);
    checkSampleArray(samples);
    const stream = new EngineStream(this.threads, rateHz, this.#streamModel(), options);
    return inCall(this.threads, options, async (signal, pause) => {
      await stream.advance(samples, signal, pause);
      return stream.conclude(signal);
    });
  }

  async stream(rateHz: number, options: StreamOptions = {}): Promise<VoiceStream> {
    if (this.#closed) throw new EngineError("CLOSED", "the engine is closed");
    checkOptions(options, streamOptions);
    return new EngineStream(this.threads, rateHz, this.#streamModel(), options);
  }

  async train(segments: readonly Voice[], options: CallOptions = {}): Promise<TrainedVoice> {
    checkOptions(options, callOptions);
    checkVoices(segments, "segments");
    return inCall(this.threads, options, (signal) => this.threads.call("train", [segments], [], signal));
  }

  async score(templates: readonly Template[], probe: Voice, options: CallOptions = {}): Promise<Score[]> {
    checkOptions(options, callOptions);
    checkVoices(templates, "templates");
    checkVoices([probe], "the voice to compare");
    return inCall(this.threads, options, async (signal) => {
      if (templates.length <= fewTemplates) return this.#scoring.scores(templates, probe);
      // The parts of an adapted print are not compared, so they need not cross threads.
      const compared = templates.map(({ grown: _, ...template }) => template);
      return this.threads.call("scores", [compared, probe], [], signal);
    });
  }

  threshold(falseAcceptRate: number, score: Expectation): number {
    return this.#scoring.threshold(falseAcceptRate, score);
  }

  gallery(): Gallery {
    if (this.#closed) throw new EngineError("CLOSED", "the engine is closed");
    const gallery = new WasmGallery(this.module, this.model.dimensions, "int8", () => this.#galleries.delete(gallery));
    this.#galleries.add(gallery);
    return gallery;
  }

  async attack(
    kind: AttackKind,
    samples: Float32Array,
    rateHz: number,
    options: CallOptions = {},
  ): Promise<AttackScore> {
    const stream = this.#attackListening(kind, rateHz, options);
    checkSampleArray(samples);
    return stream.all(samples);
  }

  async attackStream(kind: AttackKind, rateHz: number, options: CallOptions = {}): Promise<AttackStream> {
    return this.#attackListening(kind, rateHz, options);
  }

  attackThreshold(kind: AttackKind, falseAlarmRate: number): number {
    const { genuine } = this.#attackModel(kind);
    if (!(falseAlarmRate > 0 && falseAlarmRate < 1))
      throw badArgument(`the false-alarm rate must be above 0 and below 1, got ${falseAlarmRate}`);
    // A lower limit: sources unlike those measured reach higher ratios with genuine speech (training/spoof/LOG.md 16).
    return Math.max(leastAttackThreshold, reachOf(genuine, falseAlarmRate));
  }

  #streamModel(): StreamModel {
    const { revision, windowSeconds } = this.model;
    return {
      revision,
      windowSeconds,
      summarize: async (windows, signal) =>
        windows.length <= fewWindows
          ? this.#scoring.summarize(windows)
          : this.threads.call("summarize", [windows], [], signal),
    };
  }

  #attackModel(kind: AttackKind): AttackModel {
    const model = this.#attacks.find((carried) => carried.kind === kind);
    if (!model)
      throw new NotSupportedError(`the model ${this.model.calibrationModelId} has no network for ${kind} attacks`);
    return model;
  }

  #attackListening(kind: AttackKind, rateHz: number, options: CallOptions): AttackListening {
    if (this.#closed) throw new EngineError("CLOSED", "the engine is closed");
    checkOptions(options, callOptions);
    return new AttackListening(this.threads, this.#attackModel(kind), rateHz, options);
  }

  /** WebAssembly memory of the threads, in bytes. */
  async memoryBytes(): Promise<number> {
    return inCall(this.threads, {}, async (signal) => {
      const one = await this.threads.call("memoryBytes", [], [], signal);
      return one * this.threads.parallel;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const gallery of this.#galleries) gallery.close();
    await this.threads.close();
  }
}

function checkVoices(list: unknown, what: string): void {
  if (!Array.isArray(list)) throw badArgument(`${what} must be a list, got ${typeName(list)}`);
  for (const voice of list)
    if (typeof voice !== "object" || voice === null)
      throw badArgument(`${what} must have an embedding and its measures, got ${typeName(voice)}`);
}
