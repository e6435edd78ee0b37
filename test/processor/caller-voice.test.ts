/** Two people in one channel: the caller alone is checked, and the result says so. */
import { describe, expect, test } from "vitest";
import { AudioValidity, Decision, DecisionReason } from "../../src/contract/index.js";
import { looksAround } from "../../src/processor/caller-voice.js";
import { joined, rateHz, take } from "./fixture-engine.js";
import { list, openWorld, refusal } from "./world.js";

const ada = 100;
const agent = 300;
/** Takes turns; each turn has the given number of seconds. */
const call = (caller: number, seconds = 3) =>
  joined(take(agent, 2), take(caller, seconds / 2), take(agent, 2), take(caller, seconds / 2));

async function opened() {
  const world = await openWorld();
  const [claimed, other] = [await world.trained(ada), await world.trained(agent)];
  const separated = { voiceSeparation: { gkAgentVoiceprintProfileId: other } };
  const verify = async (samples: Float32Array, channelSelector = {}) => {
    const audio = await world.heard(samples);
    const { result } = await world.processor.verify({
      context: world.context,
      gkVoiceprintProfileId: claimed,
      audio,
      channelSelector,
    });
    return result!;
  };
  return { world, claimed, other, separated, verify };
}

describe("with the agent's print", () => {
  test("the other voice is the caller's, whoever it is; the result says what was left out", async () => {
    const { verify, separated } = await opened();
    expect(await verify(call(ada))).toMatchObject({ decision: Decision.UNCERTAIN });
    const matched = await verify(call(ada), separated);
    expect(matched).toMatchObject({ decision: Decision.AUTHENTIC, reason: DecisionReason.VOICEPRINT_MATCH });
    expect(matched.audioDetails).toMatchObject({
      netAudio: { seconds: 2n },
      numberOfDetectedSpeakers: 2,
      separatedAudio: { otherNetAudio: { seconds: 4n }, isAgentRecognized: true },
    });
    expect(await verify(call(500), separated)).toMatchObject({ decision: Decision.NO_MATCH });
  });

  test("somebody else alone is the caller, an agent alone is not; if the claimed person is the agent, nobody matches", async () => {
    const { world, verify, separated, claimed } = await opened();
    expect(await verify(take(ada, 6), separated)).toMatchObject({ decision: Decision.AUTHENTIC });
    const alone = await verify(take(agent, 6), separated);
    expect(alone).toMatchObject({ decision: Decision.UNCERTAIN, reason: DecisionReason.AUDIO_TOO_SHORT });
    expect(alone.audioDetails).toMatchObject({ netAudio: { seconds: 0n, nanos: 0 } });
    const audio = await world.heard(call(ada));
    const { result } = await world.processor.verify({
      context: world.context,
      gkVoiceprintProfileId: claimed,
      audio,
      channelSelector: { voiceSeparation: { gkAgentVoiceprintProfileId: claimed } },
    });
    expect(result).toMatchObject({ decision: Decision.NO_MATCH });
  });

  test("two voices without the agent's, or a third voice, count as several speakers", async () => {
    const { world, verify, separated, claimed } = await opened();
    const strangers = joined(take(ada, 1), take(500, 1), take(ada, 2), take(500, 2));
    expect(await verify(strangers, separated)).toMatchObject({ reason: DecisionReason.LOW_RELIABILITY });
    const { result } = await world.processor.analyzeAudio({
      context: world.context,
      gkVoiceprintProfileIds: list(claimed),
      audio: await world.heard(joined(call(ada), take(500, 3))),
      channelSelector: separated,
      ignoreCheckpoints: true,
    });
    expect(result).toMatchObject({
      decision: Decision.UNCERTAIN,
      validity: AudioValidity.MULTIPLE_SPEAKERS_DETECTED,
    });
  });
});

describe("how similar a voice must be to the agent's print", () => {
  test.each([
    [-2.2, { decision: Decision.NO_MATCH }, { decision: Decision.NO_MATCH }],
    [-2.4, { reason: DecisionReason.LOW_RELIABILITY }, { decision: Decision.NO_MATCH }],
    [0.1, { decision: Decision.NO_MATCH }, { reason: DecisionReason.AUDIO_TOO_SHORT }],
  ])("a ratio of %f, as one of two voices and alone", async (llr, ofTwo, alone) => {
    const { world, verify, separated } = await opened();
    world.engine.behavior.score = (raw) => ({ raw, llr: raw > 0.5 ? llr : -20, reliability: 1 });
    expect(await verify(call(500), separated)).toMatchObject(ofTwo);
    expect(await verify(take(agent, 6), separated)).toMatchObject(alone);
  });
});

test("there are looks at multiples of each checkpoint, because the caller reaches it later than the channel", () => {
  expect(looksAround([2, 5])).toEqual([2, 3, 4, 5, 6, 7.5, 8, 10, 15, 20]);
});

test("audio that was processed as one voice is processed again to separate its voices", async () => {
  const { world, claimed, separated } = await opened();
  const { gkProcessedAudioId } = await world.process(call(ada), false);
  const { result } = await world.processor.verify({
    context: world.context,
    audio: { case: "gkProcessedAudioId", value: gkProcessedAudioId! },
    gkVoiceprintProfileId: claimed,
    channelSelector: separated,
  });
  expect(result!.decision).toBe(Decision.AUTHENTIC);
});

describe("without it", () => {
  const anybody = { voiceSeparation: {} };

  test("the better voice counts, at the threshold of two candidates", async () => {
    const { world, verify } = await opened();
    const rates: number[] = [];
    world.engine.behavior.threshold = (rate) => {
      rates.push(rate);
      return -Math.log(rate);
    };
    const matched = await verify(call(ada), anybody);
    expect(matched).toMatchObject({ decision: Decision.AUTHENTIC });
    expect(matched.audioDetails!.separatedAudio).toMatchObject({ isAgentRecognized: false });
    const separatedRate = Math.min(...rates);
    rates.length = 0;
    await verify(take(ada, 7));
    // The rate of two voices, 1 - (1 - r)^2, equals the rate of one comparison in a channel with one person.
    expect(1 - (1 - separatedRate) ** 2).toBeCloseTo(Math.min(...rates), 6);
    expect(await verify(call(500), anybody)).toMatchObject({ decision: Decision.NO_MATCH });
  });

  test("stores nothing that a later comparison could mistake for a channel with one person", async () => {
    const { world, verify } = await opened();
    const matched = await verify(call(ada), anybody);
    expect(matched.gkProcessedAudioId).toBeUndefined();
    expect(matched.gkMediaSegmentId).toBeDefined();
    const { result } = await world.processor.getSessionDecision({ context: world.context });
    expect(result).toMatchObject({ decision: Decision.AUTHENTIC });
  });
});

test("a live call looks again until the caller has spoken enough, and ends there", async () => {
  const { world, claimed, other } = await opened();
  const responses = [];
  const party = {
    name: "caller",
    channelSelector: { voiceSeparation: { gkAgentVoiceprintProfileId: other } },
    task: { case: "verify", value: { gkVoiceprintProfileId: claimed } } as const,
  };
  const start = { context: world.context, encoding: "float32", rate: rateHz, parties: [party] };
  const audio = joined(take(agent, 3), take(ada, 1), take(agent, 1), take(ada, 9));
  const requests = async function* () {
    yield { content: { case: "start", value: start } } as const;
    yield { content: { case: "audio", value: new Uint8Array(audio.buffer) } } as const;
  };
  for await (const response of world.processor.listen(requests())) responses.push(response.event);
  const result = responses.at(-1)!;
  expect(responses.filter(({ case: name }) => name === "checkpoint")).toHaveLength(1);
  expect(result).toMatchObject({
    case: "result",
    value: { result: { value: { decision: Decision.AUTHENTIC, audioDetails: { netAudio: { seconds: 2n } } } } },
  });
});

describe("is rejected", () => {
  test("for enrollment", async () => {
    const { world, separated: channelSelector } = await opened();
    const input = await world.heard(call(ada));
    const { context } = world;
    const processed = world.processor.processAudio({ context, input, isForEnrollment: true, channelSelector });
    expect((await refusal(processed)).fields).toEqual(["channel_selector.voice_separation not_allowed"]);
  });

  test("with an agent who has no print, or does not exist", async () => {
    const { world, verify } = await opened();
    const field = "channel_selector.voice_separation.gk_agent_voiceprint_profile_id";
    const refusedWith = (id: { value: string }) =>
      refusal(verify(call(ada), { voiceSeparation: { gkAgentVoiceprintProfileId: id } }));
    expect((await refusedWith(await world.person("no print"))).fields).toEqual([`${field} not_trained`]);
    const nobody = { value: "01900000-0000-7000-8000-000000000000" };
    expect((await refusedWith(nobody)).fields).toEqual([`${field} unknown`]);
  });
});
