/**
 * Shared by the parts of the stores that keep records in tables. A transaction ends as soon as it waits for anything else, so cryptography runs
 * before or after one, and a write checks that the data it is based on has not changed.
 */
import type { Id } from "../port.js";
import { type DoomedKey, destroyByScope } from "../seal/key-ring.js";
import type { Vault } from "../seal/vault.js";
import type { StoreDatabase, Tables } from "./tables.js";

export interface RecordContext {
  readonly db: StoreDatabase;
  readonly vault: Sealing;
  readonly now: () => number;
}

/** The vault of a store, or one that leaves everything as it is. */
export type Sealing = Pick<Vault, "key" | "seal" | "reseal" | "open" | "openAll" | "assertDestroyed"> & {
  readonly ring: Pick<Vault["ring"], "create" | "destroy"> & {
    readonly shelf: Pick<Vault["ring"]["shelf"], "destroyedOf">;
  };
};

/** Call after the transaction that removed the rows and marked the keys as doomed. */
export const destroyDoomed = ({ db, vault }: RecordContext, keys: readonly DoomedKey[]): Promise<void> =>
  destroyByScope(vault.ring, keys, (keyIds) =>
    db.transact(["doomedKeys"], async ({ doomedKeys }) => {
      for (const keyId of keyIds) await doomedKeys.delete(keyId);
    }),
  );

/** Tells loaded galleries that the print was written or erased. */
export async function markPrintChanged(
  { scopes, printChanges }: Tables<"scopes" | "printChanges">,
  scopeId: Id,
  profileId: Id,
): Promise<void> {
  const version = ((await scopes.get(scopeId))?.printsVersion ?? 0) + 1;
  await scopes.put({ scopeId, printsVersion: version });
  await printChanges.put({ scopeId, profileId, version });
}
