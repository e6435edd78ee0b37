import { describe, expect, test } from "vitest";
import { AudioError } from "../../src/audio/audio-error.js";
import { readRecording } from "../../src/audio/index.js";
import { AudioValidity, Decision, DecisionReason } from "../../src/contract/index.js";
import { EngineError } from "../../src/engine/engine-error.js";
import type { Score } from "../../src/engine/port.js";
import { joined, rateHz, silence, take } from "./fixture-engine.js";
import { list, openWorld, pcm16, refusal, type World } from "./world.js";

const outcome = (decision: Decision, reason: DecisionReason) => ({ decision, reason });

/** The four operations on one profile, with the fields that their answers share. */
const operations = {
  async Verify(world: World, profile: { value: string }, samples: Float32Array) {
    return world.verify(profile, samples);
  },
  async Identify(world: World, profile: { value: string }, samples: Float32Array) {
    const target = { case: "gkVoiceprintProfileIds", value: list(profile) } as const;
    const audio = await world.heard(samples);
    return (await world.processor.identify({ context: world.context, audio, target })).result!;
  },
  async DetectKnownFraudsters(world: World, profile: { value: string }, samples: Float32Array) {
    const target = { case: "gkVoiceprintProfileIds", value: list(profile) } as const;
    const audio = await world.heard(samples);
    return (await world.processor.detectKnownFraudsters({ context: world.context, audio, target })).result!;
  },
  async AnalyzeAudio(world: World, profile: { value: string }, samples: Float32Array) {
    const audio = await world.heard(samples);
    const gkVoiceprintProfileIds = list(profile);
    const { result } = await world.processor.analyzeAudio({ context: world.context, audio, gkVoiceprintProfileIds });
    return { ...result!.authenticationResult!, validity: result!.validity };
  },
};

type OperationName = keyof typeof operations;
const names = Object.keys(operations) as OperationName[];
const kindOf = (name: OperationName) => (name === "DetectKnownFraudsters" ? "fraudster" : "person");

describe("the outcomes table", () => {
  describe.each(names)("%s", (name) => {
    const ask = operations[name];
    const kind = kindOf(name);

    test("score above the threshold", async () => {
      const world = await openWorld();
      const result = await ask(world, await world.trained(7, kind), take(7, 4));
      expect(result).toMatchObject(
        kind === "person"
          ? outcome(Decision.AUTHENTIC, DecisionReason.VOICEPRINT_MATCH)
          : outcome(Decision.FRAUD, DecisionReason.FRAUDSTER_INDICATION),
      );
      const { risk, reliability } = result.riskEngineResult!;
      expect(reliability).toBe(100);
      if (kind === "person") expect(risk).toBeLessThan(500);
      else expect(risk).toBeGreaterThan(500);
    });

    test("score below the threshold", async () => {
      const world = await openWorld();
      const result = await ask(world, await world.trained(7, kind), take(9, 4));
      expect(result).toMatchObject(
        kind === "person"
          ? outcome(Decision.NO_MATCH, DecisionReason.VOICEPRINT_NO_MATCH)
          : outcome(Decision.NO_RISK_DETECTED, DecisionReason.NO_RISK_DETECTED),
      );
      if (kind === "person") expect(result.riskEngineResult!.risk).toBeGreaterThan(500);
      else expect(result.riskEngineResult!.risk).toBeLessThan(500);
    });

    test("too close to the threshold for the audio's reliability", async () => {
      const world = await openWorld();
      const profile = await world.trained(7, kind);
      const threshold = world.engine.behavior.threshold(0.01);
      world.engine.behavior.score = (raw) => ({ raw, llr: threshold - 0.1, reliability: 0.1 });
      expect(await ask(world, profile, take(7, 1.5))).toMatchObject(
        outcome(Decision.UNCERTAIN, DecisionReason.LOW_RELIABILITY),
      );
    });

    test.each([
      ["too short", take(7, 0.7), DecisionReason.AUDIO_TOO_SHORT],
      ["too soft", take(7, 4, { soft: true }), DecisionReason.AUDIO_TOO_SOFT],
      ["too loud", take(7, 4, { clipped: 0.2 }), DecisionReason.AUDIO_TOO_LOUD],
      ["too noisy", take(7, 4, { noisy: 4 }), DecisionReason.AUDIO_TOO_NOISY],
    ])("%s", async (_, samples, reason) => {
      const world = await openWorld();
      const result = await ask(world, await world.trained(7, kind), samples);
      expect(result).toMatchObject(outcome(Decision.UNCERTAIN, reason));
      expect(result.riskEngineResult).toBeUndefined();
    });

    test("several speakers in one channel", async () => {
      const world = await openWorld();
      const result = await ask(world, await world.trained(7, kind), joined(take(7, 1), take(9, 0.8)));
      expect(result).toMatchObject(outcome(Decision.UNCERTAIN, DecisionReason.LOW_RELIABILITY));
      if ("validity" in result) expect(result.validity).toBe(AudioValidity.MULTIPLE_SPEAKERS_DETECTED);
    });

    test("media stored but not decodable", async () => {
      const world = await openWorld();
      const profile = await world.trained(7, kind);
      const stored = (await world.store.media.get("bank", (await world.media(take(7, 4))).value))!;
      const id = world.ids.next();
      await world.store.media.add({ ...stored, id, encoding: "wav", audio: new Uint8Array(4096).fill(7) });
      world.heard = async () => ({
        case: "gkMediaSegmentId",
        value: { $typeName: "vendor.biosec.v1.UniqueId", value: id },
      });
      expect(await ask(world, profile, silence(0))).toMatchObject(
        outcome(Decision.FAILED, DecisionReason.INVALID_AUDIO),
      );
    });

    test("profile known but not trained", async () => {
      const world = await openWorld();
      const result = await ask(world, await world[kind]("nobody"), take(7, 4));
      expect(result).toMatchObject(outcome(Decision.FAILED, DecisionReason.NO_SCORES));
      if ("validity" in result) expect(result.validity).toBe(AudioValidity.AUDIO_OK);
    });

    test("all prints obsolete", async () => {
      const world = await openWorld();
      const profile = await world.trained(7, kind);
      world.engine.behavior.revision = "c".repeat(64);
      expect(await ask(world, profile, take(7, 4))).toMatchObject(outcome(Decision.FAILED, DecisionReason.NO_SCORES));
    });

    test("profile with segments but fewer than training needs", async () => {
      const world = await openWorld();
      const profile = await world[kind]("somebody");
      await world.enroll(profile, take(7, 2));
      expect(await ask(world, profile, take(7, 4))).toMatchObject(
        outcome(Decision.FAILED, DecisionReason.NOT_ENOUGH_SEGMENTS),
      );
    });

    test("profile with enough segments whose training nobody asked for", async () => {
      const world = await openWorld();
      const profile = await world[kind]("somebody");
      for (const seconds of [2, 2.1, 2.2]) await world.enroll(profile, take(7, seconds));
      expect(await ask(world, profile, take(7, 4))).toMatchObject(outcome(Decision.FAILED, DecisionReason.NO_SCORES));
    });

    test.each(["analyze", "score"] as const)("the engine failed in %s", async (at) => {
      const world = await openWorld();
      const profile = await world.trained(7, kind);
      world.engine.behavior.before = (operation) => {
        if (operation === at) throw new Error("out of order");
      };
      expect(await ask(world, profile, take(7, 4))).toMatchObject(
        outcome(Decision.FAILED, DecisionReason.INTERNAL_ERROR),
      );
    });
  });

  test.each<[string, (world: World) => void]>([
    ["no ratio", ({ engine }) => (engine.behavior.score = (raw) => ({ raw, llr: Number.NaN, reliability: 1 }))],
    ["no reliability", ({ engine }) => (engine.behavior.score = (raw) => ({ raw, llr: 9, reliability: Number.NaN }))],
    ["too few scores", ({ engine }) => (engine.score = async () => [])],
  ])("an engine that gives %s has failed", async (_, spoil) => {
    const world = await openWorld();
    const profile = await world.trained(7);
    spoil(world);
    expect(await world.verify(profile, take(7, 4))).toMatchObject(
      outcome(Decision.FAILED, DecisionReason.INTERNAL_ERROR),
    );
  });

  test("audio that was processed but could not be decoded", async () => {
    const world = await openWorld();
    const { processor, context, store } = world;
    const profile = await world.trained(7);
    const stored = (await store.media.get("bank", (await world.media(take(7, 4))).value))!;
    const id = world.ids.next();
    await store.media.add({ ...stored, id, encoding: "wav", audio: new Uint8Array(4096).fill(7) });
    const input = { case: "gkMediaSegmentId", value: { value: id } } as const;
    const enrolling = await processor.processAudio({ context, input, isForEnrollment: true });
    expect(enrolling.result!.validity).toBe(AudioValidity.INVALID_AUDIO);
    const processed = await processor.processAudio({ context, input });
    expect(processed.result!.validity).toBe(AudioValidity.INVALID_AUDIO);
    expect(processed.result!.audioDetails).toMatchObject({
      grossAudio: { seconds: 0n, nanos: 0 },
      netAudio: { seconds: 0n, nanos: 0 },
      saturationLevel: 0,
      numberOfDetectedSpeakers: 0,
    });
    const audio = { case: "gkProcessedAudioId", value: processed.result!.gkProcessedAudioId! } as const;
    const { result } = await processor.verify({ context, audio, gkVoiceprintProfileId: profile });
    expect(result).toMatchObject(outcome(Decision.FAILED, DecisionReason.INVALID_AUDIO));
  });

  test("audio that turns out to be broken while it is read", async () => {
    let isBroken = false;
    const world = await openWorld({
      readRecording: (bytes, format) => {
        const recording = readRecording(bytes, format);
        if (!isBroken) return recording;
        const read = () => {
          throw new AudioError("TRUNCATED", "the file became shorter while it was being read");
        };
        return { ...recording, read };
      },
    });
    const profile = await world.trained(7);
    const audio = await world.heard(take(7, 4));
    isBroken = true;
    for (const ignoreCheckpoints of [false, true]) {
      const request = { context: world.context, audio, gkVoiceprintProfileId: profile, ignoreCheckpoints };
      expect((await world.processor.verify(request)).result).toMatchObject(
        outcome(Decision.FAILED, DecisionReason.INVALID_AUDIO),
      );
    }
  });

  test("several profiles without a print: NOT_ENOUGH_SEGMENTS only if that holds for each of them", async () => {
    const world = await openWorld();
    const [none, begun, more] = [await world.person("a"), await world.person("b"), await world.person("c")];
    for (const profile of [begun, more]) await world.enroll(profile, take(7, 2));
    const obsolete = await world.trained(9);
    world.engine.behavior.revision = "c".repeat(64);
    const identify = async (...profiles: { value: string }[]) => {
      const target = { case: "gkVoiceprintProfileIds", value: list(...profiles) } as const;
      const audio = await world.heard(take(7, 4));
      return (await world.processor.identify({ context: world.context, audio, target })).result!.reason;
    };
    expect(await identify(begun, more)).toBe(DecisionReason.NOT_ENOUGH_SEGMENTS);
    expect(await identify(none, begun)).toBe(DecisionReason.NO_SCORES);
    expect(await identify(begun, obsolete)).toBe(DecisionReason.NO_SCORES);
  });

  test("empty group and empty watchlist", async () => {
    const world = await openWorld();
    const { context } = world;
    const group = { uniqueId: (await world.processor.createGroup({ context })).gkGroupId! };
    const watchlist = { uniqueId: (await world.processor.createWatchlist({ context })).gkGroupId! };
    const audio = await world.heard(take(7, 4));
    const none = outcome(Decision.FAILED, DecisionReason.NO_SCORES);
    const inGroup = { case: "group", value: group } as const;
    expect((await world.processor.identify({ context, audio, target: inGroup })).result).toMatchObject(none);
    const onList = { case: "watchlist", value: watchlist } as const;
    const { result } = await world.processor.detectKnownFraudsters({ context, audio, target: onList });
    expect(result).toMatchObject({ ...none, numberOfPrints: 0 });
    const analysis = (await world.processor.analyzeAudio({ context, audio, group, watchlist })).result!;
    expect(analysis.authenticationResult).toMatchObject({ ...none, numberOfPersonsPrints: 0 });
    expect(analysis.fraudDetectionResult).toMatchObject({ ...none, numberOfFraudstersPrints: 0 });
    expect(analysis).toMatchObject(none);
  });
});

describe("what a result carries", () => {
  test("score, risk, voice class, audio details, ids and revision", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const result = await world.verify(profile, take(7, 4));
    expect(result.authenticationScore!.biometricScore).toBeGreaterThan(0.9);
    expect(result.voiceprintDetails).toMatchObject({
      gkVoiceprintProfileId: { value: profile.value },
      printVersion: 1,
    });
    expect(result.voiceClassScore).toBe(7);
    expect(result.audioDetails!.mediaSamplingRateHz).toBe(rateHz);
    expect(result.gkCalibrationModelRevisionId!.value).toBe(world.engine.model.revision);
    expect(result.calibrationModelDetails).toMatchObject({ calibrationModelId: "fixture-1" });
    expect(result.gkMediaSegmentId!.value).toBeTruthy();
    expect(result.gkProcessedAudioId!.value).toBeTruthy();
  });

  test("Identify lists every print, best first", async () => {
    const world = await openWorld();
    const profiles = [await world.trained(7), await world.trained(9), await world.trained(11)];
    const target = { case: "gkVoiceprintProfileIds", value: list(...profiles) } as const;
    const audio = await world.heard(take(9, 4));
    const { result } = await world.processor.identify({ context: world.context, audio, target });
    expect(result!.decision).toBe(Decision.AUTHENTIC);
    expect(result!.voiceprintDetails!.gkVoiceprintProfileId!.value).toBe(profiles[1]!.value);
    const scores = result!.voiceprintResults.map(({ score }) => score.value!.biometricScore!);
    expect(scores).toHaveLength(3);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    expect(result!.voiceprintResults[0]!.score.case).toBe("authenticationScore");
  });

  test.each(["Identify", "DetectKnownFraudsters"] as const)(
    "%s: the highest score is named first and decided on, and each has its own threshold",
    async (name) => {
      const world = await openWorld();
      const { processor, context, engine } = world;
      const kind = kindOf(name);
      const [other, best] = [await world.trained(7, kind), await world.trained(9, kind)];
      engine.behavior.score = (raw) => ({ raw, llr: raw > 0.5 ? 8 : 6, reliability: 1 });
      engine.threshold = (rate, score) => ((score as Score).llr === 8 ? 10 : 4) - (rate > 0.02 ? 3 : 0);
      const audio = await world.heard(take(9, 4));
      const target = { case: "gkVoiceprintProfileIds", value: list(other, best) } as const;
      const { result } = await (name === "Identify"
        ? processor.identify({ context, audio, target })
        : processor.detectKnownFraudsters({ context, audio, target }));
      // The best of a list that does not match but is suspect is UNCERTAIN.
      expect(result).toMatchObject(outcome(Decision.UNCERTAIN, DecisionReason.LOW_RELIABILITY));
      expect(result!.voiceprintDetails!.gkVoiceprintProfileId).toMatchObject(best);
      const scores = result!.voiceprintResults.map(({ score }) => score.value!);
      expect(scores.map(({ ratio, threshold }) => [ratio, threshold])).toEqual([
        [8, 10],
        [6, 4],
      ]);
      const session = (await processor.getSessionDecision({ context })).result!;
      expect(session.decision).toBe(Decision.UNCERTAIN);
    },
  );

  test("number_of_matches tells that the voice matches several owners; two prints of one owner are one match", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const saying = (profile: { value: string }) => async (speaker: number) => {
      for (const seconds of [3, 3.1, 3.2]) await world.enroll(profile, take(speaker, seconds));
      await world.train(profile);
      return profile;
    };
    const persons = [
      await world.trained(7),
      await saying(await world.person("person-7", "phone"))(7),
      await saying(await world.person("the same voice under another name"))(7),
      await world.trained(9),
    ];
    const fraudsters = [await world.trained(9, "fraudster"), await world.trained(11, "fraudster")];
    const matches = async (speaker: number) => {
      const audio = await world.heard(take(speaker, 4));
      const targetOf = (profiles: typeof persons) =>
        ({ case: "gkVoiceprintProfileIds", value: list(...profiles) }) as const;
      const identified = await processor.identify({ context, audio, target: targetOf(persons) });
      const watched = await processor.detectKnownFraudsters({ context, audio, target: targetOf(fraudsters) });
      const gkVoiceprintProfileIds = list(...persons, ...fraudsters);
      const { result } = await processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds });
      expect(result!.authenticationResult!.numberOfMatches).toBe(identified.result!.numberOfMatches);
      expect(result!.fraudDetectionResult!.numberOfMatches).toBe(watched.result!.numberOfMatches);
      return [identified.result!.numberOfMatches, watched.result!.numberOfMatches];
    };
    expect(await matches(7)).toEqual([2, 0]);
    expect(await matches(9)).toEqual([1, 1]);
    expect(await matches(12)).toEqual([0, 0]);
  });

  test("prints with the same score are listed by id, whatever the order of the request", async () => {
    const world = await openWorld();
    const profiles = [await world.trained(7), await world.trained(9), await world.trained(11)];
    world.engine.behavior.score = (raw) => ({ raw, llr: 0, reliability: 1 });
    const ids = profiles.map(({ value }) => value).sort();
    for (const given of [profiles, profiles.toReversed()]) {
      const target = { case: "gkVoiceprintProfileIds", value: list(...given) } as const;
      const audio = await world.heard(take(9, 4));
      const { result } = await world.processor.identify({ context: world.context, audio, target });
      expect(result!.voiceprintResults.map((one) => one.gkVoiceprintProfileId!.value)).toEqual(ids);
    }
  });

  test("number_of_prints counts the valid ones", async () => {
    const world = await openWorld();
    const valid = [await world.trained(7, "fraudster"), await world.trained(9, "fraudster")];
    const untrained = await world.fraudster("new");
    const target = { case: "gkVoiceprintProfileIds", value: list(...valid, untrained, valid[0]!) } as const;
    const audio = await world.heard(take(9, 4));
    const { result } = await world.processor.detectKnownFraudsters({ context: world.context, audio, target });
    expect(result).toMatchObject({ numberOfPrints: 2, decision: Decision.FRAUD });
    expect(result!.voiceprintResults[0]!.score.case).toBe("fraudDetectionScore");
  });

  test("number_of_prints and its likes count no print if the audio was compared with none", async () => {
    const world = await openWorld();
    const { context, processor } = world;
    const target = { case: "gkVoiceprintProfileIds", value: list(await world.trained(7, "fraudster")) } as const;
    const audio = await world.heard(take(7, 0.5));
    const short = outcome(Decision.UNCERTAIN, DecisionReason.AUDIO_TOO_SHORT);
    const { result } = await processor.detectKnownFraudsters({ context, audio, target });
    expect(result).toMatchObject({ ...short, numberOfPrints: 0, voiceprintResults: [] });
    const both = list(target.value.uniqueIds[0]!, await world.trained(9));
    const { result: analysis } = await processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: both });
    expect(analysis!.authenticationResult).toMatchObject({ ...short, numberOfPersonsPrints: 0 });
    expect(analysis!.fraudDetectionResult).toMatchObject({ ...short, numberOfFraudstersPrints: 0 });
  });

  test("processed audio is used as it is; audio of another model is processed again under a new id", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const processed = await world.process(take(7, 4), false);
    const audio = { case: "gkProcessedAudioId", value: processed.gkProcessedAudioId! } as const;
    const ask = async () =>
      (await world.processor.verify({ context: world.context, audio, gkVoiceprintProfileId: profile })).result!;
    const same = await ask();
    expect(same.gkProcessedAudioId!.value).toBe(processed.gkProcessedAudioId!.value);
    expect(same.decision).toBe(Decision.AUTHENTIC);
    world.engine.behavior.revision = "c".repeat(64);
    const fresh = await ask();
    expect(fresh.gkProcessedAudioId!.value).not.toBe(processed.gkProcessedAudioId!.value);
    expect(fresh).toMatchObject(outcome(Decision.FAILED, DecisionReason.NO_SCORES));
  });

  test("nothing is stored when the engine failed, so the audio can be processed again", async () => {
    const world = await openWorld();
    const { store, engine } = world;
    const profile = await world.trained(7);
    const kept: string[] = [];
    const { addCheck } = store.sessions;
    store.sessions.addCheck = (check, heard) => {
      if (heard) kept.push(heard.id);
      return addCheck(check, heard);
    };
    engine.behavior.before = (operation) => {
      if (operation === "analyze") throw new Error("out of order");
    };
    const failed = await world.verify(profile, take(7, 4));
    expect(failed).toMatchObject(outcome(Decision.FAILED, DecisionReason.INTERNAL_ERROR));
    expect(failed.gkProcessedAudioId).toBeUndefined();
    expect(failed.audioDetails!.gkProcessedAudioId).toBeUndefined();
    expect(failed.gkMediaSegmentId).toBeDefined();
    expect(kept).toEqual([]);
    engine.behavior.before = () => {};
    const audio = { case: "gkMediaSegmentId", value: failed.gkMediaSegmentId! } as const;
    const again = await world.processor.verify({ context: world.context, audio, gkVoiceprintProfileId: profile });
    expect(again.result!.decision).toBe(Decision.AUTHENTIC);
    expect(kept).toEqual([again.result!.gkProcessedAudioId!.value]);
  });

  test("processed audio of another model whose media is gone is NOT_FOUND", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const processed = await world.process(take(7, 4), false);
    const other = await world.open();
    await world.processor.stopSession({ context: world.context });
    const audio = { case: "gkProcessedAudioId", value: processed.gkProcessedAudioId! } as const;
    const ask = () => world.processor.verify({ context: other, audio, gkVoiceprintProfileId: profile });
    expect((await ask()).result!.decision).toBe(Decision.AUTHENTIC);
    world.engine.behavior.revision = "c".repeat(64);
    expect(await refusal(ask())).toMatchObject({ code: "NOT_FOUND", fields: ["gk_processed_audio_id unknown"] });
  });
});

describe("checkpoints", () => {
  test("a clear match ends processing at a checkpoint", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const result = await world.verify(profile, take(7, 20));
    expect(result.decision).toBe(Decision.AUTHENTIC);
    expect(world.engine.behavior.heardSeconds.at(-1)).toBe(2);
    expect(result.audioDetails!.grossAudio!.seconds).toBe(2n);
  });

  test("ignore_checkpoints reads the whole audio", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const result = await world.verify(profile, take(7, 20), { ignoreCheckpoints: true });
    expect(result.decision).toBe(Decision.AUTHENTIC);
    expect(world.engine.behavior.heardSeconds.at(-1)).toBe(20);
  });

  test("ignore_checkpoints reads the rest of audio whose earlier check ended at a checkpoint", async () => {
    const world = await openWorld();
    const gkVoiceprintProfileId = await world.trained(7);
    const ended = (await world.verify(gkVoiceprintProfileId, take(7, 20))).gkProcessedAudioId!;
    const verify = async (value: { value: string }, ignoreCheckpoints: boolean) => {
      const audio = { case: "gkProcessedAudioId", value } as const;
      const request = { context: world.context, audio, gkVoiceprintProfileId, ignoreCheckpoints };
      return (await world.processor.verify(request)).result!;
    };
    const usual = await verify(ended, false);
    expect(usual.gkProcessedAudioId).toEqual(ended);
    const whole = await verify(ended, true);
    expect(whole.gkProcessedAudioId).not.toEqual(ended);
    expect(whole.audioDetails!.grossAudio!.seconds).toBe(20n);
    expect((await verify(whole.gkProcessedAudioId!, true)).gkProcessedAudioId).toEqual(whole.gkProcessedAudioId);
  });

  test("without a match, all audio is processed", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const result = await world.verify(profile, take(9, 20));
    expect(result.decision).toBe(Decision.NO_MATCH);
    expect(world.engine.behavior.heardSeconds.at(-1)).toBe(20);
  });

  test("progress is reported every half second, or once for audio that is read in one go", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const audio = await world.heard(joined(silence(1), take(9, 2)));
    const progressOf = async (ignoreCheckpoints: boolean) => {
      const progress: (number | null)[][] = [];
      await world.processor.verify(
        { context: world.context, audio, gkVoiceprintProfileId: profile, ignoreCheckpoints },
        {
          onProgress: ({ netSpeechSeconds, grossSeconds, totalSeconds }) =>
            progress.push([netSpeechSeconds, grossSeconds, totalSeconds]),
        },
      );
      return progress;
    };
    expect(await progressOf(true)).toEqual([[2, 3, 3]]);
    expect(await progressOf(false)).toEqual([
      [0, 0.5, 3],
      [0, 1, 3],
      [0.5, 1.5, 3],
      [1, 2, 3],
      [1.048, 2.048, 3],
      [1.548, 2.548, 3],
      [2, 3, 3],
    ]);
  });

  test("an answer that needs more speech comes at a later checkpoint", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    world.engine.behavior.score = (raw, _, probe) => ({ raw, llr: 1.5 * probe.netSpeechSeconds, reliability: 1 });
    expect((await world.verify(profile, take(7, 20))).decision).toBe(Decision.AUTHENTIC);
    expect(Math.floor(world.engine.behavior.heardSeconds.at(-1)!)).toBe(5);
  });

  test("there is one look at each checkpoint, and one at the end", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const looks: number[] = [];
    world.engine.behavior.score = (raw, _, probe) => {
      looks.push(Math.round(probe.netSpeechSeconds));
      return { raw, llr: -1, reliability: 1 };
    };
    await world.verify(profile, take(9, 20));
    expect(looks).toEqual([2, 5, 20]);
  });

  test("fraud detection has its own checkpoints", async () => {
    const world = await openWorld();
    const profile = await world.trained(7, "fraudster");
    const target = { case: "gkVoiceprintProfileIds", value: list(profile) } as const;
    const audio = await world.heard(take(7, 20));
    const { result } = await world.processor.detectKnownFraudsters({ context: world.context, audio, target });
    expect(result!.decision).toBe(Decision.FRAUD);
    expect(Math.floor(world.engine.behavior.heardSeconds.at(-1)!)).toBe(5);
  });

  test("AnalyzeAudio continues after a match until fraud is checked as well", async () => {
    const world = await openWorld();
    const person = await world.trained(7);
    const fraudster = await world.trained(9, "fraudster");
    const audio = await world.heard(take(7, 8));
    const gkVoiceprintProfileIds = list(person, fraudster);
    const { result } = await world.processor.analyzeAudio({ context: world.context, audio, gkVoiceprintProfileIds });
    expect(result!.decision).toBe(Decision.AUTHENTIC);
    expect(result!.fraudDetectionResult!.decision).toBe(Decision.NO_RISK_DETECTED);
    expect(world.engine.behavior.heardSeconds.at(-1)).toBe(8);
  });

  test("AnalyzeAudio ends when a fraudster is found, although the person is not", async () => {
    const world = await openWorld();
    const both = list(await world.trained(9), await world.trained(7, "fraudster"));
    const audio = await world.heard(take(7, 20));
    const { result } = await world.processor.analyzeAudio({
      context: world.context,
      audio,
      gkVoiceprintProfileIds: both,
    });
    expect(result!.decision).toBe(Decision.FRAUD);
    expect(Math.floor(world.engine.behavior.heardSeconds.at(-1)!)).toBe(5);
  });

  test("AnalyzeAudio does not wait for a part that has nobody to compare with", async () => {
    const world = await openWorld();
    const both = list(await world.trained(7), await world.fraudster("not trained"));
    const audio = await world.heard(take(7, 20));
    const { result } = await world.processor.analyzeAudio({
      context: world.context,
      audio,
      gkVoiceprintProfileIds: both,
    });
    expect(result!.authenticationResult!.decision).toBe(Decision.AUTHENTIC);
    expect(world.engine.behavior.heardSeconds.at(-1)).toBe(2);
  });

  test("several speakers before a checkpoint: no early answer", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const result = await world.verify(profile, joined(take(7, 1.5), take(9, 1.5), take(7, 3)));
    expect(result).toMatchObject(outcome(Decision.UNCERTAIN, DecisionReason.LOW_RELIABILITY));
  });

  test("thresholds rise with the number of possible looks", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const rates: number[] = [];
    world.engine.behavior.threshold = (rate) => {
      rates.push(rate);
      return 1e9;
    };
    await world.verify(profile, take(7, 1.9));
    await world.verify(profile, take(7, 4));
    await world.verify(profile, take(7, 20), { ignoreCheckpoints: true });
    const alone = rates.slice(0, 1).concat(rates.slice(-1));
    for (const rate of alone) expect(rate).toBeCloseTo(0.01, 9 /* exactly the target */);
    const looks = rates.slice(1, -1);
    expect(looks).toHaveLength(2);
    for (const rate of looks) expect(1 - (1 - rate) ** 1.5).toBeCloseTo(0.01, 9 /* two looks together */);
  });
});

describe("AnalyzeAudio", () => {
  const ask = async (world: World, samples: Float32Array, request: object) => {
    const audio = await world.heard(samples);
    return (await world.processor.analyzeAudio({ context: world.context, audio, ...request })).result!;
  };

  test("parts that were not requested are absent", async () => {
    const world = await openWorld();
    const nothing = await ask(world, take(7, 4), {});
    expect(nothing).toMatchObject(outcome(Decision.UNSPECIFIED, DecisionReason.AUDIO_OK));
    expect(nothing.validity).toBe(AudioValidity.AUDIO_OK);
    for (const part of [
      nothing.authenticationResult,
      nothing.fraudDetectionResult,
      nothing.syntheticSpeechResult,
      nothing.channelPlaybackResult,
      nothing.riskEngineGlobalResult,
    ])
      expect(part).toBeUndefined();
    expect(nothing.calibrationModelDetails).toMatchObject({ calibrationModelId: "fixture-1" });
    expect(await ask(world, silence(4), {})).toMatchObject(outcome(Decision.UNCERTAIN, DecisionReason.AUDIO_TOO_SHORT));
  });

  test("FRAUD when the fraud part says so, whatever the person part says", async () => {
    const world = await openWorld();
    const both = list(await world.trained(7), await world.trained(7, "fraudster"));
    const result = await ask(world, take(7, 4), { gkVoiceprintProfileIds: both });
    expect(result).toMatchObject(outcome(Decision.FRAUD, DecisionReason.FRAUDSTER_INDICATION));
    expect(result.authenticationResult!.decision).toBe(Decision.AUTHENTIC);
    expect(result.authenticationResult!.numberOfPersonsPrints).toBe(1);
    expect(result.fraudDetectionResult!.numberOfFraudstersPrints).toBe(1);
    expect(result.riskEngineGlobalResult!.risk).toBeGreaterThan(500);
    expect(result.voiceprintResults).toHaveLength(2);
  });

  test.each([
    ["synthetic", "syntheticSpeechDetectionParameters", "syntheticSpeechResult", 8],
    ["playback", "channelPlaybackDetectionParameters", "channelPlaybackResult", 9],
  ] as const)("%s speech: FRAUD, no risk, uncertain", async (kind, parameter, part, reason) => {
    const world = await openWorld();
    const gkVoiceprintProfileIds = list(await world.trained(7));
    world.engine.behavior.attacks[kind] = 12;
    const attacked = await ask(world, take(7, 4), { gkVoiceprintProfileIds, [parameter]: {} });
    expect(attacked).toMatchObject(outcome(Decision.FRAUD, DecisionReason.FRAUDSTER_INDICATION));
    expect(attacked[part]).toMatchObject({ decision: Decision.FRAUD, reason, score: 12 });
    expect(attacked[part]!.gkCalibrationModelRevisionId!.value).toBe("b".repeat(64));
    world.engine.behavior.attacks[kind] = -12;
    const genuine = await ask(world, take(7, 4), { gkVoiceprintProfileIds, [parameter]: {} });
    expect(genuine).toMatchObject(outcome(Decision.AUTHENTIC, DecisionReason.VOICEPRINT_MATCH));
    expect(genuine[part]).toMatchObject({ decision: Decision.NO_RISK_DETECTED, reason: 1 });
    const alone = await ask(world, take(7, 4), { [parameter]: {} });
    expect(alone).toMatchObject(outcome(Decision.NO_RISK_DETECTED, DecisionReason.NO_RISK_DETECTED));
    const short = await ask(world, take(7, 0.6), { [parameter]: {} });
    expect(short[part]).toMatchObject({ decision: Decision.UNCERTAIN, reason: 4 });
    expect(short).toMatchObject(outcome(Decision.UNCERTAIN, DecisionReason.AUDIO_TOO_SHORT));
  });

  test("a single look for attacks has the whole false-alarm rate", async () => {
    const world = await openWorld();
    const threshold = world.engine.attackThreshold("synthetic", 0.01);
    for (const [llr, decision] of [
      [threshold + 0.01, Decision.FRAUD],
      [threshold - 0.01, Decision.UNCERTAIN],
    ] as const) {
      world.engine.behavior.attacks.synthetic = llr;
      // A part that has nobody to compare with looks at nothing.
      for (const more of [{}, { gkVoiceprintProfileIds: list(await world.person(`nobody ${llr}`)) }]) {
        const request = { syntheticSpeechDetectionParameters: {}, ...more };
        expect((await ask(world, take(7, 4), request)).syntheticSpeechResult!.decision).toBe(decision);
      }
    }
  });

  test("a requested check that cannot run is an error, never an absent part", async () => {
    const world = await openWorld();
    const request = { syntheticSpeechDetectionParameters: {} };
    expect(await refusal(ask(world, take(7, 4), request))).toMatchObject({ code: "NOT_IMPLEMENTED" });
    world.engine.behavior.attacks.synthetic = 1;
    world.engine.behavior.before = (operation) => {
      if (operation === "attack") throw new Error("out of order");
    };
    expect(await refusal(ask(world, take(7, 4), request))).toMatchObject({ code: "INTERNAL_ERROR" });
    world.engine.behavior.before = (operation) => {
      if (operation === "attack") throw new EngineError("QUEUE_FULL", "too many calls");
    };
    expect(await refusal(ask(world, take(7, 4), request))).toMatchObject({ code: "BUSY" });
    world.engine.behavior.before = () => {};
    for (const llr of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      world.engine.behavior.attacks.synthetic = llr;
      expect(await refusal(ask(world, take(7, 4), request))).toMatchObject({ code: "INTERNAL_ERROR" });
    }
    // Nothing is stored, so no decision is based on the parts that did run.
    expect(await world.store.sessions.checks("bank", world.context.gkSessionId.value)).toEqual([]);
  });

  test("attacks are found anywhere in the speech, however late, and the result says where", async () => {
    const world = await openWorld();
    world.engine.behavior.attacks.playback = -12;
    const { attackSeconds } = world.engine.behavior;
    const request = { channelPlaybackDetectionParameters: {} };
    for (const samples of [
      joined(silence(200), take(7, 5)),
      joined(silence(200), take(7, 100)),
      joined(silence(30), take(7, 5)),
    ]) {
      const { channelPlaybackResult } = await ask(world, samples, request);
      expect(channelPlaybackResult!.decision).toBe(Decision.NO_RISK_DETECTED);
      expect(channelPlaybackResult!.strongestStretch).toMatchObject({
        start: { seconds: 0n },
        end: { seconds: BigInt(samples.length / rateHz) },
        score: -12,
      });
    }
    expect(attackSeconds).toEqual([205, 300, 35]);
  });

  test("an attack check hears the selected channel, exactly up to the checkpoint that ended the call", async () => {
    const world = await openWorld();
    const { processor, context, engine, store } = world;
    engine.behavior.attacks.playback = -12;
    const audio = await world.heard([silence(20.3), joined(silence(0.3), take(7, 20))]);
    const { result } = await processor.analyzeAudio({
      context,
      audio,
      gkVoiceprintProfileIds: list(await world.trained(7)),
      channelSelector: { channel: 2 },
      channelPlaybackDetectionParameters: {},
    });
    // In silence it would be UNCERTAIN.
    expect(result!.channelPlaybackResult!.decision).toBe(Decision.NO_RISK_DETECTED);
    expect(new Set(engine.behavior.attackSeconds)).toEqual(new Set([2.3]));
    // An operator sees where the strongest sign was.
    const [check] = await store.sessions.checks("bank", context.gkSessionId.value);
    expect(check!.evidence).toMatchObject({ playbackStretchStart: 0, playbackStretchEnd: 2.3 });
  });

  test("an attack check without speech is UNCERTAIN and names no stretch", async () => {
    const world = await openWorld();
    world.engine.behavior.attacks.synthetic = 12;
    const { syntheticSpeechResult } = await ask(world, silence(4), { syntheticSpeechDetectionParameters: {} });
    expect(syntheticSpeechResult!.decision).toBe(Decision.UNCERTAIN);
    expect(syntheticSpeechResult!.strongestStretch).toBeUndefined();
  });

  test("an attack is found in audio that is too noisy to recognize anybody, but not without a second of speech", async () => {
    const world = await openWorld();
    world.engine.behavior.attacks.playback = 12;
    const decided = async (samples: Float32Array) =>
      (await ask(world, samples, { channelPlaybackDetectionParameters: {} })).channelPlaybackResult!.decision;
    expect(await decided(take(7, 4, { noisy: 4 }))).toBe(Decision.FRAUD);
    // A siren or a crow may sound as if it were played by a loudspeaker.
    expect(await decided(take(7, 0.6))).toBe(Decision.UNCERTAIN);
  });

  test("the session lists each check with its person, or else with its fraudster", async () => {
    const world = await openWorld();
    const [person, fraudster] = [await world.trained(7), await world.trained(9, "fraudster")];
    await ask(world, take(7, 4), { gkVoiceprintProfileIds: list(person, fraudster) });
    await ask(world, take(7, 4.1), { gkVoiceprintProfileIds: list(fraudster) });
    await ask(world, take(7, 4.2), {});
    const { result } = await world.processor.getSessionDecision({ context: world.context });
    expect(result!.checks.map(({ gkVoiceprintProfileId }) => gkVoiceprintProfileId?.value)).toEqual([
      person.value,
      fraudster.value,
      undefined,
    ]);
  });

  test("audio that can no longer be read fails the check, even if its stored voice matches", async () => {
    let readable = true;
    const world = await openWorld({
      readRecording: (bytes, format) => {
        if (readable) return readRecording(bytes, format);
        throw new Error("no audio any more");
      },
    });
    world.engine.behavior.attacks.playback = -12;
    const gkVoiceprintProfileIds = list(await world.trained(7));
    const processed = await world.process(take(7, 4), false);
    const audio = { case: "gkProcessedAudioId", value: processed.gkProcessedAudioId! } as const;
    const request = { context: world.context, audio, gkVoiceprintProfileIds };
    readable = false;
    const without = await world.processor.analyzeAudio(request);
    expect(without.result!.decision).toBe(Decision.AUTHENTIC);
    const call = world.processor.analyzeAudio({ ...request, channelPlaybackDetectionParameters: {} });
    expect(await refusal(call)).toMatchObject({ code: "INTERNAL_ERROR" });
  });

  test("an attack check with too little speech says so and lowers the reliability", async () => {
    const world = await openWorld();
    const gkVoiceprintProfileIds = list(await world.trained(7));
    const request = { gkVoiceprintProfileIds, syntheticSpeechDetectionParameters: {} };
    world.engine.behavior.attacks.synthetic = 0;
    world.engine.behavior.attackReliability = 0;
    const unsure = await ask(world, take(7, 4), request);
    expect(unsure.syntheticSpeechResult).toMatchObject({ decision: Decision.UNCERTAIN, reason: 10 });
    expect(unsure.syntheticSpeechResult!.riskEngineResult!.reliability).toBe(0);
    expect(unsure.decision).toBe(Decision.AUTHENTIC);
    expect(unsure.riskEngineGlobalResult!.reliability).toBe(0);
    const alone = await ask(world, take(7, 4), { syntheticSpeechDetectionParameters: {} });
    expect(alone).toMatchObject(outcome(Decision.UNCERTAIN, DecisionReason.LOW_RELIABILITY));
    world.engine.behavior.attackReliability = 1;
    world.engine.behavior.attacks.synthetic = -12;
    const sure = await ask(world, take(7, 4), request);
    expect(sure.riskEngineGlobalResult!.reliability).toBe(100);
  });

  test("one strong sign of an attack decides the session, whatever comes before and after", async () => {
    const world = await openWorld();
    const gkVoiceprintProfileIds = list(await world.trained(7));
    for (const llr of [-12, 12, -12]) {
      world.engine.behavior.attacks.playback = llr;
      await ask(world, take(7, 4), { gkVoiceprintProfileIds, channelPlaybackDetectionParameters: {} });
    }
    const { result } = await world.processor.getSessionDecision({ context: world.context });
    expect(result).toMatchObject(outcome(Decision.FRAUD, DecisionReason.FRAUDSTER_INDICATION));
    expect(result!.riskEngineResult!.risk).toBeGreaterThan(500);
  });

  test("attacks in processed audio need its media", async () => {
    const world = await openWorld();
    world.engine.behavior.attacks.playback = -12;
    const processed = await world.process(take(7, 4), false);
    const audio = { case: "gkProcessedAudioId", value: processed.gkProcessedAudioId! } as const;
    const request = { audio, channelPlaybackDetectionParameters: {} };
    const kept = await world.processor.analyzeAudio({ context: world.context, ...request });
    expect(kept.result!.channelPlaybackResult!.decision).toBe(Decision.NO_RISK_DETECTED);
    const context = await world.open();
    await world.processor.stopSession({ context: world.context });
    expect(await refusal(world.processor.analyzeAudio({ context, ...request }))).toMatchObject({ code: "NOT_FOUND" });
  });

  test("a group and single ids are searched together, each print once", async () => {
    const world = await openWorld();
    const { context } = world;
    const [one, two] = [await world.trained(7), await world.trained(9)];
    const group = {
      uniqueId: (await world.processor.createGroup({ context, gkVoiceprintProfileIds: list(one) })).gkGroupId!,
    };
    const result = await ask(world, take(9, 4), { group, gkVoiceprintProfileIds: list(one, two) });
    expect(result.authenticationResult).toMatchObject({ decision: Decision.AUTHENTIC, numberOfPersonsPrints: 2 });
  });
});

describe("cancelling", () => {
  test("a cancelled call ends as CANCELLED, and nothing is stored", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const audio = await world.heard(take(9, 20));
    const controller = new AbortController();
    const call = world.processor.verify(
      { context: world.context, audio, gkVoiceprintProfileId: profile },
      { signal: controller.signal, onProgress: ({ grossSeconds }) => grossSeconds > 3 && controller.abort("enough") },
    );
    expect(await refusal(call)).toMatchObject({ code: "CANCELLED" });
    expect(await world.store.sessions.checks("bank", world.context.gkSessionId.value)).toEqual([]);
  });

  test.each(["analyze", "score", "attack"] as const)(
    "an engine that fails in %s because the caller left: CANCELLED, and nothing is stored",
    async (at) => {
      const world = await openWorld();
      const { processor, context, engine, store } = world;
      engine.behavior.attacks.synthetic = -12;
      const gkVoiceprintProfileIds = list(await world.trained(7));
      const audio = await world.heard(take(7, 4));
      const controller = new AbortController();
      engine.behavior.before = (operation) => {
        if (operation !== at) return;
        controller.abort();
        throw new Error("the worker was ended");
      };
      const request = { context, audio, gkVoiceprintProfileIds, syntheticSpeechDetectionParameters: {} };
      const call = processor.analyzeAudio(request, { signal: controller.signal });
      expect(await refusal(call)).toMatchObject({ code: "CANCELLED" });
      expect(await store.sessions.checks("bank", context.gkSessionId.value)).toEqual([]);
    },
  );

  test("an attack check reads no more audio after the caller left", async () => {
    const world = await openWorld();
    const { processor, context, engine } = world;
    engine.behavior.attacks.synthetic = -12;
    const audio = await world.heard(take(7, 20));
    const controller = new AbortController();
    let pushed = 0;
    const { attackStream } = engine;
    engine.attackStream = async (...given) => {
      const stream = await attackStream.call(engine, ...given);
      return {
        ...stream,
        push: async () => {
          pushed++;
          controller.abort();
        },
      };
    };
    const request = { context, audio, syntheticSpeechDetectionParameters: {} };
    expect(await refusal(processor.analyzeAudio(request, { signal: controller.signal }))).toMatchObject({
      code: "CANCELLED",
    });
    expect(pushed).toBe(1);
  });

  test.each(["analyze", "score"] as const)("an engine that is busy in %s: BUSY, and nothing is stored", async (at) => {
    const world = await openWorld();
    const profile = await world.trained(7);
    world.engine.behavior.before = (operation) => {
      if (operation === at) throw new EngineError("QUEUE_FULL", "too many calls");
    };
    expect(await refusal(world.verify(profile, take(7, 4)))).toMatchObject({ code: "BUSY" });
    expect(await world.store.sessions.checks("bank", world.context.gkSessionId.value)).toEqual([]);
  });

  test("a timeout ends as DEADLINE_EXCEEDED, a full queue as BUSY", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const request = { context: world.context, audio: await world.heard(take(7, 4)), gkVoiceprintProfileId: profile };
    const late = AbortSignal.abort(new DOMException("late", "TimeoutError"));
    expect(await refusal(world.processor.verify(request, { signal: late }))).toMatchObject({
      code: "DEADLINE_EXCEEDED",
    });
    world.engine.behavior.before = () => {
      throw Object.assign(new Error("full"), { code: "QUEUE_FULL", retryAfterMs: 2500 });
    };
    expect(await refusal(world.processor.verify(request))).toMatchObject({ code: "BUSY" });
  });

  test.each([0, -5])("a call with %d ms left ends as DEADLINE_EXCEEDED, and nothing is stored", async (timeoutMs) => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const request = { context: world.context, audio: await world.heard(take(7, 4)), gkVoiceprintProfileId: profile };
    expect(await refusal(world.processor.verify(request, { timeoutMs }))).toMatchObject({ code: "DEADLINE_EXCEEDED" });
    expect(await world.store.sessions.checks("bank", world.context.gkSessionId.value)).toEqual([]);
  });

  test.each([2 ** 31, Number.POSITIVE_INFINITY])("a timeout of %d ms does not expire at once", async (timeoutMs) => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const request = { context: world.context, audio: await world.heard(take(7, 4)), gkVoiceprintProfileId: profile };
    const { stream } = world.engine;
    world.engine.stream = async (...given) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return stream(...given);
    };
    expect((await world.processor.verify(request, { timeoutMs })).result!.decision).toBe(Decision.AUTHENTIC);
  });

  test("the engine gets the time limit of the call, and none if there is none", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const audio = await world.heard(take(7, 4));
    const limits: unknown[] = [];
    const { analyze } = world.engine;
    world.engine.analyze = (samples, rate, options) => {
      limits.push(options && "timeoutMs" in options ? options.timeoutMs : "none");
      return analyze(samples, rate, options);
    };
    const request = { context: world.context, audio, gkVoiceprintProfileId: profile, ignoreCheckpoints: true };
    await world.processor.verify(request, { timeoutMs: 60_000 });
    await world.processor.verify(request);
    expect(limits).toEqual([60_000, "none"]);
  });

  test("the request id is returned in responses and in errors", async () => {
    const world = await openWorld();
    const { context } = world;
    const profile = await world.person("alice");
    const request = { context, gkVoiceprintProfileId: profile };
    const answer = await world.processor.getEnrollStatus(request, { requestId: "r-1" });
    expect(answer.status!.requestId).toBe("r-1");
    const call = world.processor.verify({ context, gkVoiceprintProfileId: profile }, { requestId: "r-2" });
    expect(await refusal(call)).toMatchObject({ requestId: "r-2", fields: ["audio missing"] });
    const silent = async function* () {};
    expect(await refusal(world.processor.listen(silent(), { requestId: "r-3" }).next())).toMatchObject({
      requestId: "r-3",
    });
  });
});

test("two channels can be checked separately", async () => {
  const world = await openWorld();
  const profile = await world.trained(7);
  const { gkMediaSegmentId } = await world.processor.addMediaSegment({
    context: world.context,
    encoding: "pcm16",
    rate: rateHz,
    channels: 2,
    chunk: pcm16([take(9, 4), take(7, 4)]),
  });
  const ask = async (channel: number) => {
    const { result } = await world.processor.verify({
      context: world.context,
      audio: { case: "gkMediaSegmentId", value: gkMediaSegmentId! },
      gkVoiceprintProfileId: profile,
      channelSelector: { channel },
    });
    return result!.decision;
  };
  expect(await ask(1)).toBe(Decision.NO_MATCH);
  expect(await ask(2)).toBe(Decision.AUTHENTIC);
});
