/** A store as a configuration names it: "memory", a folder, or the URL of a PostgreSQL. For programs on Node. */
import { typeName } from "../type-name.js";
import { createMemoryStore } from "./memory.js";
import type { Store } from "./port.js";
import type { KeyOptions } from "./sql/open.js";

/** Where the keys of a store are, and what seals them. */
export type OpenStoreOptions = Partial<KeyOptions>;

/** Opens `memory`, a folder or `postgres://…`. */
export async function openStore(location: string, options: OpenStoreOptions = {}): Promise<Store> {
  if (location === "memory") return createMemoryStore();
  // Loaded on demand: a program without storage does not load two database engines.
  const { isPostgresUrl, openEmbeddedStore, openPostgresStore } = await import("./sql/open.js");
  if (typeof location !== "string" || location === "" || (isUrl(location) && !isPostgresUrl(location)))
    throw new RangeError(`a store must be "memory", a folder or postgres://…, got ${shown(location)}`);
  if (!isPostgresUrl(location)) return openEmbeddedStore(location, options);
  const { keys } = options;
  if (!keys)
    throw new RangeError(
      "a PostgreSQL store keeps its keys elsewhere; set keys to a folder or to another PostgreSQL database",
    );
  return openPostgresStore(location, { ...options, keys });
}

/** A URL used as a path would create a folder of that name. */
const isUrl = (location: string) => /^[a-z][a-z0-9+.-]*:\/\//i.test(location);

/** A URL without its rest, which may hold a password. */
const shown = (location: unknown): string =>
  typeof location === "string" ? `"${location.replace(/:\/\/.*/s, "://…")}"` : typeName(location);

/** A master key from an environment variable or a secret file: 64 hexadecimal digits or base64. */
export function parseMasterKey(text: string): Uint8Array {
  const trimmed = text.trim();
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return new Uint8Array(Buffer.from(trimmed, "hex"));
  // Node skips what is not base64, so that an error message of the right length would be a key.
  if (/^[\w+/-]{43}=?$/.test(trimmed)) return new Uint8Array(Buffer.from(trimmed, "base64"));
  throw new RangeError("the master key must be 32 bytes, as 64 hexadecimal digits or base64");
}
