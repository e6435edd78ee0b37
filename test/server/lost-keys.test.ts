/** A box whose keys are damaged, or older than its database: the log says so, and it is not ready when it can open nobody's voiceprint. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEmbeddedStore } from "../../src/postgres.js";
import { configSchema } from "../../src/server/config.js";
import { jsonLog } from "../../src/server/log.js";
import { startBox } from "../../src/server/start.js";
import { fixtureEngine } from "../processor/fixture-engine.js";
import { withEmptyDatabase } from "../store/empty-database.js";
import { enrollPerson, processedOf, profileOf, templateOf } from "../store/fixtures.js";

const root = mkdtempSync(join(tmpdir(), "vivavoce-lost-keys-"));
const made = join(root, "made");
const SLOT_BYTES = 128;

beforeAll(async () => {
  const store = await openEmbeddedStore(await withEmptyDatabase(made));
  for (const name of ["ada", "bob"]) await store.profiles.create(profileOf("scope", name, { template: templateOf(1) }));
  await store.close();
}, 180_000);
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Ring {
  readonly scopes: Record<string, { key: string }[]>;
}

function changeRing(keys: string, change: (ring: Ring) => void): void {
  const ring: Ring = JSON.parse(readFileSync(join(keys, "ring.json"), "utf8"));
  change(ring);
  writeFileSync(join(keys, "ring.json"), JSON.stringify(ring));
}

/** Flips a bit of the first `count` keys of profiles. */
function damageProfileKeys(keys: string, count: number): void {
  let left = count;
  for (const name of readdirSync(keys).filter((each) => each.endsWith(".keys"))) {
    const bytes = readFileSync(join(keys, name));
    for (let at = 0; at < bytes.length; at += SLOT_BYTES)
      if (bytes[at] === 1 && bytes[at + 1] === 1 && left-- > 0) bytes[at + 40]! ^= 1;
    writeFileSync(join(keys, name), bytes);
  }
}

const SECRETS = "\0secrets";

test.each<[string, number, readonly string[], (keys: string) => void]>([
  ["nothing", 200, [], () => {}],
  ["one key of two", 200, ["1 of 2 profiles"], (keys) => damageProfileKeys(keys, 1)],
  ["every key", 503, ["2 of 2 profiles"], (keys) => damageProfileKeys(keys, 2)],
  [
    "the key of the scope",
    503,
    ["a key of scope scope cannot be unwrapped with the key of its scope", "from a backup", "2 of 2 profiles"],
    (keys) =>
      changeRing(keys, ({ scopes }) => {
        const [first] = scopes.scope!;
        first!.key = (first!.key.startsWith("A") ? "B" : "A") + first!.key.slice(1);
      }),
  ],
  [
    "the key of the scopes' secrets",
    503,
    ["a key of the store's secrets cannot be unwrapped with the key of its scope", "from a backup"],
    (keys) =>
      changeRing(keys, ({ scopes }) => {
        delete scopes[SECRETS];
      }),
  ],
])(
  "with %s lost, /readyz answers %d",
  async (name, status, words, damage) => {
    const folder = join(root, name.replaceAll(/\W/g, "-"));
    cpSync(made, folder, { recursive: true });
    damage(join(folder, "keys"));
    const lines: string[] = [];
    const config = configSchema.parse({ port: 0, store: folder });
    const log = jsonLog("error", (line) => lines.push(line));
    const box = await startBox(config, { engine: fixtureEngine(), log });
    try {
      expect((await fetch(`${box.url}/readyz`)).status).toBe(status);
      for (const word of words) expect(lines.join("\n")).toContain(word);
      if (words.length === 0) expect(lines).toEqual([]);
    } finally {
      await box.stop();
    }
  },
  180_000,
);

test("a box without profiles is ready though a scope's keys are lost, and the log names the scope", async () => {
  const folder = join(root, "nobody");
  cpSync(made, folder, { recursive: true });
  const store = await openEmbeddedStore(folder);
  for (const { id } of await store.profiles.list("scope", null, 10)) await store.profiles.erase("scope", id);
  await store.close();
  changeRing(join(folder, "keys"), ({ scopes }) => {
    delete scopes[SECRETS];
  });
  const lines: string[] = [];
  const box = await startBox(configSchema.parse({ port: 0, store: folder }), {
    engine: fixtureEngine(),
    log: jsonLog("error", (line) => lines.push(line)),
  });
  try {
    expect((await fetch(`${box.url}/readyz`)).status).toBe(200);
    expect(lines.join("\n")).toContain("a scope cannot be used until its keys are restored");
  } finally {
    await box.stop();
  }
}, 180_000);

test("a lost secret is not replaced by a new one: restoring the old keys is enough", async () => {
  const folder = join(root, "secret");
  cpSync(made, folder, { recursive: true });
  const keys = join(folder, "keys");
  changeRing(keys, ({ scopes }) => {
    delete scopes[SECRETS];
  });
  // The file with the secret itself: the only one that no scope's key opens.
  const isMade = new Set(readdirSync(keys));
  const damaged = await openEmbeddedStore(folder);
  expect(damaged.keys.lost).toMatchObject({ profiles: 2, of: 2, scopes: [{ scopeId: "scope" }] });
  await expect(damaged.profiles.find("scope", "person", "ada", "default")).rejects.toThrow("from a backup");
  await expect(damaged.profiles.create(profileOf("scope", "ada", {}))).rejects.toThrow("from a backup");
  await damaged.close();
  expect(new Set(readdirSync(keys))).toEqual(isMade);
  writeFileSync(join(keys, "ring.json"), readFileSync(join(made, "keys", "ring.json")));
  const restored = await openEmbeddedStore(folder);
  expect(restored.keys.lost).toMatchObject({ profiles: 0, of: 2, scopes: [] });
  expect(await restored.profiles.find("scope", "person", "ada", "default")).toMatchObject({ template: {} });
  await restored.close();
}, 180_000);

test.each<[string, (keys: string) => void]>([
  ["the secrets of the scopes", (keys) => changeRing(keys, ({ scopes }) => delete scopes[SECRETS])],
  [
    "the key of the scope",
    (keys) =>
      changeRing(keys, ({ scopes }) => {
        const [first] = scopes.calls!;
        first!.key = (first!.key.startsWith("A") ? "B" : "A") + first!.key.slice(1);
      }),
  ],
])(
  "with %s lost, a person can still be erased, and the rest of their call is there again with the old keys",
  async (name, damage) => {
    const folder = join(root, `erase-${name.replaceAll(" ", "-")}`);
    const store = await openEmbeddedStore(await withEmptyDatabase(folder));
    const ada = await enrollPerson(store, "calls", "ada", 1);
    const rest = processedOf("calls", ada.session.id, 2);
    await store.processed.add(rest);
    await store.close();
    const ring = join(folder, "keys", "ring.json");
    const good = readFileSync(ring);
    damage(join(folder, "keys"));
    const damaged = await openEmbeddedStore(folder);
    expect(await damaged.profiles.erase("calls", ada.profile.id)).toBe(true);
    expect(await damaged.profiles.get("calls", ada.profile.id)).toBeNull();
    expect(await damaged.processed.get("calls", ada.processed.id)).toBeNull();
    await expect(damaged.processed.get("calls", rest.id)).rejects.toThrow("from a backup");
    await damaged.close();
    writeFileSync(ring, good);
    const restored = await openEmbeddedStore(folder);
    expect(await restored.processed.get("calls", rest.id)).toEqual(rest);
    expect(await restored.profiles.get("calls", ada.profile.id)).toBeNull();
    await restored.close();
  },
  180_000,
);
