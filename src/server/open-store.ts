import { execSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { SealError, StoreError, type StoreErrorCode } from "../store/errors.js";
import { openStore, parseMasterKey } from "../store/open.js";
import type { Store } from "../store/port.js";
import { ConfigError, isPostgres, type ServerConfig } from "./config.js";
import { fileFault, isOutOfSpace, reasonOf } from "./file-fault.js";

type Place = Pick<ServerConfig, "store" | "seal">;

/** The folder of the store, or of the keys of a store on a server. The address of a server is not shown, because it may contain a password. */
export const folderOf = ({ store, seal: { keys } }: Place): string =>
  [store, keys].find((place) => place !== undefined && !isPostgres(place)) ?? "PostgreSQL";

/** Opens the store that the configuration names, with its keys. */
export async function openConfiguredStore({ store, seal }: Place): Promise<Store> {
  const [masterKey, previousMasterKey] = [keyFrom(seal, "masterKey"), keyFrom(seal, "previousMasterKey")];
  const options = {
    ...(seal.keys === undefined ? {} : { keys: seal.keys }),
    ...(masterKey && { masterKey }),
    ...(previousMasterKey && { previousMasterKey }),
  };
  try {
    return await openStore(store, options);
  } catch (error) {
    // A host with several addresses: the error lists one for each.
    const first = error instanceof AggregateError ? error.errors[0] : error;
    const { code, path, address, port, hostname } = first as NodeJS.ErrnoException & Peer;
    if (error instanceof StoreError && UNUSABLE.has(error.code)) throw new ConfigError(`store: ${error.message}`);
    if (error instanceof SealError && error.code === "damaged") throw new ConfigError(`seal.keys: ${error.message}`);
    if (error instanceof StoreError && OF_THE_MACHINE.has(error.code))
      throw new Error(`store: ${error.message}`, { cause: error });
    const fault = fileFault(error);
    // An error of a write to an open file names no path.
    const why = `store: ${path ?? address ?? folderOf({ store, seal })}: ${fault}`;
    if (fault) throw isOutOfSpace(error) ? new Error(why, { cause: error }) : new ConfigError(why);
    const servers = [isPostgres(store) && "store", isPostgres(seal.keys ?? "") && "seal.keys"].filter(Boolean);
    const setting = servers.length === 0 ? "store" : servers.join(" or ");
    if (code === "ECONNREFUSED")
      throw new Error(`${setting}: cannot connect to PostgreSQL at ${address}:${port}: connection refused`, {
        cause: error,
      });
    if (code === "ENOTFOUND") throw new Error(`${setting}: unknown host ${hostname}`, { cause: error });
    // A name that the server does not know, a wrong password, missing rights: its own words name them.
    if (error instanceof Error && "severity" in error)
      throw new Error(`${setting}: PostgreSQL refused: ${error.message}`, { cause: error });
    throw error;
  }
}

/** The settings name a store that cannot be used until somebody does something. Each command adds its own advice for a locked store. */
const UNUSABLE: ReadonlySet<StoreErrorCode> = new Set(["not-owner", "unreadable", "damaged", "newer-schema"]);
/** The settings are right: they work when the machine has space or memory again. */
const OF_THE_MACHINE: ReadonlySet<StoreErrorCode> = new Set(["disk-full", "no-memory"]);

/** What errors of connections and ports contain. */
export interface Peer {
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

const KEY_COMMAND_MS = 30_000;

/**
 * `null` if none is set. No error contains the key, the output of a command, or the command: its arguments may be secrets.
 */
function keyFrom(seal: ServerConfig["seal"], name: "masterKey" | "previousMasterKey"): Uint8Array | null {
  const [file, command, text] = [seal[`${name}File`], seal[`${name}Command`], seal[name]];
  try {
    if (file !== undefined) return parseMasterKey(readFileSync(file, "utf8"));
    if (command !== undefined) return keyPrintedBy(command);
    return text === undefined ? null : parseMasterKey(text);
  } catch (error) {
    if (error instanceof CommandFailure) throw new Error(`seal.${name}Command: ${error.message}`);
    const source = file !== undefined ? `File: ${file}` : "";
    const why = `seal.${name}${source}: ${reasonOf(error)}`;
    // It may be on a volume that is not mounted yet.
    throw (error as NodeJS.ErrnoException).code === "ENOENT" ? new Error(why) : new ConfigError(why);
  }
}

/** A key service that does not answer is not a wrong setting. In a pipeline, only the output shows that it did not. */
class CommandFailure extends Error {}

function keyPrintedBy(command: string): Uint8Array {
  const failure = (what: string) => new CommandFailure(`the command ${what}; run it by hand to see why`);
  let printed: string;
  try {
    printed = execSync(command, {
      encoding: "utf8",
      timeout: KEY_COMMAND_MS,
      // A command may ignore other signals, and would be waited for without end.
      killSignal: "SIGKILL",
      stdio: ["ignore", "pipe", "inherit"],
      windowsHide: true,
    });
  } catch (error) {
    const { status, signal, code } = error as { status?: number | null; signal?: string | null; code?: string };
    if (code === "ETIMEDOUT") throw failure(`did not end within ${KEY_COMMAND_MS / 1000} s`);
    if (code === "ENOBUFS") throw failure("printed more than 1 MB instead of a key");
    throw failure(`failed with ${status ?? signal ?? code}`);
  }
  try {
    return parseMasterKey(printed);
  } catch (error) {
    throw failure(`printed something else: ${(error as Error).message}`);
  }
}
