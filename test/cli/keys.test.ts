/** `vivavoce keys rotate`: how an operator replaces the key of a scope, or the master key. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openEmbeddedStore, openPostgresStore } from "../../src/postgres.js";
import { lockFolder } from "../../src/store/folder-lock.js";
import type { Profile } from "../../src/store/port.js";
import { withEmptyDatabase } from "../store/empty-database.js";
import { enrollPerson } from "../store/fixtures.js";
import { startPostgres } from "../store/postgres-server.js";
import { run } from "./run.js";

// Each command opens an embedded PostgreSQL, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const SCOPES = ["bank", "shop"];
let folder: string;
let store: string;
const people: Profile[] = [];

const generations = async (scope: string): Promise<number[]> => {
  const ring = JSON.parse(await readFile(join(store, "keys", "ring.json"), "utf8"));
  return ring.scopes[scope].map((key: { generation: number }) => key.generation);
};

async function readAll(options?: { masterKey: Uint8Array }): Promise<(Profile | null)[]> {
  const opened = await openEmbeddedStore(store, options);
  try {
    return await Promise.all(people.map(({ scopeId, id }) => opened.profiles.get(scopeId, id)));
  } finally {
    await opened.close();
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-keys-"));
  store = await withEmptyDatabase(join(folder, "store"));
  const opened = await openEmbeddedStore(store);
  for (const [i, scope] of SCOPES.entries()) people.push((await enrollPerson(opened, scope, "alice", i)).profile);
  await opened.close();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("gives a scope a new key, and all sealed data can still be read", async () => {
  const ran = await run("keys", "rotate", "--store", store, "--scope", "bank", "--json");
  expect(ran.json).toEqual({ rotated: 1, scope: "bank" });
  expect([await generations("bank"), await generations("shop")]).toEqual([[2], [1]]);
  expect(await readAll()).toEqual(people);
});

test("gives every scope a new key, and wraps the keys with a master key or a new one", async () => {
  const keys = ["1", "2"].map((digit) => digit.repeat(64));
  const files = keys.map((_, i) => join(folder, `master-${i}`));
  for (const [i, key] of keys.entries()) await writeFile(files[i]!, key);
  const masterKey = new Uint8Array(Buffer.from(keys[1]!, "hex"));

  vi.stubEnv("VIVAVOCE_MASTER_KEY_FILE", files[0]);
  expect(await run("keys", "rotate", "--store", store)).toMatchObject({ code: 0, out: "new scope keys: 2\n" });
  expect([await generations("bank"), await generations("shop")]).toEqual([[3], [2]]);

  // A wrong key is refused and changes nothing.
  vi.stubEnv("VIVAVOCE_MASTER_KEY_FILE", files[1]);
  for (const command of ["keys rotate", "people", "token user list", "serve --port 0"]) {
    const refused = await run(...command.split(" "), "--store", store);
    expect(refused, command).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toContain("not the one that wrapped these keys\nhint: set the keys and the master key");
  }
  expect([await generations("bank"), await generations("shop")]).toEqual([[3], [2]]);

  vi.stubEnv("VIVAVOCE_PREVIOUS_MASTER_KEY_FILE", files[0]);
  expect((await run("keys", "rotate", "--store", store, "--json")).json).toEqual({ rotated: 2 });
  vi.unstubAllEnvs();
  expect(await readAll({ masterKey })).toEqual(people);
  await expect(readAll()).rejects.toMatchObject({ code: "wrong-key" });
});

test("replaces the master key of running replicas first, and the scope keys once they have the new one", async () => {
  const server = await startPostgres();
  try {
    const [url, keys] = [await server.createDatabase(), await server.createDatabase()];
    const [old, next] = ["1".repeat(64), "2".repeat(64)];
    const open = (hex: string) => openPostgresStore(url, { keys, masterKey: new Uint8Array(Buffer.from(hex, "hex")) });
    const replica = await open(old);
    await enrollPerson(replica, "bank", "alice", 1);

    vi.stubEnv("VIVAVOCE_SEAL_KEYS", keys);
    vi.stubEnv("VIVAVOCE_MASTER_KEY", next);
    vi.stubEnv("VIVAVOCE_PREVIOUS_MASTER_KEY", old);
    const replaced = await run("keys", "rotate", "--store", url);
    expect(replaced).toMatchObject({ code: 0, out: expect.stringContaining("restart the replicas") });
    const { profile } = await enrollPerson(replica, "bank", "bob", 2);
    await replica.close();

    const restarted = await open(next);
    vi.stubEnv("VIVAVOCE_PREVIOUS_MASTER_KEY", undefined);
    expect((await run("keys", "rotate", "--store", url, "--json")).json).toEqual({ rotated: 1 });
    expect(await restarted.profiles.get("bank", profile.id)).toEqual(profile);
    await enrollPerson(restarted, "bank", "carol", 3);
    await restarted.close();
  } finally {
    vi.unstubAllEnvs();
    await server.stop();
  }
});

test("reads the master key from a command or the environment, and never prints it", async () => {
  const key = "2".repeat(64);
  vi.stubEnv("VIVAVOCE_MASTER_KEY_COMMAND", `echo ${key}`);
  expect(await run("keys", "rotate", "--store", store)).toMatchObject({ code: 0 });
  vi.unstubAllEnvs();
  vi.stubEnv("VIVAVOCE_MASTER_KEY", key);
  expect(await run("keys", "rotate", "--store", store)).toMatchObject({ code: 0 });
  vi.unstubAllEnvs();

  vi.stubEnv("VIVAVOCE_MASTER_KEY_COMMAND", "printf secret-that-is-too-short");
  const short = await run("keys", "rotate", "--store", store);
  expect(short.err).toContain(
    "seal.masterKeyCommand: the command printed something else: the master key must be 32 bytes",
  );
  vi.stubEnv("VIVAVOCE_MASTER_KEY_COMMAND", "exit 3");
  const failed = await run("keys", "rotate", "--store", store);
  expect(failed.err).toContain("the command failed with 3");
  vi.unstubAllEnvs();
  vi.stubEnv("VIVAVOCE_MASTER_KEY", "secret-that-is-too-short");
  const text = await run("keys", "rotate", "--store", store);
  expect(text.err).toContain("seal.masterKey: the master key must be 32 bytes");
  expect(short.err + text.err).not.toContain("secret-that");
  vi.unstubAllEnvs();
  expect([short.code, failed.code, text.code].every((code) => code !== 0)).toBe(true);
});

test("explains why keys cannot be rotated", async () => {
  const memory = await run("keys", "rotate", "--store", "memory");
  expect(memory.err).toContain("a store in memory has no keys; give a folder or postgres://…");
  const empty = await withEmptyDatabase(join(folder, "empty"));
  const unknown = await run("keys", "rotate", "--store", empty, "--scope", "nobody");
  expect(unknown.err).toContain('scope "nobody" has no keys');
  const opened = await openEmbeddedStore(empty);
  const locked = await run("keys", "rotate", "--store", empty);
  await opened.close();
  expect(locked.err).toContain("in use by another process");
  expect([memory.code, unknown.code, locked.code].every((code) => code !== 0)).toBe(true);
});

test("names the folder of the keys if another process has it, and not the password of the database", async () => {
  const keys = await mkdtemp(join(folder, "keys-"));
  const lock = await lockFolder(keys, "ring.lock");
  vi.stubEnv("VIVAVOCE_STORE", "postgres://box:secret@127.0.0.1:1/voices");
  vi.stubEnv("VIVAVOCE_SEAL_KEYS", keys);
  for (const command of [["keys", "rotate"], ["people"], ["serve", "--port", "0"]]) {
    const { code, err } = await run(...command);
    expect(err).toContain(`error: ${keys} is in use by another process\n`);
    expect(err).not.toContain("secret");
    expect(code).toBe(4);
  }
  vi.unstubAllEnvs();
  await lock.release();
});

test("does not create a store where there is none", async () => {
  const nowhere = join(folder, "nowhere");
  expect(await run("keys", "rotate", "--store", nowhere)).toMatchObject({
    code: 2,
    err: `error: there is no store in ${nowhere}\n`,
  });
  await expect(readFile(nowhere)).rejects.toThrow("ENOENT");
  await mkdir(nowhere);
  expect((await run("keys", "rotate", "--store", nowhere)).err).toBe(`error: there is no store in ${nowhere}\n`);
  expect(await readdir(nowhere)).toEqual([]);
});
