/** The easy door and both workflows, on the real engine with the package's own model and synthesized voices. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openVoiceprints } from "../../dist/index.js";
import type { Voiceprints } from "../../src/voiceprints.js";
import { noise, speak, wav } from "../voice.js";
import { refusal } from "./world.js";

const rateHz = 16_000;
const [alice, bob, mallory] = [3, 8, 34];
const said = (speaker: number, seed: number, seconds = 5) => speak({ speaker, seconds, rateHz, seed });
const recorded = (speaker: number, seed: number, seconds = 5) => wav(said(speaker, seed, seconds), rateHz);

let voice: Voiceprints;
beforeAll(async () => {
  voice = (await openVoiceprints({ engineOptions: { workers: 0 } })) as unknown as Voiceprints;
  await voice.enroll("bob", [recorded(bob, 1), recorded(bob, 2), recorded(bob, 3)]);
  await voice.enrollFraudster("mallory", [recorded(mallory, 1), recorded(mallory, 2), recorded(mallory, 3)]);
}, 120_000);
afterAll(() => voice.close());

describe("the ten-line program", () => {
  test("enrolls with progress, then verifies", async () => {
    const steps: string[] = [];
    const enrollment = await voice.enroll("alice", [recorded(alice, 1), recorded(alice, 2), recorded(alice, 3)], {
      onProgress: ({ step }) => steps.push(step),
    });
    expect(enrollment).toMatchObject({ trained: true, reason: "TRAIN_OK", printVersion: 1 });
    expect(enrollment.segments).toHaveLength(3);
    expect(enrollment.segments[0]).toMatchObject({ enrolled: true, reason: "ENROLL_OK", validity: "AUDIO_OK" });
    expect(steps.filter((step) => step === "segment")).toHaveLength(3);
    expect(steps.at(-1)).toBe("train");

    const genuine = await voice.verify("alice", recorded(alice, 4));
    const impostor = await voice.verify("alice", recorded(bob, 4));
    expect(genuine.score!).toBeGreaterThan(impostor.score! + 0.1 /* far apart, for any usable model */);
    expect(genuine.risk!).toBeLessThan(impostor.risk!);
    expect(["AUTHENTIC", "UNCERTAIN"]).toContain(genuine.decision);
    expect(["NO_MATCH", "UNCERTAIN"]).toContain(impostor.decision);
    const travelled = JSON.parse(JSON.stringify(genuine));
    expect(travelled).toEqual(genuine);
    expect(travelled.result).toMatchObject({
      decision: `DECISION_${genuine.decision}`,
      audioDetails: { netAudio: expect.stringMatching(/^\d+(\.\d+)?s$/) },
    });
    expect(genuine.result.voiceClassScore === undefined || Number(genuine.result.voiceClassScore) <= 100).toBe(true);
  }, 120_000);

  test("samples, headerless bytes and a Blob give the same answer as the file", async () => {
    const samples = said(bob, 4);
    const file = wav(samples, rateHz);
    const options = { ignoreCheckpoints: true };
    const byFile = await voice.verify("bob", file, options);
    const byBlob = await voice.verify("bob", new Blob([file.slice().buffer]), options);
    const byBytes = await voice.verify("bob", { bytes: file.slice(44), encoding: "pcm16", rateHz }, options);
    expect(byBlob.score).toBe(byFile.score);
    expect(byBytes.score).toBe(byFile.score);
    const bySamples = await voice.verify("bob", { samples, rateHz }, options);
    expect(Math.abs(bySamples.score! - byFile.score!)).toBeLessThan(0.05 /* 16-bit rounding */);
  }, 120_000);

  test("unfit audio gives a decision with a reason; unknown persons and unreadable bytes are errors", async () => {
    const hum = noise(5, rateHz, 1, -40);
    const enrollment = await voice.enroll("nobody", [recorded(bob, 9, 1), wav(hum, rateHz)]);
    expect(enrollment).toMatchObject({ trained: false, reason: "NOT_READY_TO_TRAIN", status: "NOT_TRAINED" });
    expect(enrollment.segments.map(({ enrolled }) => enrolled)).toEqual([false, false]);
    expect(await voice.verify("nobody", recorded(bob, 4))).toMatchObject({
      decision: "FAILED",
      reason: "NO_SCORES",
      score: null,
    });
    expect(await voice.verify("bob", recorded(bob, 5, 0.8))).toMatchObject({
      decision: "UNCERTAIN",
      reason: "AUDIO_TOO_SHORT",
    });
    expect(await refusal(voice.verify("stranger", recorded(bob, 4)))).toMatchObject({ code: "NOT_FOUND" });
    expect(await refusal(voice.verify("bob", new Uint8Array(100)))).toMatchObject({ code: "INVALID_REQUEST" });
    const given = AbortSignal.abort();
    expect(await refusal(voice.verify("bob", recorded(bob, 4), { signal: given }))).toMatchObject({
      code: "CANCELLED",
    });
    expect(await voice.erase("nobody")).toBe(true);
  }, 120_000);

  test.each([
    ["no audio", undefined, ["audio not_audio"]],
    ["a path", "alice.wav", ["audio not_audio"]],
    ["a plain array of samples", { samples: [0, 0, 0], rateHz }, ["audio not_audio"]],
    ["bytes that are text", { bytes: "RIFF", encoding: "pcm16", rateHz }, ["audio not_audio"]],
    ["samples without a rate", { samples: new Float32Array(rateHz) }, ["rate out_of_range"]],
    ["empty bytes", new Uint8Array(0), ["chunk not_audio"]],
  ])("%s is rejected with the name of the field, and creates no profile", async (_, audio, fields) => {
    const expected = { code: "INVALID_REQUEST", fields };
    expect(await refusal(voice.verify("bob", audio as never))).toMatchObject(expected);
    expect(await refusal(voice.enroll("carol", [audio as never]))).toMatchObject(expected);
    expect(await refusal(voice.enroll("carol", [recorded(alice, 1), audio as never]))).toMatchObject(expected);
    expect(await voice.people()).not.toContain("carol");
  });

  test("rejects an empty list, a single recording in place of a list, and invalid names", async () => {
    for (const recordings of [[], recorded(alice, 1), undefined])
      expect(await refusal(voice.enroll("carol", recordings as never))).toMatchObject({ fields: ["recordings empty"] });
    for (const name of ["", 7, undefined]) {
      expect(await refusal(voice.enroll(name as never, [recorded(alice, 1)]))).toMatchObject({
        fields: ["name malformed"],
      });
      expect(await refusal(voice.verify(name as never, recorded(alice, 1)))).toMatchObject({ code: "INVALID_REQUEST" });
    }
    expect(await voice.people()).not.toContain("carol");
  });

  test("an error about one of several recordings says which one", async () => {
    await expect(voice.enroll("carol", [recorded(alice, 1), new Uint8Array(100)])).rejects.toThrow(
      /^recordings\[1\]: not a WAV file/,
    );
    await expect(voice.enroll("carol", ["carol.wav" as never, recorded(alice, 1)])).rejects.toThrow(
      /^recordings\[0\]: audio must be/,
    );
  });

  test.each([undefined, Number.NaN, "fast"])("a rate of %j is named as it was given", async (rateHz) => {
    const audio = { samples: new Float32Array(8000), rateHz: rateHz as number };
    await expect(voice.verify("bob", audio)).rejects.toThrow(
      `rateHz must be a whole number from 4,000 to 192,000, got ${rateHz}`,
    );
  });

  test("a name in place of a list of names is rejected, and so are calls without their options", async () => {
    for (const call of [
      voice.identify(recorded(bob, 6), "bob" as never),
      voice.analyze(recorded(bob, 6), { persons: "bob" as never }),
      voice.listen({ persons: "bob" as never }, rateHz),
    ])
      await expect(call).rejects.toThrow("the names of persons must be a list, got string");
    for (const choices of [{ persons: [] }, { fraudsters: [] }])
      expect(await refusal(voice.analyze(recorded(bob, 6), choices))).toMatchObject({ fields: ["names empty"] });
    expect(await refusal(voice.listen(undefined as never, rateHz))).toMatchObject({ fields: ["target missing"] });
    expect(await refusal(voice.import("{}", undefined as never))).toMatchObject({ fields: ["passphrase missing"] });
    const nothing = null as never;
    await expect(voice.identify(recorded(bob, 6), nothing)).rejects.toThrow("must be a list, got null");
    await expect(voice.import("{}", nothing)).rejects.toThrow('import needs { passphrase: "…" }, got null');
    await expect(voice.import("{}", { passphrase: nothing })).rejects.toThrow("got { passphrase: null }");
    const passphrase = "long enough";
    await expect(voice.import(nothing, { passphrase })).rejects.toThrow("a Uint8Array or a Blob, got null");
  });

  test("choices of the wrong kind are rejected, and audio that was moved away", async () => {
    const audio = recorded(bob, 4);
    for (const [choices, message] of [
      [null, "the choices of a call must be an object, got null"],
      [{ signal: {} }, "signal must be an AbortSignal, got object"],
      [{ timeoutMs: "100" }, "timeoutMs must be a number of milliseconds, got string"],
      [{ onProgress: 5 }, "onProgress must be a function, got number"],
    ] as const) {
      await expect(voice.verify("bob", audio, choices as never)).rejects.toThrow(message);
      await expect(voice.enroll("nobody", [audio], choices as never)).rejects.toThrow(message);
      await expect(voice.listen({}, rateHz, choices as never)).rejects.toThrow(message);
    }
    await expect(voice.analyze(audio, { fraudsters: false as never })).rejects.toThrow(
      "the names of fraudsters must be a list, got boolean",
    );
    const samples = said(bob, 4);
    structuredClone(samples.buffer, { transfer: [samples.buffer as ArrayBuffer] });
    const moved = "the memory of this audio was moved to another thread by an earlier call";
    for (const gone of [{ samples, rateHz }, samples.buffer])
      await expect(voice.verify("bob", gone as never)).rejects.toThrow(moved);
    const listener = await voice.listen({}, rateHz);
    await expect(listener.push(samples)).rejects.toThrow(moved);
    await listener.close();
  });

  test("a timeout that is not a number is rejected", async () => {
    await expect(voice.verify("bob", recorded(bob, 6), { timeoutMs: Number.NaN })).rejects.toThrow(
      "timeoutMs must be a number of milliseconds, got NaN",
    );
  });

  test("a chunk with a sample that is not a number is rejected, and the check goes on", async () => {
    const listener = await voice.listen({ persons: ["bob"] }, rateHz);
    expect(await refusal(listener.push(Float32Array.of(0, Number.NaN)))).toMatchObject({
      code: "INVALID_REQUEST",
      fields: ["audio not_audio"],
    });
    expect(await listener.push(new Float32Array(100))).toBeNull();
    await listener.close();
  });

  test("identifies, watches and analyzes", async () => {
    const found = await voice.identify(recorded(bob, 6));
    expect(found.candidates[0]!.name).toBe("bob");
    const nobody = voice.identify(recorded(bob, 6), undefined, { tag: "mobile" });
    await expect(nobody).rejects.toThrow(
      'nobody is enrolled with the tag "mobile"; enroll somebody before identifying',
    );
    expect(found.person === "bob" || found.decision !== "AUTHENTIC").toBe(true);
    const watched = await voice.watch(recorded(mallory, 5));
    expect(watched.likeliestFraudster).toBe("mallory");
    const innocent = await voice.watch(recorded(bob, 7));
    expect(innocent.score!).toBeLessThan(watched.score!);
    expect(innocent.decision).not.toBe("FRAUD");
    const analysis = await voice.analyze(recorded(bob, 7), { persons: ["bob"], fraudsters: true });
    expect(analysis).toMatchObject({ validity: "AUDIO_OK", likeliestPerson: "bob", likeliestFraudster: "mallory" });
    expect(await voice.analyze(recorded(bob, 7))).toMatchObject({ decision: "UNSPECIFIED", reason: "AUDIO_OK" });
  }, 120_000);

  test("listens live, gives the same answer as for the whole recording, and stores nothing", async () => {
    const samples = said(bob, 8, 6);
    const whole = await voice.verify("bob", { samples: samples.slice(), rateHz }, { ignoreCheckpoints: true });
    const listener = await voice.listen({ persons: ["bob"] }, rateHz, { ignoreCheckpoints: true });
    const chunks = Array.from({ length: 30 }, (_, i) => samples.slice((i * rateHz) / 5, ((i + 1) * rateHz) / 5));
    const live = await listener.follow(chunks);
    expect(live.score).toBe(whole.score);
    expect(live.decision).toBe(whole.decision);
    const early = await voice.listen({ persons: ["bob"] }, rateHz);
    const answer = await early.follow(
      Array.from({ length: 100 }, (_, i) => samples.slice(((i % 30) * rateHz) / 5, (((i % 30) + 1) * rateHz) / 5)),
    );
    expect(answer.decision === "AUTHENTIC" ? answer.netSpeechSeconds : 2).toBeLessThan(20);
    const unfinished = await voice.listen({ fraudsters: true }, rateHz);
    await unfinished.push(samples.slice(0, 1000));
    await unfinished.close();
  }, 120_000);

  test("exports and erases everything stored about a person", async () => {
    await voice.enroll("carol", [recorded(21, 1), recorded(21, 2), recorded(21, 3)]);
    expect(await voice.people()).toContain("carol");
    const [exported] = await voice.export("carol");
    expect(exported).toMatchObject({ owner: { kind: "person", externalId: "carol" }, printVersion: 1 });
    expect(exported!.segments).toHaveLength(3);
    expect(JSON.parse(JSON.stringify(exported))).toEqual(exported);
    expect(await voice.erase("carol")).toBe(true);
    expect(await voice.erase("carol")).toBe(false);
    expect(await voice.export("carol")).toEqual([]);
    expect(await voice.people()).not.toContain("carol");
  }, 120_000);
});

test("an unknown configuration set is rejected at once", async () => {
  // It is rejected before the engine is opened, because nobody would close it.
  const engineOptions = { workers: 0, model: new Uint8Array(1) };
  await expect(openVoiceprints({ engineOptions, configset: "mine" })).rejects.toThrow(
    /^unknown configuration set "mine"; use one of .*text-independent$/,
  );
});
