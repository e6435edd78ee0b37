/** The object stores of the browser's database, and how it is opened. A released version is never edited. */
import { type DBSchema, type IDBPDatabase, openDB } from "idb";
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

export type StoreDatabase = IDBPDatabase<StoreSchema>;

const VERSION = 1;

export async function openDatabase(name: string): Promise<StoreDatabase> {
  const db: StoreDatabase = await openDB<StoreSchema>(name, VERSION, {
    upgrade: create,
    // A newer version of the page waits until this one closes the database.
    blocking: () => db.close(),
  });
  return db;
}

function create(db: StoreDatabase): void {
  const byId = { keyPath: ["scopeId", "id"] };
  db.createObjectStore("settings");
  db.createObjectStore("scopes", { keyPath: "scopeId" });
  db.createObjectStore("engagements", byId);
  db.createObjectStore("sessions", byId).createIndex("engagement", ["scopeId", "engagementId"]);
  const checks = db.createObjectStore("checks", { autoIncrement: true });
  checks.createIndex("id", ["scopeId", "id"], { unique: true });
  checks.createIndex("session", ["scopeId", "sessionId"]);
  const media = db.createObjectStore("media", byId);
  media.createIndex("session", ["scopeId", "sessionId"]);
  media.createIndex("root", ["scopeId", "root"]);
  const processed = db.createObjectStore("processed", byId);
  processed.createIndex("session", ["scopeId", "sessionId"]);
  processed.createIndex("media", ["scopeId", "mediaSegmentId"]);
  db.createObjectStore("owners", byId).createIndex("name", ["scopeId", "kind", "externalId"], { unique: true });
  const profiles = db.createObjectStore("profiles", byId);
  profiles.createIndex("owner", ["scopeId", "owner.id"]);
  profiles.createIndex("tag", ["scopeId", "owner.id", "tag"], { unique: true });
  const segments = db.createObjectStore("segments", { keyPath: ["scopeId", "profileId", "position"] });
  segments.createIndex("enrolled", ["scopeId", "profileId", "audioModelId"], { unique: true });
  segments.createIndex("audioModel", ["scopeId", "audioModelId"]);
  const changes = db.createObjectStore("printChanges", { keyPath: ["scopeId", "profileId"] });
  changes.createIndex("version", ["scopeId", "version"]);
  db.createObjectStore("groups", byId);
  db.createObjectStore("jobs", byId).createIndex("queued", "queued");
  db.createObjectStore("documents", { keyPath: ["collection", "id"] });
  db.createObjectStore("doomedKeys", { keyPath: "keyId" });
}

/** All keys that begin with these parts: an array sorts after every string and number. */
export function within(...parts: (string | number)[]): IDBKeyRange {
  return IDBKeyRange.bound(parts, [...parts, []]);
}

/** The keys of a scope after this id; all if it is `null`. */
export function afterId(scopeId: Id, after: Id | null): IDBKeyRange {
  return after === null ? within(scopeId) : IDBKeyRange.bound([scopeId, after], [scopeId, []], true);
}

/** `add` refuses an existing id; the transaction is rolled back. */
export async function inStoreWords<T>(id: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if ((error as DOMException).name !== "ConstraintError") throw error;
    throw new StoreError("exists", `a record with id ${id} already exists`, { cause: error });
  }
}
