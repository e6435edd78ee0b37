import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { AudioError } from "../audio/audio-error.js";
import { joined } from "../audio/joined.js";
import type { Recording } from "../audio/port.js";
import type { Engine, Template, Voice } from "../engine/port.js";
import { reasonOf } from "../server/file-fault.js";
import { callersOf, type OpenSetRow, openSet } from "./open-set.js";
import {
  type BandSummary,
  NET_SPEECH_BANDS,
  type ScoredTrial,
  SNR_BANDS,
  type Summary,
  summarize,
  summarizeBy,
} from "./summary.js";
import type { Sampled, Trial, TrialSet } from "./trials.js";
import type { CachedVoice, VoiceCache } from "./voice-cache.js";

export interface Pcm {
  readonly samples: Float32Array;
  readonly rateHz: number;
}

/** A change to the tested recordings before they are measured: a codec, noise, a cut. */
export interface Condition {
  /** Part of the cache's key: a changed condition needs a changed name. */
  readonly name: string;
  apply(pcm: Pcm, file: string): Pcm | Promise<Pcm>;
}

export interface EvaluationParts {
  readonly engine: Engine;
  /** Throws if the bytes are not audio. */
  readonly decode: (bytes: Uint8Array, path: string) => Recording | Promise<Recording>;
  readonly cache: VoiceCache;
}

export interface EvaluationOptions {
  readonly condition?: Condition;
  /** Number of recordings analyzed in parallel. */
  readonly concurrency?: number;
  readonly resamples?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly phase: "recordings" | "models" | "trials" | "lists" | "figures";
  readonly done: number;
  readonly total: number;
}

export interface UnusableFile {
  readonly file: string;
  readonly reason: string;
}

/** A recording with the same audio as another one, whatever the format: comparing the two shows nothing about the voice. */
export interface Copy {
  readonly file: string;
  readonly of: string;
}

export interface Evaluation {
  readonly modelRevision: string;
  readonly calibrationRevision: string;
  /** What counted as a session, if the folder has no sessions, which recordings are not used, and which trials are repeated. */
  readonly note: string | null;
  readonly condition: string;
  readonly recordings: number;
  readonly trials: readonly ScoredTrial[];
  /** Numbers of all trials, if `trials` are a random sample of them. */
  readonly sampledFrom: Sampled["from"] | null;
  readonly summary: Summary | null;
  readonly byNetSpeech: readonly BandSummary[];
  readonly bySnr: readonly BandSummary[];
  /** Open-set errors by list size, for all sizes that there are enough speakers for. */
  readonly openSet: readonly OpenSetRow[];
  /** Recordings that gave no embedding (failure to acquire). */
  readonly unusable: readonly UnusableFile[];
  readonly copies: readonly Copy[];
  /** Models none of whose recordings agree (failure to enroll). */
  readonly failedModels: number;
  /** Trials that could not be scored for either reason; no figure includes them. */
  readonly unscoredTrials: number;
}

const CLEAN: Condition = { name: "as recorded", apply: (pcm) => pcm };

export async function evaluate(
  set: TrialSet,
  parts: EvaluationParts,
  options: EvaluationOptions = {},
): Promise<Evaluation> {
  const { engine } = parts;
  const { condition = CLEAN, signal, onProgress = () => {} } = options;
  const unusable: UnusableFile[] = [];

  const enrolling = new Set(set.models.flat());
  const tested = new Set([...set.trials, ...(set.sampled?.callers ?? [])].map((trial) => trial.test));
  const wanted: { file: number; as: "enrolling" | "tested" }[] = [
    ...[...enrolling].map((file) => ({ file, as: "enrolling" as const })),
    // Without a condition, a file that both enrolls and is tested needs only one analysis.
    ...[...tested]
      .filter((file) => condition !== CLEAN || !enrolling.has(file))
      .map((file) => ({ file, as: "tested" as const })),
  ];
  const enrolled = new Map<number, CachedVoice>();
  const probes = new Map<number, CachedVoice>();
  let done = 0;
  await inParallel(wanted, options.concurrency ?? 4, async ({ file, as }) => {
    signal?.throwIfAborted();
    const path = set.files[file]!;
    const outcome = await voiceOfFile(path, as === "enrolling" ? CLEAN : condition, parts, signal);
    if ("reason" in outcome) unusable.push({ file: path, reason: outcome.reason });
    else (as === "enrolling" ? enrolled : probes).set(file, outcome);
    onProgress({ phase: "recordings", done: ++done, total: wanted.length });
  });
  if (condition === CLEAN) for (const [file, voice] of enrolled) if (tested.has(file)) probes.set(file, voice);

  const templates: (Template | null)[] = [];
  for (const model of set.models) {
    signal?.throwIfAborted();
    const voices = model.flatMap((file) => asVoice(enrolled.get(file)) ?? []);
    templates.push(voices.length === 0 ? null : (await engine.train(voices)).template);
    onProgress({ phase: "models", done: templates.length, total: set.models.length });
  }

  const scoring = { set, templates, enrolled, probes, engine, signal };
  const threshold = engine.threshold.bind(engine);
  const resamples = options.resamples ?? 1000;
  const lists = (scored: readonly ScoredTrial[]) => openSet(callersOf(scored), threshold, { resamples });
  const phase = (phase: "trials" | "lists") => (done: number, total: number) => onProgress({ phase, done, total });
  // First, so that only one of the two samples is in memory.
  const sampledLists = set.sampled && lists((await scoreTrials(set.sampled.callers, scoring, phase("lists"))).scored);
  const { scored, unscored } = await scoreTrials(set.trials, scoring, phase("trials"));
  onProgress({ phase: "figures", done: 0, total: 1 });
  const summaryOptions = { resamples, threshold };
  // Bands show trends only: fewer resamples are enough.
  const bandOptions = { ...summaryOptions, resamples: Math.min(summaryOptions.resamples, 200) };
  return {
    modelRevision: engine.model.revision,
    calibrationRevision: engine.model.calibrationRevision,
    note: set.note ?? null,
    condition: condition.name,
    recordings: set.files.length,
    trials: scored,
    sampledFrom: set.sampled?.from ?? null,
    summary: summarize(scored, summaryOptions),
    byNetSpeech: summarizeBy(scored, NET_SPEECH_BANDS, (trial) => trial.netSpeechSeconds, bandOptions),
    bySnr: summarizeBy(scored, SNR_BANDS, (trial) => trial.snrDb, bandOptions),
    openSet: sampledLists ?? lists(scored),
    unusable: unusable.sort((a, b) => (a.file < b.file ? -1 : 1)),
    copies: copiesIn(set.files, new Map([...enrolled, ...probes])),
    failedModels: templates.filter((template) => template === null).length,
    unscoredTrials: unscored,
  };
}

function copiesIn(files: readonly string[], voices: ReadonlyMap<number, CachedVoice>): Copy[] {
  const firsts = new Map<string, string>();
  return files.flatMap((file, i) => {
    const embedding = voices.get(i)?.embedding;
    // The engine is bit-exact: only the same audio gives the same embedding.
    const digest = embedding && createHash("sha256").update(embedding).digest("hex");
    const of = digest && firsts.get(digest);
    if (digest && !of) firsts.set(digest, file);
    return of ? [{ file, of }] : [];
  });
}

interface Scoring {
  readonly set: TrialSet;
  readonly templates: readonly (Template | null)[];
  readonly enrolled: ReadonlyMap<number, CachedVoice>;
  readonly probes: ReadonlyMap<number, CachedVoice>;
  readonly engine: Engine;
  readonly signal: AbortSignal | undefined;
}

async function scoreTrials(
  chosen: readonly Trial[],
  { set, templates, enrolled, probes, engine, signal }: Scoring,
  onProgress: (done: number, total: number) => void,
): Promise<{ scored: ScoredTrial[]; unscored: number }> {
  const byTest = new Map<number, Trial[]>();
  for (const trial of chosen) {
    const list = byTest.get(trial.test) ?? [];
    list.push(trial);
    byTest.set(trial.test, list);
  }
  const scored: ScoredTrial[] = [];
  let unscored = 0;
  let done = 0;
  for (const [test, trials] of byTest) {
    signal?.throwIfAborted();
    const probe = asVoice(probes.get(test));
    const scorable = probe === null ? [] : trials.filter((trial) => templates[trial.model] !== null);
    unscored += trials.length - scorable.length;
    if (probe !== null && scorable.length > 0) {
      const scores = await engine.score(
        scorable.map((trial) => templates[trial.model]!),
        probe,
      );
      scorable.forEach(({ model, same }, i) => {
        const first = set.models[model]!.find((file) => enrolled.has(file))!;
        scored.push({
          ...scores[i]!,
          same,
          model,
          test,
          names: { enrolled: set.files[first]!, tested: set.files[test]! },
          enrolledSpeaker: set.speakers[first]!,
          testedSpeaker: set.speakers[test]!,
          netSpeechSeconds: probe.netSpeechSeconds,
          snrDb: probe.snrDb,
        });
      });
    }
    done += trials.length;
    onProgress(done, chosen.length);
  }
  return { scored, unscored };
}

function asVoice(cached: CachedVoice | undefined): Voice | null {
  if (!cached?.embedding) return null;
  const { netSpeechSeconds, snrDb, bandwidthHz } = cached.measures;
  return { embedding: cached.embedding, netSpeechSeconds, snrDb, bandwidthHz };
}

export async function voiceOfFile(
  path: string,
  condition: Condition,
  { engine, decode, cache }: EvaluationParts,
  signal: AbortSignal | undefined,
): Promise<CachedVoice | { reason: string }> {
  let bytes: Uint8Array;
  try {
    bytes = await bytesOfFile(path);
  } catch (error) {
    return { reason: reasonOf(error) };
  }
  const digest = createHash("sha256").update(bytes).digest("hex");
  const key = [digest, engine.model.revision, condition.name].join(" ");
  let voice = cache.get(key);
  if (voice === undefined) {
    let pcm: Pcm;
    try {
      pcm = mono(await decode(bytes, path));
    } catch (error) {
      return { reason: error instanceof Error ? error.message : String(error) };
    }
    pcm = await condition.apply(pcm, path);
    const { measures, embedding } = await engine.analyze(pcm.samples, pcm.rateHz, signal ? { signal } : {});
    voice = { measures, embedding };
    await cache.put(key, voice);
  }
  if (voice.embedding === null)
    return { reason: `too little speech (${voice.measures.netSpeechSeconds.toFixed(2)} s)` };
  return voice;
}

/** A pipe among many recordings, to which nobody writes, would be waited for forever. */
export async function bytesOfFile(path: string): Promise<Uint8Array> {
  const found = await stat(path);
  if (!found.isFile() && !found.isDirectory()) throw new AudioError("NOT_AUDIO", "this is not a regular file");
  return readFile(path);
}

/** All samples of a recording, channels mixed. */
export const mono = (recording: Recording): Pcm => ({
  samples: joined([...recording.read(0)]),
  rateHz: recording.rateHz,
});

export async function inParallel<T extends object | string>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = [...items].reverse();
  await Promise.all(
    Array.from({ length: Math.max(1, width) }, async () => {
      try {
        for (let item = rest.pop(); item !== undefined; item = rest.pop()) await work(item);
      } catch (error) {
        rest.length = 0; // one failure stops the others too
        throw error;
      }
    }),
  );
}
