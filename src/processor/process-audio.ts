import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Recording } from "../audio/port.js";
import { type AudioProcessingResultSchema, AudioValidity } from "../contract/index.js";
import type { Id, MediaSegment, ProcessedAudio } from "../store/port.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { measuredAudio, newProcessedAudio } from "./audio-model.js";
import { refuseSeparation } from "./caller-voice.js";
import { assertStillRunning, type OpenContext, openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { audioDetails, describedAudio, idIfAny, ifKnown, uniqueId } from "./messages.js";
import { analyzeRecording, findAudio, findMedia, openRecording, readSamples, selectChannel } from "./recorded-audio.js";

/** Processes audio, checks its quality, and keeps an audio model for later Enroll or Verify. */
export const processAudio: Implementation<"processAudio"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context, options);
  const { session, set } = context;
  refuseSeparation(request.channelSelector, "channel_selector");
  const source = await findAudio(context, request.input);
  const forEnrollment = request.isForEnrollment === true;
  const { media, channel } =
    source.from === "media"
      ? { media: source.media, channel: selectChannel(source.media, request.channelSelector) }
      : await processedMedia(context, source.processed, forEnrollment);
  const recording = openRecording(deps, media);
  const settings = { channel, maxNetSpeechSeconds: forEnrollment ? set.maxNetAudioForEnroll : undefined };
  const analyzed = await analyzeRecording(context, recording, settings);
  const { analysis } = analyzed;
  const validity = analysis
    ? audioValidity(measuredAudio(analysis), forEnrollment ? "enroll" : "verify", set)
    : analyzed.failure;
  const used =
    forEnrollment && recording && analysis
      ? usedPart(context, media, recording, channel, analysis.measures.grossSeconds)
      : media;
  const from = used === media ? channel : null;
  const processed = newProcessedAudio(context, used, from, "process-audio", validity, analysis);
  // The audio itself may be good, so nothing is stored and it can be processed again.
  if (validity === AudioValidity.INTERNAL_ERROR) return { result: processingResult(processed, null) };
  if (used !== media) {
    await assertStillRunning(deps, session);
    await deps.store.media.add(used);
  }
  await deps.store.processed.add(processed);
  return { result: processingResult(processed) };
};

/** The media to process again: for enrollment the part that was cut out; otherwise the whole recording, if it is still stored. */
async function processedMedia(
  context: OpenContext,
  { mediaSegmentId, channel }: ProcessedAudio,
  forEnrollment: boolean,
): Promise<{ media: MediaSegment; channel: number | null }> {
  const { deps, scopeId } = context;
  const media = await findMedia(context, mediaSegmentId, "gk_processed_audio_id");
  const whole = forEnrollment || media.partOf === null ? null : await deps.store.media.get(scopeId, media.partOf);
  return whole ? { media: whole, channel: media.partOfChannel ?? null } : { media, channel };
}

/** `id` is `null` for an audio model, `mediaSegmentId` for audio, that is not stored. */
export const processingResult = (
  processed: ProcessedAudio,
  id: Id | null = processed.id,
  mediaSegmentId: Id | null = processed.mediaSegmentId,
): MessageInitShape<typeof AudioProcessingResultSchema> => ({
  gkMediaSegmentId: idIfAny(mediaSegmentId),
  gkProcessedAudioId: idIfAny(id),
  validity: processed.validity,
  audioDetails: audioDetails({ ...describedAudio(processed), mediaSegmentId, processedAudioId: id }),
  voiceClassScore: ifKnown(processed.voiceClass),
  gkCalibrationModelRevisionId: uniqueId(processed.revision),
});

/** The media itself if all of it was used; otherwise a new media segment with the part that was used. */
function usedPart(
  { deps, session }: OpenContext,
  media: MediaSegment,
  recording: Recording,
  channel: number | null,
  seconds: number,
): MediaSegment {
  if (Math.round(seconds * recording.rateHz) >= recording.frames) return media;
  return {
    id: deps.ids.next(),
    scopeId: media.scopeId,
    sessionId: session.id,
    partOf: media.partOf ?? media.id,
    partOfChannel: media.partOf === null ? channel : (media.partOfChannel ?? null),
    rateHz: recording.rateHz,
    channels: 1,
    encoding: "pcm16",
    createdAt: deps.clock.now(),
    audio: pcm16(readSamples(recording, channel, seconds)),
  };
}

export function pcm16(samples: Float32Array): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(samples.length * 2));
  for (const [i, sample] of samples.entries())
    bytes.setInt16(i * 2, Math.max(-32768, Math.min(32767, Math.round(sample * 32768))), true);
  return new Uint8Array(bytes.buffer);
}
