/** Tests that a box must pass on every transport and with any number of replicas. */
import { expect, it } from "vitest";
import type { ContractClient, Json } from "./contract-client.js";
import { bare, closeSession, enroll, openSession, type Takes, verify } from "./workflows.js";

const ids = (...values: string[]) => ({ unique_ids: values.map((value) => ({ value })) });

const WAV_HEADER_BYTES = 44;

/** Combines two mono recordings into one headerless stereo recording. */
function interleaved(first: Uint8Array, second: Uint8Array): Uint8Array {
  const frames = (Math.min(first.length, second.length) - WAV_HEADER_BYTES) / 2;
  const both = new Uint8Array(frames * 4);
  for (let i = 0; i < frames; i++) {
    const at = WAV_HEADER_BYTES + 2 * i;
    both.set(first.subarray(at, at + 2), 4 * i);
    both.set(second.subarray(at, at + 2), 4 * i + 2);
  }
  return both;
}

/** Registers the tests. `name` keeps the people of one run apart from those of another on the same store. */
export function endToEnd(client: () => ContractClient, takes: Takes, name: string): void {
  const called = (who: string) => `${who} over ${name}`;

  it("enroll a voice and verify it, and refuse another", async () => {
    await enroll(client(), takes, called("ada"), 100);
    expect(await verify(client(), takes, called("ada"), 100)).toEqual({
      decision: "DECISION_AUTHENTIC",
      reason: "DECISION_REASON_VOICEPRINT_MATCH",
      session: "DECISION_AUTHENTIC",
    });
    expect(await verify(client(), takes, called("ada"), 200)).toMatchObject({ decision: "DECISION_NO_MATCH" });
  });

  it("identify a voice among several, by their ids and by a group whose members change", async () => {
    const [grace, joan] = [
      await enroll(client(), takes, called("grace"), 300),
      await enroll(client(), takes, called("joan"), 400),
    ];
    const context = await openSession(client());
    const { gk_media_segment_id } = await client().upload(context, takes(400, 4));
    const identified = async (target: Json) =>
      (await client().call("Identify", { context, gk_media_segment_id, ...target })).result;
    const found = { decision: "DECISION_AUTHENTIC", voiceprint_details: { gk_voiceprint_profile_id: { value: joan } } };
    expect(await identified({ gk_voiceprint_profile_ids: ids(grace, joan) })).toMatchObject(found);

    const created = await client().call("CreateGroup", { context, gk_voiceprint_profile_ids: ids(grace) });
    const { gk_group_id } = created;
    const group = { unique_id: gk_group_id };
    expect(await identified({ group })).toMatchObject({ decision: "DECISION_NO_MATCH" });
    await client().call("AddGroupMembers", { context, gk_group_id, gk_voiceprint_profile_ids: ids(joan) });
    expect(await identified({ group })).toMatchObject(found);
    const { gk_voiceprint_profile_ids } = await client().call("GetGroup", { context, gk_group_id });
    expect(gk_voiceprint_profile_ids.unique_ids.map(({ value }: Json) => value).sort()).toEqual([grace, joan].sort());
    await client().call("RemoveGroupMembers", { context, gk_group_id, gk_voiceprint_profile_ids: ids(joan) });
    expect(await identified({ group })).toMatchObject({ decision: "DECISION_NO_MATCH" });
    await client().call("DeleteGroup", { context, gk_group_id });
    await expect(client().call("GetGroup", { context, gk_group_id })).rejects.toThrow();
    await closeSession(client(), context);
  });

  it("watch for a known fraudster, alone and together with an authentication", async () => {
    const fraudster = await enroll(client(), takes, called("mallory"), 500, "fraudster_id");
    const victim = await enroll(client(), takes, called("alice"), 600);
    const context = await openSession(client());
    const created = await client().call("CreateWatchlist", { context, gk_voiceprint_profile_ids: ids(fraudster) });
    const watchlist = { unique_id: created.gk_group_id };
    const hers = await client().upload(context, takes(600, 4));
    const theirs = await client().upload(context, takes(500, 4));
    const detected = async ({ gk_media_segment_id }: Json) =>
      (await client().call("DetectKnownFraudsters", { context, gk_media_segment_id, watchlist })).result;
    expect(await detected(theirs)).toMatchObject({
      decision: "DECISION_FRAUD",
      reason: "DECISION_REASON_FRAUDSTER_INDICATION",
      number_of_prints: 1,
    });
    expect(await detected(hers)).toMatchObject({ decision: "DECISION_NO_RISK_DETECTED" });
    const consistency = await client().call("CheckWatchlistConsistency", { context, watchlist });
    expect(bare(consistency.total_number_of_compatible_prints, 0)).toBe(1);
    const analyzed = await client().call("AnalyzeAudio", {
      context,
      gk_media_segment_id: theirs.gk_media_segment_id,
      gk_voiceprint_profile_ids: ids(victim),
      watchlist,
    });
    expect(analyzed.result).toMatchObject({
      decision: "DECISION_FRAUD",
      authentication_result: { decision: "DECISION_NO_MATCH" },
      fraud_detection_result: { decision: "DECISION_FRAUD" },
    });
    const session = await client().call("GetSessionDecision", { context });
    expect(session.result.decision).toBe("DECISION_FRAUD");
    await closeSession(client(), context);
  });

  it("process the selected channel of headerless audio", async () => {
    const value = await enroll(client(), takes, called("ida"), 800);
    const context = await openSession(client());
    // The caller on the first channel, the agent on the second.
    const format = { encoding: "pcm16", rate: 8000, channels: 2 };
    const { gk_media_segment_id } = await client().upload(context, interleaved(takes(800, 4), takes(900, 4)), format);
    const decided = async (channel: number) => {
      const channel_selector = { channel: client().wrapsScalars ? { value: channel } : channel };
      const request = { context, gk_voiceprint_profile_id: { value }, gk_media_segment_id, channel_selector };
      return (await client().call("Verify", request)).result.decision;
    };
    expect(await decided(1)).toBe("DECISION_AUTHENTIC");
    expect(await decided(2)).toBe("DECISION_NO_MATCH");
    await expect(decided(3)).rejects.toThrow(/channel/);
    await closeSession(client(), context);
  });

  it("run a job for the status of profiles", async () => {
    const context = await openSession(client());
    const { gk_job_id } = await client().call("StartVoiceprintProfilesStatusJob", { context });
    let job: Json;
    do {
      await new Promise((wake) => setTimeout(wake, 50));
      job = await client().call("GetVoiceprintProfilesStatusJob", { context, gk_job_id });
    } while (/PENDING|STARTED/.test(job.state));
    expect(job.state).toBe("VOICEPRINT_PROFILES_STATUS_JOB_STATE_COMPLETED");
    expect(job.profiles.length).toBeGreaterThan(0);
  });

  it("erase a voice, which no operation finds afterwards", async () => {
    const value = await enroll(client(), takes, called("hopper"), 700);
    const context = await openSession(client());
    const gk_voiceprint_profile_id = { value };
    await client().call("DeleteVoiceprintProfile", { context, gk_voiceprint_profile_id });
    // Repeated once more often than there are replicas.
    for (let i = 0; i < 3; i++) {
      await expect(client().call("GetEnrollStatus", { context, gk_voiceprint_profile_id })).rejects.toThrow();
      const found = await client().call("GetGkVoiceprintProfileId", { context, person_id: called("hopper") });
      expect(found.gk_voiceprint_profile_id).toBeFalsy();
    }
    await closeSession(client(), context);
  });
}
