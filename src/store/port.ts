/**
 * What vivavoce keeps, and how it is asked for. One contract suite holds every implementation to it.
 * Values in and out are plain; an implementation that writes to disk seals what is biometric (`voice`, `template`, `audio`), and the SQL one names of owners.
 * Everything belongs to a scope: an id of another scope is not found.
 * What a caller can mend is a value; a broken promise is a `StoreError` or a `SealError` (errors.ts): a second record with an id that exists,
 * a record whose session or engagement is unknown, a closed store, a key that does not fit.
 */
import type { Measures, Template, VoiceWindow } from "../engine/port.js";

export type Id = string;

export interface Engagement {
  readonly id: Id;
  readonly scopeId: Id;
  readonly externalId: string;
  readonly customData: string;
  readonly startedAt: number;
  readonly stoppedAt: number | null;
}

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
  /** Log-likelihood ratios that the decision rests on, for fusion, and where in the audio an attack sounds strongest. */
  readonly evidence: Readonly<Record<string, number>>;
  readonly profileId: Id | null;
  /** The audio model that was checked, where one is kept. */
  readonly audioModelId?: Id | null;
  /** Prints that it matched: erasing one erases the audio model, which is that voice. */
  readonly matchedProfileIds?: readonly Id[];
}

export interface MediaSegment {
  readonly id: Id;
  readonly scopeId: Id;
  readonly sessionId: Id;
  /** Set when this is the part of another segment that was used for enrollment. */
  readonly partOf: Id | null;
  /** Of a part: the channel that it was cut from. */
  readonly partOfChannel?: number | null;
  readonly rateHz: number;
  readonly channels: number;
  readonly encoding: "wav" | "pcm16" | "alaw" | "mulaw";
  readonly createdAt: number;
  /** Sealed at rest. Kept until the session stops, or as long as retention says. */
  readonly audio: Uint8Array;
}

/** What ProcessAudio keeps of a recording: never audio. */
export interface ProcessedAudio {
  readonly id: Id;
  readonly scopeId: Id;
  readonly sessionId: Id;
  readonly mediaSegmentId: Id;
  readonly channel: number | null;
  readonly mediaChannels: number;
  readonly mediaRateHz: number;
  readonly printType: string;
  /** Which operation made it: Enroll takes only what ProcessAudio made. */
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

/** Without what is sealed at rest. */
export type PlainProcessed = Omit<ProcessedAudio, "voice" | "voiceClass">;

export type OwnerKind = "person" | "fraudster";

export interface Owner {
  readonly id: Id;
  readonly scopeId: Id;
  readonly kind: OwnerKind;
  /** Unique in scope and kind. */
  readonly externalId: string;
}

export type NamelessOwner = Omit<Owner, "externalId">;

export interface EnrollmentSegment {
  readonly profileId: Id;
  readonly processed: ProcessedAudio;
  readonly addedAt: number;
}

/** Whether the person agreed, as the operator's own records have it. */
export interface Consent {
  readonly state: "given" | "withdrawn";
  readonly at: number;
  /** Where those records have it. */
  readonly reference: string;
}

export interface Profile {
  readonly id: Id;
  readonly scopeId: Id;
  readonly owner: Owner;
  readonly tag: string;
  /** `null` until the first segment decides it. */
  readonly printType: string | null;
  /** 0 until trained. */
  readonly printVersion: number;
  /** Changes with every write: what a compare-and-set names. */
  readonly generation: number;
  /** Sealed at rest; `null` until trained. */
  readonly template: Template | null;
  /** The contract's VoiceprintProfileStatus number. */
  readonly status: number;
  readonly createdAt: number;
  /** Absent where none was noted. */
  readonly consent?: Consent;
}

/** Withdrawn consent takes a print out of every comparison, and keeps it from being changed. */
export const mayBeUsed = ({ consent }: Pick<Profile, "consent">): boolean => consent?.state !== "withdrawn";

/** What a gallery needs of a trained profile. One whose consent is withdrawn is no print. */
export interface Print {
  readonly profileId: Id;
  readonly ownerId: Id;
  readonly ownerExternalId: string;
  readonly kind: OwnerKind;
  readonly tag: string;
  readonly printVersion: number;
  readonly template: Template;
}

export type GroupKind = "group" | "watchlist";

export interface Group {
  readonly id: Id;
  readonly scopeId: Id;
  readonly kind: GroupKind;
  readonly tag: string;
  readonly profileIds: readonly Id[];
  readonly ownerIds: readonly Id[];
}

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

/** Everything that is kept, behind one interface; memory, SQL and IndexedDB implement it. */
export interface Store {
  readonly engagements: {
    create(engagement: Engagement): Promise<void>;
    get(scopeId: Id, id: Id): Promise<Engagement | null>;
    /** False when there is none or it had stopped. */
    stop(scopeId: Id, id: Id, at: number): Promise<boolean>;
  };
  readonly sessions: {
    create(session: Session): Promise<void>;
    get(scopeId: Id, id: Id): Promise<Session | null>;
    stop(scopeId: Id, id: Id, at: number): Promise<boolean>;
    /** By their start. */
    ofEngagement(scopeId: Id, engagementId: Id): Promise<Session[]>;
    /** By id, the last first: ids begin with the time they were made at. Fewer than `limit` is the end. */
    list(scopeId: Id, before: Id | null, limit: number): Promise<Session[]>;
    /** In one write with the audio model of what was heard for it, where that is new. */
    addCheck(check: Check, heard?: ProcessedAudio): Promise<void>;
    checks(scopeId: Id, sessionId: Id): Promise<Check[]>;
    /** The newest checks of a scope, newest first: the operator's view. */
    recentChecks(scopeId: Id, limit: number): Promise<Check[]>;
  };
  readonly media: {
    add(segment: MediaSegment): Promise<void>;
    get(scopeId: Id, id: Id): Promise<MediaSegment | null>;
    /** What is kept of a session, without the audio itself; by id. */
    ofSession(scopeId: Id, sessionId: Id): Promise<Omit<MediaSegment, "audio">[]>;
    /**
     * Removes the audio of sessions that stopped before `stoppedBefore`, and of those that never stopped but began before `abandonedBefore`;
     * returns how many segments went. No scope: all of them.
     */
    expire(scopeId: Id | null, stoppedBefore: number, abandonedBefore?: number): Promise<number>;
  };
  readonly processed: {
    add(processed: ProcessedAudio): Promise<void>;
    get(scopeId: Id, id: Id): Promise<ProcessedAudio | null>;
    /** What was heard in a session, without what is sealed; by id. */
    ofSession(scopeId: Id, sessionId: Id): Promise<PlainProcessed[]>;
    /** As `media.expire`, for audio models. Profiles keep their own copy of what was enrolled, so they lose nothing. */
    expire(scopeId: Id | null, stoppedBefore: number, abandonedBefore?: number): Promise<number>;
  };
  readonly owners: {
    find(scopeId: Id, kind: OwnerKind, externalId: string): Promise<Owner | null>;
    /** Those of these ids that are there, in any order, without their names. */
    getMany(scopeId: Id, ids: readonly Id[]): Promise<NamelessOwner[]>;
  };
  readonly profiles: {
    /** Creates the owner where it is new. `null` when the owner has a profile with this tag. */
    create(profile: Omit<Profile, "generation">): Promise<Profile | null>;
    get(scopeId: Id, id: Id): Promise<Profile | null>;
    /** Those of these ids that are there, in any order. */
    getMany(scopeId: Id, ids: readonly Id[]): Promise<Profile[]>;
    find(scopeId: Id, kind: OwnerKind, externalId: string, tag: string): Promise<Profile | null>;
    /** By id. Fewer than `limit` is the end. */
    list(scopeId: Id, after: Id | null, limit: number): Promise<Profile[]>;
    /** How many the scope has. */
    count(scopeId: Id): Promise<number>;
    /** In the order in which they were made. */
    ofOwners(scopeId: Id, ownerIds: readonly Id[]): Promise<Profile[]>;
    segments(scopeId: Id, id: Id): Promise<EnrollmentSegment[]>;
    /**
     * One atomic write. Adds the segment when the profile is at `generation`, it is not there yet and the print type fits.
     * The first segment decides the profile's print type. "moved": somebody wrote first, read again. "already" and "wrong-type" are answered
     * at any generation.
     */
    addSegment(
      scopeId: Id,
      id: Id,
      generation: number,
      segment: EnrollmentSegment,
    ): Promise<"added" | "already" | "wrong-type" | "moved" | "missing">;
    /**
     * One atomic write of template, status and print version; `false` when the profile moved on or is gone.
     * `segments` replaces the enrollment segments in the same write: retraining after a model update.
     */
    train(
      scopeId: Id,
      id: Id,
      generation: number,
      trained: { template: Template; status: number; printVersion: number; segments?: readonly EnrollmentSegment[] },
    ): Promise<boolean>;
    /** Changes nothing else. `false` when there is no such profile. */
    setConsent(scopeId: Id, id: Id, consent: Consent): Promise<boolean>;
    /**
     * Erases profile, segments, audio models and media of those and of checks that it matched, group memberships, and the key that sealed them; with an owner's last
     * profile the owner goes too.
     */
    erase(scopeId: Id, id: Id): Promise<boolean>;
    /** All trained prints of a scope and kind, for galleries. */
    prints(scopeId: Id, kind: OwnerKind): AsyncIterable<Print>;
    /** Those of these ids that are trained, in any order. */
    printsOf(scopeId: Id, ids: readonly Id[]): Promise<Print[]>;
    /** Grows with every change of a print in the scope: a loaded gallery compares it before it answers. */
    printsVersion(scopeId: Id): Promise<number>;
    /** Ids of prints written or erased since `version`; all that ever changed when the store is older than `version` (restored). */
    printsChangedSince(scopeId: Id, version: number): Promise<{ version: number; ids: Id[] }>;
  };
  readonly groups: {
    create(group: Group): Promise<void>;
    get(scopeId: Id, kind: GroupKind, id: Id): Promise<Group | null>;
    /** Grows when members are added or removed (not when one is erased): who keeps a large group compares it. `null` when there is none. */
    version(scopeId: Id, kind: GroupKind, id: Id): Promise<number | null>;
    list(scopeId: Id, kind: GroupKind): Promise<Group[]>;
    delete(scopeId: Id, kind: GroupKind, id: Id): Promise<boolean>;
    addMembers(
      scopeId: Id,
      kind: GroupKind,
      id: Id,
      members: { profileIds: readonly Id[]; ownerIds: readonly Id[] },
    ): Promise<boolean>;
    removeMembers(
      scopeId: Id,
      kind: GroupKind,
      id: Id,
      members: { profileIds: readonly Id[]; ownerIds: readonly Id[] },
    ): Promise<boolean>;
  };
  readonly jobs: {
    create(job: Job): Promise<void>;
    get(scopeId: Id, id: Id): Promise<Job | null>;
    update(scopeId: Id, id: Id, change: Partial<Pick<Job, "state" | "result" | "progress">>): Promise<boolean>;
    /**
     * Calls the handler for every pending job, here or on another replica, one at a time, until the store closes. A handler that throws,
     * or whose process dies, is given the job again; after three tries the job's state becomes FAILED (4).
     */
    work(handler: (job: Job) => Promise<void>): Promise<void>;
  };
  /**
   * Keyed documents of the token and engagement services: applications, clients, users, registrations, keys, agents. JSON values;
   * an expired one is not there; `update` keeps the expiry.
   */
  readonly documents: {
    get(collection: string, id: string): Promise<unknown | null>;
    put(collection: string, id: string, document: unknown, expiresAt?: number | null): Promise<void>;
    /** False when it was there. */
    insert(collection: string, id: string, document: unknown, expiresAt?: number | null): Promise<boolean>;
    /** Read, change, write back in one transaction; `change` returning `null` deletes, `undefined` leaves as is. */
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
