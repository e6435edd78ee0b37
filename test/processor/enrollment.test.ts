import { describe, expect, test, vi } from "vitest";
import {
  AudioValidity,
  ConsistencyDecision,
  EnrollReason,
  EnrollStatus,
  OwnerType,
  StatusCode,
  TrainReason,
  TrainStatus,
  VoiceprintProfileStatus,
} from "../../src/contract/index.js";
import { EngineError } from "../../src/engine/engine-error.js";
import { pcm16 } from "../../src/processor/process-audio.js";
import { joined, silence, take } from "./fixture-engine.js";
import { openWorld, refusal } from "./world.js";

const seconds = (duration: { seconds: bigint; nanos: number } | undefined) =>
  Number(duration!.seconds) + duration!.nanos / 1e9;

describe("ProcessAudio", () => {
  test("returns ids, validity, measures, voice class and the model's revision", async () => {
    const world = await openWorld();
    const media = await world.media(joined(silence(1), take(7, 4)));
    const { result, status } = await world.processor.processAudio({
      context: world.context,
      input: { case: "gkMediaSegmentId", value: media },
    });
    expect(status!.statusCode).toBe(1);
    expect(result!.gkMediaSegmentId!.value).toBe(media.value);
    expect(result!.validity).toBe(AudioValidity.AUDIO_OK);
    expect(seconds(result!.audioDetails!.grossAudio)).toBe(5);
    expect(seconds(result!.audioDetails!.netAudio)).toBe(4);
    expect(result!.audioDetails).toMatchObject({
      snrDb: 30,
      speechLevel: -26,
      mediaNumberOfChannels: 1,
      mediaSamplingRateHz: 8000,
      processedAudioSamplingRateHz: 16_000,
      numberOfDetectedSpeakers: 1,
    });
    expect(result!.audioDetails!.gkProcessedAudioId!.value).toBe(result!.gkProcessedAudioId!.value);
    expect(result!.voiceClassScore).toBe(7);
    expect(result!.gkCalibrationModelRevisionId!.value).toBe(world.engine.model.revision);
    // Read in one go, so there is one report of progress.
    let reports = 0;
    const input = { case: "gkMediaSegmentId", value: media } as const;
    await world.processor.processAudio({ context: world.context, input }, { onProgress: () => void reports++ });
    expect(reports).toBe(1);
  });

  test("is_for_enrollment limits processing to the configured maximum, and the part used gets its own media segment", async () => {
    const world = await openWorld();
    const media = await world.media(take(7, 25));
    const input = { case: "gkMediaSegmentId", value: media } as const;
    const whole = (await world.processor.processAudio({ context: world.context, input })).result!;
    expect(seconds(whole.audioDetails!.netAudio)).toBe(25);
    expect(whole.gkMediaSegmentId!.value).toBe(media.value);
    const part = (await world.processor.processAudio({ context: world.context, input, isForEnrollment: true })).result!;
    expect(seconds(part.audioDetails!.netAudio)).toBe(10);
    expect(part.gkMediaSegmentId!.value).not.toBe(media.value);
    const kept = await world.store.media.get(world.context.gkScopeId.value, part.gkMediaSegmentId!.value);
    expect(kept).toMatchObject({ partOf: media.value, channels: 1, rateHz: 8000 });
    expect(kept!.audio.length).toBe(10 * 8000 * 2);
    // Processing the cut part again gives the same result.
    const again = (
      await world.processor.processAudio({
        context: world.context,
        input: { case: "gkMediaSegmentId", value: part.gkMediaSegmentId! },
        isForEnrollment: true,
      })
    ).result!;
    expect(again.gkMediaSegmentId!.value).toBe(part.gkMediaSegmentId!.value);
    expect(seconds(again.audioDetails!.netAudio)).toBe(10);
  });

  test("after StopSession, a person enrolled from a part is erased with all audio models of the recording", async () => {
    const world = await openWorld();
    const { context, processor, store } = world;
    const input = { case: "gkMediaSegmentId", value: await world.media(take(7, 25)) } as const;
    const whole = (await processor.processAudio({ context, input })).result!;
    const part = (await processor.processAudio({ context, input, isForEnrollment: true })).result!;
    const gkVoiceprintProfileId = await world.person("alice");
    const gkProcessedAudioId = part.gkProcessedAudioId!;
    const { result } = await processor.enroll({ context, gkVoiceprintProfileId, gkProcessedAudioId });
    expect(result!.enrolled).toBe(true);
    await processor.stopSession({ context });
    const isThere = async ({ gkProcessedAudioId: id }: typeof whole) =>
      (await store.processed.get(context.gkScopeId.value, id!.value)) !== null;
    expect([await isThere(whole), await isThere(part)]).toEqual([true, true]);
    await store.profiles.erase(context.gkScopeId.value, gkVoiceprintProfileId.value);
    expect([await isThere(whole), await isThere(part)]).toEqual([false, false]);
  });

  test("re-processing gives a new id; when the audio is gone it is NOT_FOUND", async () => {
    const world = await openWorld();
    const first = await world.process(take(7, 4));
    const input = { case: "gkProcessedAudioId", value: first.gkProcessedAudioId! } as const;
    const again = (await world.processor.processAudio({ context: world.context, input })).result!;
    expect(again.gkProcessedAudioId!.value).not.toBe(first.gkProcessedAudioId!.value);
    const other = await world.open();
    await world.processor.stopSession({ context: world.context });
    expect(await refusal(world.processor.processAudio({ context: other, input }))).toMatchObject({
      code: "NOT_FOUND",
      fields: ["gk_processed_audio_id unknown"],
    });
  });

  test.each([
    ["too short", take(7, 0.7), AudioValidity.AUDIO_TOO_SHORT],
    ["too soft", take(7, 4, { soft: true }), AudioValidity.AUDIO_TOO_SOFT],
    ["too loud", take(7, 4, { clipped: 0.2 }), AudioValidity.AUDIO_TOO_LOUD],
    ["too noisy to enroll", take(7, 4, { noisy: 3 }), AudioValidity.AUDIO_TOO_NOISY],
    ["silent", silence(4), AudioValidity.AUDIO_TOO_SHORT],
    ["of several speakers", joined(take(7, 3), take(9, 2)), AudioValidity.MULTIPLE_SPEAKERS_DETECTED],
  ])("reports audio that is %s, and keeps its id", async (_, samples, validity) => {
    const world = await openWorld();
    const result = await world.process(samples);
    expect(result.validity).toBe(validity);
    expect(await world.store.processed.get("bank", result.gkProcessedAudioId!.value)).toMatchObject({ validity });
  });

  test("audio that is too noisy for enrollment may be good enough for verification", async () => {
    const world = await openWorld();
    expect((await world.process(take(7, 4, { noisy: 3 }), false)).validity).toBe(AudioValidity.AUDIO_OK);
    expect((await world.process(take(7, 4, { noisy: 4 }), false)).validity).toBe(AudioValidity.AUDIO_TOO_NOISY);
  });

  test("an engine failure is INTERNAL_ERROR, and nothing is stored", async () => {
    const world = await openWorld();
    world.engine.behavior.before = () => {
      throw new Error("out of order");
    };
    const result = await world.process(take(7, 4));
    expect(result.validity).toBe(AudioValidity.INTERNAL_ERROR);
    expect(result.gkProcessedAudioId).toBeUndefined();
  });

  describe("channel_selector", () => {
    const stereo = [take(7, 4), take(9, 4.0)] as const;

    test.each([
      [1, 7],
      [2, 9],
    ])("channel %i gives the voice on that channel", async (channel, speaker) => {
      const world = await openWorld();
      const { result } = await world.processor.processAudio({
        context: world.context,
        input: await world.heard(stereo),
        channelSelector: { channel },
      });
      expect(result!.voiceClassScore).toBe(speaker);
      expect(result!.audioDetails!.selectedChannel!.channel).toBe(channel);
    });

    test("mixes all channels if absent", async () => {
      const world = await openWorld();
      const { result } = await world.processor.processAudio({
        context: world.context,
        input: await world.heard(stereo),
      });
      expect(result!.voiceClassScore).toBe(8);
      expect(result!.audioDetails!.selectedChannel!.channel).toBe(0);
    });

    test.each([3, -1])("%i is out of range of two channels", async (channel) => {
      const world = await openWorld();
      const input = await world.heard(stereo);
      const call = world.processor.processAudio({ context: world.context, input, channelSelector: { channel } });
      expect(await refusal(call)).toMatchObject({
        code: "INVALID_REQUEST",
        fields: ["channel_selector.channel out_of_range"],
      });
    });

    test("is ignored for one channel, and for processed audio", async () => {
      const world = await openWorld();
      const mono = await world.processor.processAudio({
        context: world.context,
        input: await world.heard(take(7, 4)),
        channelSelector: { channel: 5 },
      });
      expect(mono.result!.audioDetails!.selectedChannel).toBeUndefined();
      const second = await world.processor.processAudio({
        context: world.context,
        input: await world.heard(stereo),
        channelSelector: { channel: 2 },
      });
      const again = await world.processor.processAudio({
        context: world.context,
        input: { case: "gkProcessedAudioId", value: second.result!.gkProcessedAudioId! },
        channelSelector: { channel: 1 },
      });
      expect(again.result!.voiceClassScore).toBe(9);
    });
  });
});

describe("Enroll", () => {
  test("adds segments and reports whether the print can be trained", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    const first = await world.enroll(profile, take(7, 1.2));
    expect(first).toMatchObject({
      enrolled: true,
      reason: EnrollReason.ENROLL_OK,
      enrollStatus: EnrollStatus.TRAIN_NOT_POSSIBLE,
    });
    expect(first.voiceprintDetails).toMatchObject({ ownerType: OwnerType.PERSON, profileTag: "" });
    expect(first.voiceprintDetails!.printVersion).toBeUndefined();
    expect((await world.enroll(profile, take(7, 1.3))).enrollStatus).toBe(EnrollStatus.TRAIN_NOT_POSSIBLE);
    expect((await world.enroll(profile, take(7, 1.4))).enrollStatus).toBe(EnrollStatus.TRAIN_POSSIBLE);
    expect((await world.enroll(profile, take(7, 5))).enrollStatus).toBe(EnrollStatus.TRAIN_SUGGESTED);
    const status = await world.processor.getEnrollStatus({ context: world.context, gkVoiceprintProfileId: profile });
    expect(status).toMatchObject({ result: EnrollStatus.TRAIN_SUGGESTED, isTrained: false });
  });

  test("ALREADY_ADDED for the same audio model, the same media, and the same recording uploaded twice", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    const processed = await world.process(take(7, 2));
    const enroll = async (id: { value: string }) =>
      (await world.processor.enroll({ context: world.context, gkVoiceprintProfileId: profile, gkProcessedAudioId: id }))
        .result!;
    expect((await enroll(processed.gkProcessedAudioId!)).enrolled).toBe(true);
    const already = { enrolled: false, reason: EnrollReason.ALREADY_ADDED };
    expect(await enroll(processed.gkProcessedAudioId!)).toMatchObject(already);
    const again = await world.processor.processAudio({
      context: world.context,
      input: { case: "gkMediaSegmentId", value: processed.gkMediaSegmentId! },
      isForEnrollment: true,
    });
    expect(await enroll(again.result!.gkProcessedAudioId!)).toMatchObject(already);
    expect(await world.enroll(profile, take(7, 2))).toMatchObject(already);
    expect(await world.store.profiles.segments("bank", profile.value)).toHaveLength(1);
  });

  test("ALREADY_ADDED for a recording of which a part was added, and for a part of a recording that was added", async () => {
    const world = await openWorld();
    const { context, processor } = world;
    const stereo = await world.media([take(7, 14), take(8, 14)]);
    const processed = async (channel: number, isForEnrollment: boolean) => {
      const input = { case: "gkMediaSegmentId", value: stereo } as const;
      return (await processor.processAudio({ context, input, isForEnrollment, channelSelector: { channel } })).result!;
    };
    const enroll = async (
      profile: { value: string },
      audio: { gkProcessedAudioId?: { value: string } | undefined },
    ) => {
      const gkProcessedAudioId = audio.gkProcessedAudioId!;
      return (await processor.enroll({ context, gkVoiceprintProfileId: profile, gkProcessedAudioId })).result!;
    };
    const [part, whole, other] = [await processed(1, true), await processed(1, false), await processed(2, true)];
    expect(part.gkMediaSegmentId).not.toEqual(whole.gkMediaSegmentId);
    const [alice, bob] = [await world.person("alice"), await world.person("bob")];
    const already = { enrolled: false, reason: EnrollReason.ALREADY_ADDED };
    expect((await enroll(alice, part)).enrolled).toBe(true);
    expect(await enroll(alice, whole)).toMatchObject(already);
    expect((await enroll(alice, other)).enrolled).toBe(true);
    expect((await enroll(bob, whole)).enrolled).toBe(true);
    expect(await enroll(bob, part)).toMatchObject(already);
  });

  test("TOO_SHORT for too little speech, MISSING_MODEL for audio that is not fit otherwise", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    expect(await world.enroll(profile, take(7, 0.8))).toMatchObject({
      enrolled: false,
      reason: EnrollReason.TOO_SHORT,
    });
    const missing = { enrolled: false, reason: EnrollReason.MISSING_MODEL };
    expect(await world.enroll(profile, take(7, 4, { noisy: 4 }))).toMatchObject(missing);
    expect(await world.enroll(profile, joined(take(7, 3), take(9, 2)))).toMatchObject(missing);
    expect(await world.store.profiles.segments("bank", profile.value)).toEqual([]);
  });

  test("MISSING_MODEL for an audio model of another revision", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    const processed = await world.process(take(7, 2));
    world.engine.behavior.revision = "c".repeat(64);
    const { result } = await world.processor.enroll({
      context: world.context,
      gkVoiceprintProfileId: profile,
      gkProcessedAudioId: processed.gkProcessedAudioId!,
    });
    expect(result).toMatchObject({ enrolled: false, reason: EnrollReason.MISSING_MODEL });
  });

  test("WRONG_PRINT_TYPE for audio processed for another print type", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    await world.enroll(profile, take(7, 5));
    const free = await world.open("text-independent");
    const processed = await world.process(take(7, 6), true, free);
    const { result } = await world.processor.enroll({
      context: free,
      gkVoiceprintProfileId: profile,
      gkProcessedAudioId: processed.gkProcessedAudioId!,
    });
    expect(result).toMatchObject({ enrolled: false, reason: EnrollReason.WRONG_PRINT_TYPE });
  });

  test("a FULL print takes no more: enrolled=false, reason UNSPECIFIED, status FULL", async () => {
    const world = await openWorld({ configurationSets: { tiny: { maxEnrollmentSegments: 3 } } });
    const tiny = await world.open("tiny");
    const profile = await world.person("alice");
    for (const length of [2, 2.1, 2.2]) await world.enroll(profile, take(7, length), tiny);
    const full = { enrolled: false, reason: EnrollReason.UNSPECIFIED, enrollStatus: EnrollStatus.FULL };
    expect(await world.enroll(profile, take(7, 2.3), tiny)).toMatchObject(full);
    expect(await world.store.profiles.segments("bank", profile.value)).toHaveLength(3);
    expect((await world.train(profile, tiny)).trainStatus).toBe(TrainStatus.TRAINED);
  });

  test("takes only audio from ProcessAudio", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const { gkProcessedAudioId } = await world.verify(profile, take(7, 4));
    const call = world.processor.enroll({
      context: world.context,
      gkVoiceprintProfileId: profile,
      gkProcessedAudioId: gkProcessedAudioId!,
    });
    expect(await refusal(call)).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["gk_processed_audio_id not_from_process_audio"],
    });
  });

  test("segments enrolled at the same time are all kept", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    const takes = Array.from({ length: 12 }, (_, i) => take(7, 2 + i / 10));
    const results = await Promise.all(takes.map((samples) => world.enroll(profile, samples)));
    expect(results.every((result) => result.enrolled)).toBe(true);
    expect(await world.store.profiles.segments("bank", profile.value)).toHaveLength(12);
  });
});

describe("the part of audio that is enrolled", () => {
  test("re-processing an enrolled part for another purpose uses the whole audio of its channel", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const media = await world.media([take(9, 25), take(7, 25)]);
    const part = (
      await processor.processAudio({
        context,
        input: { case: "gkMediaSegmentId", value: media },
        isForEnrollment: true,
        channelSelector: { channel: 2 },
      })
    ).result!;
    const input = { case: "gkProcessedAudioId", value: part.gkProcessedAudioId! } as const;
    const again = (await processor.processAudio({ context, input, isForEnrollment: true })).result!;
    expect(seconds(again.audioDetails!.netAudio)).toBe(10);
    const whole = (await processor.processAudio({ context, input })).result!;
    expect(seconds(whole.audioDetails!.netAudio)).toBe(25);
    expect(whole).toMatchObject({ voiceClassScore: 7, gkMediaSegmentId: { value: media.value } });
    // If the rest is deleted, only the part is available.
    const { get } = world.store.media;
    world.store.media.get = async (scope, id) => (id === media.value ? null : get(scope, id));
    const left = (await processor.processAudio({ context, input })).result!;
    expect(seconds(left.audioDetails!.netAudio)).toBe(10);
  });

  test("a part of a part still belongs to the whole recording and to its channel", async () => {
    const world = await openWorld({ configurationSets: { brief: { maxNetAudioForEnroll: 4 } } });
    const { processor, store } = world;
    const media = await world.media([take(9, 25), take(7, 25)]);
    const cut = async (context: typeof world.context, id: { value: string }) => {
      const input = { case: "gkMediaSegmentId", value: { value: id.value } } as const;
      const channelSelector = { channel: 2 };
      const { result } = await processor.processAudio({ context, input, isForEnrollment: true, channelSelector });
      return result!;
    };
    const brief = await world.open("brief");
    const part = await cut(brief, (await cut(world.context, media)).gkMediaSegmentId!);
    expect(await store.media.get("bank", part.gkMediaSegmentId!.value)).toMatchObject({
      partOf: media.value,
      partOfChannel: 2,
      channels: 1,
    });
    const input = { case: "gkProcessedAudioId", value: part.gkProcessedAudioId! } as const;
    const { result } = await processor.processAudio({ context: brief, input });
    expect(seconds(result!.audioDetails!.netAudio)).toBe(25);
    expect(result!.voiceClassScore).toBe(7);
  });

  test("the loudest samples stay the loudest", () => {
    const bytes = pcm16(Float32Array.of(0, 0.5, 1, 1.5, -1, -1.5));
    expect([...new Int16Array(bytes.buffer)]).toEqual([0, 16384, 32767, 32767, -32768, -32768]);
  });

  test("Enroll cuts only what is longer than the maximum by more than a second", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    for (const length of [11, 11.1]) {
      const { gkProcessedAudioId } = await world.process(take(7, length), false);
      await world.processor.enroll({
        context: world.context,
        gkVoiceprintProfileId: profile,
        gkProcessedAudioId: gkProcessedAudioId!,
      });
    }
    const segments = await world.store.profiles.segments("bank", profile.value);
    expect(segments.map(({ processed }) => processed.measures.netSpeechSeconds)).toEqual([11, 10]);
    // In whole windows of two seconds, and at least one.
    const brief = await openWorld({ configurationSets: { brief: { maxNetAudioForEnroll: 1.5 } } });
    const context = await brief.open("brief");
    const bob = await brief.person("bob");
    const { gkProcessedAudioId } = await brief.process(take(7, 5), false);
    const request = { context, gkVoiceprintProfileId: bob, gkProcessedAudioId: gkProcessedAudioId! };
    expect((await brief.processor.enroll(request)).result!.enrolled).toBe(true);
    const [segment] = await brief.store.profiles.segments("bank", bob.value);
    expect(segment!.processed.measures).toMatchObject({ netSpeechSeconds: 2, grossSeconds: 2 });
  });

  test("Enroll uses at most the configured maximum of audio that was processed completely", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    const whole = await world.process(take(7, 25), false);
    const { result } = await world.processor.enroll({
      context: world.context,
      gkVoiceprintProfileId: profile,
      gkProcessedAudioId: whole.gkProcessedAudioId!,
    });
    expect(result).toMatchObject({ enrolled: true, reason: EnrollReason.ENROLL_OK });
    expect(seconds(result!.audioDetails!.netAudio)).toBe(25);
    const [segment] = await world.store.profiles.segments("bank", profile.value);
    expect(segment!.processed.measures).toMatchObject({ netSpeechSeconds: 10, grossSeconds: 10 });
    expect(segment!.processed.voice.windows).toHaveLength(5);
    const squares = segment!.processed.voice.embedding!.reduce((sum, x) => sum + x * x, 0);
    expect(squares).toBeCloseTo(1, 6 /* 32-bit floats */);
  });

  test("an audio model without an embedding despite enough speech is an internal error", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    const { gkProcessedAudioId } = await world.process(take(7, 4));
    const { get } = world.store.processed;
    world.store.processed.get = async (...which) => {
      const found = await get(...which);
      return found && { ...found, voice: { windows: [], embedding: null } };
    };
    const { result } = await world.processor.enroll({
      context: world.context,
      gkVoiceprintProfileId: profile,
      gkProcessedAudioId: gkProcessedAudioId!,
    });
    expect(result).toMatchObject({ enrolled: false, reason: EnrollReason.INTERNAL_ERROR });
    expect(await world.store.profiles.segments("bank", profile.value)).toEqual([]);
  });
});

describe("Train", () => {
  test("makes a template, reports its segments, and increments print_version each time", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    for (const length of [1.2, 1.3, 1.4]) await world.enroll(profile, take(7, length));
    const first = await world.train(profile);
    expect(first).toMatchObject({
      trainStatus: TrainStatus.TRAINED,
      reason: TrainReason.TRAIN_OK,
      status: VoiceprintProfileStatus.BASIC_TRAINED,
      totalSegments: 3,
      totalValidSegments: 3,
      minSegmentsRequired: 3,
    });
    expect(first.voiceprintDetails!.printVersion).toBe(1);
    expect(seconds(first.totalNetAudio)).toBeCloseTo(3.9, 3 /* durations are kept in milliseconds */);
    expect(seconds(first.minNetAudioRequired)).toBe(3);
    expect(first.gkCalibrationModelRevisionId!.value).toBe(world.engine.model.revision);
    expect(first.enrollmentSegmentsDetails.every((segment) => segment.usedForTrain)).toBe(true);
    await world.enroll(profile, take(7, 6));
    const second = await world.train(profile);
    expect(second.status).toBe(VoiceprintProfileStatus.OPTIMAL_TRAINED);
    expect(second.voiceprintDetails!.printVersion).toBe(2);
    const status = await world.processor.getEnrollStatus({ context: world.context, gkVoiceprintProfileId: profile });
    expect(status.isTrained).toBe(true);
  });

  test("leaves an inconsistent segment out, and says so", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    for (const length of [2, 2.1, 2.2]) await world.enroll(profile, take(7, length));
    await world.enroll(profile, take(9, 2));
    const result = await world.train(profile);
    expect(result).toMatchObject({ trainStatus: TrainStatus.TRAINED, totalSegments: 4, totalValidSegments: 3 });
    const odd = result.enrollmentSegmentsDetails.filter((segment) => !segment.usedForTrain);
    expect(odd).toHaveLength(1);
    expect(odd[0]).toMatchObject({ consistencyDecision: ConsistencyDecision.INCONSISTENT, voiceClassScore: 9 });
    expect(odd[0]!.consistencyScore).toBeLessThan(0.5);
  });

  test("NOT_READY_TO_TRAIN with too few segments, INCONSISTENCY when too few agree; the profile stays as it was", async () => {
    const world = await openWorld();
    const profile = await world.person("alice");
    for (const length of [2, 2.1]) await world.enroll(profile, take(7, length));
    const failed = { trainStatus: TrainStatus.FAILED, status: VoiceprintProfileStatus.NOT_TRAINED };
    // It reports how much valid speech there is, and how much is needed.
    const valid = { totalValidSegments: 2, minSegmentsRequired: 3, totalNetAudio: { seconds: 4n, nanos: 100_000_000 } };
    const early = await world.train(profile);
    expect(early).toMatchObject({ ...failed, ...valid, reason: TrainReason.NOT_READY_TO_TRAIN });
    expect(early.enrollmentSegmentsDetails.some((segment) => segment.usedForTrain)).toBe(false);
    expect(early.enrollmentSegmentsDetails[0]!.consistencyDecision).toBe(ConsistencyDecision.UNSPECIFIED);
    await world.enroll(profile, take(9, 2));
    const odd = await world.train(profile);
    expect(odd).toMatchObject({ ...failed, ...valid, reason: TrainReason.INCONSISTENCY });
    // Two of them agree, but nothing was trained from them.
    expect(odd.enrollmentSegmentsDetails.map((segment) => segment.usedForTrain)).toEqual([false, false, false]);
    expect(await world.store.profiles.get("bank", profile.value)).toMatchObject({ template: null, printVersion: 0 });
  });

  test("an engine failure is INTERNAL_ERROR, and the old template stays", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    world.engine.behavior.before = (operation) => {
      if (operation === "train") throw new Error("out of order");
    };
    expect(await world.train(profile)).toMatchObject({
      trainStatus: TrainStatus.FAILED,
      reason: TrainReason.INTERNAL_ERROR,
      status: VoiceprintProfileStatus.OPTIMAL_TRAINED,
    });
    expect(await world.store.profiles.get("bank", profile.value)).toMatchObject({ printVersion: 1 });
  });

  test("an engine that judges too few segments has failed; one that makes no template found no agreement", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const told = { score: 1, consistent: true };
    world.engine.train = async () => ({ segments: [told, told], template: null });
    expect(await world.train(profile)).toMatchObject({
      trainStatus: TrainStatus.FAILED,
      reason: TrainReason.INTERNAL_ERROR,
    });
    world.engine.train = async () => ({ segments: [told, told, told], template: null });
    expect(await world.train(profile)).toMatchObject({
      trainStatus: TrainStatus.FAILED,
      reason: TrainReason.INCONSISTENCY,
    });
    expect(await world.store.profiles.get("bank", profile.value)).toMatchObject({ printVersion: 1 });
  });

  test("a busy engine is BUSY; so is a profile that others never stop changing", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    world.engine.behavior.before = () => {
      throw new EngineError("QUEUE_FULL", "too many calls");
    };
    expect(await refusal(world.train(profile))).toMatchObject({ code: "BUSY" });
    world.engine.behavior.before = () => {};
    const train = vi.spyOn(world.store.profiles, "train").mockResolvedValue(false);
    const call = world.train(profile);
    await expect(call).rejects.toMatchObject({
      code: StatusCode.BUSY,
      message: "other calls changed the profile 100 times in a row; try again",
      status: { retryAfter: { seconds: 1n, nanos: 0 } },
    });
    expect(train).toHaveBeenCalledTimes(100);
  });

  test("concurrent trainings each get their own version, and none is lost", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const results = await Promise.all(Array.from({ length: 5 }, () => world.train(profile)));
    const versions = results.map((result) => result.voiceprintDetails!.printVersion).sort();
    expect(versions).toEqual([2, 3, 4, 5, 6]);
  });

  test("text-independent: one segment is enough when it is long enough", async () => {
    const world = await openWorld();
    const free = await world.open("text-independent");
    const profile = await world.person("alice");
    await world.enroll(profile, take(7, 16), free);
    expect(await world.train(profile, free)).toMatchObject({
      trainStatus: TrainStatus.TRAINED,
      status: VoiceprintProfileStatus.BASIC_TRAINED,
    });
  });
});
