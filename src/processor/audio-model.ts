/** What is stored of processed audio, as the domain and the engine look at it. */
import type { Voice, VoiceAnalysis } from "../engine/port.js";
import type { ProcessedAudio } from "../store/port.js";
import type { AudioModel } from "../voiceprint/enrollment.js";
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
