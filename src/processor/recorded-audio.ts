/** Stored audio: found, decoded, and handed to the engine in bounded memory. */
import type { RawFormat, Recording } from "../audio/port.js";
import { type AudioChannelSelector, AudioValidity, type VerifyRequest } from "../contract/index.js";
import type { Progress } from "../contract/operations.js";
import type { Measures } from "../engine/port.js";
import type { Id, MediaSegment, ProcessedAudio } from "../store/port.js";
import type { CallScope } from "./context.js";
import type { Dependencies, OperationOptions } from "./dependencies.js";
import { invalid, notFound, notInScope, ProgressFailure, throwCallFailure } from "./failures.js";
import { type JointAnalysis, type JointStreamOptions, type Listener, listenerOf } from "./joint-analysis.js";

export type AudioSource =
  | { readonly from: "media"; readonly media: MediaSegment }
  | { readonly from: "processed"; readonly processed: ProcessedAudio };

/** `choice` is the `oneof` of every request that takes audio. */
export async function findAudio(scope: CallScope, choice: VerifyRequest["audio"]): Promise<AudioSource> {
  if (choice.case === "gkMediaSegmentId")
    return { from: "media", media: await findMedia(scope, choice.value.value, "gk_media_segment_id") };
  const processed = await scope.deps.store.processed.get(scope.scopeId, choice.value!.value);
  if (!processed) throw notInScope("gk_processed_audio_id", "processed audio", choice.value!.value);
  return { from: "processed", processed };
}

export async function findMedia({ deps, scopeId }: CallScope, id: Id, field: string): Promise<MediaSegment> {
  const media = await deps.store.media.get(scopeId, id);
  if (!media) throw notFound(field, `there is no audio "${id}" in this scope, or it is no longer kept`);
  return media;
}

/** `null` when the stored bytes cannot be decoded as audio. */
export function openRecording(deps: Dependencies, media: MediaSegment): Recording | null {
  try {
    return deps.readRecording(media.audio, rawFormat(media));
  } catch {
    return null;
  }
}

export const rawFormat = (media: Pick<MediaSegment, "encoding" | "rateHz" | "channels">): RawFormat | undefined =>
  media.encoding === "wav" ? undefined : { encoding: media.encoding, rateHz: media.rateHz, channels: media.channels };

/** `null` if the media has one channel, so that there is nothing to select. 0 mixes all channels. */
export function selectChannel(media: MediaSegment, selector: AudioChannelSelector | undefined): number | null {
  if (media.channels === 1) return null;
  const channel = selector?.channel ?? 0;
  if (channel < 0 || channel > media.channels)
    throw invalid("channel_selector.channel", "out_of_range", `channel must be 0 to ${media.channels}, got ${channel}`);
  return channel;
}

export const noMeasures = (rateHz: number): Measures => ({
  rateHz,
  grossSeconds: 0,
  netSpeechSeconds: 0,
  speechLevelDb: null,
  snrDb: null,
  saturatedPerMinute: 0,
  saturationRatio: 0,
  bandwidthHz: null,
});

export const secondsOf = (recording: Recording): number => recording.frames / recording.rateHz;

/** Which part of a recording to process. */
export interface AnalysisSettings {
  readonly channel: number | null;
  readonly maxNetSpeechSeconds?: number | undefined;
  readonly checkpoints?: JointStreamOptions["checkpoints"];
  /** Revisions of the models that process it in addition to the scope's own. */
  readonly revisions?: Iterable<string>;
  readonly separateVoices?: boolean;
}

/** The result of processing stored audio: an analysis, or whether the audio or the engine failed. */
export type AnalysisOutcome =
  | { readonly analysis: JointAnalysis; readonly recording: Recording }
  | { readonly analysis: null; readonly failure: AudioValidity.INVALID_AUDIO | AudioValidity.INTERNAL_ERROR };

export async function analyzeRecording(
  { deps, options, scopeId }: CallScope,
  recording: Recording | null,
  settings: AnalysisSettings,
): Promise<AnalysisOutcome> {
  if (recording === null) return { analysis: null, failure: AudioValidity.INVALID_AUDIO };
  try {
    const listener = await listenerOf(deps.models, scopeId, settings.revisions);
    return { analysis: await analyzeAll(listener, recording, settings, options), recording };
  } catch (error) {
    throwCallFailure(error, options.signal);
    return {
      analysis: null,
      failure: isAudioAtFault(error) ? AudioValidity.INVALID_AUDIO : AudioValidity.INTERNAL_ERROR,
    };
  }
}

/** Broken data may show only while it is being read, and samples may not be finite numbers. */
const isAudioAtFault = (error: unknown): boolean =>
  error instanceof Error && (error.name === "AudioError" || ("code" in error && error.code === "BAD_SAMPLES"));

/** Longer recordings are streamed, so that their samples are never all in memory. */
const longestInOneShotSeconds = 120;
/** The chunk size of a stream: progress is reported once per chunk. */
const pushSeconds = 0.5;

function reportProgress({ onProgress }: OperationOptions, progress: Progress): void {
  try {
    onProgress?.(progress);
  } catch (error) {
    throw new ProgressFailure(error);
  }
}

async function analyzeAll(
  listener: Listener,
  recording: Recording,
  settings: AnalysisSettings,
  options: OperationOptions,
): Promise<JointAnalysis> {
  const { maxNetSpeechSeconds, checkpoints, separateVoices = false } = settings;
  const seconds = secondsOf(recording);
  const limits = {
    ...(options.signal && { signal: options.signal }),
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
    ...(maxNetSpeechSeconds !== undefined && { maxNetSpeechSeconds }),
  };
  if (!checkpoints?.seconds.length && !separateVoices && seconds <= longestInOneShotSeconds) {
    const analysis = await listener.analyze(readSamples(recording, settings.channel), recording.rateHz, limits);
    const { netSpeechSeconds, grossSeconds } = analysis.measures;
    reportProgress(options, { netSpeechSeconds, grossSeconds, totalSeconds: seconds });
    return analysis;
  }
  const stream = await listener.stream(recording.rateHz, {
    ...limits,
    separateVoices,
    ...(checkpoints && { checkpoints }),
  });
  try {
    let frames = 0;
    for (const samples of pieces(recording, settings.channel)) {
      options.signal?.throwIfAborted();
      frames += samples.length;
      const netSpeechSeconds = await stream.push(samples);
      const grossSeconds = frames / recording.rateHz;
      reportProgress(options, { netSpeechSeconds, grossSeconds, totalSeconds: seconds });
      if (stream.ended) break;
    }
    return await stream.analysis();
  } finally {
    await stream.close();
  }
}

/** The samples of one channel, at most `seconds` of them. */
export function readSamples(
  recording: Recording,
  channel: number | null,
  seconds = Number.POSITIVE_INFINITY,
): Float32Array {
  const samples = new Float32Array(Math.min(recording.frames, Math.round(seconds * recording.rateHz)));
  let filled = 0;
  for (const chunk of recording.read(channelToRead(channel))) {
    samples.set(chunk.subarray(0, samples.length - filled), filled);
    filled += chunk.length;
    if (filled >= samples.length) break;
  }
  return samples;
}

/** The samples of one channel in the parts that a stream takes. */
export function* pieces(recording: Recording, channel: number | null): Generator<Float32Array> {
  const size = Math.max(1, Math.round(pushSeconds * recording.rateHz));
  for (const chunk of recording.read(channelToRead(channel)))
    for (let at = 0; at < chunk.length; at += size) yield chunk.slice(at, at + size);
}

const channelToRead = (channel: number | null): number => channel ?? 1;
