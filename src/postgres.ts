/**
 * Stores that outlive the process: `vivavoce-box/postgres`. A folder needs no server; replicas share a PostgreSQL.
 * How data is sealed, kept and erased: docs/storing.md.
 */
export { SealError, type SealErrorCode, StoreError, type StoreErrorCode } from "./store/errors.js";
export { type OpenStoreOptions, openStore, parseMasterKey } from "./store/open.js";
export type * from "./store/port.js";
export type { LostKeys } from "./store/sql/lost-keys.js";
export {
  type EmbeddedStoreOptions,
  isPostgresUrl,
  type KeyOptions,
  openEmbeddedStore,
  openPostgresStore,
} from "./store/sql/open.js";
export type { SealedStore, SqlStoreOptions } from "./store/sql/store.js";
