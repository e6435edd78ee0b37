import { readFileSync } from "node:fs";
import { openStore, parseMasterKey } from "../store/open.js";
import type { Store } from "../store/port.js";
import { ConfigError, type ServerConfig } from "./config.js";

/** The store that a configuration names, with its keys. */
export function openConfiguredStore({ store, seal }: Pick<ServerConfig, "store" | "seal">): Promise<Store> {
  return openStore(store, {
    ...(seal.keys === undefined ? {} : { keys: seal.keys }),
    ...(seal.masterKeyFile === undefined ? {} : { masterKey: keyFrom(seal.masterKeyFile, "seal.masterKeyFile") }),
    ...(seal.previousMasterKeyFile === undefined
      ? {}
      : { previousMasterKey: keyFrom(seal.previousMasterKeyFile, "seal.previousMasterKeyFile") }),
  });
}

function keyFrom(path: string, setting: string): Uint8Array {
  try {
    return parseMasterKey(readFileSync(path, "utf8"));
  } catch (error) {
    throw new ConfigError(`${setting}: ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
