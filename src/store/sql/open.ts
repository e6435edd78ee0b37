/** Persistent stores. A folder needs no server; replicas share a PostgreSQL. */
import { join } from "node:path";
import { lockFolder } from "../folder-lock.js";
import { nodeAead } from "../seal/aead-node.js";
import type { KeyShelf } from "../seal/key-ring.js";
import { openFolderShelf } from "../seal/shelf-folder.js";
import { openPostgresShelf } from "../seal/shelf-postgres.js";
import type { Database } from "./database.js";
import { createSqlStore, type SealedStore, type SqlStoreOptions } from "./store.js";

/** Where the sealing keys are, and what seals them. */
export interface KeyOptions {
  /**
   * Where the keys are stored. A folder for one process, or the URL of a PostgreSQL (`postgres://…`) for replicas, which needs a master key and
   * should be another server than the store's.
   */
  readonly keys: string;
  /** 32 bytes that wrap the keys; read from the operator's secret storage, never stored. */
  readonly masterKey?: Uint8Array;
  /** The previous master key, while it is being replaced. */
  readonly previousMasterKey?: Uint8Array;
}

/** A PostgreSQL server, 15 or later. */
export async function openPostgresStore(url: string, options: KeyOptions & SqlStoreOptions): Promise<SealedStore> {
  const shelf = await openShelf(options);
  return createOver(shelf, () => openPostgresDatabase(url), options);
}

/** Options of `openEmbeddedStore`; all are optional. */
export type EmbeddedStoreOptions = Partial<KeyOptions> & SqlStoreOptions;

/** A local folder, for one process at a time. By default the keys are in its subfolder `keys`. */
export async function openEmbeddedStore(folder: string, options: EmbeddedStoreOptions = {}): Promise<SealedStore> {
  const lock = await lockFolder(folder, "store.lock");
  try {
    const shelf = await openShelf({ ...options, keys: options.keys ?? join(folder, "keys") });
    const store = await createOver(shelf, () => openEmbeddedDatabase(join(folder, "database")), {
      ...options,
      lost: lock.lost,
    });
    return {
      ...store,
      async close() {
        await store.close().finally(() => lock.release());
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

// Each database engine is loaded on demand: a program uses one of the two.
async function openPostgresDatabase(url: string): Promise<Database> {
  return (await import("./database-pg.js")).openPostgresDatabase(url);
}

async function openEmbeddedDatabase(folder: string): Promise<Database> {
  return (await import("./database-pglite.js")).openEmbeddedDatabase(folder);
}

async function openShelf({ keys, ...master }: KeyOptions): Promise<KeyShelf> {
  if (isPostgresUrl(keys)) return openPostgresShelf(await openPostgresDatabase(keys), nodeAead, master);
  return openFolderShelf(keys, nodeAead, master);
}

/** Whether a store is a PostgreSQL server rather than a folder. */
export function isPostgresUrl(location: string): boolean {
  return /^postgres(ql)?:\/\//.test(location);
}

async function createOver(
  shelf: KeyShelf,
  openDatabase: () => Promise<Database>,
  options: SqlStoreOptions & { readonly lost?: AbortSignal },
): Promise<SealedStore> {
  let database: Database;
  try {
    database = await openDatabase();
  } catch (error) {
    await shelf.close();
    throw error;
  }
  return createSqlStore(database, shelf, options);
}
