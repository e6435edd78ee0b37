/** The easy door's live audio: the same calls and the same answers in this process and on a box. */
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { connectVoiceprints, StatusCode } from "../../src/client/index.js";
import { Listener } from "../../src/easy-door/listener.js";
import { localAccess } from "../../src/local-access.js";
import { type AudioChunk, Voiceprints } from "../../src/voiceprints.js";
import { fixtureEngine, rateHz, silence, take } from "../processor/fixture-engine.js";
import { openWorld, pcm16, scopeA } from "../processor/world.js";
import { scope, startLiveBox, stopLiveBoxes } from "./live-box.js";

afterAll(stopLiveBoxes);

const configset = "ivr-text-dependent";
const doors = {
  async "in this process"(engine = fixtureEngine()) {
    const { processor } = await openWorld({ engine });
    return new Voiceprints(processor, { scope: scopeA, configset }, localAccess(processor));
  },
  async "on a box"(engine = fixtureEngine()) {
    const { box } = await startLiveBox({}, engine);
    return connectVoiceprints({ url: box.url, scope, WebSocket });
  },
};

const enrolled = async (voice: Voiceprints) => {
  const takes = [3, 3.1, 3.2].map((seconds) => ({ samples: take(100, seconds), rateHz }));
  await voice.enroll("ada", takes);
  return voice;
};

/** The audio in every form that a chunk can have. */
const kinds: Record<string, (samples: Float32Array) => AudioChunk> = {
  Float32Array: (samples) => samples.slice(),
  Int16Array: (samples) => Int16Array.from(samples, (x) => Math.round(x * 32768)),
  "bytes of pcm16": (samples) => ({ bytes: pcm16([samples]), encoding: "pcm16" }),
  "bytes of l16": (samples) => ({ bytes: Uint8Array.from(Buffer.from(pcm16([samples])).swap16()), encoding: "l16" }),
};

describe.each(Object.entries(doors))("%s", (_, open) => {
  it("listens to chunks of every kind and answers as soon as the decision is clear", async () => {
    const voice = await enrolled(await open());
    for (const [kind, chunkOf] of Object.entries(kinds)) {
      const listener = await voice.listen({ persons: ["ada"] }, rateHz);
      const chunks = Array.from({ length: 24 }, () => chunkOf(take(100, 0.25)));
      const answer = await listener.follow(chunks);
      expect([kind, answer.decision, answer.likeliestPerson]).toEqual([kind, "AUTHENTIC", "ada"]);
      expect(listener.answer).toEqual(answer);
    }
    await voice.close();
  });

  it("every answer says which prints could not be compared", async () => {
    const engine = fixtureEngine();
    const voice = await enrolled(await open(engine));
    const { revision } = engine.behavior;
    engine.behavior.revision = "d".repeat(64);
    const takes = [3, 3.1, 3.2].map((seconds) => ({ samples: take(300, seconds), rateHz }));
    await voice.enroll("dan", takes);
    await voice.enrollFraudster("mallory", takes);
    engine.behavior.revision = revision;
    const message = /^prints of a model that is not installed here were not compared \(1\)/;
    const audio = () => ({ samples: take(100, 4), rateHz });
    expect((await voice.identify(audio())).notCompared).toMatch(message);
    expect((await voice.verify("dan", audio())).notCompared).toMatch(message);
    expect((await voice.watch(audio())).notCompared).toMatch(message);
    const listener = await voice.listen({ persons: ["ada", "dan"] }, rateHz);
    await listener.push(take(100, 1));
    expect((await listener.finish()).notCompared).toMatch(message);
    expect((await voice.identify(audio(), ["ada"])).notCompared).toBe("");
    expect((await voice.verify("ada", audio())).notCompared).toBe("");
    const alone = await voice.listen({ persons: ["ada"] }, rateHz);
    await alone.push(take(100, 1));
    expect((await alone.finish()).notCompared).toBe("");
    await voice.close();
  });

  it("rejects an invalid chunk and continues listening", async () => {
    const voice = await enrolled(await open());
    const listener = await voice.listen({ persons: ["ada"] }, rateHz);
    await listener.push(take(100, 0.5));
    for (const [wrong, name] of [
      [new Uint8Array(4), "Uint8Array"],
      [[0.1], "Array"],
      ["audio", "string"],
      [null, "null"],
    ] as const)
      await expect(listener.push(wrong as never)).rejects.toThrow(new RegExp(`Int16Array or .* got ${name}`));
    await expect(listener.push({ bytes: new Uint8Array(3), encoding: "pcm16" })).rejects.toThrow(
      /must be a multiple of .* got 3 bytes/,
    );
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY])
      await expect(listener.push(Float32Array.of(0, wrong))).rejects.toMatchObject({
        code: StatusCode.INVALID_REQUEST,
        message: expect.stringContaining(`not a finite number: ${wrong}`),
      });
    await listener.push(take(100, 1));
    expect(await listener.finish()).toMatchObject({ decision: "AUTHENTIC" });
    await voice.close();
  });

  it("refuses a sampling rate that is not supported, before it creates a profile", async () => {
    const voice = await enrolled(await open());
    for (const rateHz of [8000.5, Number.NaN, 2 ** 32 + 8000])
      await expect(voice.verify("ada", { samples: take(100, 3), rateHz })).rejects.toThrow(
        new RegExp(`whole number .* got ${rateHz}`),
      );
    for (const rateHz of [999, 192_001])
      await expect(voice.listenToEnroll("bea", rateHz)).rejects.toThrow(new RegExp(`whole number .* got ${rateHz}`));
    expect(await voice.people()).toEqual(["ada"]);
    await voice.close();
  });

  it("enrolls from live audio, and rejects an invalid chunk there too", async () => {
    const voice = await open();
    const listener = await voice.listenToEnroll("bea", rateHz);
    await expect(listener.push("audio" as never)).rejects.toThrow(/got string/);
    let state = null;
    for (const part of [take(500, 2.9), silence(1), take(500, 4), silence(0.5), take(500, 9)])
      state = await listener.push(Int16Array.from(part, (x) => Math.round(x * 32768)));
    state ??= await listener.finish();
    expect(state).toMatchObject({ trained: true, status: "TRAIN_SUGGESTED" });
    expect(await voice.verify("bea", { samples: take(500, 3), rateHz })).toMatchObject({ decision: "AUTHENTIC" });
    await voice.close();
  });

  it("names an unknown person before any audio is sent, and closes without an answer", async () => {
    const voice = await enrolled(await open());
    await expect(voice.listen({ persons: ["nobody"] }, rateHz)).rejects.toThrow(/nobody/);
    const listener = await voice.listen({ persons: ["ada"] }, rateHz);
    await listener.push(take(100, 0.5));
    await listener.close();
    await expect(listener.finish()).rejects.toThrow(/closed/);
    await voice.close();
  });

  it("ends a call without time left as DEADLINE_EXCEEDED", async () => {
    const voice = await enrolled(await open());
    const audio = { samples: take(100, 3), rateHz };
    for (const timeoutMs of [0, -5])
      await expect(voice.verify("ada", audio, { timeoutMs })).rejects.toMatchObject({
        code: StatusCode.DEADLINE_EXCEEDED,
      });
    await voice.close();
  });

  it("does not begin to listen if it was cancelled before", async () => {
    const voice = await enrolled(await open());
    const signal = AbortSignal.abort();
    const cancelled = { code: StatusCode.CANCELLED };
    await expect(voice.listen({ persons: ["ada"] }, rateHz, { signal })).rejects.toMatchObject(cancelled);
    await expect(voice.listenToEnroll("bea", rateHz, { signal })).rejects.toMatchObject(cancelled);
    await voice.close();
  });
});

it("clips samples beyond full scale, as in a recording", async () => {
  const pushed: Float32Array[] = [];
  const push = async (samples: Float32Array) => {
    pushed.push(samples);
    return null;
  };
  const task = { push } as never;
  const listener = new Listener(
    task,
    rateHz,
    () => null as never,
    async () => {},
  );
  const within = Float32Array.of(-1, 0.5, 1);
  await listener.push(within);
  await listener.push(Float32Array.of(-1.5, 0.25, 7).subarray(1));
  expect(pushed).toEqual([within, Float32Array.of(0.25, 1)]);
});
