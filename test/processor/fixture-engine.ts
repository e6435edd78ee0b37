/**
 * An engine whose answers follow from the samples by simple rules, for cases that real audio cannot produce: an engine
 * that fails, a score exactly at the threshold, a hundred thousand candidates.
 *
 * A sample is speech of speaker round(|x| × 1000) when it is not 0. Negative samples are soft speech; the tenths of
 * |x| × 1000 give the noise: .3 is 5 dB, .4 is 1 dB, else 30 dB. Samples of 0.99 and above are saturated. Voices are separated by speaker, the
 * third and further ones stay in the second.
 */
import type {
  AnalyzeOptions,
  AttackKind,
  AttackScore,
  Engine,
  Gallery,
  Measures,
  Score,
  Template,
  TrainedVoice,
  Voice,
  VoiceAnalysis,
  VoiceStream,
} from "../../src/engine/port.js";
import { gaussian, random } from "../voice.js";

export const rateHz = 8000;
const dimensions = 64;
const windowSeconds = 2;

export interface FixtureBehavior {
  revision: string;
  calibrationRevision: string;
  /** Throws if a test wants the engine to fail. */
  before: (operation: "analyze" | "train" | "score" | "attack") => void;
  score: (raw: number, template: Template, probe: Voice) => Omit<Score, "ratios" | "impostors">;
  threshold: (rate: number) => number;
  attacks: Partial<Record<AttackKind, number>>;
  attackReliability: number;
  /** Seconds of audio that were checked for attacks. */
  readonly attackSeconds: number[];
  /** Records calls, for tests of how much audio was processed. */
  readonly heardSeconds: number[];
  readonly scoredAgainst: number[];
}

export function fixtureEngine(): Engine & { readonly behavior: FixtureBehavior } {
  const behavior: FixtureBehavior = {
    revision: "a".repeat(64),
    calibrationRevision: "c".repeat(64),
    before: () => {},
    score: (raw) => ({ raw, llr: 40 * (raw - 0.5), reliability: 1 }),
    // For a calibrated ratio, impostors exceed t with a rate of at most exp(-t).
    threshold: (rate) => -Math.log(rate),
    attacks: {},
    attackReliability: 1,
    attackSeconds: [],
    heardSeconds: [],
    scoredAgainst: [],
  };
  const analyze = (samples: Float32Array, rate: number, options: AnalyzeOptions = {}): VoiceAnalysis => {
    options.signal?.throwIfAborted();
    behavior.before("analyze");
    const analysis = analysisOf(samples, rate, behavior.revision, options.maxNetSpeechSeconds);
    return analysis;
  };
  return {
    behavior,
    get model() {
      return {
        calibrationModelId: "fixture-1",
        revision: behavior.revision,
        calibrationRevision: behavior.calibrationRevision,
        dimensions,
        windowSeconds,
        attacks: Object.keys(behavior.attacks) as AttackKind[],
      };
    },
    async analyze(samples, rate, options) {
      const analysis = analyze(samples, rate, options);
      behavior.heardSeconds.push(analysis.measures.grossSeconds);
      return analysis;
    },
    async stream(rate, options): Promise<VoiceStream> {
      const chunks: Float32Array[] = [];
      let frames = 0;
      let speech = 0;
      let passed = 0;
      let ended = false;
      const { seconds, look } = options?.checkpoints ?? { seconds: [], look: async () => false };
      const limit = options?.maxNetSpeechSeconds ?? Number.POSITIVE_INFINITY;
      const analysis = async () => {
        const samples = joined(...chunks);
        const whole = analyze(samples, rate, options);
        return options?.separateVoices ? { ...whole, voices: voicesIn(samples, whole) } : whole;
      };
      return {
        async push(samples) {
          options?.signal?.throwIfAborted();
          for (let at = 0; at < samples.length && !ended; ) {
            const first = at;
            const until = Math.min(limit, seconds[passed] ?? limit);
            while (at < samples.length && speech < until * rate) if (samples[at++] !== 0) speech++;
            chunks.push(samples.slice(first, at));
            frames += at - first;
            ended = speech >= limit * rate;
            if (!(speech >= seconds[passed]! * rate)) continue;
            passed++;
            if (await look(await analysis())) ended = true;
          }
          return speech / rate;
        },
        get ended() {
          return ended;
        },
        measures: async () => analyze(joined(...chunks), rate, options).measures,
        analysis,
        async close() {
          behavior.heardSeconds.push(frames / rate);
        },
      };
    },
    async train(segments): Promise<TrainedVoice> {
      behavior.before("train");
      return trained(segments, behavior.revision);
    },
    async score(templates, probe, options) {
      options?.signal?.throwIfAborted();
      behavior.before("score");
      behavior.scoredAgainst.push(templates.length);
      for (const { revision } of templates)
        if (revision !== behavior.revision) throw new Error("a template of another revision was scored");
      return templates.map((template) => ({
        ...behavior.score(cosine(template.embedding, probe.embedding), template, probe),
        ratios: { unlike: -20, identical: 20 },
        impostors: { center: 0.2, spread: 0.2 },
      }));
    },
    threshold: (rate) => behavior.threshold(rate),
    gallery: () => galleryOf(),
    async attackStream(kind, rate) {
      const chunks: Float32Array[] = [];
      return {
        push: async (samples) => void chunks.push(samples.slice()),
        score: () => this.attack(kind, joined(...chunks), rate),
      };
    },
    attackThreshold: (_, rate) => -Math.log(rate),
    async attack(kind, samples, rate): Promise<AttackScore> {
      behavior.before("attack");
      behavior.attackSeconds.push(samples.length / rate);
      const llr = behavior.attacks[kind];
      if (llr === undefined) throw Object.assign(new Error("no such network"), { name: "NotSupportedError" });
      const revision = "b".repeat(64);
      if (samples.every((x) => x === 0)) return { llr: 0, reliability: 0, revision, strongest: null };
      const strongest = { startSeconds: 0, endSeconds: samples.length / rate, llr };
      return { llr, reliability: behavior.attackReliability, revision, strongest };
    },
    async close() {},
  };
}

/** Recordings differ in length, so that the engine treats each as a different take of the same voice. */
export function take(speaker: number, seconds: number, { soft = false, noisy = 0, clipped = 0 } = {}): Float32Array {
  const value = (speaker + noisy / 10) / 1000;
  const samples = new Float32Array(Math.round(seconds * rateHz)).fill(soft ? -value : value);
  samples.fill(0.999, 0, Math.round(clipped * samples.length));
  return samples;
}

export const silence = (seconds: number): Float32Array => new Float32Array(Math.round(seconds * rateHz));

export function joined(...parts: Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function analysisOf(
  given: Float32Array,
  rate: number,
  revision: string,
  maxNetSpeechSeconds = Number.POSITIVE_INFINITY,
): VoiceAnalysis {
  const speakers = new Map<number, number>();
  let speech = 0;
  let saturated = 0;
  let soft = 0;
  let noise = 30;
  let read = 0;
  for (const x of given) {
    if (speech >= maxNetSpeechSeconds * rate) break;
    read++;
    if (x === 0) continue;
    speech++;
    if (x >= 0.99) {
      saturated++;
      continue;
    }
    if (x < 0) soft++;
    const code = Math.abs(x) * 1000;
    const speaker = Math.floor(code + 0.1);
    const tenth = Math.round((code - speaker) * 10);
    if (tenth === 3) noise = 5;
    if (tenth === 4) noise = 1;
    speakers.set(speaker, (speakers.get(speaker) ?? 0) + 1);
  }
  const netSpeechSeconds = speech / rate;
  const measures: Measures = {
    rateHz: rate,
    grossSeconds: read / rate,
    netSpeechSeconds,
    speechLevelDb: speech === 0 ? null : soft > speech / 2 ? -60 : -26,
    snrDb: speech === 0 ? null : noise,
    saturatedPerMinute: (saturated / Math.max(1, read / rate)) * 60,
    saturationRatio: saturated / Math.max(1, read),
    bandwidthHz: speech === 0 ? null : rate / 2,
  };
  const [main] = [...speakers].sort((a, b) => b[1] - a[1]);
  if (netSpeechSeconds < 0.5 || !main)
    return { measures, windows: [], embedding: null, voiceClass: null, speakers: speakers.size, revision };
  const embedding = voiceOf(main[0], read);
  const begins = given.findIndex((x) => x !== 0) / rate;
  const windows = Array.from({ length: Math.ceil(netSpeechSeconds / windowSeconds) }, (_, i) => ({
    embedding,
    speechSeconds: Math.min(windowSeconds, netSpeechSeconds - i * windowSeconds),
    startSeconds: begins + i * windowSeconds,
    endSeconds: begins + Math.min((i + 1) * windowSeconds, netSpeechSeconds),
  }));
  return { measures, windows, embedding, voiceClass: main[0] % 101, speakers: Math.min(2, speakers.size), revision };
}

function voicesIn(samples: Float32Array, whole: VoiceAnalysis): VoiceAnalysis[] {
  const speakers = [...new Set(samples)].filter((x) => x !== 0);
  const voices = speakers.slice(0, 2).map((speaker, i) => {
    const own = samples.filter((x) => x === speaker || (i === 1 && x !== 0 && speakers.indexOf(x) > 1));
    return analysisOf(own, whole.measures.rateHz, whole.revision);
  });
  const spoken = ({ measures }: VoiceAnalysis) => measures.netSpeechSeconds;
  return voices.filter(({ embedding }) => embedding).sort((one, other) => spoken(other) - spoken(one));
}

/** A direction that depends on the speaker, and slightly on the take. */
export function voiceOf(speaker: number, takeNumber: number): Float32Array {
  const own = directionOf(speaker);
  const other = directionOf(1_000_003 + takeNumber * 31);
  return unit(own.map((x, i) => x + 0.3 * other[i]!));
}

function directionOf(seed: number): Float32Array {
  return unit(Float32Array.from({ length: dimensions }, gaussian(random(seed))));
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0)) || 1;
  return vector.map((x) => x / length);
}

const cosine = (a: Float32Array, b: Float32Array): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);

function trained(segments: readonly Voice[], revision: string): TrainedVoice {
  const agreement = segments.map((one) => {
    const others = segments.filter((other) => other !== one).map((other) => cosine(one.embedding, other.embedding));
    return others.length === 0 ? 1 : others.reduce((sum, x) => sum + x, 0) / others.length;
  });
  const consistent = segments.map((one) => {
    const near = segments.filter((other) => cosine(one.embedding, other.embedding) > 0.5).length;
    return segments.length === 1 || near > segments.length / 2;
  });
  const told = segments.map((_, i) => ({ score: agreement[i]!, consistent: consistent[i]! }));
  const kept = segments.filter((_, i) => consistent[i]);
  if (kept.length === 0) return { segments: told, template: null };
  const sum = new Float32Array(dimensions);
  for (const { embedding, netSpeechSeconds } of kept)
    for (let i = 0; i < dimensions; i++) sum[i]! += embedding[i]! * netSpeechSeconds;
  const net = kept.reduce((total, voice) => total + voice.netSpeechSeconds, 0);
  const template = { embedding: unit(sum), netSpeechSeconds: net, snrDb: 30, bandwidthHz: 4000, revision };
  return { segments: told, template };
}

function galleryOf(): Gallery {
  const rows = new Map<string, Float32Array>();
  return {
    get size() {
      return rows.size;
    },
    set: (id, embedding) => void rows.set(id, embedding),
    delete: (id) => rows.delete(id),
    has: (id) => rows.has(id),
    top(embedding, k, only) {
      if (embedding.length !== dimensions) throw new Error("an embedding of another length was searched");
      const hits: { id: string; raw: number }[] = [];
      for (const [id, row] of rows) if (!only || only.has(id)) hits.push({ id, raw: cosine(row, embedding) });
      return hits.sort((a, b) => b.raw - a.raw).slice(0, k);
    },
    close: () => rows.clear(),
  };
}
