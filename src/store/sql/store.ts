/** The SQL implementation of the store, for a server or an embedded PostgreSQL. */
import { refuseWhenClosed } from "../closed.js";
import { SealError } from "../errors.js";
import type { Store } from "../port.js";
import { nodeAead } from "../seal/aead-node.js";
import { KeyRing, type KeyShelf } from "../seal/key-ring.js";
import { Vault } from "../seal/vault.js";
import { destroyDoomed, readDoomed, type SqlContext } from "./context.js";
import type { Database } from "./database.js";
import { assertDocumentKey, createDocuments } from "./documents.js";
import { createGroups } from "./groups.js";
import { createJobs } from "./jobs.js";
import { compareWithKeys, type LostKeys } from "./lost-keys.js";
import { migrate } from "./migrations.js";
import { OwnerNames } from "./names.js";
import { sealOldNames } from "./old-names.js";
import { createOwners, createProfiles } from "./profiles.js";
import { createMedia, createProcessed } from "./recordings.js";
import { createEngagements, createSessions } from "./sessions.js";

/** Options of both SQL stores. */
export interface SqlStoreOptions {
  /** Milliseconds since 1970; decides which documents have expired. */
  readonly now?: () => number;
  /** Replicas share jobs: after this many seconds without a heartbeat a replica counts as dead, and its job goes to another. 60 by default. */
  readonly deadReplicaSeconds?: number;
}

const DEAD_REPLICA_SECONDS = 60;

/** A store whose biometric data is sealed. */
export interface SealedStore extends Store {
  readonly keys: {
    /**
     * Wraps a scope's keys with a new scope key and drops the old one. No row is rewritten; the store stays in use.
     * `false` if the scope has no keys.
     */
    rotate(scopeId: string): Promise<boolean>;
    /** The same for every scope, and for the key of the documents. Returns how many there were. */
    rotateAll(): Promise<number>;
    /** What the keys can no longer open, as found when the store was opened. */
    readonly lost: LostKeys;
  };
}

/** Takes ownership of database and shelf: closing the store closes both, and so does a failure to open it. */
export async function createSqlStore(
  database: Database,
  shelf: KeyShelf,
  /** `lost`: another process has taken the folder, so it must not be changed any more. */
  options: SqlStoreOptions & { readonly lost?: AbortSignal } = {},
): Promise<SealedStore> {
  const ring = new KeyRing(shelf, nodeAead);
  const vault = new Vault(ring);
  const context: SqlContext = {
    database,
    vault,
    names: new OwnerNames(database, vault),
    now: options.now ?? Date.now,
    sessionKeyIds: new Map(),
  };
  const { jobs, stop } = createJobs(context, options.deadReplicaSeconds ?? DEAD_REPLICA_SECONDS);
  let open = true;
  let lost: LostKeys;
  let closing: Promise<void> | null = null;

  try {
    await migrate(database);
    await bindKeys(database, shelf);
    await assertDocumentKey(context);
    await destroyDoomed(context, await readDoomed(context));
    lost = await compareWithKeys(context);
    if (await sealOldNames(context)) await forgetOldRows(database);
  } catch (error) {
    await database.close();
    await ring.close();
    throw error;
  }

  const parts = {
    engagements: createEngagements(context),
    sessions: createSessions(context),
    media: createMedia(context),
    processed: createProcessed(context),
    owners: createOwners(context),
    profiles: createProfiles(context),
    groups: createGroups(context),
    jobs,
    documents: createDocuments(context),
    keys: { rotate: (scopeId: string) => ring.rotate(scopeId), rotateAll: () => ring.rotateAll() },
  };
  const guarded = refuseWhenClosed(parts, () => !open || options.lost?.aborted === true);
  return {
    ...guarded,
    keys: { ...guarded.keys, lost },
    close() {
      closing ??= (async () => {
        // Each step is tried even if the one before fails: what stays open could not be opened again by this process.
        try {
          // The current job still needs the store.
          await stop();
        } finally {
          open = false;
          await database.close().finally(() => ring.close());
        }
      })();
      return closing;
    },
  };
}

/** Removes old versions of rewritten rows from tables and log. On a server, the operator does this (docs/PRIVACY.md). */
async function forgetOldRows(database: Database): Promise<void> {
  if (!database.exclusive) return;
  for (const table of ["owners", "profiles"]) await database.foreign(`VACUUM FULL vivavoce.${table}`);
  await database.foreign("SELECT pg_switch_wal()");
  await database.foreign("CHECKPOINT");
}

/** A database records which keys sealed it and accepts no others: new keys with old rows would look like lost data. */
async function bindKeys(database: Database, shelf: KeyShelf): Promise<void> {
  await database.query(
    "INSERT INTO vivavoce.settings (name, value) VALUES ('key-ring', $1) ON CONFLICT (name) DO NOTHING",
    [shelf.identity],
  );
  const [row] = await database.query<{ value: string }>("SELECT value FROM vivavoce.settings WHERE name = 'key-ring'");
  if (row!.value !== shelf.identity) {
    // A folder of keys that is not mounted or not yet restored was found empty, and new keys were begun there.
    const areNew = (await shelf.scopes()).length === 0;
    throw new SealError(
      "wrong-key",
      areNew
        ? "the keys of this store are missing where they should be; mount them, or restore them from their backup"
        : "these keys belong to another store; open the store with the keys that it was created with",
    );
  }
}
