/** Opens the store and the master key that a configuration names, and checks the errors if they cannot be opened. */
import type * as ChildProcess from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { openConfiguredStore } from "../../src/server/open-store.js";
import { SealError, StoreError } from "../../src/store/errors.js";
import * as stores from "../../src/store/open.js";

vi.mock("../../src/store/open.js", { spy: true });
vi.mock("node:child_process", async (original) => {
  const real = await original<typeof ChildProcess>();
  // The command that hangs is not waited for half a minute.
  const execSync = (command: string, options: object) =>
    real.execSync(command, command.includes("sleep") ? { ...options, timeout: 500 } : options);
  return { ...real, execSync };
});

const folder = mkdtempSync(join(tmpdir(), "vivavoce-open-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.clearAllMocks());

const hex = "ab".repeat(32);
const key = new Uint8Array(32).fill(0xab);
const open = (seal: Parameters<typeof openConfiguredStore>[0]["seal"]) =>
  openConfiguredStore({ store: "memory", seal });

test("keys come from a file, a command or a text, and without a setting there is no key", async () => {
  const masterKeyFile = join(folder, "master.key");
  writeFileSync(masterKeyFile, `${hex}\n`);
  await open({ masterKeyFile, previousMasterKeyCommand: `echo ${hex}` });
  await open({ masterKey: hex, keys: folder });
  await open({});
  expect(vi.mocked(stores.openStore).mock.calls).toEqual([
    ["memory", { masterKey: key, previousMasterKey: key }],
    ["memory", { masterKey: key, keys: folder }],
    ["memory", {}],
  ]);
});

test.each([
  [
    "a file that is missing, perhaps not mounted yet,",
    { masterKeyFile: "/nowhere/key" },
    "Error",
    "seal.masterKeyFile: /nowhere/key: no such file",
  ],
  [
    "a command that fails",
    { previousMasterKeyCommand: "exit 3" },
    "Error",
    "seal.previousMasterKeyCommand: the command failed with 3; run it by hand to see why",
  ],
  [
    "a command that is killed",
    { masterKeyCommand: "kill -9 $$" },
    "Error",
    "seal.masterKeyCommand: the command failed with SIGKILL; run it by hand to see why",
  ],
  [
    "a command that hangs and ignores that it is asked to end",
    { masterKeyCommand: "trap '' TERM; exec sleep 60" },
    "Error",
    "seal.masterKeyCommand: the command did not end within 30 s; run it by hand to see why",
  ],
  [
    "a pipeline whose first command fails",
    { masterKeyCommand: "exit 3 | base64 -d" },
    "Error",
    "seal.masterKeyCommand: the command printed something else: the master key must be 32 bytes, as 64 hexadecimal digits or base64; run it by hand to see why",
  ],
  [
    "a command that prints without end",
    { masterKeyCommand: "yes" },
    "Error",
    "seal.masterKeyCommand: the command printed more than 1 MB instead of a key; run it by hand to see why",
  ],
  [
    "a text that is not a key",
    { masterKey: "secret" },
    "ConfigError",
    expect.stringMatching(/^seal\.masterKey: the master key must be 32 bytes/),
  ],
])("%s is named, and what it holds is not", async (_, seal, name, message) => {
  await expect(open(seal)).rejects.toMatchObject({ name, message });
  expect(stores.openStore).not.toHaveBeenCalled();
});

const failing = (code: string, more: object) => Object.assign(new Error("failed"), { code, ...more });

test.each([
  [
    failing("ECONNREFUSED", { address: "10.0.0.1", port: 5432 }),
    "Error",
    "store: cannot connect to PostgreSQL at 10.0.0.1:5432: connection refused",
  ],
  [failing("ENOTFOUND", { hostname: "db.example" }), "Error", "store: unknown host db.example"],
  [failing("EACCES", { path: "/var/lib/voices" }), "ConfigError", "store: /var/lib/voices: permission denied"],
  [failing("EROFS", {}), "ConfigError", "store: memory: the file system is read-only"],
  [new StoreError("unreadable", "cannot be read"), "ConfigError", "store: cannot be read"],
  [new StoreError("damaged", "restore it"), "ConfigError", "store: restore it"],
  [new StoreError("newer-schema", "too new"), "ConfigError", "store: too new"],
  [new SealError("damaged", "scope.key is damaged"), "ConfigError", "seal.keys: scope.key is damaged"],
  [new StoreError("disk-full", "the disk is full"), "Error", "store: the disk is full"],
  [failing("ENOSPC", {}), "Error", "store: memory: the disk is full; free some space and start again"],
  [new StoreError("locked", "in use"), "StoreError", "in use"],
  [
    Object.assign(new AggregateError([failing("ECONNREFUSED", { address: "::1", port: 5432 })]), {
      code: "ECONNREFUSED",
    }),
    "Error",
    "store: cannot connect to PostgreSQL at ::1:5432: connection refused",
  ],
  [failing("3D000", { severity: "FATAL" }), "Error", "store: PostgreSQL refused: failed"],
  [failing("ECONNRESET", {}), "Error", "failed"],
])("a store that fails with %s", async (error, name, message) => {
  vi.mocked(stores.openStore).mockRejectedValueOnce(error);
  await expect(open({})).rejects.toMatchObject({ name, message });
});

test("the error of a server names the settings that it may be about", async () => {
  const store = "postgres://db/voices";
  for (const [keys, named] of [
    [folder, "store"],
    ["postgres://keys/keys", "store or seal.keys"],
  ] as const) {
    vi.mocked(stores.openStore).mockRejectedValueOnce(failing("ENOTFOUND", { hostname: "db" }));
    await expect(openConfiguredStore({ store, seal: { keys } })).rejects.toThrow(`${named}: unknown host db`);
  }
});

test("an error without a path names a folder, never the address of a server", async () => {
  const store = "postgres://box:secret@db/voices";
  for (const [keys, more, named] of [
    [folder, {}, folder],
    ["postgres://box:secret@keys/keys", {}, "PostgreSQL"],
    ["postgres://box:secret@keys/keys", { address: "/run/.s.PGSQL.5432" }, "/run/.s.PGSQL.5432"],
  ] as const) {
    vi.mocked(stores.openStore).mockRejectedValueOnce(failing("EACCES", more));
    await expect(openConfiguredStore({ store, seal: { keys } })).rejects.toThrow(`store: ${named}: permission denied`);
  }
});
