/**
 * The store of a browser: IndexedDB, sealed with keys that the page cannot export, in a separate database.
 * The embedded PostgreSQL would be a download of five megabytes.
 */
import { typeName } from "../../type-name.js";
import { refuseWhenClosed } from "../closed.js";
import { SealError, StoreError } from "../errors.js";
import type { Store } from "../port.js";
import { webAead } from "../seal/aead.js";
import { KeyRing, type KeyShelf } from "../seal/key-ring.js";
import { openIndexedDbShelf } from "../seal/shelf-indexeddb.js";
import { Vault } from "../seal/vault.js";
import { openingFault, storeFault } from "./browser-faults.js";
import type { IdbContext } from "./context.js";
import { createDocuments } from "./documents.js";
import { finishErasures } from "./erasure.js";
import { createGroups } from "./groups.js";
import { createJobs } from "./jobs.js";
import { createOwners, createProfiles } from "./profiles.js";
import { createMedia, createProcessed } from "./recordings.js";
import { openDatabase, type StoreDatabase } from "./schema.js";
import { createEngagements, createSessions } from "./sessions.js";

/** For tests; a page does not need it. */
export interface IndexedDbStoreOptions {
  /** Milliseconds since 1970; decides which documents have expired. */
  readonly now?: () => number;
}

/** A store in this browser, and its keys. */
export interface IndexedDbStore extends Store {
  readonly keys: {
    /** Wraps a scope's keys with a new scope key and drops the old one. */
    rotate(scopeId: string): Promise<boolean>;
    /** The same for every scope, and for the key of the documents. Returns how many there were. */
    rotateAll(): Promise<number>;
  };
}

/** `name` is the database's name; the keys are in `name` followed by "-keys". */
export async function openIndexedDbStore(
  name = "vivavoce",
  options: IndexedDbStoreOptions = {},
): Promise<IndexedDbStore> {
  if (typeof name !== "string" || name === "")
    throw new TypeError(
      `the name of a store must be a non-empty string, got ${name === "" ? "an empty one" : typeName(name)}`,
    );
  if (!globalThis.indexedDB)
    throw new StoreError(
      "unavailable",
      "there is no IndexedDB here: the browser blocks it, or this is Node, which has openEmbeddedStore of vivavoce-box/postgres",
    );
  let [ring, db]: [KeyRing | null, StoreDatabase | null] = [null, null];
  try {
    const shelf = await openIndexedDbShelf(`${name}-keys`);
    ring = new KeyRing(shelf, webAead);
    db = await openDatabase(name);
    await bindKeys(db, shelf);
    const context: IdbContext = { db, vault: new Vault(ring), now: options.now ?? Date.now };
    await finishErasures(context);
    return compose(context, name);
  } catch (error) {
    db?.close();
    await ring?.close();
    throw openingFault(error);
  }
}

function compose(context: IdbContext, name: string): IndexedDbStore {
  const { ring } = context.vault;
  const { jobs, stop } = createJobs(context, name);
  let open = true;
  let closing: Promise<void> | null = null;
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
  return {
    ...refuseWhenClosed(parts, () => !open, storeFault),
    close() {
      closing ??= (async () => {
        await stop();
        open = false;
        context.db.close();
        await ring.close();
      })();
      return closing;
    },
  };
}

/** A database records which keys sealed it and accepts no others. */
async function bindKeys(db: StoreDatabase, { identity }: KeyShelf): Promise<void> {
  const tx = db.transaction("settings", "readwrite");
  const bound = await tx.store.get("key-ring");
  if (bound === undefined) await tx.store.put(identity, "key-ring");
  await tx.done;
  if (bound !== undefined && bound !== identity)
    throw new SealError("wrong-key", "the keys of this store are missing, so its data can no longer be read");
}
