import { describe, expect, test } from "vitest";
import {
  ConsentState,
  Decision,
  DecisionReason,
  RetrainingOutcome,
  SessionType,
  VoiceprintProfilesStatusJobState as State,
  StatusCode,
  VoiceprintProfileStatus,
} from "../../src/contract/index.js";
import type { Job } from "../../src/store/port.js";
import { rateHz, take } from "./fixture-engine.js";
import { list, openWorld, pcm16, refusal, type World } from "./world.js";

describe("engagements and sessions", () => {
  test("StartEngagement needs only the scope", async () => {
    const { processor } = await openWorld();
    const { gkEngagementId } = await processor.startEngagement({
      context: { gkScopeId: { value: "bank" } },
      externalId: "call-17",
      customData: "{}",
    });
    expect(gkEngagementId!.value).toMatch(/^[0-9a-f-]{36}$/);
    expect(await refusal(processor.startEngagement({}))).toMatchObject({ fields: ["context missing"] });
    expect(await refusal(processor.startEngagement({ context: {} }))).toMatchObject({
      fields: ["context.gk_scope_id missing"],
    });
  });

  test("StartEngagement refuses more custom data than the limit", async () => {
    const { processor, context } = await openWorld({ limits: { customData: 10 } });
    const start = (customData: string) => processor.startEngagement({ context, customData });
    await start("x".repeat(10));
    expect(await refusal(start("x".repeat(11)))).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["custom_data too_long"],
    });
    const usual = await openWorld();
    await usual.processor.startEngagement({ context, customData: "x".repeat(65_536) });
    const longer = usual.processor.startEngagement({ context, customData: "x".repeat(65_537) });
    expect((await refusal(longer)).fields).toEqual(["custom_data too_long"]);
  });

  test("StartSession creates an engagement when none is given", async () => {
    const { processor, store } = await openWorld();
    const scope = { gkScopeId: { value: "bank" } };
    const { gkSessionId, gkEngagementId } = await processor.startSession({
      context: scope,
      sessionType: SessionType.IVR,
      externalId: "s-1",
      claimedPersonId: "alice",
    });
    expect(await store.sessions.get("bank", gkSessionId!.value)).toMatchObject({
      engagementId: gkEngagementId!.value,
      type: 2,
      claimedPersonId: "alice",
    });
    const second = await processor.startSession({ context: { ...scope, gkEngagementId: gkEngagementId! } });
    expect(second.gkEngagementId!.value).toBe(gkEngagementId!.value);
    expect(await refusal(processor.startSession({ context: scope, sessionType: 77 as never }))).toMatchObject({
      fields: ["session_type unknown"],
    });
  });

  test("a session and an engagement can be stopped only once", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    await processor.stopSession({ context });
    const stoppedSession = { code: "INVALID_REQUEST", fields: ["context.gk_session_id stopped"] };
    expect(await refusal(processor.stopSession({ context }))).toMatchObject(stoppedSession);
    const other = await world.open();
    const both = await Promise.allSettled([
      processor.stopSession({ context: other }),
      processor.stopSession({ context: other }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    await processor.stopEngagement({ context });
    const stopped = { code: "INVALID_REQUEST", fields: ["context.gk_engagement_id stopped"] };
    expect(await refusal(processor.stopEngagement({ context }))).toMatchObject(stopped);
    expect(await refusal(processor.startSession({ context }))).toMatchObject(stopped);
  });

  test("stopping an engagement stops its sessions and deletes their audio", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const media = await world.media(take(7, 2));
    await processor.stopEngagement({ context });
    expect(await world.store.media.get("bank", media.value)).toBeNull();
    expect(await refusal(world.media(take(7, 2)))).toMatchObject({ fields: ["context.gk_session_id stopped"] });
  });
});

describe("stopping when something goes wrong", () => {
  test("an engagement whose sessions could not be stopped can be stopped again", async () => {
    const world = await openWorld();
    const { processor, context, store } = world;
    const media = await world.media(take(7, 3));
    const { stop } = store.sessions;
    store.sessions.stop = async () => {
      store.sessions.stop = stop;
      throw new Error("the disk is gone");
    };
    expect(await refusal(processor.stopEngagement({ context }))).toMatchObject({ code: "INTERNAL_ERROR" });
    await processor.stopEngagement({ context });
    expect((await store.sessions.get("bank", context.gkSessionId.value))!.stoppedAt).not.toBeNull();
    expect(await store.media.get("bank", media.value)).toBeNull();
  });

  test("a session that begins just after its engagement has stopped, as on another replica, is refused and stopped", async () => {
    const { processor, store, context } = await openWorld();
    const { create } = store.sessions;
    const created: string[] = [];
    store.sessions.create = async (session) => {
      await processor.stopEngagement({ context });
      await create(session);
      created.push(session.id);
    };
    expect(await refusal(processor.startSession({ context }))).toMatchObject({
      fields: ["context.gk_engagement_id stopped"],
    });
    const { stoppedAt } = (await store.sessions.get(context.gkScopeId.value, created[0]!))!;
    expect(stoppedAt).not.toBeNull();
  });

  test("a session that begins while its engagement stops is stopped with it", async () => {
    const world = await openWorld();
    const { processor, context, store } = world;
    const { stop } = store.engagements;
    let late = "";
    store.engagements.stop = async (...which) => {
      const { gkScopeId, gkEngagementId } = context;
      const { gkSessionId } = await processor.startSession({ context: { gkScopeId, gkEngagementId } });
      late = gkSessionId!.value;
      return stop(...which);
    };
    await processor.stopEngagement({ context });
    expect((await store.sessions.get("bank", late))!.stoppedAt).not.toBeNull();
  });

  test("audio is deleted with its session even if the clock is set back", async () => {
    const world = await openWorld();
    const { processor, context, store, clock } = world;
    const media = await world.media(take(7, 3));
    const { stop } = store.sessions;
    store.sessions.stop = (...which) => {
      clock.at -= 3_600_000;
      return stop(...which);
    };
    await processor.stopSession({ context });
    expect(await store.media.get("bank", media.value)).toBeNull();
  });

  test("audio that arrives or is cut after its session stopped is not stored", async () => {
    const stopped = { code: "INVALID_REQUEST", fields: ["context.gk_session_id stopped"] };
    const world = await openWorld();
    const { processor, store } = world;
    const [one, other] = [await world.open(), await world.open()];
    async function* upload() {
      yield { context: one, encoding: "pcm16", rate: rateHz, channels: 1 };
      await processor.stopSession({ context: one });
      yield { chunk: pcm16([take(7, 3)]) };
    }
    const added: string[] = [];
    const { add } = store.media;
    store.media.add = (segment) => {
      added.push(segment.id);
      return add(segment);
    };
    expect(await refusal(processor.addMediaSegment(upload()))).toMatchObject(stopped);
    expect(added).toEqual([]);
    const input = await world.heard(take(7, 30), other);
    const cut = processor.processAudio(
      { context: other, input, isForEnrollment: true },
      { onProgress: () => void store.sessions.stop("bank", other.gkSessionId!.value!, world.clock.at) },
    );
    expect(await refusal(cut)).toMatchObject(stopped);
    expect(added).toHaveLength(1);
  });
});

describe("retention", () => {
  test("audio is kept until its session stops, and audio models longer", async () => {
    const world = await openWorld();
    const processed = await world.process(take(7, 4));
    const other = await world.open();
    const kept = await world.media(take(9, 4), other);
    await world.processor.stopSession({ context: world.context });
    expect(await world.store.media.get("bank", processed.gkMediaSegmentId!.value)).toBeNull();
    expect(await world.store.media.get("bank", kept.value)).not.toBeNull();
    expect(await world.store.processed.get("bank", processed.gkProcessedAudioId!.value)).not.toBeNull();
  });

  test("as configured: kept for an hour after the session, then gone", async () => {
    const world = await openWorld({ retention: { audioSeconds: 3600, audioModelSeconds: 7200 } });
    const processed = await world.process(take(7, 4));
    await world.processor.stopSession({ context: world.context });
    const media = () => world.store.media.get("bank", processed.gkMediaSegmentId!.value);
    const model = () => world.store.processed.get("bank", processed.gkProcessedAudioId!.value);
    expect(await media()).not.toBeNull();
    world.clock.at += 3600_000;
    expect(await world.processor.expire()).toEqual({ media: 1, models: 0, jobs: 0 });
    expect(await media()).toBeNull();
    expect(await model()).not.toBeNull();
    world.clock.at += 3600_000;
    expect(await world.processor.expire()).toEqual({ media: 0, models: 1, jobs: 0 });
  });

  test("of a session that was stopped while the clock was ahead: an hour after the clock was set right", async () => {
    const world = await openWorld({ retention: { audioSeconds: 3600, audioModelSeconds: 3600 } });
    await world.process(take(7, 4));
    world.clock.at += 365 * 86_400_000;
    await world.processor.stopSession({ context: world.context });
    world.clock.at -= 365 * 86_400_000;
    expect(await world.processor.expire()).toEqual({ media: 0, models: 0, jobs: 0 });
    world.clock.at += 3600_000;
    expect(await world.processor.expire()).toEqual({ media: 1, models: 1, jobs: 0 });
  });

  test.each([Number.NaN, -1, "3600"])(
    "%j seconds are refused: they would take audio of sessions that run",
    async (wrong) => {
      for (const name of ["audioSeconds", "audioModelSeconds", "abandonedSessionSeconds", "jobSeconds"])
        await expect(openWorld({ retention: { [name]: wrong as number } })).rejects.toThrow(`retention.${name}`);
    },
  );

  test("undefined values count as absent", async () => {
    const world = await openWorld({ retention: { audioSeconds: undefined } as never });
    const running = await world.media(take(7, 3));
    await world.processor.stopSession({ context: await world.open() });
    expect(await world.store.media.get("bank", running.value)).not.toBeNull();
  });

  test("a session that nobody stopped does not keep its audio forever", async () => {
    const world = await openWorld();
    await world.media(take(7, 4));
    expect(await world.processor.expire()).toEqual({ media: 0, models: 0, jobs: 0 });
    world.clock.at += 24 * 3600_000 - 1000;
    expect(await world.processor.expire()).toEqual({ media: 0, models: 0, jobs: 0 });
    world.clock.at += 1000;
    expect(await world.processor.expire()).toEqual({ media: 1, models: 0, jobs: 0 });
  });

  test("of an abandoned session: its day counts before the audio's and the audio models' own time", async () => {
    const world = await openWorld({ retention: { audioSeconds: 3600, audioModelSeconds: 7200 } });
    await world.process(take(7, 4));
    const expired = async (hours: number) => {
      world.clock.at += hours * 3600_000 - 60_000;
      const before = await world.processor.expire();
      world.clock.at += 60_000;
      return [before, await world.processor.expire()];
    };
    const nothing = { media: 0, models: 0, jobs: 0 };
    expect(await expired(25)).toEqual([nothing, { ...nothing, media: 1 }]);
    expect(await expired(1)).toEqual([nothing, { ...nothing, models: 1 }]);
  });

  test("audio models are kept for 30 days unless configured", async () => {
    const world = await openWorld();
    await world.process(take(7, 4));
    await world.processor.stopSession({ context: world.context });
    world.clock.at += 30 * 86_400_000 - 1000;
    expect(await world.processor.expire()).toMatchObject({ models: 0 });
    world.clock.at += 1000;
    expect(await world.processor.expire()).toMatchObject({ models: 1 });
  });
});

describe("profiles", () => {
  test("are created once per owner and tag, found, and erased", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const owner = { case: "personId", value: "alice" } as const;
    expect((await processor.getGkVoiceprintProfileId({ context, owner })).gkVoiceprintProfileId).toBeUndefined();
    const home = await processor.createVoiceprintProfile({ context, owner, profileTag: "home" });
    const work = await processor.createVoiceprintProfile({ context, owner, profileTag: "work" });
    expect(home.gkOwnerId!.value).toBe(work.gkOwnerId!.value);
    expect(await refusal(processor.createVoiceprintProfile({ context, owner, profileTag: "home" }))).toMatchObject({
      code: "ALREADY_EXISTS",
      fields: ["profile_tag exists"],
    });
    const found = await processor.getGkVoiceprintProfileId({ context, owner, profileTag: "work" });
    expect(found.gkVoiceprintProfileId!.value).toBe(work.gkVoiceprintProfileId!.value);
    const asFraudster = { case: "fraudsterId", value: "alice" } as const;
    const other = await processor.createVoiceprintProfile({ context, owner: asFraudster, profileTag: "home" });
    expect(other.gkOwnerId!.value).not.toBe(home.gkOwnerId!.value);
    await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: work.gkVoiceprintProfileId! });
    const gone = await processor.getGkVoiceprintProfileId({ context, owner, profileTag: "work" });
    expect(gone.gkVoiceprintProfileId).toBeUndefined();
  });

  test.each([
    [{}, "owner missing"],
    [{ owner: { case: "personId", value: "" } }, "owner missing"],
    [{ owner: { case: "personId", value: "x".repeat(257) } }, "person_id too_long"],
    [{ owner: { case: "fraudsterId", value: "a\0b" } }, "fraudster_id malformed"],
    [{ owner: { case: "personId", value: "a" }, profileTag: "x".repeat(257) }, "profile_tag too_long"],
  ] as const)("rejects %j", async (request, field) => {
    const { processor, context } = await openWorld();
    expect(await refusal(processor.createVoiceprintProfile({ context, ...request }))).toMatchObject({
      code: "INVALID_REQUEST",
      fields: [field],
    });
  });

  test("names may have 256 characters", async () => {
    const { person } = await openWorld();
    await person("x".repeat(256), "y".repeat(256));
  });

  test("deleting erases the audio models of checks that matched, and keeps the others", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const [profile, other] = [await world.trained(7), await world.trained(9)];
    const matched = await world.verify(profile, take(7, 4));
    const stranger = await world.verify(profile, take(11, 4));
    const others = await world.verify(other, take(9, 4));
    await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: profile });
    const kept = ({ gkProcessedAudioId }: typeof matched) =>
      world.store.processed.get("bank", gkProcessedAudioId!.value);
    expect(await kept(matched)).toBeNull();
    expect(await kept(stranger)).not.toBeNull();
    expect(await kept(others)).not.toBeNull();
  });

  test("deleting erases segments, audio models and template, and drops the print from galleries", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const profile = await world.trained(7);
    const [segment] = await world.store.profiles.segments("bank", profile.value);
    await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: profile });
    expect(await world.store.profiles.get("bank", profile.value)).toBeNull();
    expect(await world.store.processed.get("bank", segment!.processed.id)).toBeNull();
    expect(await world.store.media.get("bank", segment!.processed.mediaSegmentId)).toBeNull();
  });
});

/** Nine significant digits identify every 32-bit float uniquely. */
const decimals = (embedding: Float32Array) => Array.from(embedding, (value) => Number(value.toPrecision(9)));

test("an export contains everything stored about a profile, as plain values", async () => {
  const world = await openWorld();
  const profile = await world.trained(7);
  const exported = (await world.processor.exportProfile("bank", profile.value))!;
  expect(JSON.parse(JSON.stringify(exported))).toEqual(exported);
  const { template } = (await world.store.profiles.get("bank", profile.value))!;
  expect(exported.template).toEqual({ ...template, embedding: decimals(template!.embedding) });
  expect(Float32Array.from(exported.template!.embedding)).toEqual(template!.embedding);
  const stored = await world.store.profiles.segments("bank", profile.value);
  expect(exported.segments).toHaveLength(stored.length);
  for (const [i, { processed }] of stored.entries()) {
    const { id, scopeId: _, createdAt, voice, ...kept } = processed;
    const segment = exported.segments[i]!;
    expect(segment).toMatchObject({ ...kept, processedAudioId: id, createdAt: new Date(createdAt).toISOString() });
    expect(segment.windows.length).toBeGreaterThan(1);
    expect(segment.windows).toEqual(
      voice.windows.map((window) => ({ ...window, embedding: decimals(window.embedding) })),
    );
  }
});

describe("groups and watchlists", () => {
  test("members by profile and by owner, filtered by tag", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const [first, second] = [await world.trained(7, "person", "phone"), await world.trained(9, "person", "web")];
    const owner = await processor.getGkVoiceprintProfileId({
      context,
      owner: { case: "personId", value: "person-9" },
      profileTag: "web",
    });
    const { gkGroupId } = await processor.createGroup({ context, tag: "team", gkVoiceprintProfileIds: list(first) });
    await processor.addGroupMembers({ context, gkGroupId: gkGroupId!, gkOwnerIds: list(owner.gkOwnerId!) });
    const group = await processor.getGroup({ context, gkGroupId: gkGroupId! });
    expect(group).toMatchObject({
      tag: "team",
      gkVoiceprintProfileIds: { uniqueIds: [{ value: first.value }] },
      gkOwnerIds: { uniqueIds: [{ value: owner.gkOwnerId!.value }] },
    });
    const identify = async (value: object) => {
      const target = { case: "group", value } as const;
      const audio = await world.heard(take(9, 4));
      return (await processor.identify({ context, audio, target })).result!;
    };
    const all = await identify({ uniqueId: gkGroupId! });
    expect(all.decision).toBe(Decision.AUTHENTIC);
    expect(all.voiceprintDetails!.gkVoiceprintProfileId!.value).toBe(second.value);
    expect(all.voiceprintResults).toHaveLength(2);
    const phone = await identify({ uniqueId: gkGroupId!, tag: "phone" });
    expect(phone.voiceprintResults.map((result) => result.gkVoiceprintProfileId!.value)).toEqual([first.value]);
    expect(phone.decision).toBe(Decision.NO_MATCH);
    expect((await identify({ tag: "team" })).voiceprintResults).toHaveLength(2);
    await processor.removeGroupMembers({ context, gkGroupId: gkGroupId!, gkOwnerIds: list(owner.gkOwnerId!) });
    expect((await identify({ uniqueId: gkGroupId! })).decision).toBe(Decision.NO_MATCH);
    await processor.deleteGroup({ context, gkGroupId: gkGroupId! });
    expect(await refusal(identify({ uniqueId: gkGroupId! }))).toMatchObject({ fields: ["group.unique_id unknown"] });
    expect(await refusal(identify({ tag: "team" }))).toMatchObject({ fields: ["group.tag unknown"] });
    expect(await refusal(identify({}))).toMatchObject({ fields: ["group.unique_id missing"] });
  });

  test("a group is not a watchlist", async () => {
    const { processor, context } = await openWorld();
    const { gkGroupId } = await processor.createGroup({ context });
    for (const call of [
      processor.getWatchlist({ context, gkGroupId: gkGroupId! }),
      processor.deleteWatchlist({ context, gkGroupId: gkGroupId! }),
    ])
      expect(await refusal(call)).toMatchObject({ code: "NOT_FOUND", fields: ["gk_group_id unknown"] });
    for (const call of [processor.addGroupMembers, processor.removeGroupMembers])
      expect(await refusal(call({ context, gkGroupId: gkGroupId! }))).toMatchObject({
        fields: ["gk_voiceprint_profile_ids empty"],
      });
  });
});

describe("CheckWatchlistConsistency", () => {
  test("counts and lists the prints that the current model cannot score", async () => {
    const world = await openWorld({ configurationSets: { short: { maxIncompatiblePrintsListed: 2 } } });
    const { processor, context } = world;
    const old = [];
    for (const speaker of [7, 9, 11]) old.push(await world.trained(speaker, "fraudster"));
    const oldRevision = world.engine.model.revision;
    world.engine.behavior.revision = "c".repeat(64);
    const fresh = await world.trained(13, "fraudster");
    const untrained = await world.fraudster("new one");
    const members = list(...old, fresh, untrained);
    const { gkGroupId } = await processor.createWatchlist({ context, gkVoiceprintProfileIds: members });
    const target = { case: "watchlist", value: { uniqueId: gkGroupId! } } as const;
    const answer = await processor.checkWatchlistConsistency({ context, target });
    expect(answer).toMatchObject({ totalNumberOfCompatiblePrints: 1, totalNumberOfIncompatiblePrints: 4 });
    expect(answer.incompatiblePrints.map(({ fraudsterId }) => fraudsterId).sort()).toEqual([
      "fraudster-11",
      "fraudster-7",
      "fraudster-9",
      "new one",
    ]);
    expect(answer.requiredCalibrationModel).toMatchObject({
      gkCalibrationModelRevisionId: { value: "c".repeat(64) },
      calibrationModelId: "fixture-1",
    });
    const [first] = answer.incompatiblePrints.filter((print) => print.fraudsterId === "fraudster-7");
    expect(first!.voiceprintDetails!.gkVoiceprintProfileId!.value).toBe(old[0]!.value);
    expect(first!.incompatibleCalibrationModel).toMatchObject({
      gkCalibrationModelRevisionId: { value: oldRevision },
      calibrationModelId: "fixture-1",
    });
    const short = await world.open("short");
    const truncated = await processor.checkWatchlistConsistency({ context: short, target });
    expect(truncated.totalNumberOfIncompatiblePrints).toBe(4);
    expect(truncated.incompatiblePrints).toHaveLength(2);
    const phone = await world.fraudster("phone only", "phone");
    const gkVoiceprintProfileIds = list(phone);
    await processor.addWatchlistMembers({ context, gkGroupId: gkGroupId!, gkVoiceprintProfileIds });
    const tagged = await processor.checkWatchlistConsistency({
      context,
      target: { case: "watchlist", value: { uniqueId: gkGroupId!, tag: "phone" } },
    });
    expect(tagged.totalNumberOfIncompatiblePrints).toBe(1);
    expect(tagged.incompatiblePrints.map(({ fraudsterId }) => fraudsterId)).toEqual(["phone only"]);
    expect(tagged.incompatiblePrints[0]!.incompatibleCalibrationModel).toBeUndefined();
    const ids = { case: "gkVoiceprintProfileIds", value: list(fresh) } as const;
    const fine = await processor.checkWatchlistConsistency({ context, target: ids });
    expect(fine).toMatchObject({ totalNumberOfCompatiblePrints: 1, totalNumberOfIncompatiblePrints: 0 });
    expect(fine.incompatiblePrints).toEqual([]);
  });
});

describe("GetSessionDecision", () => {
  const decisionOf = async ({ processor, context }: World) => (await processor.getSessionDecision({ context })).result!;

  test("fails without checks", async () => {
    expect(await decisionOf(await openWorld())).toMatchObject({
      decision: Decision.FAILED,
      reason: DecisionReason.NO_SCORES,
      checks: [],
    });
  });

  test("fuses the checks of the session, and lists them", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    await world.verify(profile, take(7, 0.7));
    expect(await decisionOf(world)).toMatchObject({
      decision: Decision.UNCERTAIN,
      reason: DecisionReason.AUDIO_TOO_SHORT,
    });
    await world.verify(profile, take(7, 4));
    const decided = await decisionOf(world);
    expect(decided).toMatchObject({ decision: Decision.AUTHENTIC, reason: DecisionReason.VOICEPRINT_MATCH });
    expect(decided.checks.map((check) => check.operation)).toEqual(["Verify", "Verify"]);
    expect(decided.checks[1]).toMatchObject({
      decision: Decision.AUTHENTIC,
      gkVoiceprintProfileId: { value: profile.value },
    });
    expect(decided.riskEngineResult!.risk).toBeLessThan(500);
  });

  test("one fraud indication outweighs a match, also after the session has stopped", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const fraudster = await world.trained(7, "fraudster");
    await world.verify(profile, take(7, 4));
    await world.processor.detectKnownFraudsters({
      context: world.context,
      audio: await world.heard(take(7, 4.5)),
      target: { case: "gkVoiceprintProfileIds", value: list(fraudster) },
    });
    await world.verify(profile, take(7, 4.2));
    await world.processor.stopSession({ context: world.context });
    const decided = await decisionOf(world);
    expect(decided).toMatchObject({ decision: Decision.FRAUD, reason: DecisionReason.FRAUDSTER_INDICATION });
    expect(decided.riskEngineResult!.risk).toBeGreaterThan(500);
    expect(decided.checks).toHaveLength(3);
  });

  test("names the claimed person; a match with somebody else is NO_MATCH", async () => {
    const world = await openWorld();
    const [alice, bob] = [await world.trained(7), await world.trained(9)];
    const { gkScopeId } = world.context;
    const claiming = async (claimedPersonId: string, samples: Float32Array, profile: { value: string }) => {
      const { gkSessionId, gkEngagementId } = await world.processor.startSession({
        context: { gkScopeId },
        claimedPersonId,
      });
      const context = { ...world.context, gkSessionId: gkSessionId!, gkEngagementId: gkEngagementId! };
      await world.verify(profile, samples, { context });
      return decisionOf({ ...world, context });
    };
    expect(await claiming("person-7", take(7, 4), alice)).toMatchObject({
      decision: Decision.AUTHENTIC,
      personId: "person-7",
      gkVoiceprintProfileId: { value: alice.value },
      matchedPersonId: "person-7",
    });
    const other = await claiming("person-7", take(9, 4), bob);
    expect(other).toMatchObject({ decision: Decision.NO_MATCH, personId: "person-7", matchedPersonId: "person-9" });
    expect(other.riskEngineResult!.risk).toBeGreaterThan(500);
    expect((await claiming("nobody known", take(7, 4), alice)).decision).toBe(Decision.NO_MATCH);
    const { find } = world.store.owners;
    world.store.owners.find = (scopeId, kind) => find(scopeId, kind, "person-9");
    const redirected = await claiming("person-7", take(9, 4), bob);
    expect(redirected.decision, "a database that leads a name to somebody else").toBe(Decision.NO_MATCH);
    world.store.owners.find = find;
    expect(await claiming("", take(9, 4), alice)).toMatchObject({
      decision: Decision.NO_MATCH,
      personId: "person-7",
      matchedPersonId: "",
    });
  });

  test("stays as it was after the prints are erased, or enrolled again", async () => {
    const world = await openWorld();
    const [alice, bob] = [await world.trained(7), await world.trained(9)];
    const { gkScopeId } = world.context;
    const sessions: World[] = [];
    for (const claimedPersonId of ["person-7", "person-9", ""]) {
      const { gkSessionId, gkEngagementId } = await world.processor.startSession({
        context: { gkScopeId },
        claimedPersonId,
      });
      const context = { ...world.context, gkSessionId: gkSessionId!, gkEngagementId: gkEngagementId! };
      await world.verify(alice, take(7, 4), { context });
      sessions.push({ ...world, context });
    }
    const outcomes = async () =>
      (await Promise.all(sessions.map(decisionOf))).map(({ decision, riskEngineResult, gkVoiceprintProfileId }) => ({
        decision,
        risk: riskEngineResult?.risk,
        gkVoiceprintProfileId,
      }));
    const before = await outcomes();
    expect(before.map(({ decision }) => decision)).toEqual([Decision.AUTHENTIC, Decision.NO_MATCH, Decision.AUTHENTIC]);
    for (const gkVoiceprintProfileId of [alice, bob])
      await world.processor.deleteVoiceprintProfile({ context: { gkScopeId }, gkVoiceprintProfileId });
    expect(await outcomes()).toEqual(before);
    await world.trained(7);
    expect(await outcomes()).toEqual(before);
  });

  test("a no-match after matches is NO_MATCH; after a failed fraud check it is UNCERTAIN", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    for (const extra of [0, 0.1, 0.2]) await world.verify(profile, take(7, 4 + extra));
    expect((await decisionOf(world)).decision).toBe(Decision.AUTHENTIC);
    await world.verify(profile, take(9, 4));
    expect((await decisionOf(world)).decision).toBe(Decision.NO_MATCH);
    const second = { ...world, context: await world.open() };
    const { result } = await world.processor.analyzeAudio({
      context: second.context,
      audio: await world.heard(take(7, 4)),
      gkVoiceprintProfileIds: list(profile, await world.fraudster("untrained")),
    });
    const open = { decision: Decision.UNCERTAIN, reason: DecisionReason.NO_SCORES };
    expect(result).toMatchObject({ ...open, authenticationResult: { decision: Decision.AUTHENTIC } });
    expect(await decisionOf(second)).toMatchObject(open);
  });

  test("is about the person compared last", async () => {
    const world = await openWorld();
    const [own, other] = [await world.trained(7), await world.trained(9)];
    await world.verify(own, take(7, 4));
    await world.verify(other, take(7, 4.1));
    expect((await decisionOf(world)).decision).toBe(Decision.NO_MATCH);
  });
});

describe("deleting a profile", () => {
  test("names recordings of others that could not be opened", async () => {
    const { processor, context, store, trained } = await openWorld();
    const [one, two] = [await trained(7), await trained(9)];
    const { status } = await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: one });
    expect(status).toMatchObject({ statusCode: StatusCode.OK, message: "" });
    const { erase } = store.profiles;
    store.profiles.erase = (scopeId, id, onUnopened) => {
      for (const recording of ["r1", "r2", "r1"]) onUnopened?.(recording);
      return erase(scopeId, id);
    };
    const said = await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: two });
    expect(said.status).toMatchObject({
      statusCode: StatusCode.OK,
      message:
        "the profile is erased; 2 damaged recordings or audio models of the same calls could not be opened: r1, r2",
    });
  });
});

describe("groups that share a tag", () => {
  test("are all compared; the members of other groups are not read", async () => {
    const { processor, context, store, trained, heard } = await openWorld();
    const members = [await trained(7), await trained(9)];
    for (const member of members)
      await processor.createGroup({ context, tag: "vip", gkVoiceprintProfileIds: list(member) });
    const other = await processor.createGroup({ context, tag: "staff", gkVoiceprintProfileIds: list(members[0]!) });
    const { get } = store.groups;
    store.groups.get = async (scopeId, kind, id) => {
      expect(id).not.toBe(other.gkGroupId!.value);
      return get(scopeId, kind, id);
    };
    const identify = async (tag: string) =>
      processor.identify({ context, audio: await heard(take(9, 4)), target: { case: "group", value: { tag } } });
    const { result } = await identify("vip");
    expect(result!.voiceprintResults).toHaveLength(2);
    expect(result!.voiceprintDetails!.gkVoiceprintProfileId).toEqual(members[1]);
    expect(await refusal(identify("nobody"))).toMatchObject({ code: "NOT_FOUND", fields: ["group.tag unknown"] });
    for (let i = 0; i < 255; i++) await processor.createGroup({ context, tag: "vip" });
    expect(await refusal(identify("vip"))).toMatchObject({ fields: ["group.tag too_many"] });
  });
});

describe("the profile-status job", () => {
  const finished = async (world: World, gkJobId: { value: string }) => {
    for (;;) {
      const job = await world.processor.getVoiceprintProfilesStatusJob({ context: world.context, gkJobId });
      if (job.state === State.COMPLETED || job.state === State.FAILED) return job;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };

  test("is PENDING, STARTED, then COMPLETED, and reports each profile", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const trained = await world.trained(7);
    const partly = await world.person("bob");
    await world.enroll(partly, take(9, 2));
    const { gkJobId, state } = await processor.startVoiceprintProfilesStatusJob({ context });
    expect(state).toBe(State.PENDING);
    const pending = await processor.getVoiceprintProfilesStatusJob({ context, gkJobId: gkJobId! });
    expect(pending).toMatchObject({ state: State.PENDING, profiles: [] });
    const states: number[] = [];
    const { update } = world.store.jobs;
    world.store.jobs.update = async (scopeId, id, change) => {
      if (change.state) states.push(change.state);
      return update(scopeId, id, change);
    };
    await processor.workOnJobs();
    const job = await finished(world, gkJobId!);
    expect(states).toEqual([State.STARTED, State.COMPLETED]);
    expect(job.progress).toBe(1);
    const byId = new Map(job.profiles.map((profile) => [profile.gkVoiceprintProfileId!.value, profile]));
    expect(byId.get(trained.value)).toMatchObject({
      status: VoiceprintProfileStatus.OPTIMAL_TRAINED,
      printVersion: 1,
      totalSegments: 3,
      isObsolete: false,
      gkCalibrationModelRevisionId: { value: world.engine.model.revision },
    });
    expect(byId.get(partly.value)).toMatchObject({
      status: VoiceprintProfileStatus.NOT_TRAINED,
      totalSegments: 1,
      totalNetAudio: { seconds: 2n },
    });
    await world.store.close();
  });

  test("is refused if the scope has too many that have not ended, and accepted jobs run", async () => {
    const world = await openWorld({ limits: { jobsPerScope: 2 } });
    const { processor, context } = world;
    const { gkJobId: first } = await processor.startVoiceprintProfilesStatusJob({ context });
    const { gkJobId: second } = await processor.startVoiceprintProfilesRetrainingJob({ context });
    await expect(processor.startVoiceprintProfilesStatusJob({ context })).rejects.toMatchObject({
      code: StatusCode.QUOTA_EXCEEDED,
      message: "this scope already has 2 unfinished jobs; try again when one has ended",
      status: { retryAfter: { seconds: 30n } },
    });
    const other = { ...context, ...(await world.open(undefined, "another scope")) };
    expect((await processor.startVoiceprintProfilesStatusJob({ context: other })).gkJobId).toBeDefined();
    await processor.workOnJobs();
    expect((await finished(world, first!)).state).toBe(State.COMPLETED);
    await expect
      .poll(() => processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: second! }))
      .toMatchObject({ state: State.COMPLETED });
    expect((await processor.startVoiceprintProfilesStatusJob({ context })).gkJobId).toBeDefined();
    await world.store.close();
  });

  test("is not found once results of later jobs need its place", async () => {
    const world = await openWorld({ limits: { jobBytesPerScope: 0 } });
    const { processor, context } = world;
    await processor.workOnJobs();
    const jobs = [];
    for (let i = 0; i < 3; i++) {
      const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context });
      // Room is made when the next job begins: a result can be read at least until then.
      expect((await finished(world, gkJobId!)).state).toBe(State.COMPLETED);
      jobs.push(gkJobId!);
    }
    expect(await refusal(processor.getVoiceprintProfilesStatusJob({ context, gkJobId: jobs[0]! }))).toMatchObject({
      code: "NOT_FOUND",
      fields: ["gk_job_id unknown"],
    });
    expect((await finished(world, jobs[1]!)).state).toBe(State.COMPLETED);
    await world.store.close();
  });

  test("reports its progress from profile to profile, of named ones and of all", async () => {
    const world = await openWorld();
    const { processor, context, store } = world;
    const profiles = [];
    for (const name of ["a", "b", "c", "d"]) profiles.push(await world.person(name));
    const progress: number[] = [];
    const { update } = store.jobs;
    store.jobs.update = async (scopeId, id, change) => {
      if (change.progress !== undefined) progress.push(change.progress);
      return update(scopeId, id, change);
    };
    await processor.workOnJobs();
    // A profile that is named twice is processed once.
    for (const ids of [list(...profiles, profiles[0]!), undefined]) {
      progress.length = 0;
      const named = ids ? { gkVoiceprintProfileIds: ids } : {};
      const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context, ...named });
      expect((await finished(world, gkJobId!)).profiles).toHaveLength(4);
      expect(progress).toEqual([0, 0.25, 0.5, 0.75, 1, 1]);
    }
    await store.close();
  });

  test("of prints whose model is not installed says that they are obsolete, and is no retraining job", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    await world.trained(7);
    await world.person("not trained");
    world.engine.behavior.revision = "c".repeat(64);
    await processor.workOnJobs();
    const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context });
    const { profiles } = await finished(world, gkJobId!);
    expect(profiles.map(({ status, isObsolete, printVersion }) => [status, isObsolete, printVersion])).toEqual([
      [VoiceprintProfileStatus.NOT_TRAINED, true, 1],
      [VoiceprintProfileStatus.NOT_TRAINED, false, undefined],
    ]);
    expect(profiles[0]!.gkCalibrationModelRevisionId!.value).toBe("a".repeat(64));
    expect(profiles[1]!.gkCalibrationModelRevisionId).toBeUndefined();
    const other = processor.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
    expect(await refusal(other)).toMatchObject({ code: "NOT_FOUND", fields: ["gk_job_id unknown"] });
    await world.store.close();
  });

  test("that has ended is not run again, if the queue did not learn that it had", async () => {
    const world = await openWorld();
    const { processor, context, store } = world;
    let handler: (job: Job) => Promise<void> = async () => {};
    const { work } = store.jobs;
    store.jobs.work = (given) => {
      handler = given;
      return work(given);
    };
    await processor.workOnJobs();
    const { gkJobId } = await processor.startVoiceprintProfilesStatusJob({ context });
    await finished(world, gkJobId!);
    const job = (await store.jobs.get(context.gkScopeId.value, gkJobId!.value))!;
    store.jobs.update = async () => expect.unreachable();
    await handler(job);
    await store.close();
  });

  test("runs on the named profiles; FAILED if it cannot run", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const [one] = [await world.trained(7), await world.trained(9)];
    await processor.workOnJobs();
    const named = await processor.startVoiceprintProfilesStatusJob({ context, gkVoiceprintProfileIds: list(one) });
    expect((await finished(world, named.gkJobId!)).profiles).toHaveLength(1);
    world.store.profiles.segments = async () => {
      throw new Error("the disk is gone");
    };
    const doomed = await processor.startVoiceprintProfilesStatusJob({ context });
    expect(await finished(world, doomed.gkJobId!)).toMatchObject({ state: State.FAILED, profiles: [] });
    await world.store.close();
  });
});

describe("a model update", () => {
  const retrained = async (world: World, dryRun = false) => {
    const { gkJobId } = await world.processor.startVoiceprintProfilesRetrainingJob({ context: world.context, dryRun });
    await world.processor.workOnJobs();
    for (;;) {
      const job = await world.processor.getVoiceprintProfilesRetrainingJob({
        context: world.context,
        gkJobId: gkJobId!,
      });
      if (job.state === State.COMPLETED) return job;
      expect(job.state).not.toBe(State.FAILED);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };

  test("a print whose consent is withdrawn is not retrained, and a dry run says so", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const gkVoiceprintProfileId = await world.trained(7);
    await processor.setVoiceprintProfileConsent({ context, gkVoiceprintProfileId, state: ConsentState.WITHDRAWN });
    world.engine.behavior.revision = "c".repeat(64);
    for (const dryRun of [true, false])
      expect((await retrained(world, dryRun)).profiles).toMatchObject([{ outcome: RetrainingOutcome.NOT_NEEDED }]);
  });

  test("old templates are obsolete: not trained, not scored, retrained if their audio was kept", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const other = await world.open();
    const kept = await world.trained(7, "person", "", other);
    const gone = await world.trained(9, "person", "", context);
    const fresh = await world.person("nobody");
    const third = await world.open();
    await processor.stopSession({ context });
    world.context.gkSessionId = third.gkSessionId;
    world.context.gkEngagementId = third.gkEngagementId;
    world.engine.behavior.revision = "c".repeat(64);

    const status = await processor.getEnrollStatus({ context: third, gkVoiceprintProfileId: kept });
    expect(status.isTrained).toBe(false);
    expect(await world.verify(kept, take(7, 4), { context: third })).toMatchObject({
      decision: Decision.FAILED,
      reason: DecisionReason.NO_SCORES,
    });

    const job = await retrained(world);
    const outcomes = new Map(job.profiles.map((one) => [one.gkVoiceprintProfileId!.value, one]));
    expect(outcomes.get(kept.value)).toMatchObject({ outcome: RetrainingOutcome.RETRAINED, printVersion: 2 });
    expect(outcomes.get(gone.value)).toMatchObject({ outcome: RetrainingOutcome.ENROLLMENT_NEEDED, printVersion: 1 });
    expect(outcomes.get(fresh.value)).toMatchObject({ outcome: RetrainingOutcome.NOT_NEEDED });
    expect((await world.verify(kept, take(7, 4), { context: third })).decision).toBe(Decision.AUTHENTIC);
    expect((await world.verify(gone, take(9, 4), { context: third })).decision).toBe(Decision.FAILED);

    // A person whose audio is gone enrolls again, in the same profile.
    for (const length of [3, 3.1, 3.2]) await world.enroll(gone, take(9, length), third);
    expect((await world.train(gone, third)).voiceprintDetails!.printVersion).toBe(2);
    expect((await world.verify(gone, take(9, 4), { context: third })).decision).toBe(Decision.AUTHENTIC);
    await world.store.close();
  });

  test("an engine failure on one profile's audio does not stop the retraining of the others", async () => {
    const world = await openWorld();
    const [unfit, breaking, good] = [await world.trained(7), await world.trained(8), await world.trained(9)];
    world.engine.behavior.revision = "c".repeat(64);
    const { analyze } = world.engine;
    world.engine.analyze = async (samples, ...rest) => {
      const speaker = Math.round(samples[0]! * 1000);
      if (speaker === 7) throw Object.assign(new Error("no numbers"), { code: "BAD_SAMPLES" });
      if (speaker === 8) throw new Error("out of order");
      return analyze(samples, ...rest);
    };
    const job = await retrained(world);
    const outcomes = new Map(job.profiles.map((one) => [one.gkVoiceprintProfileId!.value, one.outcome]));
    expect(outcomes.get(unfit.value)).toBe(RetrainingOutcome.ENROLLMENT_NEEDED);
    expect(outcomes.get(breaking.value)).toBe(RetrainingOutcome.FAILED);
    expect(outcomes.get(good.value)).toBe(RetrainingOutcome.RETRAINED);
    await world.store.close();
  });
});
