/** Moves voiceprints from one store to another, and checks the scores in answers. */
import { describe, expect, test } from "vitest";
import { Decision, StatusCode, TrainReason } from "../../src/contract/index.js";
import { localAccess } from "../../src/local-access.js";
import { Voiceprints } from "../../src/voiceprints.js";
import { wav } from "../voice.js";
import { rateHz, take } from "./fixture-engine.js";
import { openWorld, refusal, scopeA, type World } from "./world.js";

const passphrase = "correct horse battery";
const audio = (speaker: number, seconds: number) => ({ samples: take(speaker, seconds), rateHz });
const takes = (speaker: number) => [3, 3.1, 3.2].map((seconds) => audio(speaker, seconds));
const voicesOf = ({ processor }: World, scope = scopeA, configset = "ivr-text-dependent") =>
  new Voiceprints(processor, { scope, configset });

async function device() {
  const world = await openWorld();
  const voices = voicesOf(world);
  await voices.enroll("ada", takes(7));
  return { world, voices };
}

describe("a sealed export", () => {
  test("moves a print: the other store gives the same scores and has its segments", async () => {
    const { voices } = await device();
    const sealed = await voices.export("ada", { passphrase });
    expect(sealed).not.toContain("embedding");
    expect(JSON.parse(sealed)).toMatchObject({
      format: "vivavoce-sealed-export",
      version: 1,
      kdf: { name: "PBKDF2", hash: "SHA-256", iterations: 600_000 },
    });
    const box = voicesOf(await openWorld());
    for (const given of [sealed, new TextEncoder().encode(sealed), new Blob([sealed])]) {
      expect(await box.import(given, { passphrase })).toMatchObject([{ name: "ada", tag: "" }]);
      const [there, here] = await Promise.all([box.verify("ada", audio(7, 4)), voices.verify("ada", audio(7, 4))]);
      expect(there).toMatchObject({ decision: "AUTHENTIC", score: here.score, ratio: here.ratio });
      expect(await box.verify("ada", audio(9, 4))).toMatchObject({ decision: "NO_MATCH" });
      const [moved] = await box.export("ada");
      expect(moved).toMatchObject({ printVersion: 1, printType: "text-dependent", status: "OPTIMAL_TRAINED" });
      expect(moved!.segments).toHaveLength(3);
      const more = await box.enroll("ada", [audio(7, 3.3)]);
      expect(more).toMatchObject({ trained: true, printVersion: 2 });
      expect(await box.erase("ada")).toBe(true);
    }
  });

  test("is refused without a passphrase: what should be sealed never comes out open", async () => {
    const { voices } = await device();
    const untyped = voices as unknown as { export(name: string, choices: unknown): Promise<unknown> };
    for (const [given, got] of [
      [{ passphrase: undefined }, "{ passphrase: undefined }"],
      [passphrase, "string"],
      [null, "null"],
    ] as const)
      await expect(untyped.export("ada", given)).rejects.toMatchObject({
        code: StatusCode.INVALID_REQUEST,
        message: `a sealed export needs { passphrase: "…" }, got ${got}; without a second argument the export is not sealed`,
      });
  });

  test("holds trained prints only, because no others can be imported; without any it is refused", async () => {
    const voices = voicesOf(await openWorld());
    await voices.enroll("bob", [audio(7, 3)]);
    await expect(voices.export("bob", { passphrase })).rejects.toMatchObject({
      code: StatusCode.INVALID_REQUEST,
      message:
        'the voiceprint of the person "bob" is not trained and could not be imported; finish its enrollment first',
    });
    expect(await voices.export("bob")).toMatchObject([{ status: "NOT_TRAINED" }]);
    await voices.enroll("bob", takes(7), { tag: "phone" });
    const box = voicesOf(await openWorld());
    const sealed = await voices.export("bob", { passphrase });
    expect(await box.import(sealed, { passphrase })).toMatchObject([{ name: "bob", tag: "phone" }]);
  });

  test("replaces a profile without segments; one with a segment stays", async () => {
    const { voices } = await device();
    const sealed = await voices.export("ada", { passphrase });
    const empty = await openWorld();
    await empty.person("ada");
    expect(await voicesOf(empty).import(sealed, { passphrase })).toHaveLength(1);
    const begun = await openWorld();
    const profile = await begun.person("ada");
    await begun.enroll(profile, take(9, 3));
    await expect(voicesOf(begun).import(sealed, { passphrase })).rejects.toMatchObject({
      code: StatusCode.ALREADY_EXISTS,
    });
    expect(await begun.store.profiles.segments(scopeA, profile.value)).toHaveLength(1);
  });

  test("can be imported under another name, with all prints of an owner, and for a fraudster", async () => {
    const { voices } = await device();
    await voices.enroll("ada", takes(7), { tag: "phone" });
    await voices.enrollFraudster("mallory", takes(9));
    const box = voicesOf(await openWorld());
    const both = await box.import(await voices.export("ada", { passphrase }), { passphrase, name: "lovelace" });
    expect(both.map(({ name, tag }) => [name, tag])).toEqual([
      ["lovelace", ""],
      ["lovelace", "phone"],
    ]);
    await box.import(await voices.exportFraudster("mallory", { passphrase }), { passphrase });
    expect(await box.people()).toEqual(["lovelace"]);
    expect(await box.fraudsters()).toEqual(["mallory"]);
    expect(await box.watch(audio(9, 12))).toMatchObject({ decision: "FRAUD", likeliestFraudster: "mallory" });
  });

  test("that cannot be opened, or is not one, is rejected with a clear message, and nothing is written", async () => {
    const { voices } = await device();
    const sealed = await voices.export("ada", { passphrase });
    const box = voicesOf(await openWorld());
    const envelope = JSON.parse(sealed);
    const changed = (change: object) => JSON.stringify({ ...envelope, ...change });
    const flipped = `${envelope.sealed.slice(0, 100)}${envelope.sealed[100] === "A" ? "B" : "A"}${envelope.sealed.slice(101)}`;
    for (const [text, words, message] of [
      [sealed, "wrong horse battery", /the passphrase is wrong/],
      [sealed, "short", /at least 8 characters, got 5/],
      [changed({ sealed: flipped }), passphrase, /the passphrase is wrong, or the file was changed/],
      [changed({ kdf: { ...envelope.kdf, iterations: 600_001 } }), passphrase, /the passphrase is wrong/],
      [
        changed({ kdf: { ...envelope.kdf, iterations: 1 } }),
        passphrase,
        /damaged: kdf\.iterations: must be at least 100000, got 1$/,
      ],
      [
        changed({ kdf: { ...envelope.kdf, iterations: 1e9 } }),
        passphrase,
        /kdf\.iterations: must be at most 10000000, got 1000000000$/,
      ],
      [changed({ cipher: "none" }), passphrase, /damaged: cipher: must be AES-256-GCM, got "none"$/],
      [changed({ more: 1 }), passphrase, /damaged: the file: unknown name: more$/],
      [changed({ version: 2 }), passphrase, /expected a sealed export of version 1, got 2/],
      ["{}", passphrase, /not a sealed export/],
      ["RIFF", passphrase, /not a sealed export/],
    ] as const) {
      const refused = await box.import(text, { passphrase: words }).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: StatusCode.INVALID_REQUEST, message: expect.stringMatching(message) });
    }
    expect(await box.people()).toEqual([]);
    expect(await refusal(voices.export("nobody", { passphrase }))).toMatchObject({ code: "NOT_FOUND" });
  });

  test("of another model is rejected as obsolete, and an existing print is not overwritten", async () => {
    const { voices } = await device();
    const sealed = await voices.export("ada", { passphrase });
    const newer = await openWorld();
    newer.engine.behavior.revision = "b".repeat(64);
    await expect(voicesOf(newer).import(sealed, { passphrase })).rejects.toThrow(/another model .*enroll again/);
    expect(await refusal(voicesOf(newer).import(sealed, { passphrase }))).toMatchObject({ code: "OBSOLETE" });
    expect(await voicesOf(newer).people()).toEqual([]);

    // The second of two prints exists there, so the first is not imported either.
    await voices.enroll("ada", takes(7), { tag: "phone" });
    const box = voicesOf(await openWorld());
    await box.enroll("ada", [audio(9, 3)], { tag: "phone" });
    const both = await voices.export("ada", { passphrase });
    expect(await refusal(box.import(both, { passphrase }))).toMatchObject({ code: "ALREADY_EXISTS" });
    expect((await box.export("ada")).map(({ tag }) => tag)).toEqual(["phone"]);
  });
});

test("segments of an earlier model, with embeddings of another length, are imported with the print", async () => {
  const { voices } = await device();
  const [profile] = await voices.export("ada");
  const { windows, ...segment } = profile!.segments[0]!;
  const earlier = {
    ...segment,
    revision: "e".repeat(64),
    embedding: [0.6, 0.8],
    windows: windows.map((window) => ({ ...window, embedding: [0.6, 0.8] })),
  };
  const world = await openWorld();
  const { processor, context } = world;
  const exported = { ...profile, segments: [earlier, ...profile!.segments] };
  const { gkVoiceprintProfileId } = await processor.importVoiceprintProfile({
    context,
    profile: new TextEncoder().encode(JSON.stringify(exported)),
  });
  expect(await world.verify(gkVoiceprintProfileId!, take(7, 4))).toMatchObject({ decision: Decision.AUTHENTIC });
  const { reason, totalSegments, totalValidSegments } = await world.train(gkVoiceprintProfileId!);
  expect([reason, totalSegments, totalValidSegments]).toEqual([TrainReason.TRAIN_OK, 4, 3]);
});

test("a modified export is rejected with the name of the field, and creates no profile", async () => {
  const { voices } = await device();
  const [profile] = await voices.export("ada");
  const { processor, context } = await openWorld();
  const { template, segments } = profile!;
  for (const [change, words] of [
    [
      { template: { ...template!, embedding: template!.embedding.slice(1) } },
      /embedding: must have exactly (\d+) values, got \d+$/,
    ],
    [{ template: { ...template!, embedding: template!.embedding.map((value) => 2 * value) } }, /unit length/],
    [{ template: { ...template!, netSpeechSeconds: null } }, /template\.netSpeechSeconds: must be a number, got null$/],
    [{ template: null }, /not trained/],
    [
      { segments: [{ ...segments[0]!, embedding: [1] }] },
      /segments\.0\.embedding: must have exactly \d+ values, in windows too$/,
    ],
    [
      { segments: [{ ...segments[0]!, windows: [{ ...segments[0]!.windows[0]!, embedding: [1] }] }] },
      /segments\.0\.embedding: must have exactly \d+ values, in windows too$/,
    ],
    [{ segments: [{ ...segments[0]!, extra: 1 }] }, /segments\.0: unknown name: extra$/],
    [
      { ...Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`x${i}`, 1])) },
      /the export: unknown names: x0, x1, x2, x3, x4 and 99995 more$/,
    ],
    [{ ["y".repeat(1_000_000)]: 1 }, /the export: unknown name: y{60}…$/],
    [
      { template: { ...template!, netSpeechSeconds: 1e-300 } },
      /template\.netSpeechSeconds: must be at least 0.01, got 1e-300$/,
    ],
    // Numbers that a later answer could not contain.
    [{ printVersion: 2 ** 40 }, /printVersion/],
    [{ template: { ...template!, netSpeechSeconds: 1e300 } }, /template\.netSpeechSeconds/],
    [{ segments: [{ ...segments[0]!, mediaRateHz: 8000.5 }] }, /mediaRateHz: must be a whole number, got 8000.5$/],
    [{ segments: [{ ...segments[0]!, mediaChannels: 2 ** 40 }] }, /mediaChannels/],
    [
      { segments: [{ ...segments[0]!, measures: { ...segments[0]!.measures, netSpeechSeconds: 1e300 } }] },
      /measures\.netSpeechSeconds/,
    ],
    [{ segments: [{ ...segments[0]!, measures: { ...segments[0]!.measures, snrDb: 1e300 } }] }, /measures\.snrDb/],
    [{ version: 7 }, /version 1, got 7/],
    [{ owner: { kind: "robot", externalId: "ada" } }, /owner\.kind: must be person or fraudster, got "robot"$/],
    [{ createdAt: "yesterday" }, /createdAt: must be a time such as 2026-01-31T12:00:00Z$/],
    [{ format: undefined }, /not an exported voiceprint/],
  ] as const) {
    const bytes = new TextEncoder().encode(JSON.stringify({ ...profile, ...change }));
    await expect(processor.importVoiceprintProfile({ context, profile: bytes })).rejects.toThrow(words);
  }
  expect((await processor.listVoiceprintProfiles({ context })).profiles).toEqual([]);
});

test("megabytes of wrong values are refused at the first one; to list all of them would take a minute and gigabytes", async () => {
  const { voices } = await device();
  const [profile] = await voices.export("ada");
  const { processor, context } = await openWorld();
  const { template, segments } = profile!;
  const wrong = (value: unknown) => Array.from({ length: 1_000_000 }, () => value);
  const { grown: _, ...plain } = template!;
  for (const [change, words] of [
    [{ segments: wrong({}) }, /segments\.0\.processedAudioId: is missing$/],
    [{ segments: [{ ...segments[0]!, windows: wrong(0) }] }, /segments\.0\.windows\.0: must be an object, got 0$/],
    [{ template: { ...plain, grown: { enrolled: {}, sessions: wrong(0) } } }, /template\.grown\.enrolled/],
    [{ template: { ...plain, embedding: wrong("x") } }, /embedding: must have exactly (\d+) values, got 1000000$/],
  ] as const) {
    const bytes = new TextEncoder().encode(JSON.stringify({ ...profile, ...change }));
    await expect(processor.importVoiceprintProfile({ context, profile: bytes })).rejects.toThrow(words);
  }
});

test("other callers get their turn while megabytes of prints are checked", async () => {
  const { voices } = await device();
  const [profile] = await voices.export("ada");
  const [segment] = profile!.segments;
  const windows = Array.from({ length: 500 }, () => segment!.windows[0]!);
  const large = { ...profile, segments: [{ ...segment!, windows }] };
  const { processor, context } = await openWorld();
  let turns = 0;
  const others = setInterval(() => turns++, 0);
  await processor.importVoiceprintProfile({ context, profile: new TextEncoder().encode(JSON.stringify(large)) });
  clearInterval(others);
  expect(turns).toBeGreaterThan(5);
});

test("a store failure in the middle leaves no profile behind", async () => {
  const { voices } = await device();
  const sealed = await voices.export("ada", { passphrase });
  const world = await openWorld();
  const { train } = world.store.profiles;
  world.store.profiles.train = () => Promise.reject(new Error("the disk is full"));
  const box = voicesOf(world);
  expect(await refusal(box.import(sealed, { passphrase }))).toMatchObject({ code: "INTERNAL_ERROR" });
  expect(await box.people()).toEqual([]);
  world.store.profiles.train = train;
  expect(await box.import(sealed, { passphrase })).toHaveLength(1);
});

test("a processor with exports disabled says so", async () => {
  const world = await openWorld({ allowExport: false });
  const voices = voicesOf(world);
  await voices.enroll("ada", takes(7));
  await expect(voices.export("ada")).rejects.toThrow(/set "allowExport"/);
});

describe("answers", () => {
  test("contain ratio, threshold and rate as used by the decision, in addition to the cosine", async () => {
    const { world, voices } = await device();
    const genuine = await voices.verify("ada", audio(7, 4), { ignoreCheckpoints: true });
    const impostor = await voices.verify("ada", audio(9, 4), { ignoreCheckpoints: true });
    // With one candidate and one look, the rate is the target itself.
    const threshold = Math.fround(world.engine.behavior.threshold(0.01));
    expect(genuine.threshold).toBeCloseTo(threshold, 5);
    expect(genuine.falseAcceptRate).toBe(0.01);
    expect(genuine.ratio!).toBeGreaterThan(genuine.threshold!);
    expect(impostor.ratio!).toBeLessThan(impostor.threshold!);
    expect(genuine.result.authenticationScore).toMatchObject({ ratio: genuine.ratio, threshold: genuine.threshold });
    expect(JSON.parse(JSON.stringify(genuine))).toEqual(genuine);

    await voices.enroll("bob", takes(9));
    const found = await voices.identify(audio(7, 4), undefined, { ignoreCheckpoints: true });
    // With two candidates the threshold is higher, so that the call keeps the rate.
    expect(found.threshold!).toBeGreaterThan(genuine.threshold!);
    expect(found.candidates.map(({ name }) => name)).toEqual(["ada", "bob"]);
    expect(found.candidates[0]).toMatchObject({ score: found.score, ratio: found.ratio, threshold: found.threshold });
    expect(found.candidates[1]!.ratio!).toBeLessThan(found.candidates[1]!.threshold!);
  });

  test("to several checks have the score of the check that decided", async () => {
    const { voices } = await device();
    await voices.enrollFraudster("mallory", takes(11));
    const targets = { persons: ["ada"], fraudsters: ["mallory"], ignoreCheckpoints: true };
    const fraud = await voices.analyze(audio(11, 4), targets);
    expect(fraud).toMatchObject({ decision: "FRAUD", likeliestFraudster: "mallory" });
    expect(fraud.score).toBe(fraud.result.fraudDetectionResult!.fraudDetectionScore!.biometricScore);
    const genuine = await voices.analyze(audio(7, 4), targets);
    expect(genuine).toMatchObject({ decision: "AUTHENTIC", likeliestPerson: "ada" });
    expect(genuine.score).toBe(genuine.result.authenticationResult!.authenticationScore!.biometricScore);
  });

  test("come at the first checkpoint that is clear, unless all audio is to be processed", async () => {
    const { world } = await device();
    const voices = new Voiceprints(
      world.processor,
      { scope: scopeA, configset: "ivr-text-dependent" },
      localAccess(world.processor),
    );
    for (const ignoreCheckpoints of [undefined, false, true]) {
      const choices = ignoreCheckpoints === undefined ? {} : { ignoreCheckpoints };
      const { netSpeechSeconds } = await voices.verify("ada", audio(7, 6), choices);
      expect(netSpeechSeconds > 4).toBe(ignoreCheckpoints === true);
      const listener = await voices.listen({ persons: ["ada"] }, rateHz, choices);
      expect((await listener.push(take(7, 6))) === null).toBe(ignoreCheckpoints === true);
      await listener.close();
    }
  });

  test("to a file are the same as array, as buffer, or as Blob", async () => {
    const { voices } = await device();
    const file = wav(take(7, 4), rateHz);
    const answer = await voices.verify("ada", file);
    expect(answer.decision).toBe("AUTHENTIC");
    for (const same of [file.buffer, new Blob([file])])
      expect((await voices.verify("ada", same)).score).toBe(answer.score);
  });

  test("to an enrollment name what is wrong with a recording", async () => {
    const voices = voicesOf(
      await openWorld({ configurationSets: { few: { maxEnrollmentSegments: 3 } } }),
      scopeA,
      "few",
    );
    const { segments } = await voices.enroll("ada", [...takes(7), audio(7, 0.5)]);
    expect(segments.at(-1)).toMatchObject({ enrolled: false, reason: "UNSPECIFIED" });
    const short = await voices.enroll("bob", [audio(9, 0.5)]);
    expect(short.segments[0]).toMatchObject({ enrolled: false, reason: "TOO_SHORT" });
  });

  test("to an enrollment say what is still missing", async () => {
    const world = await openWorld();
    const voices = voicesOf(world);
    const first = await voices.enroll("ada", [audio(7, 2)]);
    expect(first).toMatchObject({ trained: false, reason: "NOT_READY_TO_TRAIN", missingRecordings: 2 });
    expect(first.missingSpeechSeconds).toBeCloseTo(3 - first.segments[0]!.netSpeechSeconds, 3);
    const second = await voices.enroll("ada", [audio(7, 3), audio(7, 3.1)]);
    expect(second).toMatchObject({ trained: true, missingSpeechSeconds: 0, missingRecordings: 0 });
    expect(await voices.enroll("ada", [audio(7, 3.2)], { train: false })).toMatchObject({
      missingSpeechSeconds: null,
      missingRecordings: null,
    });
    const free = await voicesOf(world, scopeA, "text-independent").enroll("bob", [audio(9, 6)]);
    expect(free).toMatchObject({ trained: false, missingRecordings: 0 });
    expect(free.missingSpeechSeconds!).toBeGreaterThan(0);
  });
});
