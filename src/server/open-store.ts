import { execSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { StoreError, type StoreErrorCode } from "../store/errors.js";
import { openStore, parseMasterKey } from "../store/open.js";
import type { Store } from "../store/port.js";
import { ConfigError, type ServerConfig } from "./config.js";
import { fileFault, reasonOf } from "./file-fault.js";

/** Opens the store that the configuration names, with its keys. */
export async function openConfiguredStore({ store, seal }: Pick<ServerConfig, "store" | "seal">): Promise<Store> {
  const [masterKey, previousMasterKey] = [keyFrom(seal, "masterKey"), keyFrom(seal, "previousMasterKey")];
  const options = {
    ...(seal.keys === undefined ? {} : { keys: seal.keys }),
    ...(masterKey && { masterKey }),
    ...(previousMasterKey && { previousMasterKey }),
  };
  try {
    return await openStore(store, options);
  } catch (error) {
    const { code, path, address, port, hostname } = error as NodeJS.ErrnoException & Peer;
    if (error instanceof StoreError && ACTIONABLE.has(error.code)) throw new ConfigError(`store: ${error.message}`);
    const fault = fileFault(error);
    // An error of a write to an open file names no path.
    if (fault) throw new ConfigError(`store: ${path ?? store}: ${fault}`);
    if (code === "ECONNREFUSED")
      throw new Error(`store: cannot connect to PostgreSQL at ${address}:${port}: connection refused`, {
        cause: error,
      });
    if (code === "ENOTFOUND") throw new Error(`store: unknown host ${hostname}`, { cause: error });
    throw error;
  }
}

/** Errors that a person can fix: reported without a stack. Each command adds its own advice for a locked store. */
const ACTIONABLE: ReadonlySet<StoreErrorCode> = new Set(["not-owner", "unreadable", "disk-full", "no-memory"]);

/** What errors of connections and ports contain. */
export interface Peer {
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

const KEY_COMMAND_MS = 30_000;

/**
 * `null` if none is set. The output of a command is the key: neither the output nor the key is ever part of an error.
 */
function keyFrom(seal: ServerConfig["seal"], name: "masterKey" | "previousMasterKey"): Uint8Array | null {
  const [file, command, text] = [seal[`${name}File`], seal[`${name}Command`], seal[name]];
  try {
    if (file !== undefined) return parseMasterKey(readFileSync(file, "utf8"));
    if (command !== undefined) return parseMasterKey(printedBy(command));
    return text === undefined ? null : parseMasterKey(text);
  } catch (error) {
    const source = file !== undefined ? `File: ${file}` : command !== undefined ? `Command: ${command}` : "";
    throw new ConfigError(`seal.${name}${source}: ${reasonOf(error)}`);
  }
}

function printedBy(command: string): string {
  try {
    return execSync(command, {
      encoding: "utf8",
      timeout: KEY_COMMAND_MS,
      stdio: ["ignore", "pipe", "inherit"],
      windowsHide: true,
    });
  } catch (error) {
    const { status, signal, code } = error as { status?: number | null; signal?: string | null; code?: string };
    if (code === "ETIMEDOUT")
      throw new Error(`the command printed no key within ${KEY_COMMAND_MS / 1000} s; run it by hand to see why`);
    throw new Error(`the command failed with ${status ?? signal ?? code}; run it by hand to see why`);
  }
}
