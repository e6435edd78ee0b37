import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { VerifyRequestSchema } from "../../src/contract/index.js";
import { wav } from "../voice.js";
import { rateHz, take } from "./fixture-engine.js";
import { type Context, list, openWorld, pcm16, refusal, scopeA, type World } from "./world.js";

const unknownId = { value: "01900000-dead-7000-8000-000000000000" };
const malformedId = { value: "../../etc/passwd" };

/** Each of the nine operations with a valid request, of which a test changes one thing. */
async function calls(world: World, context: object) {
  const profile = await world.trained(7);
  const fraudster = await world.trained(9, "fraudster");
  const audio = await world.heard(take(7, 4));
  const { gkProcessedAudioId } = await world.process(take(7, 5));
  const gkVoiceprintProfileId = profile;
  const { processor } = world;
  return {
    ProcessAudio: () => processor.processAudio({ context, input: audio }),
    Enroll: () => processor.enroll({ context, gkVoiceprintProfileId, gkProcessedAudioId: gkProcessedAudioId! }),
    GetEnrollStatus: () => processor.getEnrollStatus({ context, gkVoiceprintProfileId }),
    Train: () => processor.train({ context, gkVoiceprintProfileId }),
    CheckWatchlistConsistency: () =>
      processor.checkWatchlistConsistency({
        context,
        target: { case: "gkVoiceprintProfileIds", value: list(fraudster) },
      }),
    Verify: () => processor.verify({ context, audio, gkVoiceprintProfileId }),
    Identify: () =>
      processor.identify({ context, audio, target: { case: "gkVoiceprintProfileIds", value: list(profile) } }),
    DetectKnownFraudsters: () =>
      processor.detectKnownFraudsters({
        context,
        audio,
        target: { case: "gkVoiceprintProfileIds", value: list(fraudster) },
      }),
    AnalyzeAudio: () => processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: list(profile) }),
  };
}

const nine = [
  "ProcessAudio",
  "Enroll",
  "GetEnrollStatus",
  "Train",
  "CheckWatchlistConsistency",
  "Verify",
  "Identify",
  "DetectKnownFraudsters",
  "AnalyzeAudio",
] as const;

describe.each(nine)("the context of %s", (name) => {
  const ask = async (change: (context: Context, world: World) => object | Promise<object>) => {
    const world = await openWorld();
    const context = await change({ ...world.context }, world);
    const call = (await calls(world, context))[name];
    const prepared = await stateOf(world);
    const refused = await refusal(call());
    expect(await stateOf(world), "nothing changed").toEqual(prepared);
    return refused;
  };

  test("is accepted if it is valid", async () => {
    const world = await openWorld();
    const { status } = await (await calls(world, world.context))[name]();
    expect(status!.statusCode).toBe(1);
  });

  test.each(["gkEngagementId", "gkSessionId", "gkScopeId", "configsetId"] as const)("needs %s", async (field) => {
    const refused = await ask(({ [field]: _, ...rest }) => rest);
    const path = { gkEngagementId: "gk_engagement_id", gkSessionId: "gk_session_id", gkScopeId: "gk_scope_id" };
    expect(refused).toMatchObject({
      code: "INVALID_REQUEST",
      fields: [`context.${field === "configsetId" ? "configset_id" : path[field]} missing`],
    });
  });

  test("names all missing fields at once", async () => {
    expect((await ask(() => ({}))).fields).toEqual([
      "context.gk_engagement_id missing",
      "context.gk_session_id missing",
      "context.gk_scope_id missing",
      "context.configset_id missing",
    ]);
  });

  test.each([
    ["an unknown session", "gkSessionId", unknownId, "NOT_FOUND", "context.gk_session_id unknown"],
    ["a malformed session", "gkSessionId", malformedId, "INVALID_REQUEST", "context.gk_session_id malformed"],
    [
      "a session in capitals",
      "gkSessionId",
      { value: unknownId.value.toUpperCase() },
      "INVALID_REQUEST",
      "context.gk_session_id malformed",
    ],
    ["an empty session", "gkSessionId", { value: "" }, "INVALID_REQUEST", "context.gk_session_id missing"],
    ["another engagement", "gkEngagementId", unknownId, "INVALID_REQUEST", "context.gk_engagement_id mismatch"],
    ["a foreign scope", "gkScopeId", { value: "another bank" }, "NOT_FOUND", "context.gk_session_id unknown"],
    ["a malformed scope", "gkScopeId", { value: "a\u0000b" }, "INVALID_REQUEST", "context.gk_scope_id malformed"],
    ["an unknown set", "configsetId", "toString", "INVALID_REQUEST", "context.configset_id unknown"],
  ] as const)("rejects %s", async (_, field, value, code, violation) => {
    expect(await ask((context) => ({ ...context, [field]: value }))).toMatchObject({ code, fields: [violation] });
  });

  test("rejects a stopped session", async () => {
    const refused = await ask(async (_, world) => {
      const stopped = await world.open();
      await world.processor.stopSession({ context: stopped });
      return stopped;
    });
    expect(refused).toMatchObject({ code: "INVALID_REQUEST", fields: ["context.gk_session_id stopped"] });
  });
});

describe("an operation that needs only a scope", () => {
  test.each([
    ["an unknown session", { gkSessionId: unknownId }, "NOT_FOUND", "context.gk_session_id unknown"],
    ["an unknown engagement", { gkEngagementId: unknownId }, "NOT_FOUND", "context.gk_engagement_id unknown"],
    ["an unknown set", { configsetId: "no such set" }, "INVALID_REQUEST", "context.configset_id unknown"],
  ])("rejects %s", async (_, given, code, violation) => {
    const { processor, context } = await openWorld();
    const { gkScopeId, gkSessionId, gkEngagementId } = context;
    for (const known of [{ gkScopeId }, { gkScopeId, gkSessionId }, { gkScopeId, gkEngagementId }])
      await processor.listVoiceprintProfiles({ context: known });
    const refused = await refusal(processor.listVoiceprintProfiles({ context: { gkScopeId, ...given } }));
    expect(refused).toMatchObject({ code, fields: [violation] });
  });

  test("rejects a session and an engagement that do not belong together", async () => {
    const { processor, context, open } = await openWorld();
    const { gkScopeId, gkSessionId } = context;
    const { gkEngagementId } = await open();
    await processor.listVoiceprintProfiles({ context });
    const mixed = processor.listVoiceprintProfiles({ context: { gkScopeId, gkSessionId, gkEngagementId } });
    expect(await refusal(mixed)).toMatchObject({ fields: ["context.gk_engagement_id mismatch"] });
  });

  test.each(["startEngagement", "startSession"] as const)("%s rejects an unknown set", async (operation) => {
    const { processor, context } = await openWorld();
    const { gkScopeId } = context;
    const refused = await refusal(processor[operation]({ context: { gkScopeId, configsetId: "no such set" } }));
    expect(refused).toMatchObject({ code: "INVALID_REQUEST", fields: ["context.configset_id unknown"] });
  });
});

/** What a rejected call must not change. */
async function stateOf({ store, context }: World) {
  const profiles = await store.profiles.list("bank", null, 100);
  const segments = await Promise.all(profiles.map(({ id }) => store.profiles.segments("bank", id)));
  return { profiles, segments, checks: await store.sessions.checks("bank", context.gkSessionId.value) };
}

describe("mandatory fields and choices", () => {
  const world = openWorld();

  test.each([
    ["processAudio", {}, ["input missing"]],
    ["processAudio", { input: { case: "gkMediaSegmentId", value: { value: "" } } }, ["input missing"]],
    ["enroll", {}, ["gk_voiceprint_profile_id missing", "gk_processed_audio_id missing"]],
    ["getEnrollStatus", {}, ["gk_voiceprint_profile_id missing"]],
    ["train", { gkVoiceprintProfileId: { value: "" } }, ["gk_voiceprint_profile_id missing"]],
    ["checkWatchlistConsistency", {}, ["target missing"]],
    ["verify", {}, ["audio missing", "gk_voiceprint_profile_id missing"]],
    ["identify", {}, ["audio missing", "target missing"]],
    ["detectKnownFraudsters", {}, ["audio missing", "target missing"]],
    ["analyzeAudio", {}, ["audio missing"]],
  ] as const)("%s with %j", async (name, request, fields) => {
    const { processor, context } = await world;
    const operation = processor[name].bind(processor) as (request: object) => Promise<unknown>;
    expect(await refusal(operation({ context, ...request }))).toMatchObject({ code: "INVALID_REQUEST", fields });
  });

  test("no context at all", async () => {
    const { processor } = await world;
    expect(await refusal(processor.train({}))).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["context missing", "gk_voiceprint_profile_id missing"],
    });
  });

  test("accepts the generated message as well as its plain shape", async () => {
    const { processor, context } = await world;
    const message = create(VerifyRequestSchema, { context });
    expect((await refusal(processor.verify(message))).fields).toEqual([
      "audio missing",
      "gk_voiceprint_profile_id missing",
    ]);
  });

  test("names a value of the wrong type", async () => {
    const { processor } = await world;
    const context = { gkScopeId: { value: "bank" } };
    const named = async (owner: object) =>
      refusal(processor.createVoiceprintProfile({ context, owner, profileTag: 7 } as never));
    expect(await named({ case: "personId", value: "alice" })).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["profile_tag malformed"],
    });
    expect((await named({ case: "personId", value: 7 })).fields).toContain("person_id malformed");
    const media = processor.addMediaSegment({ context: { ...context }, chunk: "bytes" } as never);
    expect((await refusal(media)).fields).toContain("chunk malformed");
    const session = processor.startSession({ context, sessionType: "IVR" } as never);
    expect((await refusal(session)).fields).toEqual(["session_type malformed"]);
    const tagged = processor.createVoiceprintProfile({
      context,
      owner: { case: "personId", value: "alice" },
      profileTag: {},
    } as never);
    await expect(tagged).rejects.toThrow("profile_tag must be a string, got an object");
  });

  test.each([1.5, Number.NaN])("rejects %d as a channel", async (channel) => {
    const { processor, context, heard } = await world;
    const input = await heard([take(7, 3), take(9, 3)]);
    const call = processor.processAudio({ context, input, channelSelector: { channel } });
    expect((await refusal(call)).fields).toEqual(["channel_selector.channel malformed"]);
  });

  test("a value that is not a request is BAD_REQUEST", async () => {
    const { processor, context } = await world;
    for (const given of [42, undefined, "text", []])
      expect(await refusal(processor.verify(given as never))).toMatchObject({
        code: "INVALID_REQUEST",
        fields: expect.arrayContaining(["context missing", "audio missing", "gk_voiceprint_profile_id missing"]),
      });
    for (const given of [42, "text", []])
      expect(await refusal(processor.verify({ context: given } as never))).toMatchObject({
        code: "INVALID_REQUEST",
        fields: expect.arrayContaining(["context malformed"]),
      });
    await expect(processor.listGroups({ context: 42 } as never)).rejects.toThrow("context must be a Context, got 42");
    const nobody = { context, target: { case: "gkVoiceprintProfileIds", value: null } };
    expect(await refusal(processor.checkWatchlistConsistency(nobody as never))).toMatchObject({
      fields: ["gk_voiceprint_profile_ids malformed"],
    });
    for (const given of [null, undefined, 42])
      expect(["BAD_REQUEST", "INVALID_REQUEST"]).toContain(
        (await refusal(processor.addMediaSegment(given as never))).code,
      );
    expect(await refusal(processor.verify(null as never))).toMatchObject({ code: "BAD_REQUEST" });
    await expect(processor.verify(null as never)).rejects.toThrow("the request must be a VerifyRequest, got null");
  });

  test("a timeout that is not a number is INVALID_REQUEST", async () => {
    const { processor, context } = await world;
    const call = () => processor.listGroups({ context }, { timeoutMs: Number.NaN });
    expect(await refusal(call())).toMatchObject({ code: "INVALID_REQUEST" });
    await expect(call()).rejects.toThrow("timeoutMs must be a number of milliseconds, got NaN");
    await expect(processor.listGroups({ context }, { timeoutMs: "9" as never })).rejects.toThrow("timeoutMs must be");
    const signal = processor.listGroups({ context }, { signal: {} as never });
    await expect(signal).rejects.toThrow("signal must be an AbortSignal, got object");
  });

  test.each([
    [null, "options must be an object, got null"],
    [{ timeoutMS: 5 }, "unknown option timeoutMS (did you mean timeoutMs?)"],
  ])("options of an operation such as %j are INVALID_REQUEST", async (options, message) => {
    const { processor, context } = await world;
    const calls = [
      () => processor.listGroups({ context }, options as never),
      () => processor.addMediaSegment({ context }, options as never),
      () => processor.openLiveAnalysis({ context, rateHz }, options as never),
    ];
    for (const call of calls) {
      await expect(call()).rejects.toThrow(message);
      expect(await refusal(call())).toMatchObject({ code: "INVALID_REQUEST" });
    }
  });
});

describe("ids", () => {
  test.each([
    ["unknown", unknownId, "NOT_FOUND"],
    ["malformed", malformedId, "INVALID_REQUEST"],
  ] as const)("%s profile, audio, group and job", async (violation, id, code) => {
    const world = await openWorld();
    const { processor, context } = world;
    const profile = await world.trained(7);
    const audio = await world.heard(take(7, 4));
    const refused = (field: string) => ({ code, fields: [`${field} ${violation}`] });
    const profileField = refused("gk_voiceprint_profile_id");
    const ids = { case: "gkVoiceprintProfileIds", value: list(id) } as const;
    expect(await refusal(processor.train({ context, gkVoiceprintProfileId: id }))).toMatchObject(profileField);
    expect(await refusal(processor.verify({ context, audio, gkVoiceprintProfileId: id }))).toMatchObject(profileField);
    expect(await refusal(processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: id }))).toMatchObject(
      profileField,
    );
    const listed = refused("gk_voiceprint_profile_ids.unique_ids[0]");
    expect(await refusal(processor.identify({ context, audio, target: ids }))).toMatchObject(listed);
    expect(await refusal(processor.detectKnownFraudsters({ context, audio, target: ids }))).toMatchObject(listed);
    expect(await refusal(processor.checkWatchlistConsistency({ context, target: ids }))).toMatchObject(listed);
    expect(await refusal(processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: list(id) }))).toMatchObject(
      listed,
    );
    expect(await refusal(processor.createGroup({ context, gkVoiceprintProfileIds: list(id) }))).toMatchObject(listed);
    expect(await refusal(processor.createGroup({ context, gkOwnerIds: list(id) }))).toMatchObject(
      refused("gk_owner_ids.unique_ids[0]"),
    );
    const group = { case: "group", value: { uniqueId: id } } as const;
    expect(await refusal(processor.identify({ context, audio, target: group }))).toMatchObject(
      refused("group.unique_id"),
    );
    const media = { case: "gkMediaSegmentId", value: id } as const;
    const processed = { case: "gkProcessedAudioId", value: id } as const;
    const verify = (choice: typeof media | typeof processed) =>
      refusal(processor.verify({ context, audio: choice, gkVoiceprintProfileId: profile }));
    expect(await verify(media)).toMatchObject(refused("gk_media_segment_id"));
    expect(await verify(processed)).toMatchObject(refused("gk_processed_audio_id"));
    expect(
      await refusal(processor.enroll({ context, gkVoiceprintProfileId: profile, gkProcessedAudioId: id })),
    ).toMatchObject(refused("gk_processed_audio_id"));
    expect(await refusal(processor.getVoiceprintProfilesStatusJob({ context, gkJobId: id }))).toMatchObject(
      refused("gk_job_id"),
    );
    const exported = processor.exportVoiceprintProfile({ context, gkVoiceprintProfileId: id });
    expect(await refusal(exported)).toMatchObject(profileField);
    const members = { context, gkGroupId: id, gkVoiceprintProfileIds: list(profile) };
    for (const call of [
      processor.getGroup({ context, gkGroupId: id }),
      processor.deleteGroup({ context, gkGroupId: id }),
      processor.addGroupMembers(members),
      processor.removeGroupMembers(members),
    ])
      expect(await refusal(call)).toMatchObject(refused("gk_group_id"));
  });

  test("of another scope are not found", async () => {
    const world = await openWorld();
    const { processor } = world;
    const profile = await world.trained(7);
    const media = await world.heard(take(7, 4));
    const context = await world.open("ivr-text-dependent", "another bank");
    expect(await refusal(processor.train({ context, gkVoiceprintProfileId: profile }))).toMatchObject({
      code: "NOT_FOUND",
      fields: ["gk_voiceprint_profile_id unknown"],
    });
    expect(await refusal(processor.processAudio({ context, input: media }))).toMatchObject({
      code: "NOT_FOUND",
      fields: ["gk_media_segment_id unknown"],
    });
    expect(await refusal(processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: profile }))).toMatchObject(
      {
        code: "NOT_FOUND",
      },
    );
    expect(await world.store.profiles.get("bank", profile.value)).not.toBeNull();
  });

  test("of the other kind are rejected, naming the field", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const [person, fraudster] = [await world.trained(7), await world.trained(9, "fraudster")];
    const audio = await world.heard(take(7, 4));
    const wrong = (field: string) => ({ code: "INVALID_REQUEST", fields: [`${field} wrong_kind`] });
    expect(await refusal(processor.verify({ context, audio, gkVoiceprintProfileId: fraudster }))).toMatchObject(
      wrong("gk_voiceprint_profile_id"),
    );
    const second = wrong("gk_voiceprint_profile_ids.unique_ids[1]");
    const persons = { case: "gkVoiceprintProfileIds", value: list(person, fraudster) } as const;
    expect(await refusal(processor.identify({ context, audio, target: persons }))).toMatchObject(second);
    const fraudsters = { case: "gkVoiceprintProfileIds", value: list(fraudster, person) } as const;
    expect(await refusal(processor.detectKnownFraudsters({ context, audio, target: fraudsters }))).toMatchObject(
      second,
    );
    expect(await refusal(processor.checkWatchlistConsistency({ context, target: fraudsters }))).toMatchObject(second);
    expect(await refusal(processor.createWatchlist({ context, gkVoiceprintProfileIds: list(person) }))).toMatchObject(
      wrong("gk_voiceprint_profile_ids.unique_ids[0]"),
    );
    expect(await refusal(processor.createGroup({ context, gkVoiceprintProfileIds: list(fraudster) }))).toMatchObject(
      wrong("gk_voiceprint_profile_ids.unique_ids[0]"),
    );
    const ownerOf = async (profile: typeof person) => ({
      value: (await world.store.profiles.get(context.gkScopeId.value, profile.value))!.owner.id,
    });
    const [innocent, wanted] = [await ownerOf(person), await ownerOf(fraudster)];
    const wrongOwner = wrong("gk_owner_ids.unique_ids[1]");
    const mixed = list(wanted, innocent);
    expect(await refusal(processor.createWatchlist({ context, gkOwnerIds: mixed }))).toMatchObject(wrongOwner);
    expect(await refusal(processor.createGroup({ context, gkOwnerIds: list(innocent, wanted) }))).toMatchObject(
      wrongOwner,
    );
    const { gkGroupId } = await processor.createGroup({ context, tag: "g", gkOwnerIds: list(innocent) });
    expect(
      await refusal(processor.addGroupMembers({ context, gkGroupId: gkGroupId!, gkOwnerIds: list(innocent, wanted) })),
    ).toMatchObject(wrongOwner);
  });
});

describe("candidates", () => {
  test("an empty list is rejected", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const audio = await world.heard(take(7, 4));
    const target = { case: "gkVoiceprintProfileIds", value: list() } as const;
    const empty = { code: "INVALID_REQUEST", fields: ["gk_voiceprint_profile_ids empty"] };
    expect(await refusal(processor.identify({ context, audio, target }))).toMatchObject(empty);
    expect(await refusal(processor.detectKnownFraudsters({ context, audio, target }))).toMatchObject(empty);
    expect(await refusal(processor.checkWatchlistConsistency({ context, target }))).toMatchObject(empty);
  });

  test("a profile that is deleted while audio is processed is not scored", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const profile = await world.trained(7);
    const audio = await world.heard(take(7, 20));
    const target = { case: "gkVoiceprintProfileIds", value: list(profile) } as const;
    const call = processor.identify({ context, audio, target, ignoreCheckpoints: true });
    await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: profile });
    // Either it was read before the deletion and is scored, or it is not found. It never crashes, and never gives a partial answer.
    const answer = await call.then(
      ({ result }) => result!.decision,
      (error: { code: number }) => error.code,
    );
    expect([1, 9]).toContain(answer);
    expect(await refusal(processor.identify({ context, audio, target }))).toMatchObject({ code: "NOT_FOUND" });
  });

  test("two deletions at once: one succeeds, the other gets NOT_FOUND", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const gkVoiceprintProfileId = await world.trained(7);
    const both = await Promise.allSettled([
      processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId }),
      processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });
});

describe("AddMediaSegment", () => {
  const upload = async (request: object, world?: World) => {
    const { processor, context } = world ?? (await openWorld());
    return processor.addMediaSegment({ context, ...request });
  };
  const chunk = pcm16([take(7, 1)]);

  test.each([
    ["bytes that are not audio", { chunk: new TextEncoder().encode("hello, this is a text") }, "chunk not_audio"],
    ["nothing", {}, "chunk not_audio"],
    ["an unknown encoding", { chunk, encoding: "opus", rate: rateHz, channels: 1 }, "encoding unknown"],
    ["headerless bytes without a rate", { chunk, encoding: "pcm16", channels: 1 }, "rate not_audio"],
    ["too many channels", { chunk, encoding: "pcm16", rate: rateHz, channels: 65 }, "channels not_audio"],
    ["a rate out of reach", { chunk, encoding: "pcm16", rate: 1e6, channels: 1 }, "rate not_audio"],
  ])("rejects %s", async (_, request, field) => {
    expect(await refusal(upload(request))).toMatchObject({ code: "INVALID_REQUEST", fields: [field] });
  });

  test("headerless bytes without channels have one", async () => {
    const world = await openWorld();
    const { gkMediaSegmentId } = await upload({ chunk, encoding: "pcm16", rate: rateHz }, world);
    const media = await world.store.media.get(scopeA, gkMediaSegmentId!.value);
    expect(media).toMatchObject({ channels: 1, rateHz });
  });

  test("rejects more bytes than the limit, streamed or not", async () => {
    const world = await openWorld({ limits: { mediaBytes: 1000 } });
    const request = { context: world.context, encoding: "pcm16", rate: rateHz, channels: 1, chunk };
    expect(await refusal(world.processor.addMediaSegment(request))).toMatchObject({ code: "TOO_LARGE" });
    async function* endless() {
      yield { ...request, chunk: chunk.slice(0, 400) };
      for (;;) yield { chunk: chunk.slice(0, 400) };
    }
    expect(await refusal(world.processor.addMediaSegment(endless()))).toMatchObject({ code: "TOO_LARGE" });
  });

  test("accepts exactly the limit, streamed or not; by default it is 256 MiB", async () => {
    const world = await openWorld({ limits: { mediaBytes: chunk.length } });
    const request = { context: world.context, encoding: "pcm16", rate: rateHz, channels: 1 };
    await world.processor.addMediaSegment({ ...request, chunk });
    const begun = { ...request, chunk: chunk.slice(0, 5) };
    const before = begun.chunk.slice();
    async function* stream() {
      yield begun;
      yield { chunk: chunk.slice(5, 100) };
      yield {};
      yield { chunk: chunk.slice(100) };
    }
    const { gkMediaSegmentId } = await world.processor.addMediaSegment(stream());
    expect((await world.store.media.get("bank", gkMediaSegmentId!.value))!.audio).toEqual(chunk);
    expect(begun.chunk).toEqual(before);
    for (const [bytes, code] of [
      [2 ** 28, "INVALID_REQUEST"],
      [2 ** 28 + 1, "TOO_LARGE"],
    ] as const)
      expect(await refusal(upload({ chunk: new Uint8Array(bytes) }))).toMatchObject({ code });
  });

  test("stops reading a stream that it refuses", async () => {
    const world = await openWorld({ limits: { mediaBytes: 1000 } });
    let isClosed = false;
    async function* endless() {
      try {
        yield { context: world.context, encoding: "pcm16", rate: rateHz, channels: 1 };
        for (;;) yield { chunk };
      } finally {
        isClosed = true;
      }
    }
    expect(await refusal(world.processor.addMediaSegment(endless()))).toMatchObject({ code: "TOO_LARGE" });
    expect(isClosed).toBe(true);
  });

  test("rejects a WAV file without samples", async () => {
    const empty = wav(new Float32Array(0), rateHz);
    expect(await refusal(upload({ chunk: empty }))).toMatchObject({ code: "INVALID_REQUEST", fields: ["chunk empty"] });
  });

  test("a decoder that cannot be started is not the fault of the audio; one that a caller ends is cancelled", async () => {
    const failing = async (error: unknown, signal?: AbortSignal) => {
      const { processor, context } = await openWorld({ toWav: () => Promise.reject(error) });
      return refusal(processor.addMediaSegment({ context, chunk }, signal ? { signal } : {}));
    };
    const busy = Object.assign(new Error("spawn EAGAIN"), { code: "EAGAIN", syscall: "spawn" });
    expect(await failing(busy)).toMatchObject({ code: "BUSY" });
    const missing = Object.assign(new Error("spawn ENOENT"), { code: "ENOENT", syscall: "spawn" });
    expect(await failing(missing)).toMatchObject({ code: "INTERNAL_ERROR" });
    expect(await failing(new Error("no MP3"))).toMatchObject({ fields: ["chunk not_audio"] });
    const leaving = new AbortController();
    const { processor, context } = await openWorld({
      toWav: async () => {
        leaving.abort();
        throw new Error("the decoder was ended");
      },
    });
    const call = processor.addMediaSegment({ context, chunk }, { signal: leaving.signal });
    expect(await refusal(call)).toMatchObject({ code: "CANCELLED" });
  });

  test("accepts a stream: first the context, then chunks", async () => {
    const world = await openWorld();
    async function* stream() {
      yield { context: world.context, encoding: "pcm16", rate: rateHz, channels: 1 };
      for (let at = 0; at < chunk.length; at += 1000) yield { chunk: chunk.slice(at, at + 1000) };
    }
    const { gkMediaSegmentId } = await world.processor.addMediaSegment(stream());
    const stored = await world.store.media.get("bank", gkMediaSegmentId!.value);
    expect(stored!.audio).toEqual(chunk);
    expect(await refusal(world.processor.addMediaSegment((async function* () {})()))).toMatchObject({
      code: "BAD_REQUEST",
    });
    const withoutContext = (async function* () {
      yield { chunk };
    })();
    expect(await refusal(world.processor.addMediaSegment(withoutContext))).toMatchObject({ code: "INVALID_REQUEST" });
    async function* text() {
      yield { context: world.context, encoding: "pcm16", rate: rateHz, channels: 1 };
      yield { chunk: "bytes" as never };
    }
    expect((await refusal(world.processor.addMediaSegment(text()))).fields).toEqual(["chunk malformed"]);
  });
});
