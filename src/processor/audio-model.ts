/** What is stored of processed audio, as the domain and the engine look at it. */
import type { Voice, VoiceAnalysis, VoiceWindow } from "../engine/port.js";
import type { ProcessedAudio } from "../store/port.js";
import type { AudioModel } from "../voiceprint/enrollment.js";
import { meanEmbedding } from "../voiceprint/growing-print.js";
import type { MeasuredAudio } from "../voiceprint/quality-gate.js";

export const audioModel = (processed: ProcessedAudio): AudioModel => ({
  id: processed.id,
  mediaSegmentId: processed.mediaSegmentId,
  channel: processed.channel,
  printType: processed.printType,
  revision: processed.revision,
  validity: processed.validity,
  audio: { ...processed.measures, speakers: processed.speakers },
  embedding: processed.voice.embedding,
});

/** How much more speech than the limit is heard before a recording that is still read ends. */
const overhearSeconds = 1;

/**
 * The audio model of the first `maxNetSpeechSeconds` of speech, in whole windows: what a limit leaves of audio that was
 * processed without one.
 */
export function limitedTo(processed: ProcessedAudio, maxNetSpeechSeconds: number): ProcessedAudio {
  const { measures, voice } = processed;
  if (measures.netSpeechSeconds <= maxNetSpeechSeconds + overhearSeconds) return processed;
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

export const analysisOf = (processed: ProcessedAudio): VoiceAnalysis => ({
  measures: processed.measures,
  windows: processed.voice.windows,
  embedding: processed.voice.embedding,
  voiceClass: processed.voiceClass,
  speakers: processed.speakers,
  revision: processed.revision,
});
