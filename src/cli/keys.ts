import type { Command } from "commander";
import { isPostgres, loadConfig, replacesMasterKey } from "../server/config.js";
import type { Store } from "../store/port.js";
import type { SealedStore } from "../store/sql/store.js";
import { CommandError } from "./command-error.js";
import { openLocalStore } from "./local-store.js";
import { createOutput } from "./output.js";
import { variable } from "./shared-options.js";

interface Options {
  readonly scope?: string;
  readonly store?: string;
  readonly config?: string;
  readonly json?: boolean;
}

export function keysCommand(program: Command): void {
  program
    .command("keys")
    .description("manage the keys that seal voiceprints and recordings")
    .command("rotate")
    .description("replace the key of a scope, or of all scopes, and wrap the other keys with the new one")
    .option("--scope <id>", "only this scope")
    .addOption(variable("--store <store>", "store of the box: a folder, or postgres://…"))
    .option("--config <file>", "configuration file of the box, which names its store and its keys")
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      "\nStored data is not rewritten. Replicas on PostgreSQL can keep running; a box on a folder must be stopped first." +
        "\nTo replace the master key as well, set VIVAVOCE_MASTER_KEY_FILE to the new key and VIVAVOCE_PREVIOUS_MASTER_KEY_FILE to the old one (or …_COMMAND to a command that prints the key)." +
        "\nWith keys in PostgreSQL, that replaces the master key only: restart the replicas with it, then run the command again without the old one.",
    )
    .action(rotate);
}

async function rotate(options: Options): Promise<void> {
  const output = createOutput(options.json);
  const config = loadConfig({ file: options.config, flags: { store: options.store } });
  const store = await openLocalStore(config, { ifInUse: "stop the box, run the command, then start the box again" });
  try {
    const { keys } = store as Store & Partial<Pick<SealedStore, "keys">>;
    if (!keys) throw new CommandError("a store in memory has no keys; give a folder or postgres://…");
    // Opening the store has replaced the master key. Replicas that still have the old one could not open new scope keys: all their
    // calls would fail.
    if (replacesMasterKey(config) && isPostgres(config.seal.keys ?? "")) {
      output.answer(
        { rotated: 0 },
        () =>
          "the master key is replaced; restart the replicas with it, then run this command again without the old one for new scope keys",
      );
      return;
    }
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
