/**
 * Names of owners (`person_id`, `fraudster_id`). Callers choose them, and they may be names of people. A name is looked up by a keyed
 * digest and stored in each profile, sealed with that profile's key: once the profile is erased, no file contains the name. Anyone with the
 * scope's keys can still test whether a certain name was there.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { encodeJson } from "../encoding.js";
import type { Id } from "../port.js";
import { type DataKey, keyLost } from "../seal/key-ring.js";
import { profilePlace, type Vault } from "../seal/vault.js";
import type { Database } from "./database.js";
import { keyOf } from "./text.js";

const encoder = new TextEncoder();
/** Escaped text never begins like this. */
const PREFIX = "\\name:";
const DIGEST_KEY_BYTES = 32;

export class OwnerNames {
  readonly #digestKeys = new Map<Id, Uint8Array>();

  constructor(
    private readonly database: Database,
    private readonly vault: Vault,
  ) {}

  /** The lookup digest of an owner's name; `null` in a scope that never had a name. */
  async find(scopeId: Id, name: string): Promise<string | null> {
    const known = this.#digestKeys.get(scopeId);
    if (known) return digestOf(known, name);
    const [row] = await this.database.query<{ names_check: string | null }>(
      "SELECT names_check FROM vivavoce.scopes WHERE scope = $1",
      [keyOf(scopeId)],
    );
    return row?.names_check ? digestOf(await this.digestKey(scopeId, row.names_check), name) : null;
  }

  /** The same for a scope that may be new: adds the scope, with a check value for its key. */
  async make(scopeId: Id, name: string): Promise<string> {
    const known = this.#digestKeys.get(scopeId);
    if (known) return digestOf(known, name);
    const [row] = await this.database.query<{ names_check: string }>(
      `INSERT INTO vivavoce.scopes AS s (scope, scope_id, names_check) VALUES ($1, $2, $3)
       ON CONFLICT (scope) DO UPDATE SET names_check = coalesce(s.names_check, excluded.names_check) RETURNING names_check`,
      [keyOf(scopeId), JSON.stringify(scopeId), checkOf(await this.#derive(scopeId))],
    );
    return digestOf(await this.digestKey(scopeId, row!.names_check), name);
  }

  seal(key: DataKey, scopeId: Id, profileId: Id, name: string): Promise<Uint8Array> {
    // JSON can represent a lone surrogate, which UTF-8 cannot.
    return this.vault.seal(key, profilePlace("name", scopeId, profileId), encodeJson(name));
  }

  /**
   * Throws "key-lost" if the scope's secret is missing or another one: with a wrong key no owner would be found, and every owner could be created
   * a second time.
   */
  async digestKey(scopeId: Id, check: string): Promise<Uint8Array> {
    const key = await this.#derive(scopeId);
    if (!timingSafeEqual(Buffer.from(checkOf(key)), Buffer.from(check)))
      throw keyLost(`the secret of scope ${scopeId} is missing`);
    this.#digestKeys.set(scopeId, key);
    return key;
  }

  async #derive(scopeId: Id): Promise<Uint8Array> {
    const secret = await this.vault.ring.secret(scopeId);
    return this.vault.ring.aead.derive(secret, new Uint8Array(), encoder.encode("owner names"), DIGEST_KEY_BYTES);
  }
}

const digestOf = (key: Uint8Array, name: string): string =>
  PREFIX + createHmac("sha256", key).update(JSON.stringify(name)).digest("base64url");

const checkOf = (key: Uint8Array): string => createHmac("sha256", key).update("check").digest("base64url");
