/** A live call in process: what its messages must be, what it reports and when, and when it ends. */
import { describe, expect, test, vi } from "vitest";
import { ConsentState, Decision, EnrollStatus, TrainReason } from "../../src/contract/index.js";
import type { LiveOptions } from "../../src/contract/operations.js";
import { joined, rateHz, silence, take } from "./fixture-engine.js";
import { list, openWorld, pcm16, refusal, type World } from "./world.js";

type Request = Parameters<World["processor"]["listen"]>[0] extends AsyncIterable<infer T> ? T : never;
type Start = Extract<NonNullable<Request["content"]>, { case: "start" }>["value"];

const audio = (...channels: Float32Array[]): Request => ({ content: { case: "audio", value: pcm16(channels) } });
/** Messages of this many seconds each. */
const packets = (samples: Float32Array, seconds: number): Request[] => {
  const size = Math.round(seconds * rateHz);
  return Array.from({ length: Math.ceil(samples.length / size) }, (_, i) =>
    audio(samples.slice(i * size, (i + 1) * size)),
  );
};

async function opened() {
  const world = await openWorld();
  const profile = await world.trained(100);
  const verify = { name: "caller", task: { case: "verify", value: { gkVoiceprintProfileId: profile } } } as const;
  /** The events of a call, and how many of its messages were read. */
  const call = async (start: Partial<Start>, requests: readonly Request[], options: LiveOptions = {}) => {
    const events = [];
    const read = { messages: 0, isClosed: false };
    const sent = async function* (): AsyncGenerator<Request> {
      const format = { context: world.context, encoding: "pcm16", rate: rateHz, channels: 1, parties: [verify] };
      try {
        yield { content: { case: "start", value: { ...format, ...start } as Start } };
        for (const request of requests) {
          read.messages++;
          yield request;
        }
      } finally {
        read.isClosed = true;
      }
    };
    for await (const { party, event } of world.processor.listen(sent(), options)) events.push({ party, ...event });
    return { events, ...read };
  };
  return { world, profile, verify, call };
}

type Time = { readonly seconds: bigint; readonly nanos: number } | undefined;
const seconds = (time: Time) => Number(time!.seconds) + time!.nanos / 1e9;

describe("is refused", () => {
  test.each<[string, Partial<Start>, Request[], string]>([
    [
      "a negative number of lost samples",
      {},
      [{ content: { case: "lostSamples", value: -1 } }],
      "lost_samples out_of_range",
    ],
    ["a message without content", {}, [{}], "content missing"],
    ["a rate below 8,000 Hz", { rate: 7999 }, [], "start.rate out_of_range"],
    ["a rate above 48,000 Hz", { rate: 48_001 }, [], "start.rate out_of_range"],
    ["three channels", { channels: 3 }, [], "start.channels out_of_range"],
  ])("%s", async (_, start, requests, field) => {
    const { call } = await opened();
    expect(await refusal(call(start, requests))).toMatchObject({ code: "INVALID_REQUEST", fields: [field] });
  });

  test("more than two parties, and a channel that the audio does not have", async () => {
    const { call, verify } = await opened();
    const named = (...names: string[]) => names.map((name) => ({ ...verify, name }));
    const refused = async (parties: Start["parties"], channels = 1) =>
      (await refusal(call({ parties: parties!, channels }, []))).fields;
    expect(await refused(named("a", "b", "c"))).toEqual(["start.parties too_many"]);
    for (const channel of [-1, 3])
      expect(await refused([verify, { ...verify, name: "other", channelSelector: { channel } }], 2)).toEqual([
        "start.parties[1].channel_selector.channel out_of_range",
      ]);
    const both = [
      { ...verify, channelSelector: { channel: 1 } },
      { ...verify, name: "b", channelSelector: { channel: 2 } },
    ];
    expect((await call({ parties: both, channels: 2 }, [])).events[0]).toMatchObject({ case: "started" });
  });

  test("a sample that is not a number", async () => {
    const { call } = await opened();
    const bytes = new Uint8Array(Float32Array.of(0.1, Number.NaN).buffer);
    const sent = () => call({ encoding: "float32" }, [{ content: { case: "audio", value: bytes } }]);
    expect(await refusal(sent())).toMatchObject({ code: "INVALID_REQUEST", fields: ["audio not_audio"] });
    await expect(sent()).rejects.toThrow("a sample that is not a finite number: NaN");
  });

  test("voices are not separated for an enrollment", async () => {
    const { call, profile } = await opened();
    const task = { case: "enroll", value: { gkVoiceprintProfileId: profile } } as const;
    const parties = [{ name: "caller", task, channelSelector: { voiceSeparation: {} } }];
    expect((await refusal(call({ parties }, []))).fields).toEqual([
      "start.parties[0].channel_selector.voice_separation not_allowed",
    ]);
  });

  test("after the caller left, whatever the next message is: nothing more is reported, and the engine is free", async () => {
    const { world, verify } = await opened();
    const { heardSeconds } = world.engine.behavior;
    const before = heardSeconds.length;
    const leaving = new AbortController();
    const sent = async function* (): AsyncGenerator<Request> {
      const format = { context: world.context, encoding: "pcm16", rate: rateHz, channels: 1 };
      yield { content: { case: "start", value: { ...format, parties: [verify] } } };
      yield audio(take(100, 1));
      leaving.abort();
      yield { content: { case: "dtmf", value: "5" } };
    };
    const events: (string | undefined)[] = [];
    const listened = async () => {
      for await (const { event } of world.processor.listen(sent(), { signal: leaving.signal })) events.push(event.case);
    };
    expect(await refusal(listened())).toMatchObject({ code: "CANCELLED" });
    expect(events).toEqual(["started", "progress"]);
    expect(heardSeconds.slice(before)).toEqual([1]);
  });

  test("a stream without messages, and one that does not begin with start", async () => {
    const { world } = await opened();
    const listen = (...requests: Request[]) =>
      world.processor
        .listen(
          (async function* () {
            yield* requests;
          })(),
        )
        .next();
    expect(await refusal(listen())).toMatchObject({ code: "BAD_REQUEST" });
    await expect(listen(audio(take(100, 1)))).rejects.toThrow("the first message must be start, got audio");
  });
});

test("audio with one channel has nothing to select, as a recording", async () => {
  const { call, verify } = await opened();
  for (const channel of [1, 2, -1]) {
    const { events } = await call({ parties: [{ ...verify, channelSelector: { channel } }] }, [audio(take(100, 4))]);
    expect(events.at(-1)).toMatchObject({
      case: "result",
      value: { result: { value: { decision: Decision.AUTHENTIC } } },
    });
  }
});

test.each(["verify", "analyze"] as const)(
  "caller and agent in two channels: the decision of the session is about the claimed caller (%s)",
  async (kind) => {
    const { world, profile, call } = await opened();
    const agent = await world.trained(300);
    const task = { verify: { gkVoiceprintProfileId: profile }, analyze: { gkVoiceprintProfileIds: list(profile) } }[
      kind
    ];
    const decided = async (caller: Float32Array) => {
      const scope = { gkScopeId: world.context.gkScopeId };
      const opened = await world.processor.startSession({ context: scope, claimedPersonId: "person-100" });
      const { gkSessionId, gkEngagementId } = opened;
      const claimed = { ...world.context, gkSessionId: gkSessionId!, gkEngagementId: gkEngagementId! };
      const parties = [
        { name: "caller", channelSelector: { channel: 1 }, task: { case: kind, value: task } },
        {
          name: "agent",
          channelSelector: { channel: 2 },
          task: { case: "verify", value: { gkVoiceprintProfileId: agent } },
        },
      ] as Start["parties"];
      const both = pcm16([caller, take(300, 6)]);
      await call({ context: claimed, channels: 2, parties: parties! }, [{ content: { case: "audio", value: both } }]);
      return (await world.processor.getSessionDecision({ context: claimed })).result!;
    };
    expect(await decided(take(100, 6))).toMatchObject({
      decision: Decision.AUTHENTIC,
      personId: "person-100",
      matchedPersonId: "person-100",
    });
    expect(await decided(take(200, 6))).toMatchObject({ decision: Decision.NO_MATCH, matchedPersonId: "" });
    const little = take(100, 6);
    little.fill(0, rateHz / 4);
    expect(await decided(little)).toMatchObject({ decision: Decision.UNCERTAIN, matchedPersonId: "" });
  },
);

test("caller and agent in two channels, and nobody is claimed: the decision of the session is about the first party", async () => {
  const { world, profile, call } = await opened();
  const agent = await world.trained(300);
  const first = (task: object) => ({ name: "caller", channelSelector: { channel: 2 }, task });
  const second = (channel: number) => ({
    name: "agent",
    channelSelector: { channel },
    task: { case: "verify", value: { gkVoiceprintProfileId: agent } },
  });
  const decided = async (parties: object[], caller: Float32Array) => {
    const context = { gkScopeId: world.context.gkScopeId };
    const { gkSessionId, gkEngagementId } = await world.processor.startSession({ context });
    const open = { ...world.context, gkSessionId: gkSessionId!, gkEngagementId: gkEngagementId! };
    const both = pcm16([take(300, 6), caller]);
    const start = { context: open, channels: 2, parties: parties as NonNullable<Start["parties"]> };
    await call(start, [{ content: { case: "audio", value: both } }]);
    return (await world.processor.getSessionDecision({ context: open })).result!;
  };
  const verify = first({ case: "verify", value: { gkVoiceprintProfileId: profile } });
  expect(await decided([verify, second(1)], take(100, 6))).toMatchObject({
    decision: Decision.AUTHENTIC,
    personId: "person-100",
  });
  expect(await decided([verify, second(1)], take(200, 6))).toMatchObject({
    decision: Decision.NO_MATCH,
    personId: "person-100",
    matchedPersonId: "",
  });
  // Of the caller only the quality of the audio is known: the agent's match says nothing about the caller.
  const quality = first({ case: "analyze", value: {} });
  expect(await decided([quality, second(1)], take(200, 6))).toMatchObject({
    decision: Decision.UNSPECIFIED,
    personId: "",
    matchedPersonId: "",
  });
  // Both parties are of the same channel, so the same person.
  expect(await decided([quality, second(2)], take(300, 6))).toMatchObject({
    decision: Decision.AUTHENTIC,
    personId: "person-300",
  });
});

test("two people in one channel: the agent's print is not compared after it is erased or its consent withdrawn", async () => {
  const { world, verify } = await opened();
  const speech = joined(take(300, 2), take(100, 1), take(300, 2), take(100, 4));
  const { context } = world;
  const decided = async (during: (agent: { value: string }) => Promise<unknown>) => {
    const agent = await world.trained(300, "person", `${Math.random()}`);
    const channelSelector = { voiceSeparation: { gkAgentVoiceprintProfileId: agent } };
    const requests = async function* (): AsyncGenerator<Request> {
      const format = { context, encoding: "pcm16", rate: rateHz, channels: 1 };
      yield { content: { case: "start", value: { ...format, parties: [{ ...verify, channelSelector }] } } };
      await during(agent);
      yield audio(speech);
    };
    const events = [];
    for await (const { event } of world.processor.listen(requests())) events.push(event);
    return events.at(-1);
  };
  const answer = (decision: Decision) => ({ case: "result", value: { result: { value: { decision } } } });
  expect(await decided(async () => {})).toMatchObject(answer(Decision.AUTHENTIC));
  const erased = (agent: { value: string }) =>
    world.processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: agent });
  expect(await decided(erased)).toMatchObject(answer(Decision.UNCERTAIN));
  const withdrawn = (agent: { value: string }) =>
    world.processor.setVoiceprintProfileConsent({
      context,
      gkVoiceprintProfileId: agent,
      state: ConsentState.WITHDRAWN,
    });
  expect(await decided(withdrawn)).toMatchObject(answer(Decision.UNCERTAIN));
});

test("audio that is sent again after a lost connection: the result counts what was added before", async () => {
  const { world, call } = await opened();
  const all = packets(joined(take(500, 3), silence(1), take(500, 3), silence(1), take(500, 4)), 0.1);
  const enroll = async (name: string, ...calls: (readonly Request[])[]) => {
    const task = { case: "enroll", value: { gkVoiceprintProfileId: await world.person(name) } } as const;
    const context = await world.open();
    const results = [];
    for (const requests of calls) {
      const called = call({ context, parties: [{ name: "caller", task }] }, requests);
      results.push(await called.then(({ events }) => events.at(-1)).catch(() => null));
    }
    return results.at(-1);
  };
  const whole = await enroll("whole", all);
  const added = { enrolledSegments: 3, training: { reason: TrainReason.TRAIN_OK, totalSegments: 3 } };
  expect(whole).toMatchObject({ value: { result: { value: added } } });
  // The first connection is lost in the second stretch, or after its result.
  for (const before of [[...all.slice(0, 50), {}], all])
    expect(await enroll(`after ${before.length}`, before, all)).toMatchObject({ value: { result: { value: added } } });
});

test("the lowest and the highest rate are accepted, and no number of channels means one", async () => {
  const { call } = await opened();
  for (const start of [{ rate: 8000 }, { rate: 48_000 }, { channels: 0 }])
    expect((await call(start, [])).events.map((event) => event.case)).toEqual(["started", "result"]);
});

test("ends at a clear answer: the rest is not read, and the sender is told to stop", async () => {
  const { call } = await opened();
  const { events, messages, isClosed } = await call({}, packets(take(100, 20), 1));
  expect(events.at(-1)).toMatchObject({ case: "result", party: "caller" });
  expect([messages, isClosed]).toEqual([2, true]);
});

test("a failure of the engine ends the call with that failure", async () => {
  const { world, call } = await opened();
  world.engine.behavior.before = () => {
    throw new Error("out of order");
  };
  expect(await refusal(call({}, packets(take(100, 4), 1)))).toMatchObject({ code: "INTERNAL_ERROR" });
});

test("each checkpoint is reported with what it found", async () => {
  const { call } = await opened();
  const { events } = await call({}, packets(take(200, 6), 1));
  const found = events.flatMap((event) => (event.case === "checkpoint" ? [event.value] : []));
  expect(found.map(({ netAudio, decision, isFinal }) => [seconds(netAudio), decision, isFinal])).toEqual([
    [2, Decision.NO_MATCH, false],
    [5, Decision.NO_MATCH, false],
  ]);
  for (const { biometricScore, riskEngineResult } of found) {
    expect(biometricScore).toBeLessThan(0.5);
    expect(riskEngineResult!.risk).toBeGreaterThan(500);
  }
  // From then on, progress shows the score too.
  const scores = events.flatMap((event) => (event.case === "progress" ? [event.value.biometricScore] : []));
  expect(scores.map((score) => score !== undefined)).toEqual([false, true, true, true, true, true]);
});

test("progress comes every second, or as often as asked for, but at most ten times a second", async () => {
  const { call } = await opened();
  const progress = async (progressInterval?: { seconds?: bigint; nanos?: number }) => {
    const start = progressInterval ? { progressInterval } : {};
    const { events } = await call(start, packets(joined(silence(1), take(200, 1)), 0.02));
    return events.flatMap((event) =>
      event.case === "progress" ? [[seconds(event.value.grossAudio), seconds(event.value.netAudio)]] : [],
    );
  };
  expect(await progress()).toEqual([
    [1, 0],
    [2, 1],
  ]);
  expect(await progress({ seconds: 1n, nanos: 500_000_000 })).toEqual([[1.5, 0.5]]);
  expect(await progress({ nanos: 1 })).toHaveLength(20);
  for (const [none, got] of [
    [{}, "0"],
    [{ seconds: -1n }, "-1"],
  ] as const)
    await expect(progress(none)).rejects.toThrow(`progress_interval must be longer than 0 s, got ${got} s`);
});

test("lost audio is counted in progress and in the result", async () => {
  const { call } = await opened();
  const lost: Request = { content: { case: "lostSamples", value: 800 } };
  const { events } = await call({}, [audio(take(200, 1)), lost, lost, ...packets(take(200, 1), 1)]);
  const counted = events.flatMap((event) =>
    event.case === "progress" || event.case === "result" ? [seconds(event.value.lostAudio)] : [],
  );
  expect(counted).toEqual([0, 0.2, 0.2]);
});

test.each([1, 10])("silence ends a call after the limit, with progress every %i s", async (every) => {
  const { call } = await opened();
  const quiet = packets(joined(take(200, 1), silence(9)), 1);
  const start = { progressInterval: { seconds: BigInt(every) } };
  const { events, messages } = await call(start, quiet, { silenceSeconds: 2 });
  // Three seconds are more than two.
  expect(messages).toBe(4);
  expect(events.at(-1)).toMatchObject({ case: "result" });
  expect((await call(start, quiet)).messages).toBe(10);
});

test("a party that speaks keeps the call open for the other, and each gets its own result", async () => {
  const { call, verify } = await opened();
  const parties = [1, 2].map((channel) => ({ ...verify, name: `party ${channel}`, channelSelector: { channel } }));
  const minute = Array.from({ length: 8 }, () => audio(silence(1), take(200, 1)));
  const { events, messages } = await call({ channels: 2, parties }, minute, { silenceSeconds: 2 });
  expect(messages).toBe(8);
  const results = events.filter((event) => event.case === "result");
  expect(results.map(({ party }) => party)).toEqual(["party 1", "party 2"]);
  const early = await call({ channels: 2, parties }, Array(8).fill(audio(take(100, 1), take(200, 1))));
  expect(early.events.filter((event) => event.case === "result").map(({ party }) => party)).toEqual([
    "party 1",
    "party 2",
  ]);
  expect(early.messages).toBe(8);
  const both = await call({ channels: 2, parties }, Array(8).fill(audio(take(100, 1), take(100, 1))));
  expect(both.messages).toBe(2);
});

test("without a selected channel, all channels are mixed", async () => {
  const { call } = await opened();
  const { events } = await call({ channels: 2 }, [audio(take(50, 4), take(150, 4))]);
  expect(events.at(-1)).toMatchObject({
    case: "result",
    value: {
      result: {
        value: {
          decision: Decision.AUTHENTIC,
          audioDetails: { mediaNumberOfChannels: 2, selectedChannel: { channel: 0 } },
        },
      },
    },
  });
  const mono = (await call({}, [audio(take(100, 4))])).events.at(-1)!;
  const result = mono.case === "result" && mono.value.result.case === "verify" ? mono.value.result.value : null;
  expect(result!.audioDetails!.mediaNumberOfChannels).toBe(1);
  expect(result!.audioDetails!.selectedChannel).toBeUndefined();
});

describe("a live enrollment", () => {
  const enrolling = async () => {
    // Stretches of three seconds of speech.
    const world = await openWorld({ configurationSets: { live: { optimalNetAudioForTrain: 9 } } });
    const profile = await world.person("live");
    const added = vi.spyOn(world.store.media, "add");
    const task = await world.processor.openLiveEnrollment({
      context: await world.open("live"),
      gkVoiceprintProfileId: profile,
      rateHz,
    });
    const push = async (samples: Float32Array) => {
      let result = null;
      for (let at = 0; at < samples.length; at += rateHz) result = await task.push(samples.slice(at, at + rateHz));
      return result;
    };
    return { world, task, push, stored: () => added.mock.calls.map(([{ audio }]) => audio.length / 2 / rateHz) };
  };

  test("keeps up to three seconds of silence before the first word, and no more", async () => {
    for (const [before, kept] of [
      [3, 5],
      [4, 2],
    ] as const) {
      const { task, push, stored } = await enrolling();
      await push(joined(silence(before), take(7, 2)));
      await task.finish();
      expect(stored()).toEqual([kept]);
    }
  });

  test("ends a stretch with little speech after two minutes", async () => {
    const { push, stored } = await enrolling();
    await push(joined(take(7, 1), silence(118)));
    expect(stored()).toEqual([]);
    await push(silence(1));
    expect(stored()).toEqual([120]);
  });

  test("ends a stretch after two minutes even if all audio is pushed at once", async () => {
    const { task, stored } = await enrolling();
    await task.push(joined(take(7, 1), silence(300), take(7, 2)));
    expect(stored()).toEqual([120]);
    await task.finish();
    // The second stretch would be silent, so it is not stored.
    expect(stored()).toEqual([120, 63]);
  });

  test("goes on while the voices disagree, and ends when enough of them agree", async () => {
    const { task, push } = await enrolling();
    expect(await push(joined(take(7, 3), take(9, 3), take(11, 3)))).toBeNull();
    expect(await push(joined(silence(0.1), take(7, 3)))).toBeNull();
    expect(await push(joined(silence(0.2), take(7, 3)))).not.toBeNull();
    expect(await task.finish()).toMatchObject({
      value: { enrollStatus: EnrollStatus.TRAIN_SUGGESTED, training: { reason: TrainReason.TRAIN_OK } },
    });
  });

  test("that ends while the voices disagree says so", async () => {
    const { task, push } = await enrolling();
    await push(joined(take(7, 3), take(9, 3), take(11, 3)));
    expect(await task.finish()).toMatchObject({
      value: {
        enrollStatus: EnrollStatus.TRAIN_POSSIBLE,
        enrolledSegments: 3,
        training: { reason: TrainReason.INCONSISTENCY },
      },
    });
  });
});

test("a live check in the library takes rates from 4,000 to 192,000 Hz", async () => {
  const { processor, context, person } = await openWorld();
  const profile = await person("ada");
  const open = (rateHz: number) =>
    processor.openLiveAnalysis({ context, gkVoiceprintProfileIds: list(profile), rateHz });
  for (const rate of [4000, 192_000]) await (await open(rate)).close();
  for (const rate of [3999, 192_001])
    expect(await refusal(open(rate))).toMatchObject({ fields: ["rate out_of_range"] });
});
