/** Converts stored audio models to the forms that the engine and the rules for enrollment use. */

import type { AudioValidity } from "../contract/index.js";
import type { Voice, VoiceAnalysis, VoiceWindow } from "../engine/port.js";
import type { MediaSegment, ProcessedAudio } from "../store/port.js";
import type { AudioModel } from "../voiceprint/enrollment.js";
import { meanEmbedding } from "../voiceprint/growing-print.js";
import type { MeasuredAudio } from "../voiceprint/quality-gate.js";
import type { OpenContext } from "./context.js";
import { noMeasures } from "./recorded-audio.js";

export const audioModel = (processed: ProcessedAudio): AudioModel => ({
  id: processed.id,
  recordingId: processed.partOf ?? processed.mediaSegmentId,
  channel: processed.partOf === undefined ? processed.channel : (processed.partOfChannel ?? null),
  printType: processed.printType,
  revision: processed.revision,
  validity: processed.validity,
  audio: { ...processed.measures, speakers: processed.speakers },
  embedding: processed.voice.embedding,
});

/** Reading a recording may run past the speech limit by this much before it stops. */
const overrunSeconds = 1;

/**
 * Cuts an audio model to the first `maxNetSpeechSeconds` of speech, in whole windows, for audio that was processed
 * without a limit.
 */
export function limitedTo(processed: ProcessedAudio, maxNetSpeechSeconds: number): ProcessedAudio {
  const { measures, voice } = processed;
  if (measures.netSpeechSeconds <= maxNetSpeechSeconds + overrunSeconds) return processed;
  const windows: VoiceWindow[] = [];
  let netSpeechSeconds = 0;
  for (const window of voice.windows) {
    if (windows.length > 0 && netSpeechSeconds + window.speechSeconds > maxNetSpeechSeconds) break;
    windows.push(window);
    netSpeechSeconds += window.speechSeconds;
  }
  const grossSeconds = windows.at(-1)?.endSeconds ?? measures.grossSeconds;
  return {
    ...processed,
    measures: { ...measures, netSpeechSeconds, grossSeconds },
    voice: {
      windows,
      embedding:
        voice.embedding &&
        meanEmbedding(windows.map(({ embedding, speechSeconds }) => ({ embedding, weight: speechSeconds }))),
    },
  };
}

export const measuredAudio = ({ measures, speakers }: Pick<VoiceAnalysis, "measures" | "speakers">): MeasuredAudio => ({
  ...measures,
  speakers,
});

export const voiceOf = ({ measures }: Pick<VoiceAnalysis, "measures">, embedding: Float32Array): Voice => ({
  embedding,
  netSpeechSeconds: measures.netSpeechSeconds,
  snrDb: measures.snrDb,
  bandwidthHz: measures.bandwidthHz,
});

export const analysisOf = ({ measures, voice, voiceClass, speakers, revision }: ProcessedAudio): VoiceAnalysis => ({
  ...voice,
  measures,
  voiceClass,
  speakers,
  revision,
});

/** Creates the audio model to store for processed audio. */
export function newProcessedAudio(
  { deps, scopeId, session, set, engine }: OpenContext,
  media: Pick<MediaSegment, "id" | "partOf" | "partOfChannel" | "channels" | "rateHz">,
  channel: number | null,
  source: ProcessedAudio["source"],
  validity: AudioValidity,
  analysis: VoiceAnalysis | null,
): ProcessedAudio {
  return {
    id: deps.ids.next(),
    scopeId,
    sessionId: session.id,
    mediaSegmentId: media.id,
    ...(media.partOf !== null && { partOf: media.partOf, partOfChannel: media.partOfChannel ?? null }),
    channel,
    mediaChannels: media.channels,
    mediaRateHz: media.rateHz,
    printType: set.printType,
    source,
    validity,
    measures: analysis?.measures ?? noMeasures(media.rateHz),
    speakers: analysis?.speakers ?? 0,
    voiceClass: analysis?.voiceClass ?? null,
    revision: analysis?.revision ?? engine.model.revision,
    createdAt: deps.clock.now(),
    voice: { windows: analysis?.windows ?? [], embedding: analysis?.embedding ?? null },
  };
}
