/** What an import takes and refuses, field by field. */
import { beforeAll, describe, expect, test } from "vitest";
import { ConsentState, Decision } from "../../src/contract/index.js";
import type { ExportedProfile } from "../../src/processor/export-profile.js";
import { take } from "./fixture-engine.js";
import { openWorld, refusal, type World } from "./world.js";

let exported: ExportedProfile;
beforeAll(async () => {
  const world = await openWorld({ configurationSets: { growing: { adaptation: { maxSessions: 3 } } } });
  const { processor, context } = world;
  const gkVoiceprintProfileId = await world.trained(7);
  await processor.setVoiceprintProfileConsent({ context, gkVoiceprintProfileId, state: ConsentState.GIVEN });
  await world.verify(gkVoiceprintProfileId, take(7, 4), { context: await world.open("growing") });
  exported = (await processor.exportProfile("bank", gkVoiceprintProfileId.value))!;
  expect(exported.template!.grown!.sessions).toHaveLength(1);
});

const bytes = (profile: unknown) => new TextEncoder().encode(JSON.stringify(profile));
const imported = (world: World, profile: unknown, ownerId = "") =>
  world.processor.importVoiceprintProfile({ context: world.context, profile: bytes(profile), ownerId });

/** The export with another value at this path. */
function changed(path: string, value: unknown): unknown {
  const copy = structuredClone(exported) as unknown as Record<string, unknown>;
  const names = path.split(".");
  let at = copy;
  for (const name of names.slice(0, -1)) at = at[name] as Record<string, unknown>;
  at[names.at(-1)!] = value;
  return copy;
}

test("everything comes along: the print, its calls, its segments and the consent", async () => {
  const world = await openWorld();
  const { gkVoiceprintProfileId } = await imported(world, exported);
  const again = (await world.processor.exportProfile("bank", gkVoiceprintProfileId!.value))!;
  const { template, segments, consent, printVersion, status, printType, owner, tag } = again;
  expect({ template, consent, printVersion, status, printType, owner, tag }).toEqual({
    template: exported.template,
    consent: exported.consent,
    printVersion: exported.printVersion,
    status: exported.status,
    printType: exported.printType,
    owner: exported.owner,
    tag: exported.tag,
  });
  expect(segments).toHaveLength(3);
  for (const [i, segment] of segments.entries()) {
    const { processedAudioId, sessionId, mediaSegmentId, ...kept } = segment;
    expect(exported.segments[i]).toMatchObject(kept);
    // Ids of the other store may belong to somebody else here.
    expect(exported.segments[i]!.processedAudioId).not.toBe(processedAudioId);
    expect(exported.segments[i]!.sessionId).not.toBe(sessionId);
    expect(exported.segments[i]!.mediaSegmentId).not.toBe(mediaSegmentId);
  }
  expect((await world.verify(gkVoiceprintProfileId!, take(7, 4))).decision).toBe(Decision.AUTHENTIC);
});

describe("values at the limits", () => {
  test.each<[string, number[], number[]]>([
    ["printVersion", [1, 1e9], [0, 1e9 + 1]],
    ["template.netSpeechSeconds", [0.01, 1e7], [-1, 0, 1e-300, 0.009, 1e7 + 1]],
    ["template.bandwidthHz", [0, 1e6], [-1, 1e6 + 1]],
    ["segments.0.measures.netSpeechSeconds", [0.01, 1e7], [0, 1e-300, 0.009, 1e7 + 1]],
    ["segments.0.measures.rateHz", [8000, 1e6], [8000.5, 1e6 + 1]],
    ["segments.0.windows.0.speechSeconds", [0.01, 1e7], [0, 1e-300, 1e7 + 1]],
    ["template.snrDb", [-1000, 1000], [-1000.5, 1000.5]],
    ["template.grown.sessions.0.at", [0, 8.64e15], [-1, 8.64e15 + 2]],
    ["segments.0.channel", [0], [-1, 0.5]],
    ["segments.0.mediaChannels", [1], [0]],
    ["segments.0.voiceClass", [0, 100], [-1, 100.5]],
    ["segments.0.speakers", [0], [-1]],
    ["segments.0.windows.0.startSeconds", [0], [-1]],
  ])("%s may be %j, not %j", async (path, fit, unfit) => {
    for (const value of fit) await imported(await openWorld(), changed(path, value));
    const world = await openWorld();
    for (const value of unfit)
      await expect(imported(world, changed(path, value)), `${value}`).rejects.toThrow(`${path}: `);
    expect((await world.processor.listVoiceprintProfiles({ context: world.context })).profiles).toEqual([]);
  });

  test("an embedding may be off unit length by rounding only", async () => {
    const scaled = (factor: number) =>
      changed(
        "template.embedding",
        exported.template!.embedding.map((x) => factor * x),
      );
    await imported(await openWorld(), scaled(1.0005));
    for (const factor of [1.002, 0.998])
      await expect(imported(await openWorld(), scaled(factor))).rejects.toThrow("must have unit length");
  });

  test("an owner needs a name, an external one at most 256 characters", async () => {
    const world = await openWorld();
    await expect(imported(world, changed("owner.externalId", ""))).rejects.toThrow("owner.externalId: ");
    expect((await refusal(imported(world, exported, "x".repeat(257)))).fields).toEqual(["owner_id too_long"]);
    expect((await refusal(imported(world, changed("tag", "x".repeat(257))))).fields).toEqual(["profile_tag too_long"]);
    expect((await refusal(imported(world, changed("consent.reference", "a\0b")))).fields).toEqual([
      "consent.reference malformed",
    ]);
  });
});

test.each([
  ["not JSON", new TextEncoder().encode("RIFF"), "profile is not an exported voiceprint: it is not JSON"],
  ["not text", Uint8Array.of(0xff, 0xfe), "profile is not an exported voiceprint: it is not JSON"],
  ["null", bytes(null), "profile is not an exported voiceprint"],
  ["something else", bytes({ format: "other" }), "profile is not an exported voiceprint"],
])("bytes that are %s are refused", async (_, profile, message) => {
  const { processor, context } = await openWorld();
  const call = () => processor.importVoiceprintProfile({ context, profile });
  expect((await refusal(call())).fields).toEqual(["profile malformed"]);
  await expect(call()).rejects.toThrow(message);
});

test("a print of another model is refused, naming both models; without a name, the revision", async () => {
  const world = await openWorld();
  world.engine.behavior.revision = "b".repeat(64);
  const here = `the model here is fixture-1, revision ${"b".repeat(16)}: enroll again`;
  const theirs = `revision ${"a".repeat(16)}`;
  await expect(imported(world, exported)).rejects.toThrow(
    `the voiceprint was made by another model (fixture-1, ${theirs}); ${here}`,
  );
  await expect(imported(world, changed("template.calibrationModelId", undefined))).rejects.toThrow(
    `the voiceprint was made by another model (${theirs}); ${here}`,
  );
  await expect(imported(world, changed("template.revision", 7))).rejects.toThrow("template.revision: ");
});

test("a second import is refused with the name and the tag, and a profile that others fill meanwhile stays", async () => {
  const world = await openWorld();
  await imported(world, exported);
  const exists = { code: "ALREADY_EXISTS", fields: ["owner_id exists"] };
  expect(await refusal(imported(world, exported))).toMatchObject(exists);
  await expect(imported(world, exported)).rejects.toThrow(
    'the person "person-7" already has a voiceprint here; erase it first',
  );
  await imported(world, changed("tag", "phone"));
  await expect(imported(world, changed("tag", "phone"))).rejects.toThrow('has a voiceprint with the tag "phone" here');
  const { train } = world.store.profiles;
  world.store.profiles.train = async (scope, id, generation, trained) => {
    world.store.profiles.train = train;
    return train(scope, id, generation + 1, trained);
  };
  expect(await refusal(imported(world, exported, "ada"))).toMatchObject(exists);
});

test("a person who is erased during the import is not imported", async () => {
  const world = await openWorld();
  const { setConsent } = world.store.profiles;
  world.store.profiles.setConsent = async (scope, id, consent) => {
    await world.store.profiles.erase(scope, id);
    return setConsent(scope, id, consent);
  };
  expect(await refusal(imported(world, exported))).toMatchObject({ code: "ALREADY_EXISTS" });
  expect((await world.processor.listVoiceprintProfiles({ context: world.context })).profiles).toEqual([]);
});

test("a fraudster has no consent, whatever the export says", async () => {
  const world = await openWorld();
  const { gkVoiceprintProfileId } = await imported(world, changed("owner.kind", "fraudster"));
  const profile = (await world.store.profiles.get("bank", gkVoiceprintProfileId!.value))!;
  expect([profile.owner.kind, profile.consent]).toEqual(["fraudster", undefined]);
});

test("an export without consent imports none", async () => {
  const world = await openWorld();
  const { gkVoiceprintProfileId } = await imported(world, changed("consent", undefined));
  expect((await world.store.profiles.get("bank", gkVoiceprintProfileId!.value))!.consent).toBeUndefined();
});
