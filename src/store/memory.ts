/**
 * A store that keeps nothing: maps in memory, for tests, short programs and pages without storage.
 * Nothing is written to disk, so nothing is sealed.
 */
import { refuseWhenClosed } from "./closed.js";
import { copy, copyJson } from "./copy.js";
import { StoreError } from "./errors.js";
import { groupName, groupSize, hasMember, membersOnce, withMembers, withoutMembers } from "./group-record.js";
import { ENDED_STATES, FAILED_STATE, JobQueue, jobsBeyond, UNFINISHED_STATES } from "./job-queue.js";
import {
  type Check,
  cappedAt,
  type Engagement,
  type EnrollmentSegment,
  type Group,
  type GroupKind,
  hasExpired,
  type Id,
  type Job,
  type MediaSegment,
  type Members,
  mayBeUsed,
  type Owner,
  type OwnerKind,
  type Print,
  type ProcessedAudio,
  type Profile,
  printOf,
  type Session,
  type Store,
  withoutModel,
} from "./port.js";
import { purgingNowAndThen } from "./purging.js";

/** Options of `createMemoryStore`. */
export interface MemoryStoreOptions {
  /** Milliseconds since 1970; decides which documents have expired. */
  readonly now?: () => number;
}

interface StoredDocument {
  document: unknown;
  expiresAt: number | null;
}

const newScope = () => ({
  engagements: new Map<Id, Engagement>(),
  sessions: new Map<Id, Session>(),
  checks: new Map<Id, Check>(),
  media: new Map<Id, MediaSegment>(),
  processed: new Map<Id, ProcessedAudio>(),
  owners: new Map<Id, Owner>(),
  ownersByName: new Map<string, Owner>(),
  profiles: new Map<Id, Profile>(),
  profileIdsByOwner: new Map<Id, Set<Id>>(),
  segments: new Map<Id, EnrollmentSegment[]>(),
  groups: new Map<Id, Group>(),
  groupVersions: new Map<Id, number>(),
  jobs: new Map<Id, Job>(),
  printsVersion: 0,
  /** The version at which each print last changed. Erased prints stay listed, so that galleries learn of it. */
  printChanges: new Map<Id, number>(),
});

type Scope = ReturnType<typeof newScope>;

/** A store that is lost when the process ends. */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const now = options.now ?? Date.now;
  const scopes = new Map<Id, Scope>();
  const collections = new Map<string, Map<string, StoredDocument>>();
  const queue = new JobQueue();
  let open = true;

  /** Created on first use. */
  function scope(id: Id): Scope {
    const found = scopes.get(id) ?? newScope();
    scopes.set(id, found);
    return found;
  }

  function documentsOf(name: string): Map<string, StoredDocument> {
    const found = collections.get(name) ?? new Map();
    collections.set(name, found);
    return found;
  }

  function liveDocument(documents: Map<string, StoredDocument>, id: string): StoredDocument | null {
    const stored = documents.get(id);
    if (!stored) return null;
    if (stored.expiresAt === null || stored.expiresAt > now()) return stored;
    documents.delete(id);
    return null;
  }

  const purgeNowAndThen = purgingNowAndThen(now, () => {
    for (const documents of collections.values()) for (const id of documents.keys()) liveDocument(documents, id);
  });

  const store: Omit<Store, "close"> = {
    engagements: {
      async create(engagement) {
        insert(scope(engagement.scopeId).engagements, engagement);
      },
      get: async (scopeId, id) => read(scope(scopeId).engagements, id),
      stop: async (scopeId, id, at) => stop(scope(scopeId).engagements, id, at),
    },

    sessions: {
      async create(session) {
        const { engagements, sessions } = scope(session.scopeId);
        assertParent(engagements, "engagement", session.engagementId);
        insert(sessions, session);
      },
      get: async (scopeId, id) => read(scope(scopeId).sessions, id),
      stop: async (scopeId, id, at) => stop(scope(scopeId).sessions, id, at),
      async capTimes(now) {
        for (const { sessions } of scopes.values())
          for (const [id, session] of sessions)
            if (Math.max(session.startedAt, session.stoppedAt ?? session.startedAt) > now)
              sessions.set(id, cappedAt(session, now));
      },
      async ofEngagement(scopeId, engagementId) {
        const sessions = select(scope(scopeId).sessions, (session) => session.engagementId === engagementId);
        return sessions.sort((a, b) => a.startedAt - b.startedAt);
      },
      async list(scopeId, before, limit) {
        const { sessions } = scope(scopeId);
        const ids = [...sessions.keys()].filter((id) => before === null || id < before).sort();
        return ids
          .reverse()
          .slice(0, Math.max(0, limit))
          .map((id) => copy(sessions.get(id)!));
      },
      async addCheck(check, analyzed) {
        const { sessions, checks, processed, profiles } = scope(check.scopeId);
        assertParent(sessions, "session", check.sessionId);
        const isAnyErased = check.matchedProfileIds?.some((id) => !profiles.has(id));
        if (analyzed && !isAnyErased) {
          assertNew(checks, check.id);
          assertParent(sessions, "session", analyzed.sessionId);
          insert(processed, analyzed);
        }
        insert(checks, analyzed && isAnyErased ? withoutModel(check) : check);
      },
      checks: async (scopeId, sessionId) => select(scope(scopeId).checks, (check) => check.sessionId === sessionId),
      async recentChecks(scopeId, limit) {
        const newestFirst = [...scope(scopeId).checks.values()].reverse().sort((a, b) => b.at - a.at);
        return copy(newestFirst.slice(0, Math.max(0, limit)));
      },
    },

    media: recordings(
      ({ media }) => media,
      ({ audio: _, ...plain }) => plain,
    ),
    processed: recordings(
      ({ processed }) => processed,
      ({ voice: _, voiceClass: __, ...plain }) => plain,
    ),

    owners: {
      find: async (scopeId, kind, externalId) => copy(findOwner(scope(scopeId), kind, externalId)),
      getMany: async (scopeId, ids) => readMany(scope(scopeId).owners, ids),
    },

    profiles: {
      async create(given) {
        const here = scope(given.scopeId);
        const owner = findOwner(here, given.owner.kind, given.owner.externalId) ?? copy(given.owner);
        const profile: Profile = { ...copy(given), owner, generation: 0 };
        if (profilesOf(here, owner.id).some(({ tag }) => tag === profile.tag)) return null;
        insert(here.profiles, profile);
        here.owners.set(owner.id, owner);
        here.ownersByName.set(nameOf(owner.kind, owner.externalId), owner);
        here.profileIdsByOwner.set(owner.id, (here.profileIdsByOwner.get(owner.id) ?? new Set()).add(profile.id));
        here.segments.set(profile.id, []);
        if (profile.template) markChanged(here, profile.id);
        return copy(profile);
      },
      get: async (scopeId, id) => read(scope(scopeId).profiles, id),
      getMany: async (scopeId, ids) => readMany(scope(scopeId).profiles, ids),
      async find(scopeId, kind, externalId, tag) {
        const here = scope(scopeId);
        const owner = findOwner(here, kind, externalId);
        return copy((owner && profilesOf(here, owner.id).find((profile) => profile.tag === tag)) ?? null);
      },
      async list(scopeId, after, limit) {
        const { profiles } = scope(scopeId);
        const ids = [...profiles.keys()].filter((id) => after === null || id > after).sort();
        return ids.slice(0, Math.max(0, limit)).map((id) => copy(profiles.get(id)!));
      },
      count: async (scopeId) => scope(scopeId).profiles.size,
      async ofOwners(scopeId, ownerIds) {
        const here = scope(scopeId);
        return [...new Set(ownerIds)].flatMap((id) => copy(profilesOf(here, id)));
      },
      segments: async (scopeId, id) => copy(scope(scopeId).segments.get(id) ?? []),
      async addSegment(scopeId, id, generation, segment) {
        const here = scope(scopeId);
        const profile = here.profiles.get(id);
        const segments = here.segments.get(id);
        if (!profile || !segments) return "missing";
        if (segments.some(({ processed }) => processed.id === segment.processed.id)) return "already";
        const { printType } = segment.processed;
        if (profile.printType !== null && profile.printType !== printType) return "wrong-type";
        if (profile.generation !== generation) return "moved";
        segments.push(copy({ ...segment, profileId: id }));
        here.profiles.set(id, { ...profile, printType, generation: generation + 1 });
        return "added";
      },
      async train(scopeId, id, generation, { template, status, printVersion, segments }) {
        const here = scope(scopeId);
        const profile = here.profiles.get(id);
        if (!profile || profile.generation !== generation) return false;
        const next = { ...profile, template: copy(template), status, printVersion, generation: generation + 1 };
        here.profiles.set(id, next);
        if (segments) here.segments.set(id, copy(segments.map((segment) => ({ ...segment, profileId: id }))));
        markChanged(here, id);
        return true;
      },
      async setConsent(scopeId, id, consent) {
        const here = scope(scopeId);
        const profile = here.profiles.get(id);
        if (!profile) return false;
        here.profiles.set(id, { ...profile, consent: copy(consent), generation: profile.generation + 1 });
        if (profile.template) markChanged(here, id);
        return true;
      },
      async erase(scopeId, id) {
        const here = scope(scopeId);
        const profile = here.profiles.get(id);
        if (!profile) return false;
        eraseRecordings(here, id);
        here.profiles.delete(id);
        here.segments.delete(id);
        const ownerIsGone = forgetProfileOf(here, profile.owner, id);
        const gone = { profileIds: [id], ownerIds: ownerIsGone ? [profile.owner.id] : [] };
        for (const group of here.groups.values())
          here.groups.set(group.id, { ...group, ...withoutMembers(group, gone) });
        if (profile.template) markChanged(here, id);
        return true;
      },
      async *prints(scopeId, kind) {
        for (const profile of [...scope(scopeId).profiles.values()])
          if (profile.owner.kind === kind) yield* printsIn([profile]);
      },
      async printsOf(scopeId, ids) {
        const { profiles } = scope(scopeId);
        return printsIn([...new Set(ids)].flatMap((id) => profiles.get(id) ?? []));
      },
      printsVersion: async (scopeId) => scope(scopeId).printsVersion,
      async printsChangedSince(scopeId, version) {
        const { printsVersion, printChanges } = scope(scopeId);
        const since = version > printsVersion ? 0 : version;
        const ids = [...printChanges].filter(([, changedAt]) => changedAt > since).map(([id]) => id);
        return { version: printsVersion, ids };
      },
    },

    groups: {
      async create(group) {
        insert(scope(group.scopeId).groups, { ...group, ...membersOnce(group) });
      },
      get: async (scopeId, kind, id) => copy(findGroup(scope(scopeId), kind, id)),
      async version(scopeId, kind, id) {
        const here = scope(scopeId);
        return findGroup(here, kind, id) && (here.groupVersions.get(id) ?? 0);
      },
      async withTag(scopeId, kind, tag, limit) {
        const found = select(scope(scopeId).groups, (group) => group.kind === kind && group.tag === tag);
        return found.slice(0, limit).map(({ id }) => id);
      },
      async sizes(scopeId, kind, after, limit) {
        const wanted = (group: Group) => group.kind === kind && (after === null || group.id > after);
        const found = [...scope(scopeId).groups.values()].filter(wanted);
        return found.sort(byId).slice(0, limit).map(groupSize);
      },
      async holding(scopeId, profileId, ownerId) {
        const groups = [...scope(scopeId).groups.values()].sort(byId);
        return groups.filter((group) => hasMember(group, profileId, ownerId)).map(groupName);
      },
      async delete(scopeId, kind, id) {
        const here = scope(scopeId);
        return findGroup(here, kind, id) !== null && here.groups.delete(id);
      },
      addMembers: async (scopeId, kind, id, members) =>
        changeMembers(scope(scopeId), kind, id, (group) => withMembers(group, members)),
      removeMembers: async (scopeId, kind, id, members) =>
        changeMembers(scope(scopeId), kind, id, (group) => withoutMembers(group, members)),
    },

    jobs: {
      async create(job, maxUnfinished = Number.POSITIVE_INFINITY) {
        const { jobs } = scope(job.scopeId);
        const unfinished = [...jobs.values()].filter(({ state }) => UNFINISHED_STATES.includes(state));
        if (unfinished.length >= maxUnfinished) return false;
        insert(jobs, { ...job, request: copyJson(job.request ?? null), result: copyJson(job.result ?? null) });
        queue.push({
          job: () => copy(jobs.get(job.id)!),
          failed: () => jobs.set(job.id, { ...jobs.get(job.id)!, state: FAILED_STATE }),
        });
        return true;
      },
      get: async (scopeId, id) => read(scope(scopeId).jobs, id),
      async update(scopeId, id, change) {
        const { jobs } = scope(scopeId);
        const job = jobs.get(id);
        if (!job) return false;
        const result = change.result === undefined ? job.result : copyJson(change.result);
        jobs.set(id, { ...job, ...copy(change), result });
        return true;
      },
      async work(handler) {
        queue.work(handler);
      },
      async expire(createdBefore) {
        let removed = 0;
        for (const { jobs } of scopes.values()) {
          for (const { id, state, createdAt } of jobs.values()) {
            if (createdAt < createdBefore && ENDED_STATES.includes(state) && jobs.delete(id)) removed++;
          }
        }
        return removed;
      },
      async trim(scopeId, maxBytes) {
        const { jobs } = scope(scopeId);
        const removed = jobsBeyond([...jobs.values()], maxBytes);
        for (const { id } of removed) jobs.delete(id);
        return removed.length;
      },
    },

    documents: {
      get: async (collection, id) => copy(liveDocument(documentsOf(collection), id)?.document ?? null),
      async put(collection, id, document, expiresAt = null) {
        purgeNowAndThen();
        documentsOf(collection).set(id, { document: copyJson(document), expiresAt });
      },
      async insert(collection, id, document, expiresAt = null) {
        const documents = documentsOf(collection);
        purgeNowAndThen();
        if (liveDocument(documents, id)) return false;
        documents.set(id, { document: copyJson(document), expiresAt });
        return true;
      },
      async update(collection, id, change) {
        const documents = documentsOf(collection);
        const stored = liveDocument(documents, id);
        const next = change(copy(stored?.document ?? null));
        if (next === undefined) return;
        if (next === null) documents.delete(id);
        else documents.set(id, { document: copyJson(next), expiresAt: stored?.expiresAt ?? null });
      },
      async delete(collection, id) {
        const documents = documentsOf(collection);
        return liveDocument(documents, id) !== null && documents.delete(id);
      },
      async list(collection) {
        const documents = documentsOf(collection);
        const ids = [...documents.keys()].filter((id) => liveDocument(documents, id)).sort();
        return ids.map((id) => ({ id, document: copy(documents.get(id)!.document) }));
      },
    },
  };

  return {
    ...refuseWhenClosed(store, () => !open),
    async close() {
      await queue.close();
      open = false;
    },
  };

  /** Media or audio models: `plainOf` leaves out what other stores seal. */
  function recordings<Recording extends MediaSegment | ProcessedAudio, Plain extends { readonly id: Id }>(
    of: (here: Scope) => Map<Id, Recording>,
    plainOf: (recording: Recording) => Plain,
  ) {
    return {
      async add(recording: Recording, enrolledIn?: Id) {
        const here = scope(recording.scopeId);
        assertParent(here.sessions, "session", recording.sessionId);
        if (enrolledIn === undefined || here.profiles.has(enrolledIn)) insert(of(here), recording);
      },
      get: async (scopeId: Id, id: Id) => read(of(scope(scopeId)), id),
      async ofSession(scopeId: Id, sessionId: Id) {
        const found = [...of(scope(scopeId)).values()].filter((recording) => recording.sessionId === sessionId);
        return copy(found.map(plainOf).sort(byId));
      },
      async expire(scopeId: Id | null, stoppedBefore: number, abandonedBefore?: number) {
        let removed = 0;
        for (const here of scopeId === null ? scopes.values() : [scope(scopeId)])
          for (const { id, sessionId } of of(here).values())
            if (hasExpired(here.sessions.get(sessionId)!, stoppedBefore, abandonedBefore) && of(here).delete(id))
              removed++;
        return removed;
      },
    };
  }
}

function insert<T extends { readonly id: Id }>(records: Map<Id, T>, record: T): void {
  assertNew(records, record.id);
  records.set(record.id, copy(record));
}

function assertNew(records: ReadonlyMap<Id, unknown>, id: Id): void {
  if (records.has(id)) throw new StoreError("exists", `a record with id ${id} already exists`);
}

const readMany = <T>(records: Map<Id, T>, ids: readonly Id[]): T[] =>
  [...new Set(ids)].flatMap((id) => read(records, id) ?? []);

function read<T>(records: Map<Id, T>, id: Id): T | null {
  return copy(records.get(id) ?? null);
}

function select<T>(records: Map<Id, T>, wanted: (record: T) => boolean): T[] {
  return copy([...records.values()].filter(wanted));
}

const byId = (one: { readonly id: Id }, other: { readonly id: Id }): number => (one.id < other.id ? -1 : 1);

function stop<T extends { readonly stoppedAt: number | null }>(records: Map<Id, T>, id: Id, at: number): boolean {
  const record = records.get(id);
  if (!record || record.stoppedAt !== null) return false;
  records.set(id, { ...record, stoppedAt: at });
  return true;
}

function assertParent(records: Map<Id, unknown>, what: string, id: Id): void {
  if (!records.has(id)) throw new StoreError("unknown-parent", `${what} ${id} does not exist`);
}

function nameOf(kind: OwnerKind, externalId: string): string {
  return `${kind}:${externalId}`;
}

function findOwner({ ownersByName }: Scope, kind: OwnerKind, externalId: string): Owner | null {
  return ownersByName.get(nameOf(kind, externalId)) ?? null;
}

function profilesOf({ profiles, profileIdsByOwner }: Scope, ownerId: Id): Profile[] {
  return [...(profileIdsByOwner.get(ownerId) ?? [])].map((id) => profiles.get(id)!);
}

const printsIn = (profiles: readonly Profile[]): Print[] =>
  profiles.flatMap((profile) =>
    profile.template && mayBeUsed(profile) ? [printOf(profile, copy(profile.template))] : [],
  );

/** True when it was the owner's last profile: the owner is removed with it. */
function forgetProfileOf(here: Scope, owner: Owner, profileId: Id): boolean {
  const profileIds = here.profileIdsByOwner.get(owner.id)!;
  profileIds.delete(profileId);
  if (profileIds.size > 0) return false;
  here.profileIdsByOwner.delete(owner.id);
  here.owners.delete(owner.id);
  here.ownersByName.delete(nameOf(owner.kind, owner.externalId));
  return true;
}

function markChanged(here: Scope, id: Id): void {
  here.printChanges.set(id, ++here.printsVersion);
}

/**
 * All recordings that a profile was enrolled from or matched, in full (an enrolled part, its source and the other parts), and every audio model
 * made of them, except those that another profile was enrolled from: they hold another voice.
 */
function eraseRecordings(here: Scope, profileId: Id): void {
  const enrolledElsewhere = new Set<Id>();
  for (const [owner, segments] of here.segments) {
    if (owner !== profileId) for (const { processed } of segments) enrolledElsewhere.add(processed.id);
  }
  const mediaRoot = (mediaId: Id) => here.media.get(mediaId)?.partOf ?? mediaId;
  const rootOf = ({ partOf, mediaSegmentId }: ProcessedAudio) => partOf ?? mediaRoot(mediaSegmentId);
  const matched = [...here.checks.values()]
    .filter((check) => check.matchedProfileIds?.includes(profileId))
    .flatMap(({ audioModelId }) => here.processed.get(audioModelId ?? "") ?? [])
    .filter(({ id }) => !enrolledElsewhere.has(id));
  const own = [...here.segments.get(profileId)!.map(({ processed }) => processed), ...matched];
  const roots = new Set(own.map(rootOf));
  const ownIds = new Set(own.map(({ id }) => id));
  for (const model of here.processed.values()) {
    const { id } = model;
    if ((ownIds.has(id) || roots.has(rootOf(model))) && !enrolledElsewhere.has(id)) here.processed.delete(id);
  }
  for (const { id } of here.media.values()) if (roots.has(mediaRoot(id))) here.media.delete(id);
}

function findGroup({ groups }: Scope, kind: GroupKind, id: Id): Group | null {
  const group = groups.get(id);
  return group?.kind === kind ? group : null;
}

function changeMembers(here: Scope, kind: GroupKind, id: Id, change: (group: Group) => Members): boolean {
  const group = findGroup(here, kind, id);
  if (!group) return false;
  here.groups.set(id, { ...group, ...change(group) });
  here.groupVersions.set(id, (here.groupVersions.get(id) ?? 0) + 1);
  return true;
}
