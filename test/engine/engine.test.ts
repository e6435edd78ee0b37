import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OpenedEngine, openEngine } from "../../dist/engine/index.js";
import type { Measures } from "../../src/engine/port.js";
import { noise, tone, utter } from "../voice.js";
import { randomModel } from "./random-model.js";

let engine: OpenedEngine;
beforeAll(async () => {
  engine = await openEngine({ workers: 0, model: randomModel() });
});
afterAll(() => engine.close());

const { samples: speech, rateHz } = utter({ speaker: 1, seconds: 7, rateHz: 16_000 });

function numbers(measures: Measures): (number | null)[] {
  return Object.values(measures);
}

describe("one shot and streamed", () => {
  test("any chunking is bit-identical to one shot", async () => {
    const whole = await engine.analyze(speech.slice(), rateHz);
    expect(whole.windows.length).toBeGreaterThan(0);
    const sizes = fc.array(fc.integer({ min: 0, max: 30_000 }), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(sizes, async (chunks) => {
        const stream = await engine.stream(rateHz);
        let at = 0;
        for (let i = 0; at < speech.length; i++) {
          const size = i < 40 ? chunks[i % chunks.length]! : speech.length;
          await stream.push(speech.slice(at, at + size));
          at += size;
        }
        expect(await stream.analysis()).toEqual(whole);
        await stream.close();
      }),
      { numRuns: 6 },
    );
  });

  test("an analysis in between equals one shot on the samples so far, and does not change the stream", async () => {
    const stream = await engine.stream(rateHz);
    for (let at = 0; at < speech.length; at += 2 * rateHz) {
      const net = await stream.push(speech.slice(at, at + 2 * rateHz));
      const soFar = await engine.analyze(speech.slice(0, at + 2 * rateHz), rateHz);
      expect(await stream.measures()).toEqual(soFar.measures);
      expect(await stream.analysis()).toEqual(soFar);
      // A push returns what is decided so far; the end of a recording decides a little more.
      expect(net).toBeLessThanOrEqual(soFar.measures.netSpeechSeconds);
      expect(soFar.measures.netSpeechSeconds - net).toBeLessThan(0.5);
    }
    await stream.close();
  });

  test("an analysis that the caller changes does not change the stream", async () => {
    const stream = await engine.stream(rateHz);
    await stream.push(speech.slice());
    const first = await stream.analysis();
    const kept = structuredClone(first);
    for (const window of first.windows) window.embedding.fill(0);
    expect(await stream.analysis()).toEqual(kept);
  });

  test("pushes that are not awaited are processed in order", async () => {
    const stream = await engine.stream(rateHz);
    const pushes = [];
    for (let at = 0; at < speech.length; at += 5000) pushes.push(stream.push(speech.slice(at, at + 5000)));
    await Promise.all(pushes);
    expect(await stream.analysis()).toEqual(await engine.analyze(speech.slice(), rateHz));
  });

  test("many streams at once do not mix", async () => {
    const voices = [1, 2, 3, 4].map((speaker) => utter({ speaker, seconds: 4, rateHz: 8000 }).samples);
    const streams = await Promise.all(voices.map(() => engine.stream(8000)));
    for (let at = 0; at < 32_000; at += 3000) {
      await Promise.all(streams.map((stream, i) => stream.push(voices[i]!.slice(at, at + 3000))));
    }
    for (const [i, stream] of streams.entries()) {
      expect(await stream.analysis()).toEqual(await engine.analyze(voices[i]!.slice(), 8000));
    }
  });

  test("a limit of net speech stops at the same place in any chunking", async () => {
    const limited = await engine.analyze(speech.slice(), rateHz, { maxNetSpeechSeconds: 2 });
    expect(limited.measures.netSpeechSeconds).toBe(2);
    expect(limited.measures.grossSeconds).toBeLessThan(speech.length / rateHz);
    const stream = await engine.stream(rateHz, { maxNetSpeechSeconds: 2 });
    for (let at = 0; at < speech.length; at += 777) await stream.push(speech.slice(at, at + 777));
    expect(await stream.analysis()).toEqual(limited);
  });

  test("several windows: each has its position, and the voice is their speech-weighted mean", async () => {
    const { samples } = utter({ speaker: 5, seconds: 20, rateHz: 16_000 });
    const { windows, embedding, measures, voiceClass, speakers } = await engine.analyze(samples, 16_000);
    expect(windows.length).toBeGreaterThanOrEqual(3);
    const total = windows.reduce((sum, window) => sum + window.speechSeconds, 0);
    expect(total).toBeLessThanOrEqual(measures.netSpeechSeconds + 1e-9);
    expect(measures.netSpeechSeconds - total).toBeLessThan(0.5);
    for (const [i, window] of windows.entries()) {
      expect(window.startSeconds).toBeGreaterThanOrEqual(windows[i - 1]?.startSeconds ?? 0);
      expect(window.endSeconds).toBeGreaterThan(window.startSeconds);
      expect(Math.hypot(...window.embedding)).toBeCloseTo(1, 5);
    }
    const mean = Array.from({ length: 256 }, (_, i) =>
      windows.reduce((sum, w) => sum + w.speechSeconds * w.embedding[i]!, 0),
    );
    const length = Math.hypot(...mean);
    for (let i = 0; i < 256; i++) expect(Math.abs(embedding![i]! - mean[i]! / length)).toBeLessThan(1e-6);
    expect(voiceClass).toBeGreaterThanOrEqual(0);
    expect(voiceClass).toBeLessThanOrEqual(100);
    expect(speakers).toBe(1);
  });
});

describe("bad input: a named error or a measured verdict", () => {
  const second = 16_000;
  const verdicts: [string, Float32Array][] = [
    ["nothing", new Float32Array(0)],
    ["one sample", Float32Array.of(0.5)],
    ["25 ms", tone(0.025, second, 300)],
    ["all zeros", new Float32Array(3 * second)],
    ["DC only", new Float32Array(3 * second).fill(0.5)],
    ["all at full scale", new Float32Array(3 * second).fill(1)],
    ["all at negative full scale", new Float32Array(3 * second).fill(-1)],
    ["a square wave at full scale", Float32Array.from({ length: 3 * second }, (_, i) => (i % 160 < 80 ? 1 : -1))],
    ["numbers beyond any scale", new Float32Array(second).fill(3e38)],
    ["white noise", noise(3, second, 1, -30, "white")],
    ["the smallest numbers", new Float32Array(second).fill(1e-45)],
  ];
  for (const [name, samples] of verdicts) {
    test(name, async () => {
      const { measures, windows, embedding } = await engine.analyze(samples.slice(), second);
      expect(measures.grossSeconds).toBeCloseTo(samples.length / second, 9);
      for (const value of numbers(measures)) expect(value === null || Number.isFinite(value)).toBe(true);
      expect(measures.netSpeechSeconds).toBeLessThan(0.5);
      expect(windows).toEqual([]);
      expect(embedding).toBeNull();
    });
  }

  test("full scale counts as saturated", async () => {
    const { measures } = await engine.analyze(new Float32Array(second).fill(1), second);
    expect(measures.saturationRatio).toBeGreaterThan(0.99);
    expect(measures.saturatedPerMinute).toBeGreaterThan(900_000);
  });

  test("silence around saturated audio does not change the share that is saturated", async () => {
    const loud = new Float32Array(second).fill(1);
    const around = new Float32Array(20 * second);
    around.set(loud, 10 * second);
    const { measures } = await engine.analyze(around, second);
    expect(measures.saturationRatio).toBeGreaterThan(0.6 /* 0.2 s after it, and at the beginning, count as audible */);
  });

  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    test(`a sample of ${value}`, async () => {
      const samples = speech.slice();
      samples[1234] = value;
      await expect(engine.analyze(samples, rateHz)).rejects.toMatchObject({ code: "BAD_SAMPLES" });
    });
  }

  for (const rate of [0, -1, 3999, 192_001, 1_000_000, 8000.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    test(`${rate} Hz`, async () => {
      await expect(engine.analyze(speech.slice(), rate)).rejects.toMatchObject({ code: "BAD_RATE" });
      await expect(engine.stream(rate)).rejects.toMatchObject({ code: "BAD_RATE" });
    });
  }

  test("every supported rate works", async () => {
    for (const rate of [4000, 8000, 11_025, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000, 192_000, 7919]) {
      const voice = utter({ speaker: 2, seconds: 3, rateHz: rate });
      const { measures } = await engine.analyze(voice.samples.slice(), rate);
      expect(measures.rateHz).toBe(rate);
      expect(measures.grossSeconds).toBeCloseTo(3, 2);
      expect(numbers(measures).every((value) => value === null || Number.isFinite(value))).toBe(true);
    }
  });

  test("invalid samples and limits", async () => {
    await expect(engine.analyze([0, 1] as never, rateHz)).rejects.toMatchObject({ code: "BAD_SAMPLES" });
    for (const samples of ["x", [0, 1], undefined]) {
      const stream = await engine.stream(rateHz);
      await expect(stream.push(samples as never)).rejects.toMatchObject({
        code: "BAD_SAMPLES",
        message: `samples must be a Float32Array with values from -1 to 1, got ${typeof samples}`,
      });
    }
    await expect(engine.train(undefined as never)).rejects.toThrow("segments must be a list, got undefined");
    await expect(engine.score({} as never, {} as never)).rejects.toThrow("templates must be a list, got object");
    for (const signal of [{}, null])
      await expect(engine.analyze(speech.slice(), rateHz, { signal } as never)).rejects.toThrow(
        "signal must be an AbortSignal",
      );
    for (const seconds of [[Number.NaN], [3, 2], [-1]])
      await expect(engine.stream(rateHz, { checkpoints: { seconds, look: async () => false } })).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
      });
    await expect(engine.analyze(speech, rateHz, { maxNetSpeechSeconds: -1 })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
    });
    await expect(engine.analyze(speech, rateHz, { timeoutMs: 0 })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });

  test.each([
    [null, "options must be an object, got null"],
    [{ timeoutMS: 5 }, "unknown option timeoutMS (did you mean timeoutMs?)"],
  ])("options such as %j are refused by name", async (wrong, message) => {
    const options = wrong as never;
    for (const call of [
      () => engine.analyze(speech.slice(), rateHz, options),
      () => engine.stream(rateHz, options),
      () => engine.train([], options),
      () => engine.score([], {} as never, options),
    ])
      await expect(call()).rejects.toMatchObject({ code: "BAD_ARGUMENT", message });
    await expect(openEngine(null as never)).rejects.toThrow("options must be an object, got null");
    await expect(openEngine({ worker: 1 } as never)).rejects.toThrow("unknown option worker (did you mean workers?)");
  });

  test("voices that are none", async () => {
    const { embedding, measures } = await engine.analyze(speech.slice(), rateHz);
    const voice = { ...measures, embedding: embedding! };
    const { template } = await engine.train([voice]);
    const missing = "must have an embedding and its measures, got null";
    await expect(engine.train([null as never])).rejects.toThrow(missing);
    await expect(engine.score([null as never], voice)).rejects.toThrow(missing);
    await expect(engine.score([template!], null as never)).rejects.toThrow(missing);
    for (const wrong of [
      { netSpeechSeconds: Number.NaN },
      { snrDb: Number.NaN },
      { bandwidthHz: undefined as never },
    ]) {
      const refusal = new RegExp(`^${Object.keys(wrong)[0]} .*must be`);
      await expect(engine.train([{ ...voice, ...wrong }])).rejects.toThrow(refusal);
      await expect(engine.score([template!], { ...voice, ...wrong })).rejects.toThrow(refusal);
      await expect(engine.score([{ ...template!, ...wrong }], voice)).rejects.toThrow(refusal);
    }
    for (const [id, got] of [
      [5, "number"],
      [null, "null"],
    ] as const)
      expect(() => engine.gallery().set(id as never, embedding!)).toThrow(
        `the id of a voice must be a string, got ${got}`,
      );
    expect(() => engine.gallery().set("ada", null as never)).toThrow("in a Float32Array, got null");
    expect(() => engine.threshold(0.01, null as never)).toThrow("as its second argument, got null");
  });

  test("a stream that failed stays failed: no recording with a gap is analyzed", async () => {
    const stream = await engine.stream(rateHz);
    await stream.push(speech.slice(0, 8000));
    await expect(stream.push(Float32Array.of(Number.NaN))).rejects.toMatchObject({ code: "BAD_SAMPLES" });
    await expect(stream.push(speech.slice(8000))).rejects.toMatchObject({ code: "BAD_SAMPLES" });
    await expect(stream.analysis()).rejects.toMatchObject({ code: "BAD_SAMPLES" });
  });

  test("an attack network that the model does not have", async () => {
    expect(engine.model.attacks).toEqual([]);
    await expect(engine.attack("synthetic", speech.slice(), rateHz)).rejects.toMatchObject({
      name: "NotSupportedError",
      code: "NOT_SUPPORTED",
    });
  });

  test("random samples: never NaN, never a crash", async () => {
    const samples = fc.float32Array({ maxLength: 4000, noNaN: true, noDefaultInfinity: true });
    await fc.assert(
      fc.asyncProperty(samples, fc.integer({ min: 4000, max: 192_000 }), async (values, rate) => {
        const { measures } = await engine.analyze(values.slice(), rate);
        expect(numbers(measures).every((value) => value === null || Number.isFinite(value))).toBe(true);
      }),
      { numRuns: 40 },
    );
  });
});

describe("models", () => {
  test("a model describes itself", () => {
    expect(engine.model).toMatchObject({
      calibrationModelId: "random-1",
      dimensions: 256,
      windowSeconds: 4,
      attacks: [],
    });
    expect(engine.model.revision).toMatch(/^[0-9a-f]{64}$/);
  });

  test("a file that is truncated, altered or not a model is refused with its reason", async () => {
    const model = randomModel();
    await expect(openEngine({ workers: 0, model: model.slice(0, 100_000) })).rejects.toMatchObject({
      code: "TRUNCATED",
    });
    const altered = model.slice();
    altered[altered.length >> 1]! ^= 1;
    await expect(openEngine({ workers: 0, model: altered })).rejects.toMatchObject({ code: "ALTERED" });
    await expect(openEngine({ workers: 0, model: new Uint8Array(100) })).rejects.toMatchObject({ code: "NOT_A_MODEL" });
    await expect(openEngine({ workers: 0, model: "no/such/file" })).rejects.toThrow("ENOENT");
    await expect(openEngine({ workers: 0, model: model.buffer as never })).rejects.toThrow(
      "model must be a path, a URL or the bytes of a file (Uint8Array), got ArrayBuffer",
    );
    await expect(openEngine({ workers: 0, model, calibration: 5 as never })).rejects.toThrow(
      "calibration must be a path, a URL or the bytes of a file (Uint8Array), got number",
    );
    const unusable = randomModel({ calibration: { terms: [["mood", "one", 1]] } });
    await expect(openEngine({ workers: 0, model: unusable })).rejects.toMatchObject({ code: "BAD_MODEL" });
    await expect(openEngine({ workers: 0, model: randomModel({ dimensions: 192 }) })).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringContaining("dimensions of the model must be 256"),
    });
    await expect(openEngine({ workers: -1, model })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });

  test("new calibration, same revision: templates stay valid", async () => {
    const recalibrated = await openEngine({
      workers: 0,
      model: randomModel({ calibration: { terms: [["cosine", "one", 1]] } }),
    });
    expect(recalibrated.model.revision).toBe(engine.model.revision);
    const other = await openEngine({ workers: 0, model: randomModel({ seed: 2 }) });
    expect(other.model.revision).not.toBe(engine.model.revision);
    const { embedding, measures, revision } = await engine.analyze(speech.slice(), rateHz);
    const voice = { embedding: embedding!, ...measures };
    const { template } = await engine.train([voice]);
    expect(template!.revision).toBe(revision);
    const [score] = await recalibrated.score([template!], voice);
    expect(score!.llr).toBe(score!.raw);
    await expect(other.score([template!], voice)).rejects.toMatchObject({ code: "OTHER_REVISION" });
  });
});

describe("in the calling thread", () => {
  test("an abort or a time limit ends a long recording between two pieces of work", async () => {
    const hour = new Float32Array(3600 * 16_000);
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("changed my mind")), 20);
    await expect(engine.analyze(hour, 16_000, { signal: controller.signal })).rejects.toThrow("changed my mind");
    await expect(engine.analyze(hour, 16_000, { timeoutMs: 20 })).rejects.toMatchObject({ code: "TIMEOUT" });
    await expect(engine.analyze(hour, 16_000, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
  });

  test("after close everything fails with CLOSED", async () => {
    const closing = await openEngine({ workers: 0, model: randomModel() });
    const stream = await closing.stream(8000);
    const gallery = closing.gallery();
    await closing.close();
    await expect(closing.analyze(speech.slice(), rateHz)).rejects.toMatchObject({ code: "CLOSED" });
    await expect(closing.stream(8000)).rejects.toMatchObject({ code: "CLOSED" });
    await expect(stream.push(new Float32Array(10))).rejects.toMatchObject({ code: "CLOSED" });
    expect(() => closing.gallery()).toThrow(expect.objectContaining({ code: "CLOSED" }));
    expect(() => gallery.top(new Float32Array(256), 1)).toThrow(expect.objectContaining({ code: "CLOSED" }));
  });

  test("an engine does not keep a gallery that was closed", async () => {
    const closed = Array.from({ length: 8 }, () => {
      const gallery = engine.gallery();
      gallery.close();
      return new WeakRef(gallery);
    });
    setFlagsFromString("--expose-gc");
    // What was created in this turn is kept until its end.
    await new Promise((resolve) => setImmediate(resolve));
    runInNewContext("gc")();
    expect(closed.filter((gallery) => gallery.deref())).toEqual([]);
  });

  test("memory does not grow over ten hours of streaming", async () => {
    const before = await engine.memoryBytes();
    const minute = noise(60, 8000, 1, -60, "pink");
    const spoken = utter({ speaker: 3, seconds: 60, rateHz: 8000 }).samples;
    const stream = await engine.stream(8000);
    let net = 0;
    for (let i = 0; i < 600; i++) net = await stream.push((i % 200 === 50 ? spoken : minute).slice());
    const { measures, windows, embedding } = await stream.analysis();
    expect(measures.grossSeconds).toBe(36_000);
    expect(net).toBeGreaterThan(90);
    expect(windows.at(-1)!.endSeconds).toBeGreaterThan(27_000);
    expect(embedding).not.toBeNull();
    expect(await engine.memoryBytes()).toBe(before);
    expect(before).toBeLessThan(32e6);
  }, 900_000); // half a minute of work; the limit is for machines that do ten things at once
});
