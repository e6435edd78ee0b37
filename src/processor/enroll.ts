import { EnrollReason, type UniqueId } from "../contract/index.js";
import { untilUncontended } from "../store/contention.js";
import type { ProcessedAudio } from "../store/port.js";
import { type AudioModel, enrollReason, enrollStatus } from "../voiceprint/enrollment.js";
import { audioModel, limitedTo } from "./audio-model.js";
import { type OpenContext, openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { invalid, notInScope } from "./failures.js";
import { audioDetails, describedAudio, profileDetails } from "./messages.js";
import { findProfileToChange } from "./profiles.js";

/** Adds processed audio to the profile's enrollment segments. */
export const enroll: Implementation<"enroll"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context, options);
  const { scopeId } = context;
  const id = request.gkProcessedAudioId!.value;
  const processed = await deps.store.processed.get(scopeId, id);
  if (processed?.source !== "process-audio") {
    // An unknown or withdrawn profile is reported first.
    await findProfileToChange(deps, scopeId, request.gkVoiceprintProfileId);
    if (!processed) throw notInScope("gk_processed_audio_id", "processed audio", id);
    throw invalid(
      "gk_processed_audio_id",
      "not_from_process_audio",
      "only audio from ProcessAudio can be enrolled; process this recording with ProcessAudio first",
    );
  }
  return { result: await enrollAudio(context, request.gkVoiceprintProfileId, processed) };
};

/** Enrolls audio, stored or not. */
export async function enrollAudio(
  { deps, options, scopeId, set, engine }: OpenContext,
  profileId: UniqueId | undefined,
  given: ProcessedAudio,
) {
  const { profiles } = deps.store;
  const { revision } = engine.model;
  const processed = limitedTo(given, set.maxNetAudioForEnroll);
  const candidate = audioModel(processed);
  return untilUncontended("the profile", async () => {
    options.signal?.throwIfAborted();
    const profile = await findProfileToChange(deps, scopeId, profileId);
    const segments = (await profiles.segments(scopeId, profile.id)).map((segment) => audioModel(segment.processed));
    const answer = (reason: EnrollReason, after: readonly AudioModel[]) => ({
      enrollStatus: enrollStatus(after, revision, set),
      voiceprintDetails: profileDetails(profile),
      enrolled: reason === EnrollReason.ENROLL_OK,
      reason,
      audioDetails: audioDetails(describedAudio(given)),
    });
    const reason = enrollReason(candidate, segments, profile.printType, revision, set);
    if (reason !== EnrollReason.ENROLL_OK) return answer(reason, segments);
    const segment = { profileId: profile.id, processed, addedAt: deps.clock.now() };
    switch (await profiles.addSegment(scopeId, profile.id, profile.generation, segment)) {
      case "added":
        return answer(EnrollReason.ENROLL_OK, [...segments, candidate]);
      case "already":
        return answer(EnrollReason.ALREADY_ADDED, segments);
      case "wrong-type":
        return answer(EnrollReason.WRONG_PRINT_TYPE, segments);
      case "moved":
      case "missing":
        // Another writer changed or erased the profile first: read it again.
        return undefined;
    }
  });
}
