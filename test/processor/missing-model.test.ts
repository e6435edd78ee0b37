/** Prints of a model that is not installed here: an answer says that they were not compared. */
import { beforeAll, expect, test } from "vitest";
import { ConsentState, Decision, DecisionReason } from "../../src/contract/index.js";
import { take, voiceOf } from "./fixture-engine.js";
import { list, openWorld, type World } from "./world.js";

type Id = { value: string };

let world: World;
let present: Id;
let missing: Id;
beforeAll(async () => {
  world = await openWorld();
  present = await world.trained(7);
  missing = await ofMissingModel("somebody");
});

/** A print whose model the processor does not have. */
async function ofMissingModel(externalId: string, kind: "person" | "fraudster" = "person"): Promise<Id> {
  const { ids, store } = world;
  const id = ids.next();
  const voice = { embedding: voiceOf(9, 1), netSpeechSeconds: 9, snrDb: 30, bandwidthHz: 4000 };
  await store.profiles.create({
    id,
    scopeId: "bank",
    owner: { id: ids.next(), scopeId: "bank", kind, externalId },
    tag: "",
    printType: "text-dependent",
    printVersion: 1,
    template: { ...voice, revision: "e".repeat(64) },
    status: 3,
    createdAt: 0,
  });
  return { value: id };
}

const notCompared = (...ids: Id[]) =>
  `prints of a model that is not installed here were not compared (${ids.length}); ` +
  `install the model or enroll them again: ${ids.map(({ value }) => value).join(", ")}`;

test("every check says which prints it could not compare", async () => {
  const { processor, context } = world;
  const audio = await world.heard(take(7, 4));
  const both = list(present, missing);
  const target = { case: "gkVoiceprintProfileIds", value: both } as const;
  const identified = await processor.identify({ context, audio, target });
  expect(identified.result).toMatchObject({
    decision: Decision.AUTHENTIC,
    voiceprintResults: [{ gkVoiceprintProfileId: present }],
  });
  expect(identified.status).toMatchObject({ message: notCompared(missing) });
  const analyzed = await processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds: both });
  expect(analyzed.status).toMatchObject({ message: notCompared(missing) });
  const task = { case: "identify", value: { target } } as const;
  const start = { context, encoding: "pcm16", rate: 16_000, parties: [{ name: "caller", task }] };
  async function* requests() {
    yield { content: { case: "start", value: start } } as const;
  }
  for await (const { status } of processor.listen(requests())) {
    expect(status).toMatchObject({ message: notCompared(missing) });
    break;
  }
});

test("with no other print to compare, the check fails with NO_SCORES and says why", async () => {
  const { processor, context } = world;
  const audio = await world.heard(take(7, 4));
  const none = { decision: Decision.FAILED, reason: DecisionReason.NO_SCORES };
  const verified = await processor.verify({ context, audio, gkVoiceprintProfileId: missing });
  expect(verified).toMatchObject({ result: none, status: { message: notCompared(missing) } });
  const fraudster = await ofMissingModel("mallory", "fraudster");
  const { gkGroupId } = await processor.createWatchlist({ context, gkVoiceprintProfileIds: list(fraudster) });
  const target = { case: "watchlist", value: { uniqueId: gkGroupId! } } as const;
  const watched = await processor.detectKnownFraudsters({ context, audio, target });
  expect(watched).toMatchObject({ result: none, status: { message: notCompared(fraudster) } });
});

test("a large group says it too, until the print is erased or its consent is withdrawn", async () => {
  const { processor, context } = world;
  const others = await Promise.all(Array.from({ length: 257 }, (_, i) => world.person(`untrained-${i}`)));
  const [named, owned] = [await ofMissingModel("named"), await ofMissingModel("owned")];
  const owner = (await world.store.profiles.get("bank", owned.value))!.owner.id;
  const { gkGroupId } = await processor.createGroup({
    context,
    gkVoiceprintProfileIds: list(present, named, ...others),
    gkOwnerIds: list({ value: owner }),
  });
  const identified = async () => {
    const audio = await world.heard(take(7, 4));
    const target = { case: "group", value: { uniqueId: gkGroupId! } } as const;
    const { result, status } = await processor.identify({ context, audio, target });
    expect(result!.decision).toBe(Decision.AUTHENTIC);
    return status?.message ?? "";
  };
  expect(await identified()).toBe(notCompared(named, owned));
  await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: named });
  expect(await identified()).toBe(notCompared(owned));
  const state = ConsentState.WITHDRAWN;
  await processor.setVoiceprintProfileConsent({ context, gkVoiceprintProfileId: owned, state });
  expect(await identified()).toBe("");
  const later = await ofMissingModel("later");
  await processor.addGroupMembers({ context, gkGroupId: gkGroupId!, gkVoiceprintProfileIds: list(later) });
  expect(await identified()).toBe(notCompared(later));
});
