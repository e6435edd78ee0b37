/** A broken promise between a caller and its store. */
export type StoreErrorCode =
  /** A record with this id is there. */
  | "exists"
  /** The session or engagement that a record names is not there. */
  | "unknown-parent"
  /** Another process has the folder open. */
  | "locked"
  /** A newer version of vivavoce wrote this store. */
  | "newer-schema"
  /** The database of a folder does not start. */
  | "damaged"
  /** Files of the folder cannot be read or written by this user. */
  | "unreadable"
  /** This is the system's administrator, and the folder is another user's. */
  | "not-owner"
  | "disk-full"
  /** The machine, or the limits it was started with, leave too little memory. */
  | "no-memory"
  /** Others kept writing the same record; nothing was written. */
  | "contended"
  | "closed";

/** A store that cannot be opened or used; `code` says why. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What is wrong with keys or with what they sealed, for programs. */
export type SealErrorCode =
  /** The keys offered are not those that sealed this store. */
  | "wrong-key"
  /** The key was destroyed: what it sealed is erased for good. */
  | "key-destroyed"
  /** The key is neither there nor was it destroyed: the keys are damaged, or older than the database. */
  | "key-lost"
  /** The sealed bytes were changed, or moved to another place. */
  | "damaged";

/** Keys that do not fit, or sealed data that was changed; `code` says which. */
export class SealError extends Error {
  override readonly name = "SealError";
  readonly code: SealErrorCode;

  constructor(code: SealErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
