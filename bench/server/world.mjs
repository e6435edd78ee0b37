/** A trained profile and a recording to verify, made through any caller of the contract. */
export async function prepare({ call, upload }, wav) {
  const scope = { gkScopeId: { value: "default" } };
  const { gkSessionId, gkEngagementId } = await call("startSession", { context: scope });
  const context = { ...scope, gkSessionId, gkEngagementId, configsetId: "ivr-text-dependent" };
  const { gkVoiceprintProfileId } = await call("createVoiceprintProfile", {
    context,
    owner: { case: "personId", value: `bench ${Math.random()}` },
  });
  for (let i = 0; i < 3; i++) {
    const { gkMediaSegmentId } = await upload(context, wav);
    const { result } = await call("processAudio", {
      context,
      input: { case: "gkMediaSegmentId", value: gkMediaSegmentId },
      isForEnrollment: true,
    });
    await call("enroll", { context, gkVoiceprintProfileId, gkProcessedAudioId: result.gkProcessedAudioId });
  }
  await call("train", { context, gkVoiceprintProfileId });
  const { gkMediaSegmentId } = await upload(context, wav);
  return { context, gkVoiceprintProfileId, gkMediaSegmentId };
}

/** The request of an operation on that world. */
export function requestOf(operation, { context, gkVoiceprintProfileId, gkMediaSegmentId }) {
  if (operation !== "verify") return { context, gkVoiceprintProfileId };
  const audio = { case: "gkMediaSegmentId", value: gkMediaSegmentId };
  return { context, gkVoiceprintProfileId, audio, ignoreCheckpoints: true };
}
