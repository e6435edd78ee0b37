import { type Command, Option } from "commander";
import { loadConfig } from "../server/config.js";
import { openConfiguredStore } from "../server/open-store.js";
import { SealError, StoreError } from "../store/errors.js";
import type { Store } from "../store/port.js";
import type { SealedStore } from "../store/sql/store.js";
import { CommandError } from "./command-error.js";
import { createOutput } from "./output.js";

interface Options {
  readonly scope?: string;
  readonly store?: string;
  readonly config?: string;
  readonly json?: boolean;
}

export function keysCommand(program: Command): void {
  program
    .command("keys")
    .description("the keys that seal voiceprints and recordings")
    .command("rotate")
    .description("wrap the keys of a scope, or of all, under a new scope key and drop the old one")
    .option("--scope <id>", "this scope alone")
    .addOption(new Option("--store <store>", "a folder, or postgres://…").env("VIVAVOCE_STORE"))
    .option("--config <file>", "configuration file of the box: its store, and where its keys lie")
    .option("--json", "answer as JSON")
    .addHelpText(
      "after",
      "\nNothing that is stored is rewritten. Replicas on PostgreSQL go on meanwhile and follow; a folder must not be open in a box." +
        "\nA master key is replaced with it: set VIVAVOCE_MASTER_KEY_FILE to the new one and VIVAVOCE_PREVIOUS_MASTER_KEY_FILE to the old (or …_COMMAND: what it prints is the key).",
    )
    .action(rotate);
}

async function rotate(options: Options): Promise<void> {
  const output = createOutput(options.json ?? false);
  const config = loadConfig({
    ...(options.config ? { file: options.config } : {}),
    flags: { store: options.store },
  });
  const store = await openConfiguredStore(config).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === "locked")
      throw new CommandError(`${config.store} is in use by another process`, "stop the box for a moment");
    if (error instanceof SealError && error.code === "wrong-key")
      throw new CommandError(
        error.message,
        "give the keys and the master key that the store was made with (seal.keys, seal.masterKeyFile or seal.masterKeyCommand)",
      );
    throw error;
  });
  try {
    const { keys } = store as Store & Partial<Pick<SealedStore, "keys">>;
    if (!keys) throw new CommandError("a store in memory has no keys");
    if (options.scope === undefined) {
      const scopes = await keys.rotateAll();
      output.answer({ rotated: scopes }, () => `new scope keys: ${scopes}`);
      return;
    }
    if (!(await keys.rotate(options.scope)))
      throw new CommandError(`scope "${options.scope}" has no keys in ${config.store}`);
    output.answer({ rotated: 1, scope: options.scope }, () => `new scope key: ${options.scope}`);
  } finally {
    await store.close();
  }
}
