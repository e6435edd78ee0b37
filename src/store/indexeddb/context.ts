/**
 * Shared by the parts of the browser's store. An IndexedDB transaction ends as soon as it waits for anything else, so cryptography runs
 * before or after one, and a write checks that the data it is based on has not changed.
 */
import type { IDBPTransaction, StoreNames } from "idb";
import type { Id } from "../port.js";
import type { DoomedKey } from "../seal/key-ring.js";
import type { Vault } from "../seal/vault.js";
import type { StoreDatabase, StoreSchema } from "./schema.js";

export interface IdbContext {
  readonly db: StoreDatabase;
  readonly vault: Vault;
  readonly now: () => number;
}

/** Call after the transaction that removed the rows and marked the keys as doomed. */
export async function destroyDoomed({ db, vault }: IdbContext, keys: readonly DoomedKey[]): Promise<void> {
  for (const { scopeId, keyId } of keys) await vault.ring.destroy(scopeId, [keyId]);
  const tx = db.transaction("doomedKeys", "readwrite");
  for (const { keyId } of keys) await tx.store.delete(keyId);
  await tx.done;
}

/** Tells loaded galleries that the print was written or erased. */
export async function markPrintChanged<Others extends StoreNames<StoreSchema>>(
  tx: IDBPTransaction<StoreSchema, (Others | "scopes" | "printChanges")[], "readwrite">,
  scopeId: Id,
  profileId: Id,
): Promise<void> {
  const version = ((await tx.objectStore("scopes").get(scopeId))?.printsVersion ?? 0) + 1;
  await tx.objectStore("scopes").put({ scopeId, printsVersion: version });
  await tx.objectStore("printChanges").put({ scopeId, profileId, version });
}
