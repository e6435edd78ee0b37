/** Both workflows of the specification, for any client of the contract. */
import { expect } from "vitest";
import type { ContractClient, Json } from "./contract-client.js";

/** A WAV file with a person's voice; each take is a different recording. */
export type Takes = (speaker: number, take: number) => Uint8Array;

/** Over gRPC a wrapper is a message whose default value is omitted; over HTTP it is a bare value. */
export const bare = (value: Json, absent: Json = false) =>
  typeof value === "object" ? (value?.value ?? absent) : value;

export async function openSession(client: ContractClient, scope = "default"): Promise<Json> {
  const gk_scope_id = { value: scope };
  const { gk_engagement_id } = await client.call("StartEngagement", { context: { gk_scope_id } });
  const started = await client.call("StartSession", {
    context: { gk_scope_id, gk_engagement_id },
    session_type: "SESSION_TYPE_IVR",
  });
  expect(started.status.status_code).toBe("OK");
  return { gk_scope_id, gk_engagement_id, gk_session_id: started.gk_session_id, configset_id: "ivr-text-dependent" };
}

export async function closeSession(client: ContractClient, context: Json): Promise<void> {
  await client.call("StopSession", { context });
  await client.call("StopEngagement", { context });
}

/** The nine steps of the enrollment workflow; returns the id of the trained profile. */
export async function enroll(
  client: ContractClient,
  takes: Takes,
  name: string,
  speaker: number,
  kind: "person_id" | "fraudster_id" = "person_id",
): Promise<string> {
  const context = await openSession(client);
  const known = await client.call("GetGkVoiceprintProfileId", { context, [kind]: name });
  expect(known.gk_voiceprint_profile_id).toBeFalsy();
  const { gk_voiceprint_profile_id } = await client.call("CreateVoiceprintProfile", { context, [kind]: name });
  const fresh = await client.call("GetEnrollStatus", { context, gk_voiceprint_profile_id });
  expect(fresh.result).toBe("ENROLL_STATUS_TRAIN_NOT_POSSIBLE");
  expect(bare(fresh.is_trained)).toBe(false);
  let status = "";
  for (let take = 1; take <= 3; take++) {
    const { gk_media_segment_id } = await client.upload(context, takes(speaker, take));
    const processed = await client.call("ProcessAudio", {
      context,
      gk_media_segment_id,
      is_for_enrollment: client.wrapsScalars ? { value: true } : true,
    });
    expect(processed.result.validity).toBe("AUDIO_VALIDITY_AUDIO_OK");
    const added = await client.call("Enroll", {
      context,
      gk_voiceprint_profile_id,
      gk_processed_audio_id: processed.result.gk_processed_audio_id,
    });
    expect(bare(added.result.enrolled)).toBe(true);
    status = added.result.enroll_status;
  }
  expect(["ENROLL_STATUS_TRAIN_POSSIBLE", "ENROLL_STATUS_TRAIN_SUGGESTED"]).toContain(status);
  const trained = await client.call("Train", { context, gk_voiceprint_profile_id });
  expect(trained.result.train_status).toBe("TRAIN_STATUS_TRAINED");
  expect(bare(trained.result.voiceprint_details.print_version)).toBe(1);
  await closeSession(client, context);
  return gk_voiceprint_profile_id.value;
}

/** The eight steps of the verification workflow; returns the decisions of Verify and of the session. */
export async function verify(
  client: ContractClient,
  takes: Takes,
  person: string,
  speaker: number,
  take = 4,
): Promise<Json> {
  const context = await openSession(client);
  const { gk_voiceprint_profile_id } = await client.call("GetGkVoiceprintProfileId", { context, person_id: person });
  const status = await client.call("GetEnrollStatus", { context, gk_voiceprint_profile_id });
  expect(bare(status.is_trained)).toBe(true);
  const { gk_media_segment_id } = await client.upload(context, takes(speaker, take));
  const { result } = await client.call("Verify", { context, gk_voiceprint_profile_id, gk_media_segment_id });
  const session = await client.call("GetSessionDecision", { context });
  await closeSession(client, context);
  return { decision: result.decision, reason: result.reason, session: session.result.decision };
}
