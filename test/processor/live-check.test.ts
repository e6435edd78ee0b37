import { describe, expect, test, vi } from "vitest";
import { AudioValidity, Decision, DecisionReason, EnrollStatus, TrainStatus } from "../../src/contract/index.js";
import { FieldRates } from "../../src/processor/field-rates.js";
import { StoreError } from "../../src/store/errors.js";
import { joined, rateHz, silence, take } from "./fixture-engine.js";
import { list, openWorld, pcm16, refusal, type World } from "./world.js";

const chunks = (samples: Float32Array) =>
  Array.from({ length: Math.ceil(samples.length / 2000) }, (_, i) => samples.slice(i * 2000, (i + 1) * 2000));

const listen = async (world: World, ...profiles: { value: string }[]) =>
  world.processor.openLiveAnalysis({ context: world.context, gkVoiceprintProfileIds: list(...profiles), rateHz });

describe("a live enrollment", () => {
  test("stores exactly the samples that it processed", async () => {
    const world = await openWorld();
    const kept = vi.spyOn(world.store.media, "add");
    const profile = await world.person("live");
    const request = { context: world.context, gkVoiceprintProfileId: profile, rateHz };
    const enrollment = await world.processor.openLiveEnrollment(request);
    const said = take(7, 2);
    for (const chunk of chunks(said)) await enrollment.push(chunk);
    await enrollment.finish();
    expect(kept.mock.calls.map(([{ audio }]) => audio)).toEqual([pcm16([said])]);
  });

  test("is the same whether or not each chunk is waited for", async () => {
    const enrolled = async (waits: boolean) => {
      const world = await openWorld();
      const kept = vi.spyOn(world.store.media, "add");
      const request = { context: world.context, gkVoiceprintProfileId: await world.person("live"), rateHz };
      const enrollment = await world.processor.openLiveEnrollment(request);
      const pushed: Promise<unknown>[] = [];
      for (const chunk of chunks(joined(take(7, 4), silence(1), take(7, 12)))) {
        pushed.push(enrollment.push(chunk));
        if (waits) await pushed.at(-1);
      }
      await Promise.all(pushed);
      const { case: task, value } = await enrollment.finish();
      return { task, value, audio: kept.mock.calls.map(([{ audio }]) => audio) };
    };
    const { task, value, audio } = await enrolled(false);
    expect([task, value]).toMatchObject([
      "enroll",
      { enrolledSegments: 3, enrollStatus: EnrollStatus.TRAIN_SUGGESTED },
    ]);
    expect(audio).toEqual((await enrolled(true)).audio);
  });

  test("takes no more audio after it is closed or has failed", async () => {
    const world = await openWorld();
    const request = { context: world.context, gkVoiceprintProfileId: await world.person("live"), rateHz };
    const closed = await world.processor.openLiveEnrollment(request);
    await closed.close();
    expect(await refusal(closed.push(take(7, 1)))).toMatchObject({ fields: ["audio closed"] });
    const leaving = new AbortController();
    const cancelled = await world.processor.openLiveEnrollment(request, { signal: leaving.signal });
    leaving.abort();
    expect(await refusal(cancelled.push(take(7, 1)))).toMatchObject({ code: "CANCELLED" });
    expect(await refusal(cancelled.finish())).toMatchObject({ fields: ["audio closed"] });
  });

  test("of a full print adds no segment and says so", async () => {
    const world = await openWorld({ configurationSets: { tiny: { maxEnrollmentSegments: 3 } } });
    const profile = await world.person("full");
    const before = await world.open("tiny");
    for (const seconds of [2, 2.1, 2.2]) await world.enroll(profile, take(7, seconds), before);
    const context = await world.open("tiny");
    const enrollment = await world.processor.openLiveEnrollment({ context, gkVoiceprintProfileId: profile, rateHz });
    await enrollment.push(take(7, 2.3));
    expect(await enrollment.finish()).toMatchObject({
      value: { enrollStatus: EnrollStatus.FULL, enrolledSegments: 0 },
    });
    expect(await world.store.profiles.segments("bank", profile.value)).toHaveLength(3);
  });

  test("errors contain the request id: the caller's, or a generated one", async () => {
    const { processor, context } = await openWorld();
    const unknown = { context, gkVoiceprintProfileId: { value: "nobody" }, rateHz };
    expect((await refusal(processor.openLiveEnrollment(unknown, { requestId: "r-7" }))).requestId).toBe("r-7");
    expect((await refusal(processor.openLiveEnrollment(unknown))).requestId).not.toBe("");
  });
});

const away = () => Promise.reject(new StoreError("unavailable", "the database does not answer"));

test("a live enrollment survives a database that is away, wherever it finds out", async () => {
  const enrolled = async (where: (world: World) => void) => {
    const world = await openWorld();
    const request = { context: world.context, gkVoiceprintProfileId: await world.person("live"), rateHz };
    const enrollment = await world.processor.openLiveEnrollment(request);
    where(world);
    vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
    const pushed = enrollment.push(joined(take(7, 4), silence(1), take(7, 12)));
    for (let second = 0; second < 10; second++) await vi.advanceTimersByTimeAsync(1000);
    vi.useRealTimers();
    await pushed;
    const { value } = await enrollment.finish();
    const { gkScopeId, gkSessionId } = world.context;
    const of = [gkScopeId!.value!, gkSessionId!.value!] as const;
    return {
      value,
      media: (await world.store.media.ofSession(...of)).length,
      models: (await world.store.processed.ofSession(...of)).length,
    };
  };
  const undisturbed = await enrolled(() => {});
  expect(undisturbed).toMatchObject({ value: { training: { trainStatus: TrainStatus.TRAINED } } });
  const places: ((world: World) => void)[] = [
    ({ store }) => vi.spyOn(store.sessions, "get").mockImplementationOnce(away),
    ({ store }) => vi.spyOn(store.profiles, "addSegment").mockImplementationOnce(away),
    ({ store }) => {
      const { addSegment } = store.profiles;
      // The segment is stored, and the answer lost.
      vi.spyOn(store.profiles, "addSegment").mockImplementationOnce((...given) => addSegment(...given).then(away));
    },
    ({ store }) => vi.spyOn(store.media, "add").mockImplementationOnce(away),
    ({ store }) => vi.spyOn(store.processed, "add").mockImplementationOnce(away),
    ({ store }) => vi.spyOn(store.profiles, "train").mockImplementationOnce(away),
  ];
  const statusOf = ({ value, media, models }: Awaited<ReturnType<typeof enrolled>>) => [
    value?.enrollStatus,
    value?.enrolledSegments,
    value?.training?.trainStatus,
    media,
    models,
  ];
  for (const place of places) expect(statusOf(await enrolled(place))).toEqual(statusOf(undisturbed));
});

describe("a live check while the database is away", () => {
  test("goes on, and decides at a later checkpoint or at the end of the call", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    for (const seconds of [4, 6]) {
      const check = await listen(world, profile);
      const version = vi.spyOn(world.store.profiles, "printsVersion").mockImplementation(away);
      for (const chunk of chunks(take(7, 3))) expect((await check.push(chunk)).result).toBeNull();
      version.mockRestore();
      let early = null;
      for (const chunk of chunks(take(7, seconds - 3))) ({ result: early } = await check.push(chunk));
      // The next checkpoint needs 5 s.
      expect(early !== null).toBe(seconds > 5);
      expect(await check.finish()).toMatchObject({ decision: Decision.AUTHENTIC });
    }
  });

  test("keeps a decision that it cannot store, counts it once, and gives it when it is stored", async () => {
    const world = await openWorld();
    const check = await listen(world, await world.trained(7), await world.trained(8));
    const counted = vi.spyOn(FieldRates.prototype, "count");
    const add = vi.spyOn(world.store.sessions, "addCheck").mockImplementation(away);
    for (const chunk of chunks(take(7, 3))) expect((await check.push(chunk)).result).toBeNull();
    expect((await check.measures()).netSpeechSeconds).toBeLessThan(3);
    add.mockRestore();
    // The decision is that of the checkpoint: what came after it is not part of it.
    expect((await check.push(take(9, 1))).result).toMatchObject({ decision: Decision.AUTHENTIC });
    expect(counted).toHaveBeenCalledOnce();
    expect(await world.store.sessions.checks("bank", world.context.gkSessionId.value)).toHaveLength(1);
  });

  test("waits for it at the end of the call, for a minute", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const ended = async (failures: number, signal?: AbortSignal, failure = away) => {
      const request = { context: world.context, gkVoiceprintProfileIds: list(profile), rateHz };
      const check = await world.processor.openLiveAnalysis(request, signal ? { signal } : {});
      await check.push(take(7, 1.5));
      const add = vi.spyOn(world.store.sessions, "addCheck");
      for (let n = 0; n < failures; n++) add.mockImplementationOnce(failure);
      vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
      const result = check.finish();
      result.catch(() => {});
      for (let second = 0; second < 100; second++) await vi.advanceTimersByTimeAsync(1000);
      vi.useRealTimers();
      add.mockRestore();
      return result;
    };
    expect(await ended(60)).toMatchObject({ decision: Decision.AUTHENTIC });
    expect(await refusal(ended(61))).toMatchObject({ code: "BUSY" });
    expect(await refusal(ended(5, AbortSignal.abort()))).toMatchObject({ code: "CANCELLED" });
    // A database that takes half a minute for each answer.
    const frozen = () => new Promise<void>((resume) => setTimeout(resume, 30_000)).then(away);
    expect(await refusal(ended(60, undefined, frozen))).toMatchObject({ code: "BUSY" });
  });

  test("stores its decision once, although the answer to the first attempt was lost", async () => {
    const world = await openWorld();
    const check = await listen(world, await world.trained(7));
    const { addCheck } = world.store.sessions;
    vi.spyOn(world.store.sessions, "addCheck").mockImplementationOnce(async (...given) => {
      await addCheck(...given);
      return away();
    });
    for (const chunk of chunks(take(7, 3))) await check.push(chunk);
    expect(await check.finish()).toMatchObject({ decision: Decision.AUTHENTIC });
    expect(await world.store.sessions.checks("bank", world.context.gkSessionId.value)).toHaveLength(1);
  });
});

describe("a live check", () => {
  test("is closed when the engine has failed", async () => {
    const world = await openWorld();
    const check = await listen(world, await world.trained(7));
    const { behavior } = world.engine;
    behavior.heardSeconds.length = 0;
    behavior.before = () => {
      throw new Error("out of order");
    };
    expect(await refusal(check.push(take(7, 4)))).toMatchObject({ code: "INTERNAL_ERROR" });
    expect(behavior.heardSeconds).toEqual([2]);
    const closed = { code: "INVALID_REQUEST", fields: ["audio closed"] };
    expect(await refusal(check.push(take(7, 4)))).toMatchObject(closed);
    expect(await refusal(check.finish())).toMatchObject(closed);
  });

  test("answers at the first checkpoint with a clear match, and ignores further audio", async () => {
    const world = await openWorld();
    const check = await listen(world, await world.trained(7));
    let pushed = 0;
    let state = await check.push(take(7, 0.1));
    for (const chunk of chunks(take(7, 20))) {
      state = await check.push(chunk);
      pushed++;
      if (state.result) break;
    }
    expect(state.result).toMatchObject({ decision: Decision.AUTHENTIC, validity: AudioValidity.AUDIO_OK });
    expect(pushed * 0.25).toBeLessThan(2.3);
    const late = await check.push(take(9, 5));
    expect(late.result).toBe(state.result);
    expect(await check.finish()).toBe(state.result);
    // The engine is free since the answer, once.
    await check.close();
    expect(world.engine.behavior.heardSeconds.filter((heard) => heard === 2)).toEqual([2]);
    const { result } = await world.processor.getSessionDecision({ context: world.context });
    expect(result).toMatchObject({ decision: Decision.AUTHENTIC });
    expect(result!.checks.map((one) => one.operation)).toEqual(["Listen"]);
    // The decision is that of its only check.
    expect(result!.checks[0]!.riskEngineResult).toEqual(result!.riskEngineResult);
    expect(result!.riskEngineResult).toBeDefined();
  });

  test("answers at the end if it could not earlier; chunks keep their order without waiting", async () => {
    const world = await openWorld();
    const check = await listen(world, await world.trained(7));
    const states = chunks(take(9, 6)).map((chunk) => check.push(chunk));
    expect(check.score).toBeNull();
    const answer = await check.finish();
    expect(check.score).not.toBeNull();
    expect((await Promise.all(states)).every((state) => state.result === null)).toBe(true);
    expect(answer).toMatchObject({ decision: Decision.NO_MATCH, reason: DecisionReason.VOICEPRINT_NO_MATCH });
    expect(answer.audioDetails!.grossAudio!.seconds).toBe(6n);
  });

  test("watches for fraudsters at the same time", async () => {
    const world = await openWorld();
    const check = await listen(world, await world.trained(7), await world.trained(7, "fraudster"));
    for (const chunk of chunks(take(7, 12))) if ((await check.push(chunk)).result) break;
    expect((await check.finish()).decision).toBe(Decision.FRAUD);
  });

  test("is rejected if a mandatory field is missing", async () => {
    const { processor, context } = await openWorld();
    const unnamed = { context: { gkScopeId: context.gkScopeId }, rateHz };
    expect(await refusal(processor.openLiveAnalysis(unnamed))).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["context.gk_engagement_id missing", "context.gk_session_id missing", "context.configset_id missing"],
    });
  });

  test("is UNCERTAIN with too little speech", async () => {
    const world = await openWorld();
    const check = await listen(world, await world.trained(7));
    await check.push(take(7, 0.4));
    expect(await check.finish()).toMatchObject({
      decision: Decision.UNCERTAIN,
      reason: DecisionReason.AUDIO_TOO_SHORT,
    });
  });

  test("checks the processed audio for attacks: with an answer, with a failure, and without the check", async () => {
    const world = await openWorld();
    const gkVoiceprintProfileIds = list(await world.trained(7));
    const open = () =>
      world.processor.openLiveAnalysis({
        context: world.context,
        gkVoiceprintProfileIds,
        rateHz,
        syntheticSpeechDetectionParameters: {},
      });
    const hear = async (samples: Float32Array) => {
      const check = await open();
      for (const chunk of chunks(samples)) if ((await check.push(chunk)).result) break;
      return check.finish();
    };
    expect(await refusal(open())).toMatchObject({ code: "NOT_IMPLEMENTED" });
    world.engine.behavior.attacks.synthetic = 12;
    const attacked = await hear(take(7, 20));
    expect(attacked).toMatchObject({ decision: Decision.FRAUD, reason: DecisionReason.FRAUDSTER_INDICATION });
    expect(attacked.authenticationResult!.decision).toBe(Decision.AUTHENTIC);
    expect(attacked.syntheticSpeechResult).toMatchObject({ decision: Decision.FRAUD, reason: 8 });
    expect(attacked.channelPlaybackResult).toBeUndefined();
    // The audio up to the early answer; for a long call, all audio.
    expect(world.engine.behavior.attackSeconds).toEqual([2]);
    world.engine.behavior.attacks.synthetic = -12;
    expect((await hear(take(9, 70))).syntheticSpeechResult!.decision).toBe(Decision.NO_RISK_DETECTED);
    expect(world.engine.behavior.attackSeconds).toEqual([2, 70]);
    world.engine.behavior.before = (operation) => {
      if (operation === "attack") throw new Error("out of order");
    };
    expect(await refusal(hear(take(7, 4)))).toMatchObject({ code: "INTERNAL_ERROR" });
  });

  test("continues after a clear match until the attack check is certain or has eight seconds of speech", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const { behavior } = world.engine;
    const request = {
      context: world.context,
      gkVoiceprintProfileIds: list(profile),
      syntheticSpeechDetectionParameters: {},
    };
    const live = async () => {
      const check = await world.processor.openLiveAnalysis({ ...request, rateHz });
      for (const chunk of chunks(take(7, 20))) if ((await check.push(chunk)).result) break;
      return Number((await check.finish()).audioDetails!.grossAudio!.seconds);
    };
    const recorded = async () => {
      const audio = await world.heard(take(7, 20));
      const { result } = await world.processor.analyzeAudio({ ...request, audio });
      return Number(result!.audioDetails!.grossAudio!.seconds);
    };
    for (const [llr, heard] of [
      [-12, 2],
      [12, 2],
      [1, 8],
    ] as const) {
      behavior.attacks.synthetic = llr;
      expect([await live(), await recorded()]).toEqual([heard, heard]);
    }
  });

  test("finds attacks anywhere in the speech, however late", async () => {
    const world = await openWorld();
    world.engine.behavior.attacks.synthetic = -12;
    const hear = async (samples: Float32Array, pushed: (samples: Float32Array) => Float32Array[]) => {
      const check = await world.processor.openLiveAnalysis({
        context: world.context,
        rateHz,
        syntheticSpeechDetectionParameters: {},
      });
      for (const chunk of pushed(samples)) await check.push(chunk);
      return (await check.finish()).syntheticSpeechResult!.decision;
    };
    const late = joined(silence(200), take(7, 5));
    const { attackSeconds } = world.engine.behavior;
    expect(await hear(late, chunks)).toBe(Decision.NO_RISK_DETECTED);
    expect(await hear(late, (whole) => [whole])).toBe(Decision.NO_RISK_DETECTED);
    expect(await hear(joined(late, take(7, 100)), chunks)).toBe(Decision.NO_RISK_DETECTED);
    expect(await hear(joined(silence(30), take(7, 5)), chunks)).toBe(Decision.NO_RISK_DETECTED);
    expect(attackSeconds).toEqual([205, 205, 305, 35]);
  });

  test("does not score a person who is erased while it listens", async () => {
    const world = await openWorld();
    const { processor, context } = world;
    const profile = await world.trained(7);
    const check = await listen(world, profile);
    await check.push(take(7, 1.5));
    await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: profile });
    const scored = world.engine.behavior.scoredAgainst.length;
    await check.push(take(7, 1.5));
    expect(await check.finish()).toMatchObject({ decision: Decision.FAILED, reason: DecisionReason.NO_SCORES });
    expect(world.engine.behavior.scoredAgainst.slice(scored).every((templates) => templates === 0)).toBe(true);
  });

  test("is rejected and cancelled like other calls", async () => {
    const world = await openWorld();
    const profile = await world.trained(7);
    const open = (request: object) =>
      world.processor.openLiveAnalysis({
        context: world.context,
        gkVoiceprintProfileIds: list(profile),
        rateHz,
        ...request,
      });
    expect(await refusal(open({ context: {} }))).toMatchObject({ code: "INVALID_REQUEST" });
    for (const rate of [17, 8000.5, Number.NaN])
      expect(await refusal(open({ rateHz: rate }))).toMatchObject({ fields: ["rate out_of_range"] });
    expect(await refusal(open({ gkVoiceprintProfileIds: list({ value: world.ids.next() }) }))).toMatchObject({
      code: "NOT_FOUND",
    });
    const check = await open({});
    await check.close();
    expect(await refusal(check.push(take(7, 1)))).toMatchObject({ code: "INVALID_REQUEST" });
    const given = new AbortController();
    const aborted = await world.processor.openLiveAnalysis(
      { context: world.context, gkVoiceprintProfileIds: list(profile), rateHz },
      { signal: given.signal },
    );
    given.abort();
    expect(await refusal(aborted.push(take(7, 1)))).toMatchObject({ code: "CANCELLED" });
  });
});
