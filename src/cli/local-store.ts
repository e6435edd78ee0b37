import { existsSync } from "node:fs";
import { join } from "node:path";
import { isFolder, type ServerConfig } from "../server/config.js";
import { folderOf, openConfiguredStore } from "../server/open-store.js";
import { StoreError } from "../store/errors.js";
import type { Store } from "../store/port.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";

/** How a command uses its store. */
export interface StoreUse {
  /** Adds to the store, and may be the first to do so. */
  readonly creates?: boolean | undefined;
}

interface Hints {
  readonly ifMissing?: string;
  readonly ifInUse: string;
}

export async function openLocalStore(
  config: ServerConfig,
  { creates = false, ifMissing, ifInUse }: StoreUse & Hints,
): Promise<Store> {
  // A folder without a store would become one, and a mistyped name would look like a store in which nobody is enrolled.
  if (!creates && isFolder(config.store) && !existsSync(join(config.store, "database")))
    throw new CommandError(`there is no store in ${config.store}`, ifMissing);
  return openConfiguredStore(config).catch((error: unknown) => {
    throw error instanceof StoreError && error.code === "locked"
      ? new CommandError(`${folderOf(config)} is in use by another process`, ifInUse, ExitCode.failed)
      : error;
  });
}
