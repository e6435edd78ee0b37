/** Error codes of stores. */
export type StoreErrorCode =
  /** A record with this id already exists. */
  | "exists"
  /** The session or engagement that a record names does not exist. */
  | "unknown-parent"
  /** Another process has the folder open. */
  | "locked"
  /** A newer version of vivavoce wrote this store. */
  | "newer-schema"
  /** The database of a new folder could not be created. */
  | "not-created"
  /** The database of a folder does not start. */
  | "damaged"
  /** This user cannot read or write files of the folder. */
  | "unreadable"
  /** The process runs as root, and the folder belongs to another user. */
  | "not-owner"
  | "disk-full"
  /** The machine, or the limits of the process, leave too little memory. */
  | "no-memory"
  /** Other writers kept changing the same record; nothing was written. */
  | "contended"
  /** The database cannot be reached or does not answer in time. A write may have been executed. */
  | "unavailable"
  | "closed";

/** The store cannot be opened or used; `code` says why. */
export class StoreError extends Error {
  override readonly name = "StoreError";

  constructor(
    readonly code: StoreErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Error codes of keys and sealed data. */
export type SealErrorCode =
  /** The given keys are not those that sealed this store. */
  | "wrong-key"
  /** The key was destroyed: the data it sealed is erased for good. */
  | "key-destroyed"
  /** The key is missing but was not destroyed: the keys are damaged, or older than the database. */
  | "key-lost"
  /** The sealed bytes were changed, or moved to another place. */
  | "damaged";

/** The keys do not match, or sealed data was changed; `code` says which. */
export class SealError extends Error {
  override readonly name = "SealError";

  constructor(
    readonly code: SealErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** The key of one profile is missing; the others of its scope can be used. */
export class ProfileKeyLostError extends SealError {
  constructor(profileId: string) {
    super(
      "key-lost",
      `the key of profile ${profileId} is missing (the key files are damaged, or older than the database): ` +
        "restore the keys from a backup, or delete the profile and enroll the person again",
    );
  }
}
