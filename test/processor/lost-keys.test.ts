/** Profiles whose keys were lost, not destroyed on purpose: a damaged key file, or keys older than the database. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openEmbeddedStore } from "../../src/postgres.js";
import { withEmptyDatabase } from "../store/empty-database.js";
import { take } from "./fixture-engine.js";
import { list, openWorld, refusal, scopeA } from "./world.js";

const root = mkdtempSync(join(tmpdir(), "vivavoce-lost-keys-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const SLOT_BYTES = 128;

/** Flips a bit in the slots of profile keys for which `isLost` returns true, in order of creation. */
function damageProfileKeys(keys: string, isLost: (index: number) => boolean): void {
  for (const name of readdirSync(keys).filter((each) => each.endsWith(".keys"))) {
    const bytes = readFileSync(join(keys, name));
    let index = 0;
    for (let at = 0; at < bytes.length; at += SLOT_BYTES) {
      const [live, ofProfile] = [bytes[at] === 1, bytes[at + 1] === 1];
      if (live && ofProfile && isLost(index++)) bytes[at + 40]! ^= 1;
    }
    writeFileSync(join(keys, name), bytes);
  }
}

test("a lost key gives an error that names the profile; the rest of the scope still works", async () => {
  const folder = join(root, "box");
  const first = await openEmbeddedStore(await withEmptyDatabase(folder));
  const before = await openWorld({ store: first });
  const untrained = await before.person("untrained");
  const trained = await before.trained(7);
  const healthy = await before.trained(9);
  await first.close();
  damageProfileKeys(join(folder, "keys"), (index) => index < 2);

  const store = await openEmbeddedStore(folder);
  try {
    expect(store.keys.lost).toMatchObject({ profiles: 2 });
    const world = await openWorld({ store });
    const { processor, context } = world;
    const { gkProcessedAudioId } = await world.process(take(7, 3));
    const calls = [
      processor.enroll({ context, gkVoiceprintProfileId: untrained, gkProcessedAudioId: gkProcessedAudioId! }),
      processor.enroll({ context, gkVoiceprintProfileId: trained, gkProcessedAudioId: gkProcessedAudioId! }),
      processor.train({ context, gkVoiceprintProfileId: trained }),
      world.verify(trained, take(7, 4)),
    ];
    for (const [i, call] of calls.entries()) {
      const error = await call.then(
        () => null,
        (reason: Error) => reason,
      );
      expect(error?.message, `call ${i}`).toMatch(/^the key of profile \S+ is missing.*delete the profile and enroll/);
      expect(error).toMatchObject({ code: 56 });
    }
    const audio = await world.heard(take(9, 4));
    const target = { case: "gkVoiceprintProfileIds", value: list(healthy, trained) } as const;
    const { result, status } = await processor.identify({ context, audio, target });
    expect(result!.voiceprintResults).toHaveLength(1);
    expect(status!.message).toContain(`not compared (1); restore or delete them: ${trained.value}`);
    let prints = 0;
    for await (const _ of store.profiles.prints(scopeA, "person")) prints++;
    expect(prints).toBe(1);

    for (const profile of [untrained, trained]) {
      await processor.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: profile });
      expect(await refusal(world.train(profile))).toMatchObject({ code: "NOT_FOUND" });
    }
    await world.person("untrained");
  } finally {
    await store.close();
  }
}, 180_000);

test("a store whose document key is lost is not opened, because creating new credentials would look like a first start", async () => {
  const folder = join(root, "documents");
  const first = await openEmbeddedStore(await withEmptyDatabase(folder));
  await first.documents.put("server", "first-run", { at: 1 });
  await first.close();
  const keys = join(folder, "keys");
  for (const name of readdirSync(keys).filter((each) => each.endsWith(".keys"))) rmSync(join(keys, name));
  await expect(openEmbeddedStore(folder)).rejects.toMatchObject({
    name: "SealError",
    code: "key-lost",
    message: expect.stringMatching(/restore the keys from a backup/),
  });
}, 180_000);
