import { readFileSync } from "node:fs";
import { StoreError, type StoreErrorCode } from "../store/errors.js";
import { openStore, parseMasterKey } from "../store/open.js";
import type { Store } from "../store/port.js";
import { ConfigError, type ServerConfig } from "./config.js";
import { fileFault, reasonOf } from "./file-fault.js";

/** The store that a configuration names, with its keys. */
export async function openConfiguredStore({ store, seal }: Pick<ServerConfig, "store" | "seal">): Promise<Store> {
  const options = {
    ...(seal.keys === undefined ? {} : { keys: seal.keys }),
    ...(seal.masterKeyFile === undefined ? {} : { masterKey: keyFrom(seal.masterKeyFile, "seal.masterKeyFile") }),
    ...(seal.previousMasterKeyFile === undefined
      ? {}
      : { previousMasterKey: keyFrom(seal.previousMasterKeyFile, "seal.previousMasterKeyFile") }),
  };
  try {
    return await openStore(store, options);
  } catch (error) {
    const { code, path, address, port, hostname } = error as NodeJS.ErrnoException & Peer;
    if (error instanceof StoreError && ACTIONABLE.has(error.code)) throw new ConfigError(`store: ${error.message}`);
    const fault = fileFault(error);
    if (fault && path) throw new ConfigError(`store: ${path}: ${fault}`);
    if (code === "ECONNREFUSED") throw new Error(`store: nobody listens at ${address}:${port}`, { cause: error });
    if (code === "ENOTFOUND") throw new Error(`store: there is no host ${hostname}`, { cause: error });
    throw error;
  }
}

/** What a person can put right: said as it is, without a stack. What to do about a locked store, each command knows. */
const ACTIONABLE: ReadonlySet<StoreErrorCode> = new Set(["not-owner", "unreadable", "disk-full"]);

/** What errors of a connection carry. */
interface Peer {
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

function keyFrom(path: string, setting: string): Uint8Array {
  try {
    return parseMasterKey(readFileSync(path, "utf8"));
  } catch (error) {
    throw new ConfigError(`${setting}: ${path}: ${reasonOf(error)}`);
  }
}
