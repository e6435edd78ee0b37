/** A trained profile and a recording to verify, created through any caller of the contract. */

import { pcm16Wav } from "../../dist/audio/wav-writer.js";
import { Decision } from "../../dist/contract/index.js";
import { speak } from "../../dist/demo/voice.js";

const take = (seed) => pcm16Wav(speak({ speaker: 1, seconds: 4, rateHz: 8000, seed }), 8000);
/** The recording to verify: 4 s of speech. */
export const RECORDING = take(0);

export async function prepare({ call, upload }) {
  const scope = { gkScopeId: { value: "default" } };
  const { gkSessionId, gkEngagementId } = await call("startSession", { context: scope });
  const context = { ...scope, gkSessionId, gkEngagementId, configsetId: "ivr-text-dependent" };
  const { gkVoiceprintProfileId } = await call("createVoiceprintProfile", {
    context,
    owner: { case: "personId", value: `bench ${Math.random()}` },
  });
  for (const seed of [1, 2, 3]) {
    const { gkMediaSegmentId } = await upload(context, take(seed));
    const { result } = await call("processAudio", {
      context,
      input: { case: "gkMediaSegmentId", value: gkMediaSegmentId },
      isForEnrollment: true,
    });
    await call("enroll", { context, gkVoiceprintProfileId, gkProcessedAudioId: result.gkProcessedAudioId });
  }
  await call("train", { context, gkVoiceprintProfileId });
  const { gkMediaSegmentId } = await upload(context, RECORDING);
  const world = { context, gkVoiceprintProfileId, gkMediaSegmentId };
  const { decision } = (await call("verify", requestOf("verify", world))).result;
  // A check that is refused before scoring would cost less.
  if (decision !== Decision.AUTHENTIC && decision !== "DECISION_AUTHENTIC")
    throw new Error(`the check of the bench's own voice says ${decision}`);
  return world;
}

/** The request of an operation with that profile and recording. */
export function requestOf(operation, { context, gkVoiceprintProfileId, gkMediaSegmentId }) {
  if (operation !== "verify") return { context, gkVoiceprintProfileId };
  const audio = { case: "gkMediaSegmentId", value: gkMediaSegmentId };
  return { context, gkVoiceprintProfileId, audio, ignoreCheckpoints: true };
}
