/** Templates, scores and the summary of a voice, computed by the kernels of assembly/score. */
import { typeName } from "../type-name.js";
import { type Calibration, featureNames, leastSpread, type Term } from "./calibration.js";
import { badArgument, badModel, EngineError } from "./engine-error.js";
import type { Kernels } from "./kernels.js";
import type { VoiceClassAxis } from "./model-file.js";
import type { Expectation, Score, Template, TrainedVoice, Voice, VoiceAnalysis, VoiceWindow } from "./port.js";

/** What scoring needs from a model. Crosses threads. */
export interface ScoringModel {
  readonly dimensions: number;
  readonly revision: string;
  readonly voiceClass: VoiceClassAxis | null;
  readonly calibration: Calibration;
}

/** Summary of the windows of a recording. */
export type VoiceSummary = Pick<VoiceAnalysis, "embedding" | "voiceClass" | "speakers">;

/** Checks that this is a unit vector of the model's length: nothing else is ever scored. */
export function checkEmbedding(embedding: Float32Array, dimensions: number): void {
  if (!(embedding instanceof Float32Array) || embedding.length !== dimensions) {
    const got = embedding instanceof Float32Array ? `${embedding.length} numbers` : typeName(embedding);
    throw new EngineError(
      "BAD_EMBEDDING",
      `expected an embedding of ${dimensions} numbers in a Float32Array, got ${got}`,
    );
  }
  let square = 0;
  for (const value of embedding) square += value * value;
  if (!(Math.abs(square - 1) < 1e-3))
    throw new EngineError("BAD_EMBEDDING", `an embedding must have unit length, got ${Math.sqrt(square)}`);
}

/** The kernels take what is not a number as not measured, and a template would carry it on. */
function checkMeasures({ netSpeechSeconds, snrDb, bandwidthHz }: Omit<Voice, "embedding">): void {
  if (!(netSpeechSeconds >= 0 && Number.isFinite(netSpeechSeconds)))
    throw badArgument(`netSpeechSeconds must be at least 0, got ${netSpeechSeconds}`);
  for (const [name, value] of Object.entries({ snrDb, bandwidthHz }))
    if (value !== null && !Number.isFinite(value))
      throw badArgument(`${name} must be a number, or null if it was not measured, got ${value}`);
}

function measured(value: number | null): number {
  return value === null ? Number.NaN : value;
}

/** The mean of the measured values, weighted by speech; null if there are none. */
function weightedMean(voices: readonly Voice[], measure: (voice: Voice) => number | null): number | null {
  let sum = 0;
  let weight = 0;
  for (const voice of voices) {
    const value = measure(voice);
    if (value === null) continue;
    sum += value * voice.netSpeechSeconds;
    weight += voice.netSpeechSeconds;
  }
  return weight > 0 ? sum / weight : null;
}

export class Scoring {
  readonly #kernels: Kernels;
  readonly #model: ScoringModel;

  /** Reserves its slots. The kernels must not be sealed yet. */
  constructor(kernels: Kernels, model: ScoringModel) {
    this.#kernels = kernels;
    this.#model = model;
    const { run } = kernels;
    const { dimensions, voiceClass, calibration } = model;
    if (dimensions % 16 !== 0 || dimensions > 512)
      throw badModel(`the embedding length must be a multiple of 16 up to 512, got ${dimensions}`);
    run.reserveScoring(dimensions);
    run.reserveCalibration();
    if (voiceClass) {
      if (voiceClass.axis.length !== dimensions || voiceClass.quantiles.length < 2)
        throw badModel(`the voice class axis must have ${dimensions} numbers and at least 2 quantiles`);
      run.reserveVoiceClass(dimensions, voiceClass.quantiles.length);
      kernels.writeFloats(run.voiceClassAxis(), voiceClass.axis);
      kernels.writeFloats(run.voiceClassQuantiles(), voiceClass.quantiles);
    }
    const { terms, reliability, impostors } = calibration;
    this.#writeTerms([...terms, ...reliability, ...impostors.center, ...impostors.spread]);
  }

  #writeTerms(terms: readonly Term[]): void {
    const { run } = this.#kernels;
    if (terms.length > run.calibrationMaxTerms())
      throw badModel(`the calibration has ${terms.length} terms; at most ${run.calibrationMaxTerms()} are supported`);
    const bytes = new DataView(new ArrayBuffer(16 * terms.length));
    for (const [i, [a, b, weight]] of terms.entries()) {
      bytes.setInt32(16 * i, featureNames.indexOf(a), true);
      bytes.setInt32(16 * i + 4, featureNames.indexOf(b), true);
      bytes.setFloat64(16 * i + 8, weight, true);
    }
    this.#kernels.write(run.calibrationTerms(), new Uint8Array(bytes.buffer));
  }

  #writeRows(rows: readonly { readonly embedding: Float32Array }[], weights: readonly number[]): void {
    const { run } = this.#kernels;
    const { dimensions } = this.#model;
    for (const [i, { embedding }] of rows.entries()) {
      checkEmbedding(embedding, dimensions);
      this.#kernels.writeFloats(run.scoringRows() + 4 * dimensions * i, embedding);
    }
    this.#kernels.writeFloats(run.scoringWeights(), weights);
  }

  /** The order of the segments changes neither the template nor the results per segment. */
  train(segments: readonly Voice[]): TrainedVoice {
    const { run } = this.#kernels;
    const { dimensions, revision, calibration } = this.#model;
    const n = segments.length;
    if (n === 0) return { segments: [], template: null };
    if (n > run.scoringMostRows())
      throw new EngineError(
        "TOO_MANY_SEGMENTS",
        `a template can be trained from at most ${run.scoringMostRows()} segments, got ${n}`,
      );
    for (const segment of segments) {
      checkMeasures(segment);
      if (segment.netSpeechSeconds === 0) throw badArgument("netSpeechSeconds of each segment must be above 0, got 0");
    }
    try {
      const weights = segments.map((segment) => segment.netSpeechSeconds);
      this.#writeRows(segments, weights);
      const remaining = run.trainTemplate(n, calibration.consistency);
      const scores = this.#kernels.readFloats(run.scoringScores(), n);
      const kept = this.#kernels.readIntegers(run.scoringKept(), n);
      const judged = segments.map((_, i) => ({ score: scores[i]!, consistent: kept[i] === 1 }));
      if (remaining === 0) return { segments: judged, template: null };
      // In the kernel's order, so that these sums do not depend on the caller's order either.
      const used = Array.from(this.#kernels.readIntegers(run.scoringOrder(), n))
        .filter((i) => kept[i] === 1)
        .map((i) => segments[i]!);
      const template: Template = {
        embedding: this.#kernels.readFloats(run.scoringMean(), dimensions),
        netSpeechSeconds: used.reduce((sum, segment) => sum + segment.netSpeechSeconds, 0),
        snrDb: weightedMean(used, (voice) => voice.snrDb),
        bandwidthHz: weightedMean(used, (voice) => voice.bandwidthHz),
        revision,
      };
      return { segments: judged, template };
    } finally {
      run.wipeScoring();
    }
  }

  scores(templates: readonly Template[], probe: Voice): Score[] {
    const { run } = this.#kernels;
    const { dimensions, calibration } = this.#model;
    const { terms, reliability, impostors } = calibration;
    const center = terms.length + reliability.length;
    const spread = center + impostors.center.length;
    try {
      checkEmbedding(probe.embedding, dimensions);
      checkMeasures(probe);
      this.#kernels.writeFloats(run.scoringProbe(), probe.embedding);
      return templates.map((template): Score => {
        this.#assertOfThisNetwork(template);
        checkMeasures(template);
        this.#writeRows([template], [template.netSpeechSeconds]);
        const cosine = run.cosine(run.scoringRows(), run.scoringProbe(), dimensions);
        const raw = cosine > 1 ? 1 : Math.max(cosine, -1);
        run.setQuality(
          template.netSpeechSeconds,
          measured(template.snrDb),
          measured(template.bandwidthHz),
          probe.netSpeechSeconds,
          measured(probe.snrDb),
          measured(probe.bandwidthHz),
        );
        return {
          raw,
          llr: run.calibratedRatio(raw, 0, terms.length),
          reliability: run.calibratedReliability(terms.length, reliability.length),
          ratios: {
            unlike: run.calibratedRatio(0, 0, terms.length),
            identical: run.calibratedRatio(1, 0, terms.length),
          },
          impostors: {
            center: run.calibratedQuality(center, impostors.center.length),
            spread: Math.max(leastSpread, run.calibratedQuality(spread, impostors.spread.length)),
          },
        };
      });
    } finally {
      run.wipeScoring();
    }
  }

  #assertOfThisNetwork({ revision }: Template): void {
    if (revision !== this.#model.revision)
      throw new EngineError("OTHER_REVISION", "the template was made by another network; retrain or enroll again");
  }

  threshold(rate: number, score: Expectation): number {
    if (!(rate > 0 && rate < 1)) throw badArgument(`the false-accept rate must be above 0 and below 1, got ${rate}`);
    if (!score?.ratios || !score.impostors)
      throw badArgument(`threshold needs a result of engine.score as its second argument, got ${typeName(score)}`);
    const { ratios, impostors } = score;
    const cosine = this.#kernels.run.impostorCosine(rate, impostors.center, impostors.spread);
    return ratios.unlike + cosine * (ratios.identical - ratios.unlike);
  }

  /** The voice of a recording: speech-weighted mean of its windows, voice class, and whether the windows are of one person. */
  summarize(windows: readonly VoiceWindow[]): VoiceSummary {
    const { run } = this.#kernels;
    const { dimensions, voiceClass } = this.#model;
    if (windows.length === 0) return { embedding: null, voiceClass: null, speakers: 0 };
    try {
      const speakers = this.#speakers(windows);
      const most = run.scoringMostRows();
      run.clearMean();
      for (let first = 0; first < windows.length; first += most) {
        const part = windows.slice(first, first + most);
        this.#writeWindows(part);
        run.addRowsToMean(part.length);
      }
      // Windows that cancel each other out give no voice.
      if (run.finishMean() === 0) return { embedding: null, voiceClass: null, speakers };
      const embedding = this.#kernels.readFloats(run.scoringMean(), dimensions);
      return { embedding, voiceClass: voiceClass ? run.voiceClass() : null, speakers };
    } finally {
      run.wipeScoring();
    }
  }

  /** 0 or 1 for each window: two groups whose voices differ most. A window that is not compared joins the nearest one in time that is. */
  partVoices(windows: readonly VoiceWindow[]): Int32Array {
    const { run } = this.#kernels;
    if (windows.length < 2) return new Int32Array(windows.length);
    try {
      const { compared, step } = this.#compared(windows);
      this.#writeWindows(compared);
      run.splitVoices(compared.length);
      const groups = this.#kernels.readIntegers(run.scoringKept(), compared.length);
      return Int32Array.from(windows, (_, i) => groups[Math.min(Math.round(i / step), groups.length - 1)]!);
    } finally {
      run.wipeScoring();
    }
  }

  /** Whether two groups of windows are two people, by the same similarity as the windows of one recording. */
  areTwoVoices(one: Float32Array, other: Float32Array): boolean {
    const { run } = this.#kernels;
    try {
      this.#writeRows([{ embedding: one }, { embedding: other }], [1, 1]);
      return (
        run.cosine(run.scoringRows(), run.scoringRows() + 4 * this.#model.dimensions, this.#model.dimensions) <
        this.#model.calibration.speakers.cosine
      );
    } finally {
      run.wipeScoring();
    }
  }

  #writeWindows(windows: readonly VoiceWindow[]): void {
    const weights = windows.map((window) => window.speechSeconds);
    this.#writeRows(windows, weights);
  }

  #speakers(windows: readonly VoiceWindow[]): number {
    const { run } = this.#kernels;
    const { cosine, seconds } = this.#model.calibration.speakers;
    const { compared, step } = this.#compared(windows);
    if (compared.length < 2) return 1;
    this.#writeWindows(compared);
    return run.splitVoices(compared.length) < cosine && run.splitSmallerSpeech() * step >= seconds ? 2 : 1;
  }

  /** In a very long recording only every nth window is compared: anybody who speaks a tenth of it is still found. */
  #compared(windows: readonly VoiceWindow[]) {
    const step = Math.ceil(windows.length / this.#kernels.run.scoringMostRows());
    return { compared: windows.filter((_, i) => i % step === 0), step };
  }
}
