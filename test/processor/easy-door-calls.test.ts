/** What each call of the easy door takes and answers, on the fixture engine. */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { floatWav } from "../../src/audio/wav-writer.js";
import { StatusCode, StatusError } from "../../src/contract/index.js";
import type { OperationOptions, Operations } from "../../src/contract/operations.js";
import { Listener } from "../../src/easy-door/listener.js";
import { localAccess } from "../../src/local-access.js";
import { seal } from "../../src/sealed-export.js";
import { type Audio, Voiceprints, type VoiceprintsProgress } from "../../src/voiceprints.js";
import { rateHz, take } from "./fixture-engine.js";
import { openWorld, pcm16, refusal, scopeA, type World } from "./world.js";

const passphrase = "correct horse battery";
const settings = { scope: scopeA, configset: "ivr-text-dependent" };
const audio = (speaker: number, seconds: number) => ({ samples: take(speaker, seconds), rateHz });
const takes = (speaker: number) => [3, 3.1, 3.2].map((seconds) => audio(speaker, seconds));
const failure = (code: keyof typeof StatusCode, field?: string) =>
  new StatusError({
    statusCode: StatusCode[code],
    message: "not now",
    ...(field && { fieldViolations: [{ field, violation: "unknown", message: "not now" }] }),
  });

let world: World;
let voice: Voiceprints;
beforeEach(async () => {
  world = await openWorld();
  voice = new Voiceprints(world.processor, settings, localAccess(world.processor));
});

describe("enroll", () => {
  test("reports each recording and the training, and answers with all of them", async () => {
    const progress: VoiceprintsProgress[] = [];
    const enrollment = await voice.enroll("ada", takes(7), { onProgress: (one) => progress.push(one) });
    const steps = progress.filter(({ step }) => step !== "listen");
    expect(steps).toMatchObject([
      ...[0, 1, 2].map((index) => ({ step: "segment", index, total: 3, segment: { enrolled: true } })),
      { step: "train" },
    ]);
    expect(progress.find(({ step }) => step === "listen")).toEqual({
      step: "listen",
      netSpeechSeconds: expect.any(Number),
      grossSeconds: expect.any(Number),
      totalSeconds: 3,
    });
    expect(enrollment).toMatchObject({ trained: true, status: "OPTIMAL_TRAINED", printVersion: 1 });
    expect(enrollment.netSpeechSeconds).toBeGreaterThan(3);
    for (const segment of enrollment.segments)
      expect(segment).toMatchObject({ snrDb: expect.any(Number), usedForTraining: true });
  });

  test("without training only adds the recordings", async () => {
    expect(await voice.enroll("ada", takes(7), { train: false })).toEqual({
      trained: false,
      reason: "UNSPECIFIED",
      status: "UNSPECIFIED",
      printVersion: 0,
      enrollStatus: "TRAIN_SUGGESTED",
      netSpeechSeconds: 0,
      missingSpeechSeconds: null,
      missingRecordings: null,
      profileId: expect.any(String),
      segments: [3, 3.1, 3.2].map(() => expect.objectContaining({ enrolled: true, usedForTraining: null })),
    });
  });

  test("of a recording that cannot be processed trains nothing", async () => {
    world.engine.behavior.before = () => {
      throw new Error("out of order");
    };
    expect(await voice.enroll("ada", [audio(7, 3)])).toMatchObject({
      trained: false,
      printVersion: 0,
      enrollStatus: "UNSPECIFIED",
      segments: [{ enrolled: false, reason: "INTERNAL_ERROR", usedForTraining: null }],
    });
  });

  test("of a new person twice at once makes one profile", async () => {
    const both = await Promise.all([voice.enroll("ada", takes(7)), voice.enroll("ada", takes(7))]);
    expect(new Set(both.map(({ profileId }) => profileId)).size).toBe(1);
    expect(await voice.export("ada")).toHaveLength(1);
  });

  test("reports why a profile could not be created", async () => {
    vi.spyOn(world.processor, "createVoiceprintProfile").mockRejectedValue(failure("BUSY"));
    expect(await refusal(voice.enroll("ada", takes(7)))).toMatchObject({ code: "BUSY" });
  });

  test("names the recording in errors about it: its file, the name given, or its place in a list", async () => {
    const broken = new Uint8Array(100);
    const message = async (...recordings: unknown[]) => {
      const enrolled = voice.enroll("ada", recordings as Audio[]);
      const { message, status } = await enrolled.then(
        () => Promise.reject(new Error("enrolled")),
        (error: StatusError) => error,
      );
      expect(status.fieldViolations.map((violation) => violation.message)).toEqual([message]);
      return message;
    };
    expect(await message(broken)).toMatch(/^not a WAV file/);
    expect(await message(new File([broken], "ada.wav"))).toMatch(/^ada\.wav: not a WAV file/);
    const odd = { bytes: broken, encoding: "mp5", rateHz };
    expect(await message(odd)).toMatch(/^(?!line|recordings)/);
    expect(await message({ ...odd, name: "line 1" })).toMatch(/^line 1: /);
    expect(await message(audio(7, 3), odd)).toMatch(/^recordings\[1\]: /);
    expect(await message(null)).toMatch(/^audio must be a recording/);
    expect(await message(audio(7, 3), null)).toMatch(/^recordings\[1\]: audio must be/);
  });

  test("does not name the recording in errors that are not about it", async () => {
    const add = vi.spyOn(world.processor, "addMediaSegment");
    const file = new File([new Uint8Array(100)], "ada.wav");
    for (const error of [failure("BUSY"), failure("INVALID_REQUEST", "context"), new TypeError("not now")]) {
      add.mockRejectedValueOnce(error);
      await expect(voice.enroll("ada", [file])).rejects.toBe(error);
    }
  });
});

describe("of several prints of a person", () => {
  beforeEach(async () => {
    await voice.enroll("ada", takes(7));
    await voice.enroll("ada", takes(7), { tag: "phone" });
    await voice.enroll("bob", takes(9));
  });

  test("the one with the tag is verified and identified", async () => {
    expect(await voice.verify("ada", audio(7, 4), { tag: "phone" })).toMatchObject({ decision: "AUTHENTIC" });
    await expect(voice.verify("bob", audio(9, 4), { tag: "phone" })).rejects.toThrow(
      /^the person "bob" has no voiceprint with the tag "phone"$/,
    );
    await expect(voice.verify("eve", audio(9, 4))).rejects.toThrow(/^the person "eve" has no voiceprint$/);
    const names = async (tag?: string) =>
      (await voice.identify(audio(7, 4), undefined, tag === undefined ? {} : { tag })).candidates.map(
        ({ name }) => name,
      );
    expect(await names("phone")).toEqual(["ada"]);
    expect((await names()).sort()).toEqual(["ada", "ada", "bob"]);
  });

  test("the one with the tag is erased, or all", async () => {
    expect(await voice.erase("ada", { tag: "car" })).toBe(false);
    expect(await voice.erase("ada", { tag: "phone" })).toBe(true);
    expect((await voice.export("ada")).map(({ tag }) => tag)).toEqual([""]);
    expect(await voice.erase("ada")).toBe(true);
    expect(await voice.people()).toEqual(["bob"]);
  });

  test("live audio enrolls the one with the tag", async () => {
    await (await voice.listenToEnroll("eve", rateHz, { tag: "phone" })).close();
    expect((await voice.export("eve")).map(({ tag }) => tag)).toEqual(["phone"]);
  });

  test("erasure and export skip one that is gone, and report every other error", async () => {
    const remove = vi.spyOn(world.processor, "deleteVoiceprintProfile").mockRejectedValueOnce(failure("NOT_FOUND"));
    expect(await voice.erase("ada")).toBe(true);
    remove.mockRejectedValueOnce(failure("BUSY"));
    expect(await refusal(voice.erase("bob"))).toMatchObject({ code: "BUSY" });
    const read = vi.spyOn(world.processor, "exportVoiceprintProfile").mockRejectedValueOnce(failure("NOT_FOUND"));
    expect(await voice.export("bob")).toEqual([]);
    read.mockRejectedValueOnce(failure("BUSY"));
    expect(await refusal(voice.export("bob"))).toMatchObject({ code: "BUSY" });
  });
});

describe("choices", () => {
  beforeEach(async () => {
    await voice.enroll("ada", takes(7));
    await voice.enroll("ada", takes(7), { tag: "mobile" });
  });

  test("that a call does not know are refused by name", async () => {
    const unknown = { timeoutMS: 5 } as never;
    for (const call of [
      () => voice.enroll("bob", takes(8), unknown),
      () => voice.enrollFraudster("bob", takes(8), unknown),
      () => voice.verify("ada", audio(7, 3), unknown),
      () => voice.identify(audio(7, 3), ["ada"], unknown),
      () => voice.watch(audio(7, 3), undefined, unknown),
      () => voice.analyze(audio(7, 3), unknown),
      () => voice.listen({ persons: ["ada"] }, rateHz, unknown),
      () => voice.listenToEnroll("bob", rateHz, unknown),
    ]) {
      await expect(call()).rejects.toThrow("unknown option timeoutMS (did you mean timeoutMs?)");
      expect(await refusal(call())).toMatchObject({ fields: ["choices unknown"] });
    }
    await expect(voice.verify("ada", audio(7, 3), { train: false } as never)).rejects.toThrow("unknown option train");
    await expect(voice.export("ada", { passphrase, tag: "mobile" } as never)).rejects.toThrow("unknown option tag");
    await expect(voice.import("{}", { passphrase, nmae: "bob" } as never)).rejects.toThrow("did you mean name?");
    expect(await voice.people()).toEqual(["ada"]);
  });

  test.each([
    [{ tags: "mobile" }, "unknown option tags (did you mean tag?)"],
    ["mobile", "the choices of a call must be an object, got mobile"],
    [null, "the choices of a call must be an object, got null"],
    [{ tag: null }, "tag must be a string, got null"],
    [{ tag: 7 }, "tag must be a string, got number"],
  ])("of an erasure such as %j are refused, and nothing is erased", async (choices, message) => {
    await expect(voice.erase("ada", choices as never)).rejects.toThrow(message);
    await expect(voice.eraseFraudster("ada", choices as never)).rejects.toThrow(message);
    expect(await voice.export("ada")).toHaveLength(2);
  });

  test("of many calls at once can have one signal, without a warning of Node", async () => {
    const warned = vi.fn();
    process.on("warning", warned);
    const { signal } = new AbortController();
    await Promise.all(
      Array.from({ length: 20 }, () => voice.verify("ada", audio(7, 3), { signal, timeoutMs: 60_000 })),
    );
    const listeners = await Promise.all(Array.from({ length: 20 }, () => voice.listen({}, rateHz, { signal })));
    await Promise.all(listeners.map((listener) => listener.close()));
    // Warnings are emitted in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", warned);
    expect(warned).not.toHaveBeenCalled();
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("limit all operations of a call together, in place of the limit of a connection", async () => {
    const given: OperationOptions[] = [];
    const operations = new Proxy(world.processor, {
      get: (processor, name: keyof Operations) => (request: unknown, options: OperationOptions) => {
        if (name !== "stopEngagement") given.push(options);
        return (processor[name] as (...given: unknown[]) => unknown).call(processor, request, options);
      },
    });
    const watched = new Voiceprints(operations, settings, localAccess(world.processor));
    const choices = { signal: new AbortController().signal, timeoutMs: 60_000 };
    const target = { persons: ["ada", "ada"] };
    for (const call of [
      () => watched.verify("ada", audio(7, 3), choices),
      () => watched.analyze(audio(7, 3), { ...target, ...choices }),
      async () => (await watched.listen(target, rateHz, choices)).close(),
    ]) {
      given.length = 0;
      await call();
      expect(given.length).toBeGreaterThan(2);
      expect(given.map(({ timeoutMs }) => timeoutMs)).toEqual(given.map(() => choices.timeoutMs));
      // The signal of the call itself has no time limit.
      expect(new Set(given.map(({ signal }) => signal))).toEqual(new Set([given[0]!.signal]));
      expect(given[0]!.signal).not.toBe(choices.signal);
    }
  });

  test("of a listener limit the time to open it, and not the listener", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { signal } = new AbortController();
      const listener = await voice.listen({}, rateHz, { signal, timeoutMs: 1000 });
      expect(vi.getTimerCount()).toBe(0);
      await listener.close();
      expect(getEventListeners(signal, "abort")).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("can be frozen, and undefined where they are not given", async () => {
    const none = { signal: undefined, timeoutMs: undefined, onProgress: undefined, tag: undefined, channel: undefined };
    const choices = Object.freeze({ ...none, ignoreCheckpoints: undefined }) as never;
    expect(await voice.verify("ada", audio(7, 3), choices)).toMatchObject({ decision: "AUTHENTIC" });
  });
});

describe("audio", () => {
  const samples = take(7, 4);
  const answer = async (given: Audio) => {
    const { decision, score } = await voice.verify("ada", given, { ignoreCheckpoints: true });
    return { decision, score };
  };
  beforeEach(() => voice.enroll("ada", takes(7)));

  test("can be bytes in every encoding that a listener takes", async () => {
    const wanted = await answer({ samples, rateHz });
    const float32 = new Uint8Array(samples.slice().buffer);
    expect(await answer({ bytes: float32, encoding: "float32", rateHz })).toEqual(wanted);
    const inBytes = pcm16([samples]);
    const l16 = Uint8Array.from(Buffer.from(inBytes).swap16());
    expect(await answer({ bytes: l16, encoding: "l16", rateHz })).toEqual(
      await answer({ bytes: inBytes, encoding: "pcm16", rateHz }),
    );
    const stereo = Float32Array.from({ length: 2 * samples.length }, (_, i) => (i % 2 === 0 ? 0 : samples[i >> 1]!));
    const right = { bytes: new Uint8Array(stereo.buffer), encoding: "float32", rateHz, channels: 2 } as const;
    expect(await voice.verify("ada", right, { channel: 2, ignoreCheckpoints: true })).toMatchObject(wanted);
    const broken = {
      bytes: new Uint8Array(new Float32Array([Number.NaN]).buffer),
      encoding: "float32",
      rateHz,
    } as const;
    await expect(voice.verify("ada", { ...broken, name: "line 1" })).rejects.toThrow(/^line 1: .*not a finite number/);
    await expect(voice.enroll("ada", [audio(7, 3), broken])).rejects.toThrow(/^recordings\[1\]: .*not a finite number/);
  });

  test("can be in shared memory, and a part of a larger array", async () => {
    const file = floatWav([samples], rateHz);
    const wanted = await answer(file);
    const shared = new Uint8Array(new SharedArrayBuffer(file.length + 20), 10, file.length);
    shared.set(file);
    expect(await answer(shared)).toEqual(wanted);
    expect(await answer(Buffer.concat([Buffer.alloc(13), file]).subarray(13))).toEqual(wanted);
    const larger = new Float32Array(new SharedArrayBuffer(4 * (samples.length + 2)), 4, samples.length);
    larger.set(samples);
    expect(await answer({ samples: larger, rateHz })).toEqual(wanted);
  });

  test("that can no longer be read is named", async () => {
    const gone = new File(["x"], "gone.wav");
    gone.arrayBuffer = () => Promise.reject(new DOMException("it was changed", "NotReadableError"));
    expect(await refusal(voice.verify("ada", gone))).toMatchObject({ fields: ["audio not_audio"] });
    await expect(voice.verify("ada", gone)).rejects.toThrow("gone.wav: the file cannot be read: it was changed");
  });
});

describe("answers", () => {
  test("more people than one call compares are a group's job, which the message says", async () => {
    const profiles = Array.from({ length: 10_001 }, (_, i) => ({ gkVoiceprintProfileId: { value: `id ${i}` } }));
    vi.spyOn(world.processor, "listVoiceprintProfiles").mockResolvedValue({ profiles, nextPageToken: "" } as never);
    const asked = vi.spyOn(world.processor, "identify");
    await expect(voice.identify(audio(7, 4))).rejects.toThrow(
      "10001 voiceprints are enrolled, and at most 10000 can be compared one by one; name some, or put them in a group (CreateGroup)",
    );
    await expect(voice.watch(audio(7, 4))).rejects.toThrow("put them in a watchlist (CreateWatchlist)");
    expect(asked).not.toHaveBeenCalled();
  });

  test("many people by name are found in the list of all, those beyond its first pages one by one", async () => {
    const names = Array.from({ length: 260 }, (_, i) => `person-${i}`);
    for (const name of names) await world.person(name);
    await world.person("person-7", "mobile");
    // Two pages are read for 260 names.
    for (let i = 0; i < 1000 - 261; i++) await world.person(`nobody asks for ${i}`);
    await voice.enroll("zoe", takes(7));
    const [pages, finds] = [
      vi.spyOn(world.processor, "listVoiceprintProfiles"),
      vi.spyOn(world.processor, "getGkVoiceprintProfileId"),
    ];
    const found = await voice.identify(audio(7, 4), [...names, "zoe"]);
    expect(found).toMatchObject({ decision: "AUTHENTIC", person: "zoe" });
    expect([pages.mock.calls.length, finds.mock.calls.length]).toEqual([2, 1]);
    const asked = voice.identify(audio(7, 4), [...names, "nobody of this name"]);
    await expect(asked).rejects.toThrow('the person "nobody of this name" has no voiceprint');
    await expect(voice.identify(audio(7, 4), names, { tag: "mobile" })).rejects.toThrow(
      'the person "person-0" has no voiceprint with the tag "mobile"',
    );
    const few = voice.identify(audio(7, 4), names.slice(0, 99));
    expect(await few).toMatchObject({ decision: "FAILED" });
    expect(pages).toHaveBeenCalledTimes(6);
  });

  test("identify names nobody unless the decision is AUTHENTIC", async () => {
    await expect(voice.identify(audio(7, 4))).rejects.toThrow(
      /^nobody is enrolled; enroll somebody before identifying$/,
    );
    await voice.enroll("ada", takes(7));
    expect(await voice.identify(audio(7, 4))).toMatchObject({
      decision: "AUTHENTIC",
      person: "ada",
      risk: expect.any(Number),
      reliability: expect.any(Number),
    });
    expect(await voice.identify(audio(9, 4))).toMatchObject({
      decision: "NO_MATCH",
      person: null,
      candidates: [{ name: "ada" }],
    });
  });

  test("identify leaves out a profile that it did not ask for", async () => {
    await voice.enroll("ada", takes(7));
    const identify = world.processor.identify.bind(world.processor);
    vi.spyOn(world.processor, "identify").mockImplementation(async (request, options) => {
      const { result, ...rest } = await identify(request, options);
      const [ada] = result!.voiceprintResults;
      const other = { ...ada!, gkVoiceprintProfileId: { ...ada!.gkVoiceprintProfileId!, value: "another" } };
      return { ...rest, result: { ...result!, voiceprintResults: [other, ada!] } };
    });
    expect((await voice.identify(audio(7, 4))).candidates.map(({ name }) => name)).toEqual(["ada"]);
  });

  test("watch needs an enrolled fraudster, and names no person", async () => {
    expect(await refusal(voice.watch(audio(9, 4)))).toMatchObject({ code: "NOT_FOUND" });
    await expect(voice.watch(audio(9, 4))).rejects.toThrow("no fraudster is enrolled; enroll one before watching");
    await voice.enrollFraudster("mallory", takes(9));
    expect(await voice.watch(audio(9, 12))).toMatchObject({ likeliestPerson: null, likeliestFraudster: "mallory" });
    expect(await voice.eraseFraudster("mallory")).toBe(true);
    expect(await voice.fraudsters()).toEqual([]);
    await expect(voice.exportFraudster("mallory", { passphrase })).rejects.toThrow(
      'the fraudster "mallory" has no voiceprint',
    );
  });

  test("one channel of a recording can be chosen; 0 mixes all", async () => {
    await voice.enroll("ada", takes(7));
    const both = { bytes: pcm16([take(7, 4), take(9, 4)]), encoding: "pcm16", rateHz, channels: 2 } as const;
    expect((await voice.verify("ada", both, { channel: 1 })).decision).toBe("AUTHENTIC");
    expect((await voice.verify("ada", both, { channel: 2 })).decision).toBe("NO_MATCH");
    // Headerless bytes have one channel unless more are named.
    const one = { bytes: pcm16([take(7, 4)]), encoding: "pcm16", rateHz } as const;
    const heard = async (given: Audio) =>
      (await voice.verify("ada", given, { ignoreCheckpoints: true })).netSpeechSeconds;
    expect(await heard(one)).toBe(await heard({ ...one, channels: 1 }));
    const sent = vi.spyOn(world.processor, "verify");
    await voice.verify("ada", both);
    await voice.verify("ada", both, { channel: 0 });
    expect(sent.mock.calls.map(([request]) => request.channelSelector)).toEqual([undefined, { channel: 0 }]);
  });

  test("net speech is in seconds, and 0 if it was not measured", async () => {
    await voice.enroll("ada", takes(7));
    const verify = vi.spyOn(world.processor, "verify");
    const { result, ...rest } = await world.processor.verify({
      context: world.context,
      audio: await world.heard(take(7, 4)),
      gkVoiceprintProfileId: { value: (await voice.enroll("ada", [audio(7, 3)])).profileId },
    });
    for (const [netAudio, seconds] of [
      [{ seconds: 2n, nanos: 500_000_000 }, 2.5],
      [undefined, 0],
    ] as const) {
      const audioDetails = { ...result!.audioDetails!, netAudio } as never;
      verify.mockResolvedValueOnce({ ...rest, result: { ...result!, audioDetails } });
      expect((await voice.verify("ada", audio(7, 4))).netSpeechSeconds).toBe(seconds);
    }
  });

  test("a call is repeated eight times for people who are erased meanwhile, then the error is reported", async () => {
    await voice.enroll("ada", takes(7));
    const identify = vi
      .spyOn(world.processor, "identify")
      .mockRejectedValue(failure("NOT_FOUND", "gk_voiceprint_profile_ids.unique_ids[0]"));
    expect(await refusal(voice.identify(audio(7, 4)))).toMatchObject({ code: "NOT_FOUND" });
    expect(identify).toHaveBeenCalledTimes(9);
    expect(await refusal(voice.identify(audio(7, 4), ["ada"]))).toMatchObject({ code: "NOT_FOUND" });
    expect(identify).toHaveBeenCalledTimes(10);
  });

  test("people are listed from all pages, each once, in order", async () => {
    const summary = (id: string, ownerId: string) => ({ gkVoiceprintProfileId: { value: id }, ownerId });
    const pages = [[summary("1", "eve"), summary("2", "ada")], [summary("3", "ada")], [summary("4", "bob")]];
    const list = vi.spyOn(world.processor, "listVoiceprintProfiles");
    for (const [i, profiles] of pages.entries())
      list.mockResolvedValueOnce({ profiles, nextPageToken: i + 1 < pages.length ? `page ${i + 1}` : "" } as never);
    expect(await voice.people()).toEqual(["ada", "bob", "eve"]);
    expect(list.mock.calls.map(([request]) => request.pageToken)).toEqual(["", "page 1", "page 2"]);
  });
});

describe("sealed exports", () => {
  test("need a passphrase of at least eight characters, the same on every keyboard", async () => {
    await voice.enroll("ada", takes(7));
    expect(await refusal(voice.export("ada", { passphrase: "1234567" }))).toMatchObject({
      fields: ["passphrase unusable"],
    });
    const sealed = await voice.export("ada", { passphrase: "caf\u00e9 123" });
    expect(sealed).toMatch(/^\{\n {2}"format"/);
    expect(Buffer.from(JSON.parse(sealed).kdf.salt, "base64")).toHaveLength(16);
    await voice.erase("ada");
    expect(await voice.import(sealed, { passphrase: "cafe\u0301 123" })).toMatchObject([{ name: "ada" }]);
  });

  test.each<[string, () => Promise<unknown>, string]>([
    ["of nobody", () => seal([], passphrase), "sealed empty"],
    ["of something else", () => seal({ person: "ada" }, passphrase), "sealed empty"],
    ["that are not a text", async () => 7, "sealed malformed"],
    ["that are null", async () => "null", "sealed unusable"],
  ])("%s are rejected", async (_, sealed, field) => {
    const imported = voice.import((await sealed()) as string, { passphrase });
    expect(await refusal(imported)).toMatchObject({ code: "INVALID_REQUEST", fields: [field] });
  });

  test("cannot be imported under an empty name", async () => {
    expect(await refusal(voice.import("{}", { passphrase, name: "" }))).toMatchObject({ fields: ["name malformed"] });
  });
});

describe("live audio", () => {
  test.each([
    [[], "target must be an object, got an array"],
    [{ person: ["ada"] }, "unknown option target.person (did you mean persons?)"],
  ])("is not opened for %j", async (target, message) => {
    await expect(voice.listen(target as never, rateHz)).rejects.toThrow(message);
  });

  test("needs a sampling rate, before a session is started", async () => {
    const start = vi.spyOn(world.processor, "startSession");
    const without = voice.listen as (target: object) => Promise<Listener>;
    await expect(without.call(voice, {})).rejects.toThrow(
      "rateHz must be a whole number from 4,000 to 192,000, got undefined",
    );
    expect(start).not.toHaveBeenCalled();
  });

  test("stops its session when its signal aborts, whether or not more audio comes", async () => {
    const stop = vi.spyOn(world.processor, "stopEngagement");
    const leaving = new AbortController();
    const listener = await voice.listen({}, rateHz, { signal: leaving.signal });
    await listener.push(take(7, 0.5));
    leaving.abort();
    await expect.poll(() => stop).toHaveBeenCalledOnce();
    expect(await refusal(listener.push(take(7, 0.5)))).toMatchObject({ code: "CANCELLED" });
    await listener.close();
    expect(stop).toHaveBeenCalledOnce();
  });

  test("needs a target, and is closed with the door", async () => {
    expect(await refusal(voice.listen(null as never, rateHz))).toMatchObject({ fields: ["target missing"] });
    const close = vi.fn(async () => {});
    await new Voiceprints(world.processor, settings, { close } as never).close();
    expect(close).toHaveBeenCalledOnce();
  });

  const opened = (result: string | null) => {
    const task = {
      push: vi.fn(async () => result),
      finish: vi.fn(async () => "finished"),
      close: vi.fn(async () => {}),
    };
    const ended = vi.fn(async () => {});
    const listener = new Listener(task as never, rateHz, ((one: string) => `answer: ${one}`) as never, ended);
    return { task, ended, listener };
  };

  test("after the answer is neither sent nor finished again", async () => {
    const { task, ended, listener } = opened("clear");
    for (let i = 0; i < 2; i++) expect(await listener.push(new Float32Array(8))).toBe("answer: clear");
    expect(await listener.finish()).toBe("answer: clear");
    expect([task.push, task.finish, ended].map((called) => called.mock.calls.length)).toEqual([1, 0, 1]);
    await listener.close();
    expect([task.close, ended].map((called) => called.mock.calls.length)).toEqual([1, 1]);
  });

  test("that ends without a clear answer is finished", async () => {
    const { ended, listener } = opened(null);
    expect(await listener.follow([new Float32Array(8)])).toBe("answer: finished");
    expect([listener.answer, ended.mock.calls.length]).toEqual(["answer: finished", 1]);
  });

  test("can be 16-bit samples, empty, but not of an unknown encoding", async () => {
    const { task, listener } = opened(null);
    await listener.push(Int16Array.of(-32768, 16384));
    await listener.push({ bytes: new Uint8Array(0), encoding: "pcm16" });
    expect(task.push.mock.calls).toEqual([[Float32Array.of(-1, 0.5)], [new Float32Array(0)]]);
    const unknown = listener.push({ bytes: new Uint8Array(3), encoding: "mp5" as never });
    expect(await refusal(unknown)).toMatchObject({ fields: ["audio not_audio"] });
    await expect(listener.push({ bytes: new Uint8Array(3), encoding: "mp5" as never })).rejects.toThrow("mp5");
    await expect(listener.push({ bytes: new Uint8Array(3), encoding: "pcm16" })).rejects.toThrow(
      "the length must be a multiple of 2 bytes (one pcm16 sample), got 3 bytes",
    );
    for (const [wrong, given] of [
      [null, "null"],
      [[0.1], "Array"],
      ["audio", "string"],
      [{ bytes: "text", encoding: "pcm16" }, "Object"],
    ] as const)
      await expect(listener.push(wrong as never)).rejects.toThrow(
        `a chunk must be a Float32Array, an Int16Array or { bytes: Uint8Array, encoding }, got ${given}`,
      );
  });
});
