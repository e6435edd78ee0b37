/**
 * The interface of all stores. One contract suite tests every implementation.
 * Values in and out are plain; stores on disk seal biometric data (`voice`, `template`, `audio`), and the SQL store also the names of owners.
 * Everything belongs to a scope: an id of another scope is not found.
 * Expected outcomes are values; misuse is a `StoreError` or a `SealError` (errors.ts): a second record with an existing id,
 * a record whose session or engagement does not exist, a closed store, a wrong key.
 */
import type { Measures, Template, VoiceWindow } from "../engine/port.js";
import type { SealError } from "./errors.js";

/** An id that the caller of a store chose. */
export type Id = string;

/** A conversation, which may have several sessions. */
export interface Engagement {
  readonly id: Id;
  readonly scopeId: Id;
  readonly externalId: string;
  readonly customData: string;
  readonly startedAt: number;
  readonly stoppedAt: number | null;
}

/** One call or upload of an engagement. */
export interface Session {
  readonly id: Id;
  readonly scopeId: Id;
  readonly engagementId: Id;
  /** The contract's SessionType number. */
  readonly type: number;
  readonly externalId: string;
  readonly claimedPersonId: string;
  readonly startedAt: number;
  readonly stoppedAt: number | null;
}

/** One check of a session, as GetSessionDecision fuses them. Numbers are the contract's enumerations. */
export interface Check {
  readonly id: Id;
  readonly scopeId: Id;
  readonly sessionId: Id;
  readonly operation: string;
  readonly at: number;
  readonly decision: number;
  readonly reason: number;
  readonly risk: number | null;
  readonly reliability: number | null;
  /** Log-likelihood ratios behind the decision, for fusion, and where in the audio an attack sounds strongest. */
  readonly evidence: Readonly<Record<string, number>>;
  readonly profileId: Id | null;
  /** The audio model that was checked, if it is kept. */
  readonly audioModelId?: Id | null;
  /** Prints that it matched: erasing one also erases the audio model, which holds the same voice. */
  readonly matchedProfileIds?: readonly Id[];
}

/** As it is stored if its audio model is not, because a print that it matched was erased meanwhile. */
export const withoutModel = (check: Check): Check => ({ ...check, audioModelId: null });

/** A recording of a session. */
export interface MediaSegment {
  readonly id: Id;
  readonly scopeId: Id;
  readonly sessionId: Id;
  /** Set if this is a part of another segment, cut out for enrollment. */
  readonly partOf: Id | null;
  /** For a part: the channel that it was cut from. */
  readonly partOfChannel?: number | null;
  readonly rateHz: number;
  readonly channels: number;
  readonly encoding: "wav" | "pcm16" | "alaw" | "mulaw";
  readonly createdAt: number;
  /** Sealed at rest. Kept until the session stops, or for the retention time. */
  readonly audio: Uint8Array;
}

/** What ProcessAudio keeps of a recording; it contains no audio. */
export interface ProcessedAudio {
  readonly id: Id;
  readonly scopeId: Id;
  readonly sessionId: Id;
  readonly mediaSegmentId: Id;
  /** The recording that the media segment is a part of, if it is one: remembered here, because audio expires first. */
  readonly partOf?: Id;
  /** For a part: the channel that it was cut from. */
  readonly partOfChannel?: number | null;
  readonly channel: number | null;
  readonly mediaChannels: number;
  readonly mediaRateHz: number;
  readonly printType: string;
  /** The operation that made it: Enroll accepts only those made by ProcessAudio. */
  readonly source: "process-audio" | "check";
  /** The contract's AudioValidity number. */
  readonly validity: number;
  readonly measures: Measures;
  readonly speakers: number;
  readonly voiceClass: number | null;
  readonly revision: string;
  readonly createdAt: number;
  /** Sealed at rest. */
  readonly voice: { readonly windows: readonly VoiceWindow[]; readonly embedding: Float32Array | null };
}

/** Without the sealed data. */
export type PlainProcessed = Omit<ProcessedAudio, "voice" | "voiceClass">;

/** Whose print it is. */
export type OwnerKind = "person" | "fraudster";

/** The person or fraudster that profiles belong to. */
export interface Owner {
  readonly id: Id;
  readonly scopeId: Id;
  readonly kind: OwnerKind;
  /** Unique in scope and kind. */
  readonly externalId: string;
}

/** An owner without its name, which is sealed. */
export type NamelessOwner = Omit<Owner, "externalId">;

/** The audio model of a recording that a profile was enrolled from. */
export interface EnrollmentSegment {
  readonly profileId: Id;
  readonly processed: ProcessedAudio;
  readonly addedAt: number;
}

/** Whether the person agreed, according to the operator's own records. */
export interface RecordedConsent {
  readonly state: "given" | "withdrawn";
  readonly at: number;
  /** Where to find it in those records. */
  readonly reference: string;
}

/** A voiceprint profile with its template. */
export interface Profile {
  readonly id: Id;
  readonly scopeId: Id;
  readonly owner: Owner;
  readonly tag: string;
  /** `null` until the first segment sets it. */
  readonly printType: string | null;
  /** 0 until trained. */
  readonly printVersion: number;
  /** Changes with every write, for compare-and-set. */
  readonly generation: number;
  /** Sealed at rest; `null` until trained. */
  readonly template: Template | null;
  /** The contract's VoiceprintProfileStatus number. */
  readonly status: number;
  readonly createdAt: number;
  /** Absent if not recorded. */
  readonly consent?: RecordedConsent;
}

/** What was stored of it was altered or moved, or its key is lost. The name is empty if it cannot be opened either. */
export interface DamagedProfile extends Omit<Profile, "template"> {
  readonly damage: SealError;
}

/** As lists have it: a damaged profile must not hide the others. */
export type ListedProfile = Profile | DamagedProfile;

/** Called with a print that cannot be opened, and is left out. */
export type OnDamaged = (profile: DamagedProfile) => void;

/** Consent is recorded afterwards. */
export type NewProfile = Omit<Profile, "generation" | "consent">;

/** A print with withdrawn consent is left out of every comparison and cannot be changed. */
export const mayBeUsed = ({ consent }: Pick<Profile, "consent">): boolean => consent?.state !== "withdrawn";

/** What a gallery needs from a trained profile. A profile with withdrawn consent is left out. */
export interface Print {
  readonly profileId: Id;
  readonly ownerId: Id;
  readonly ownerExternalId: string;
  readonly kind: OwnerKind;
  readonly tag: string;
  readonly printVersion: number;
  readonly template: Template;
}

/** A profile with this template, as a gallery needs it. */
export const printOf = <T>({ id, owner, tag, printVersion }: Omit<Profile, "template">, template: T) => {
  const { id: ownerId, externalId: ownerExternalId, kind } = owner;
  return { profileId: id, ownerId, ownerExternalId, kind, tag, printVersion, template };
};

/** Groups list people, watchlists list fraudsters. */
export type GroupKind = "group" | "watchlist";

/** A group or watchlist with its members. */
export interface Group {
  readonly id: Id;
  readonly scopeId: Id;
  readonly kind: GroupKind;
  readonly tag: string;
  readonly profileIds: readonly Id[];
  readonly ownerIds: readonly Id[];
}

/** A group without its members. */
export type GroupName = Omit<Group, keyof Members>;

/** How many members a group has. */
export interface GroupSize extends GroupName {
  readonly profiles: number;
  readonly owners: number;
}

/** Profiles by their ids, and owners with all their profiles. */
export type Members = Pick<Group, "profileIds" | "ownerIds">;

/** Work on many profiles that runs in the background. */
export interface Job {
  readonly id: Id;
  readonly scopeId: Id;
  readonly kind: "profile-status" | "retrain";
  /** The contract's VoiceprintProfilesStatusJobState number. */
  readonly state: number;
  readonly request: unknown;
  readonly result: unknown;
  readonly progress: number;
  readonly createdAt: number;
}

/** Called with the id of a recording or audio model that cannot be opened. */
export type OnUnopened = (recordingId: Id) => void;

/** The interface to all stored data; memory, SQL and IndexedDB implement it. */
export interface Store {
  readonly engagements: {
    create(engagement: Engagement): Promise<void>;
    get(scopeId: Id, id: Id): Promise<Engagement | null>;
    /** False if it does not exist or has already stopped. */
    stop(scopeId: Id, id: Id, at: number): Promise<boolean>;
  };
  readonly sessions: {
    create(session: Session): Promise<void>;
    get(scopeId: Id, id: Id): Promise<Session | null>;
    stop(scopeId: Id, id: Id, at: number): Promise<boolean>;
    /**
     * Sessions that still have recordings or audio models, and were started or stopped after `now` on a clock that was ahead, expire as if that
     * had been now.
     */
    capTimes(now: number): Promise<void>;
    /** Ordered by start time. */
    ofEngagement(scopeId: Id, engagementId: Id): Promise<Session[]>;
    /** By id in descending order: ids begin with their creation time. Fewer than `limit` means the end. */
    list(scopeId: Id, before: Id | null, limit: number): Promise<Session[]>;
    /**
     * In one write with the audio model of the checked audio, if that is new. If a matched print was erased meanwhile, the audio model is not
     * written, and the check has none.
     */
    addCheck(check: Check, analyzed?: ProcessedAudio): Promise<void>;
    checks(scopeId: Id, sessionId: Id): Promise<Check[]>;
    /** The newest checks of a scope, newest first: the operator's view. */
    recentChecks(scopeId: Id, limit: number): Promise<Check[]>;
  };
  readonly media: {
    /** If it was enrolled already, with the id of its profile: nothing is written if that was erased meanwhile. */
    add(segment: MediaSegment, enrolledIn?: Id): Promise<void>;
    get(scopeId: Id, id: Id): Promise<MediaSegment | null>;
    /** The recordings of a session, without the audio itself; ordered by id. */
    ofSession(scopeId: Id, sessionId: Id): Promise<Omit<MediaSegment, "audio">[]>;
    /**
     * Removes the audio of sessions that stopped before `stoppedBefore`, and of sessions that never stopped but began before `abandonedBefore`;
     * returns the number of segments removed. Without a scope: in all scopes.
     */
    expire(scopeId: Id | null, stoppedBefore: number, abandonedBefore?: number): Promise<number>;
  };
  readonly processed: {
    /** `enrolledIn` as in `media.add`. */
    add(processed: ProcessedAudio, enrolledIn?: Id): Promise<void>;
    get(scopeId: Id, id: Id): Promise<ProcessedAudio | null>;
    /** The audio models of a session, without the sealed data; ordered by id. */
    ofSession(scopeId: Id, sessionId: Id): Promise<PlainProcessed[]>;
    /** Like `media.expire`, for audio models. Profiles keep their own copy of enrolled audio models, so they lose nothing. */
    expire(scopeId: Id | null, stoppedBefore: number, abandonedBefore?: number): Promise<number>;
  };
  readonly owners: {
    find(scopeId: Id, kind: OwnerKind, externalId: string): Promise<Owner | null>;
    /** Those of these ids that exist, in any order, without their names. */
    getMany(scopeId: Id, ids: readonly Id[]): Promise<NamelessOwner[]>;
  };
  readonly profiles: {
    /** Creates the owner if it is new. `null` when the owner already has a profile with this tag. */
    create(profile: NewProfile): Promise<Profile | null>;
    get(scopeId: Id, id: Id): Promise<Profile | null>;
    /** Those of these ids that exist, in any order. */
    getMany(scopeId: Id, ids: readonly Id[]): Promise<ListedProfile[]>;
    find(scopeId: Id, kind: OwnerKind, externalId: string, tag: string): Promise<Profile | null>;
    /** Ordered by id; of one kind, if it is given. Fewer than `limit` means the end. */
    list(scopeId: Id, after: Id | null, limit: number, kind?: OwnerKind | null): Promise<ListedProfile[]>;
    /** Number of profiles in the scope. */
    count(scopeId: Id): Promise<number>;
    /** In the order of creation. */
    ofOwners(scopeId: Id, ownerIds: readonly Id[]): Promise<ListedProfile[]>;
    segments(scopeId: Id, id: Id): Promise<EnrollmentSegment[]>;
    /**
     * One atomic write. Adds the segment if the profile is at `generation`, does not have the segment yet, and has the same print type.
     * The first segment sets the profile's print type. "moved": another writer was first, read again. "already" and "wrong-type" are returned
     * at any generation.
     */
    addSegment(
      scopeId: Id,
      id: Id,
      generation: number,
      segment: EnrollmentSegment,
    ): Promise<"added" | "already" | "wrong-type" | "moved" | "missing">;
    /**
     * One atomic write of template, status and print version; `false` when the profile was changed or is gone.
     * `segments` replaces the enrollment segments in the same write, for retraining after a model update.
     */
    train(
      scopeId: Id,
      id: Id,
      generation: number,
      trained: { template: Template; status: number; printVersion: number; segments?: readonly EnrollmentSegment[] },
    ): Promise<boolean>;
    /** Changes nothing else. `false` if the profile does not exist. */
    setConsent(scopeId: Id, id: Id, consent: RecordedConsent): Promise<boolean>;
    /**
     * Erases the profile, its segments, the audio models and media of its enrollments and matches, its group memberships, and its key.
     * The owner is removed with its last profile. Recordings and audio models of others in the same calls get a new key; `onUnopened` is told the ids
     * of those that are damaged or whose key is lost. They do not prevent the erasure.
     */
    erase(scopeId: Id, id: Id, onUnopened?: OnUnopened): Promise<boolean>;
    /** All trained prints of a scope and kind, for galleries. */
    prints(scopeId: Id, kind: OwnerKind, onDamaged?: OnDamaged): AsyncIterable<Print>;
    /** Those of these ids that are trained, in any order. */
    printsOf(scopeId: Id, ids: readonly Id[], onDamaged?: OnDamaged): Promise<Print[]>;
    /** Increases with every change of a print in the scope: a loaded gallery compares it before it answers. */
    printsVersion(scopeId: Id): Promise<number>;
    /** Ids of prints written or erased since `version`; all that ever changed if the store is older than `version` (restored). */
    printsChangedSince(scopeId: Id, version: number): Promise<{ version: number; ids: Id[] }>;
  };
  readonly groups: {
    create(group: Group): Promise<void>;
    get(scopeId: Id, kind: GroupKind, id: Id): Promise<Group | null>;
    /** Increases when members are added or removed (not when one is erased), so a cached group can be checked. `null` if there is no group. */
    version(scopeId: Id, kind: GroupKind, id: Id): Promise<number | null>;
    /** The ids of the first groups with this tag. */
    withTag(scopeId: Id, kind: GroupKind, tag: string, limit: number): Promise<Id[]>;
    /** How many members each group has, ordered by id. Fewer than `limit` means the end. */
    sizes(scopeId: Id, kind: GroupKind, after: Id | null, limit: number): Promise<GroupSize[]>;
    /** The groups and watchlists with this profile, or with this owner, as a member; ordered by id. */
    holding(scopeId: Id, profileId: Id, ownerId: Id): Promise<GroupName[]>;
    delete(scopeId: Id, kind: GroupKind, id: Id): Promise<boolean>;
    addMembers(scopeId: Id, kind: GroupKind, id: Id, members: Members): Promise<boolean>;
    removeMembers(scopeId: Id, kind: GroupKind, id: Id, members: Members): Promise<boolean>;
  };
  readonly jobs: {
    /** False, and nothing is stored, if the scope already has this many jobs that have not ended. */
    create(job: Job, maxUnfinished?: number): Promise<boolean>;
    get(scopeId: Id, id: Id): Promise<Job | null>;
    update(scopeId: Id, id: Id, change: Partial<Pick<Job, "state" | "result" | "progress">>): Promise<boolean>;
    /**
     * Calls the handler for every pending job, here or on another replica, one at a time, until the store closes. If a handler throws
     * or its process dies, the job is retried; after three attempts its state becomes FAILED (4). An attempt that the end of the store
     * interrupts does not count.
     */
    work(handler: (job: Job) => Promise<void>): Promise<void>;
    /** Removes jobs that were created before this time and have ended, with their results. Returns how many. */
    expire(createdBefore: number): Promise<number>;
    /**
     * Removes the oldest jobs of a scope that have ended, until the requests and results of the others fit into this many bytes. The newest
     * stays, whatever its size. Returns how many were removed.
     */
    trim(scopeId: Id, maxBytes: number): Promise<number>;
  };
  /**
   * Keyed documents of the token and engagement services: applications, clients, users, registrations, keys, agents. JSON values;
   * expired documents are not returned; `update` keeps the expiry.
   */
  readonly documents: {
    get(collection: string, id: string): Promise<unknown | null>;
    put(collection: string, id: string, document: unknown, expiresAt?: number | null): Promise<void>;
    /** False if it already exists. */
    insert(collection: string, id: string, document: unknown, expiresAt?: number | null): Promise<boolean>;
    /** Read, change, write back in one transaction; `change` returning `null` deletes, `undefined` leaves it unchanged. */
    update(
      collection: string,
      id: string,
      change: (document: unknown | null) => unknown | null | undefined,
    ): Promise<void>;
    delete(collection: string, id: string): Promise<boolean>;
    list(collection: string): Promise<{ id: string; document: unknown }[]>;
  };
  close(): Promise<void>;
}
