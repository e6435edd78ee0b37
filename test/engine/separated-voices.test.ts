/** Two people in one channel, with the shipped network: separated, and the same in any chunking; one person stays one voice. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OpenedEngine, openEngine } from "../../dist/engine/index.js";
import { speak } from "../voice.js";
import { randomModel } from "./random-model.js";

let engine: OpenedEngine;
beforeAll(async () => {
  engine = await openEngine({ workers: 0 });
});
afterAll(() => engine.close());

const rateHz = 8000;
const voice = (speaker: number, seconds: number, seed: number) => speak({ speaker, seconds, rateHz, seed });

function joined(...parts: Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => {
    whole.set(part, at);
    return at + part.length;
  }, 0);
  return whole;
}

async function heard(samples: Float32Array, size = samples.length) {
  const stream = await engine.stream(rateHz, { separateVoices: true });
  for (let at = 0; at < samples.length; at += size) await stream.push(samples.slice(at, at + size));
  const analysis = await stream.analysis();
  await stream.close();
  return analysis;
}

const cosine = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);

test("two voices are separated and match those of separate channels", {
  timeout: 120_000,
}, async () => {
  const both = joined(voice(3, 3, 1), voice(8, 4, 1), voice(3, 3, 2), voice(8, 3, 2));
  const analysis = await heard(both);
  expect(analysis.speakers).toBe(2);
  expect(analysis.voices).toHaveLength(2);
  const [more, less] = analysis.voices!;
  expect(more!.measures.netSpeechSeconds).toBeGreaterThanOrEqual(less!.measures.netSpeechSeconds);
  const own = await Promise.all(
    [3, 8].map(async (speaker) => (await engine.analyze(voice(speaker, 8, 5), rateHz)).embedding!),
  );
  const whose = analysis.voices!.map(({ embedding }) => {
    const [like3, like8] = own.map((other) => cosine(embedding!, other));
    return like3! > like8! ? 3 : 8;
  });
  expect(new Set(whose).size).toBe(2);
  expect(await heard(both, 1111)).toEqual(analysis);
});

test("one person is one voice; too little speech gives none", { timeout: 120_000 }, async () => {
  const alone = await heard(voice(3, 12, 1));
  expect(alone.voices).toHaveLength(1);
  expect(alone.voices![0]!.measures.netSpeechSeconds).toBeGreaterThan(alone.measures.netSpeechSeconds - 1);
  expect((await heard(voice(3, 0.9, 1))).voices).toEqual([]);
  expect((await heard(new Float32Array(16_000))).voices).toEqual([]);
});

test("a model with the shortest windows separates voices too", { timeout: 120_000 }, async () => {
  const short = await openEngine({ workers: 0, model: randomModel({ windowSeconds: 0.5 }) });
  const stream = await short.stream(rateHz, { separateVoices: true });
  await stream.push(joined(voice(3, 3, 1), voice(8, 3, 1)));
  const { voices } = await stream.analysis();
  expect(voices!.length).toBeGreaterThan(0);
  for (const { embedding } of voices!) expect(embedding).toBeInstanceOf(Float32Array);
  await short.close();
});
