import { afterAll, beforeAll, expect, test } from "vitest";
import { type OpenedEngine, openEngine } from "../../dist/engine/index.js";
import { utter } from "../voice.js";
import { randomModel } from "./random-model.js";

let engine: OpenedEngine;
beforeAll(async () => {
  engine = await openEngine({ workers: 0, model: randomModel({ attacks: ["synthetic"] }) });
});
afterAll(() => engine.close());

const { samples, rateHz } = utter({ speaker: 4, seconds: 12, rateHz: 8000 });

test("a model lists its attack checks; others are refused", async () => {
  expect(engine.model.attacks).toEqual(["synthetic"]);
  await expect(engine.attack("playback", samples.slice(), rateHz)).rejects.toMatchObject({ name: "NotSupportedError" });
});

test("attack networks do not change the revision of templates, and have their own", async () => {
  const without = await openEngine({ workers: 0, model: randomModel() });
  expect(engine.model.revision).toBe(without.model.revision);
  const { revision } = await engine.attack("synthetic", samples.slice(), rateHz);
  expect(revision).toMatch(/^[0-9a-f]{64}$/);
  expect(revision).not.toBe(engine.model.revision);
});

test("the same in workers as here, to the last bit", async () => {
  const here = await engine.attack("synthetic", samples.slice(), rateHz);
  expect(Number.isFinite(here.llr)).toBe(true);
  const pool = await openEngine({ workers: 1, model: randomModel({ attacks: ["synthetic"] }) });
  expect(await pool.attack("synthetic", samples.slice(), rateHz)).toEqual(here);
  await pool.close();
});

test("both networks score independently", async () => {
  const both = await openEngine({ workers: 0, model: randomModel({ attacks: ["synthetic", "playback"] }) });
  const [synthetic, playback] = [
    await both.attack("synthetic", samples.slice(), rateHz),
    await both.attack("playback", samples.slice(), rateHz),
  ];
  expect(synthetic).toEqual(await engine.attack("synthetic", samples.slice(), rateHz));
  expect(playback.llr).not.toBe(synthetic.llr);
  expect(playback.revision).not.toBe(synthetic.revision);
});

test("more speech raises the reliability; with too little it is 0", async () => {
  const long = await engine.attack("synthetic", samples.slice(), rateHz);
  const short = await engine.attack("synthetic", samples.slice(0, 4 * rateHz), rateHz);
  expect(long.reliability).toBeGreaterThan(short.reliability);
  expect(long.reliability).toBeLessThan(1);
  const revision = expect.any(String);
  const nothing = { llr: 0, reliability: 0, revision, strongest: null };
  expect(await engine.attack("synthetic", samples.slice(0, rateHz), rateHz)).toEqual(nothing);
  expect(await engine.attack("synthetic", new Float32Array(0), rateHz)).toEqual(nothing);
});

test("audio that arrives in parts of any size has the score of the whole, and the strongest window", async () => {
  const whole = await engine.attack("synthetic", samples.slice(), rateHz);
  for (const size of [160, 3001, 5 * rateHz]) {
    const stream = await engine.attackStream("synthetic", rateHz);
    for (let at = 0; at < samples.length; at += size) {
      const part = samples.slice(at, at + size);
      await stream.push(part);
      expect(part.length).toBeGreaterThan(0); // the caller keeps its samples
    }
    expect(await stream.score()).toEqual(whole);
    expect(await stream.score()).toEqual(whole);
  }
  const { startSeconds, endSeconds } = whole.strongest!;
  expect(startSeconds).toBeGreaterThanOrEqual(0);
  expect(endSeconds - startSeconds).toBeGreaterThan(1);
  expect(endSeconds).toBeLessThanOrEqual(12);
});

test("parts that are not awaited are processed in order, and after a failure there is no score", async () => {
  const whole = await engine.attack("synthetic", samples.slice(), rateHz);
  const pool = await openEngine({ workers: 2, model: randomModel({ attacks: ["synthetic"] }) });
  for (const one of [engine, pool]) {
    const stream = await one.attackStream("synthetic", rateHz);
    for (let at = 0; at < samples.length; at += rateHz) void stream.push(samples.slice(at, at + rateHz));
    expect(await stream.score()).toEqual(whole);
  }
  const stream = await pool.attackStream("synthetic", rateHz);
  const damaged = samples.slice(0, 2 * rateHz).fill(Number.NaN, 0, 1);
  await expect(stream.push(damaged)).rejects.toMatchObject({ code: "BAD_SAMPLES" });
  await expect(stream.score()).rejects.toMatchObject({ code: "BAD_SAMPLES" });
  await pool.close();
});

test("bad input is refused", async () => {
  await expect(engine.attack("synthetic", Float32Array.of(Number.NaN), rateHz)).rejects.toMatchObject({
    code: "BAD_SAMPLES",
  });
  await expect(engine.attack("synthetic", samples.slice(), 1)).rejects.toMatchObject({ code: "BAD_RATE" });
});

test("a network of another attack or shape is refused; one of a later architecture is ignored", async () => {
  const open = (model: Uint8Array) => openEngine({ workers: 0, model });
  for (const model of [
    randomModel({ attacks: ["lies"] }),
    randomModel({ attacks: ["synthetic"], attackArchitecture: "attack-1" }),
    randomModel({ attacks: ["playback"], attackArchitecture: "attack-7" }),
  ])
    await expect(open(model)).rejects.toMatchObject({ code: "BAD_MODEL" });
  const later = await open(randomModel({ attacks: ["synthetic"], attackArchitecture: "attack-9" }));
  expect(later.model.attacks).toEqual([]);
  await expect(later.attack("synthetic", samples.slice(), rateHz)).rejects.toMatchObject({ name: "NotSupportedError" });
  await later.close();
});
