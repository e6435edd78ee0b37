/** The tables of the stores without SQL: the object stores of a browser's database, or the same in memory. */
import type { DBSchema, IDBPDatabase, IDBPIndex, IDBPObjectStore, IndexNames, StoreNames } from "idb";
import { StoreError } from "../errors.js";
import type {
  Check,
  Engagement,
  Group,
  Id,
  Job,
  MediaSegment,
  Owner,
  PlainProcessed,
  Profile,
  Session,
} from "../port.js";
import type { DoomedKey, KeyId } from "../seal/key-ring.js";

/** Recordings are sealed with their session's keys, created on first use. */
export interface StoredSession extends Session {
  readonly mediaKey: KeyId | null;
  readonly modelKey: KeyId | null;
}

export interface StoredMedia extends Omit<MediaSegment, "audio"> {
  /** Its own id, or that of the recording it is a part of. */
  readonly root: Id;
  readonly sealed: Uint8Array;
}

export interface StoredProcessed extends PlainProcessed {
  readonly sealed: Uint8Array;
}

export interface StoredProfile extends Omit<Profile, "template"> {
  readonly keyId: KeyId;
  readonly sealed: Uint8Array | null;
}

export interface StoredSegment {
  readonly scopeId: Id;
  readonly profileId: Id;
  readonly position: number;
  readonly audioModelId: Id;
  readonly addedAt: number;
  readonly processed: PlainProcessed;
  readonly sealed: Uint8Array;
}

export interface StoredJob extends Job {
  readonly tries: number;
  /** 1 while it waits or runs; absent from the index afterwards. */
  readonly queued?: 1;
}

export interface StoredDocument {
  readonly collection: string;
  readonly id: string;
  readonly expiresAt: number | null;
  readonly sealed: Uint8Array;
}

type Scoped = [Id, Id];

/** Without a version: the initial state. */
export type StoredGroup = Group & { readonly version?: number };

export interface StoreSchema extends DBSchema {
  settings: { key: string; value: string };
  scopes: { key: Id; value: { scopeId: Id; printsVersion: number } };
  engagements: { key: Scoped; value: Engagement };
  sessions: { key: Scoped; value: StoredSession; indexes: { engagement: Scoped } };
  checks: { key: number; value: Check; indexes: { id: Scoped; session: Scoped } };
  media: { key: Scoped; value: StoredMedia; indexes: { session: Scoped; root: Scoped } };
  processed: { key: Scoped; value: StoredProcessed; indexes: { session: Scoped; media: Scoped } };
  owners: { key: Scoped; value: Owner; indexes: { name: [Id, string, string] } };
  profiles: { key: Scoped; value: StoredProfile; indexes: { owner: Scoped; tag: [Id, Id, string] } };
  segments: {
    key: [Id, Id, number];
    value: StoredSegment;
    indexes: { enrolled: [Id, Id, Id]; audioModel: Scoped };
  };
  printChanges: {
    key: Scoped;
    value: { scopeId: Id; profileId: Id; version: number };
    indexes: { version: [Id, number] };
  };
  groups: { key: Scoped; value: StoredGroup };
  jobs: { key: Scoped; value: StoredJob; indexes: { queued: number } };
  documents: { key: [string, string]; value: StoredDocument };
  doomedKeys: { key: KeyId; value: DoomedKey };
}

export type TableName = StoreNames<StoreSchema>;

type Reading = "get" | "getKey" | "getAll" | "getAllKeys" | "count";

/** What the records need of an object store. */
type Table<Name extends TableName> = Pick<
  IDBPObjectStore<StoreSchema, TableName[], Name, "readwrite">,
  Reading | "add" | "put" | "delete"
> & {
  index<Index extends IndexNames<StoreSchema, Name>>(
    name: Index,
  ): Pick<IDBPIndex<StoreSchema, TableName[], Name, Index, "readwrite">, Reading>;
};

/** Of one transaction, by their names. */
export type Tables<Name extends TableName> = { readonly [Each in Name]: Table<Each> };

/** The table whose name is known only at run time. */
export const tableOf = <Name extends TableName>(tables: Tables<Name>, name: Name): Table<Name> =>
  tables[name] as unknown as Table<Name>;

type Single = "get" | "getFromIndex" | "getAll" | "getAllFromIndex" | "getAllKeys" | "count" | "add" | "put" | "delete";

export interface StoreDatabase extends Pick<IDBPDatabase<StoreSchema>, Single | "close"> {
  /** One transaction: if the work fails, nothing is written. It ends as soon as the work waits for anything but these tables. */
  transact<Name extends TableName, T>(names: readonly Name[], work: (tables: Tables<Name>) => Promise<T>): Promise<T>;
  /** The last rows of a range, the last one first. */
  last<Name extends TableName>(name: Name, range: IDBKeyRange, limit: number): Promise<StoreSchema[Name]["value"][]>;
}

export interface TableShape {
  /** Without one, each row is written with its key. */
  readonly keyPath?: string | string[];
  readonly autoIncrement?: true;
  readonly indexes?: Readonly<Record<string, { readonly keyPath: string | string[]; readonly unique?: true }>>;
}

const byId = ["scopeId", "id"];

/** Those of the browser's version 1, which was released and is never edited. */
export const SHAPES: Readonly<Record<TableName, TableShape>> = {
  settings: {},
  scopes: { keyPath: "scopeId" },
  engagements: { keyPath: byId },
  sessions: { keyPath: byId, indexes: { engagement: { keyPath: ["scopeId", "engagementId"] } } },
  checks: {
    autoIncrement: true,
    indexes: { id: { keyPath: byId, unique: true }, session: { keyPath: ["scopeId", "sessionId"] } },
  },
  media: {
    keyPath: byId,
    indexes: { session: { keyPath: ["scopeId", "sessionId"] }, root: { keyPath: ["scopeId", "root"] } },
  },
  processed: {
    keyPath: byId,
    indexes: { session: { keyPath: ["scopeId", "sessionId"] }, media: { keyPath: ["scopeId", "mediaSegmentId"] } },
  },
  owners: { keyPath: byId, indexes: { name: { keyPath: ["scopeId", "kind", "externalId"], unique: true } } },
  profiles: {
    keyPath: byId,
    indexes: {
      owner: { keyPath: ["scopeId", "owner.id"] },
      tag: { keyPath: ["scopeId", "owner.id", "tag"], unique: true },
    },
  },
  segments: {
    keyPath: ["scopeId", "profileId", "position"],
    indexes: {
      enrolled: { keyPath: ["scopeId", "profileId", "audioModelId"], unique: true },
      audioModel: { keyPath: ["scopeId", "audioModelId"] },
    },
  },
  printChanges: { keyPath: ["scopeId", "profileId"], indexes: { version: { keyPath: ["scopeId", "version"] } } },
  groups: { keyPath: byId },
  jobs: { keyPath: byId, indexes: { queued: { keyPath: "queued" } } },
  documents: { keyPath: ["collection", "id"] },
  doomedKeys: { keyPath: "keyId" },
};

export const TABLE_NAMES = Object.keys(SHAPES) as TableName[];

/** Without IndexedDB, an object of the same form. */
export const keysBetween = (lower: unknown, upper: unknown, lowerOpen = false, upperOpen = false): IDBKeyRange =>
  globalThis.IDBKeyRange
    ? IDBKeyRange.bound(lower, upper, lowerOpen, upperOpen)
    : ({ lower, upper, lowerOpen, upperOpen } as IDBKeyRange);

/** All keys that begin with these parts: an array sorts after every string and number. */
export const within = (...parts: (string | number)[]): IDBKeyRange => keysBetween(parts, [...parts, []]);

/** The keys of a scope after this id; all if it is `null`. */
export const afterId = (scopeId: Id, after: Id | null): IDBKeyRange =>
  after === null ? within(scopeId) : keysBetween([scopeId, after], [scopeId, []], true);

/** `add` refuses an existing id; the transaction is rolled back. */
export async function inStoreWords<T>(id: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if ((error as DOMException).name !== "ConstraintError") throw error;
    throw new StoreError("exists", `a record with id ${id} already exists`, { cause: error });
  }
}
