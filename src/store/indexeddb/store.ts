/**
 * The store of a browser: IndexedDB, sealed with keys that the page cannot export, in a separate database.
 * The embedded PostgreSQL would be a download of five megabytes.
 */
import { typeName } from "../../type-name.js";
import { refuseWhenClosed } from "../closed.js";
import { SealError, StoreError } from "../errors.js";
import type { Store } from "../port.js";
import { finishErasures } from "../records/erasure.js";
import type { OtherPages } from "../records/jobs.js";
import { createRecordStore } from "../records/store.js";
import type { StoreDatabase } from "../records/tables.js";
import { webAead } from "../seal/aead.js";
import { KeyRing, type KeyShelf } from "../seal/key-ring.js";
import { openIndexedDbShelf } from "../seal/shelf-indexeddb.js";
import { Vault } from "../seal/vault.js";
import { openingFault, storeFault } from "./browser-faults.js";
import { openDatabase } from "./database.js";

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
    const context = { db, vault: new Vault(ring), now: options.now ?? Date.now };
    await finishErasures(context);
    return withKeys(ring, createRecordStore(context, { others: otherPages(name), faultOf: storeFault }));
  } catch (error) {
    db?.close();
    await ring?.close();
    throw openingFault(error);
  }
}

function withKeys(ring: KeyRing, store: Store): IndexedDbStore {
  let open = true;
  const keys = { rotate: (scopeId: string) => ring.rotate(scopeId), rotateAll: () => ring.rotateAll() };
  return {
    ...store,
    ...refuseWhenClosed({ keys }, () => !open, { faultOf: storeFault }),
    async close() {
      await store.close();
      open = false;
      await ring.close();
    },
  };
}

const otherPages = (name: string): OtherPages => ({
  pollMs: 2_000,
  // If the browser has locks between pages, the work waits for the lock; otherwise there is only one page.
  async whileAlone(signal, work) {
    const locks = (globalThis.navigator as Navigator | undefined)?.locks;
    if (!locks) return work();
    try {
      await locks.request(`vivavoce jobs ${name}`, { signal }, work);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  },
});

/** A database records which keys sealed it and accepts no others. */
async function bindKeys(db: StoreDatabase, { identity }: KeyShelf): Promise<void> {
  const bound = await db.transact(["settings"], async ({ settings }) => {
    const known = await settings.get("key-ring");
    if (known === undefined) await settings.put(identity, "key-ring");
    return known;
  });
  if (bound !== undefined && bound !== identity)
    throw new SealError("wrong-key", "the keys of this store are missing, so its data can no longer be read");
}
