/** Records as the processor writes them, with the fields that a test sets. */
import type { Template } from "../../src/engine/port.js";
import type {
  Check,
  Engagement,
  EnrollmentSegment,
  Group,
  Id,
  Job,
  MediaSegment,
  OwnerKind,
  ProcessedAudio,
  Profile,
  Session,
  Store,
} from "../../src/store/port.js";

export const REVISION = "5e".repeat(32);
export const DIMENSIONS = 256;

let made = 0;

/** Sortable, like the ids of vivavoce. */
export function newId(what = "id"): Id {
  return `${what}-${String(++made).padStart(8, "0")}-${crypto.randomUUID()}`;
}

/** The same numbers for the same seed. */
export function embeddingOf(seed: number, dimensions = DIMENSIONS): Float32Array {
  let state = (seed * 2654435761 + 1) >>> 0;
  const embedding = Float32Array.from({ length: dimensions }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  const length = Math.hypot(...embedding);
  return embedding.map((value) => value / length);
}

export function templateOf(seed: number): Template {
  return {
    embedding: embeddingOf(seed),
    netSpeechSeconds: 9.5 + seed,
    snrDb: seed % 2 === 0 ? null : 21.25,
    bandwidthHz: 3_400,
    revision: REVISION,
  };
}

export function engagementOf(scopeId: Id, change: Partial<Engagement> = {}): Engagement {
  return {
    id: newId("engagement"),
    scopeId,
    externalId: "call 17",
    customData: "{}",
    startedAt: 1_000,
    stoppedAt: null,
    ...change,
  };
}

export function sessionOf(scopeId: Id, engagementId: Id, change: Partial<Session> = {}): Session {
  return {
    id: newId("session"),
    scopeId,
    engagementId,
    type: 2,
    externalId: "leg 1",
    claimedPersonId: "alice",
    startedAt: 1_000,
    stoppedAt: null,
    ...change,
  };
}

export function checkOf(scopeId: Id, sessionId: Id, change: Partial<Check> = {}): Check {
  return {
    id: newId("check"),
    scopeId,
    sessionId,
    operation: "Verify",
    at: 1_000,
    decision: 1,
    reason: 9,
    risk: 12,
    reliability: null,
    evidence: { match: 7.25 },
    profileId: null,
    ...change,
  };
}

export function mediaOf(scopeId: Id, sessionId: Id, change: Partial<MediaSegment> = {}): MediaSegment {
  return {
    id: newId("media"),
    scopeId,
    sessionId,
    partOf: null,
    rateHz: 8_000,
    channels: 1,
    encoding: "pcm16",
    createdAt: 1_000,
    audio: Uint8Array.from({ length: 3_000 }, (_, i) => (i * 7 + made) & 255),
    ...change,
  };
}

export function processedOf(
  scopeId: Id,
  sessionId: Id,
  seed: number,
  change: Partial<ProcessedAudio> = {},
): ProcessedAudio {
  return {
    id: newId("processed"),
    scopeId,
    sessionId,
    mediaSegmentId: newId("media"),
    channel: null,
    mediaChannels: 1,
    mediaRateHz: 8_000,
    printType: "text-dependent",
    source: "process-audio",
    validity: 1,
    measures: {
      rateHz: 8_000,
      grossSeconds: 4.5,
      netSpeechSeconds: 3.25,
      speechLevelDb: -26.5,
      snrDb: null,
      saturatedPerMinute: 0,
      saturationRatio: 0,
      bandwidthHz: 3_400,
    },
    speakers: 1,
    voiceClass: 42.5,
    revision: REVISION,
    createdAt: 1_000,
    voice: {
      windows: [0, 1].map((i) => ({
        embedding: embeddingOf(seed + i),
        speechSeconds: 1.5,
        startSeconds: i * 2,
        endSeconds: i * 2 + 2,
      })),
      embedding: embeddingOf(seed + 100),
    },
    ...change,
  };
}

export function profileOf(
  scopeId: Id,
  externalId: string,
  change: Partial<Omit<Profile, "generation">> & { kind?: OwnerKind } = {},
): Omit<Profile, "generation"> {
  const { kind = "person", ...rest } = change;
  return {
    id: newId("profile"),
    scopeId,
    owner: { id: newId("owner"), scopeId, kind, externalId },
    tag: "default",
    printType: null,
    printVersion: 0,
    template: null,
    status: 1,
    createdAt: 1_000,
    ...rest,
  };
}

export function segmentOf(profileId: Id, processed: ProcessedAudio, addedAt = 2_000): EnrollmentSegment {
  return { profileId, processed, addedAt };
}

export function groupOf(scopeId: Id, change: Partial<Group> = {}): Group {
  return { id: newId("group"), scopeId, kind: "group", tag: "family", profileIds: [], ownerIds: [], ...change };
}

export function jobOf(scopeId: Id, change: Partial<Job> = {}): Job {
  return {
    id: newId("job"),
    scopeId,
    kind: "profile-status",
    state: 1,
    request: { ids: ["a"] },
    result: null,
    progress: 0,
    createdAt: 1_000,
    ...change,
  };
}

/** An engagement and a session in it. */
export async function startSession(store: Store, scopeId: Id, change: Partial<Session> = {}): Promise<Session> {
  const engagement = engagementOf(scopeId);
  await store.engagements.create(engagement);
  const session = sessionOf(scopeId, engagement.id, change);
  await store.sessions.create(session);
  return session;
}

/** A profile as after a call: media, its audio model, enrolled and trained. */
export async function enrollPerson(
  store: Store,
  scopeId: Id,
  externalId: string,
  seed: number,
  change: Parameters<typeof profileOf>[2] = {},
) {
  const session = await startSession(store, scopeId);
  const media = mediaOf(scopeId, session.id);
  await store.media.add(media);
  const processed = processedOf(scopeId, session.id, seed, { mediaSegmentId: media.id });
  await store.processed.add(processed);
  const profile = (await store.profiles.create(profileOf(scopeId, externalId, change)))!;
  const segment = segmentOf(profile.id, processed);
  const added = await store.profiles.addSegment(scopeId, profile.id, profile.generation, segment);
  const trained = await store.profiles.train(scopeId, profile.id, profile.generation + 1, {
    template: templateOf(seed),
    status: 2,
    printVersion: 1,
  });
  if (added !== "added" || !trained) throw new Error("the profile was not enrolled");
  return { session, media, processed, segment, profile: (await store.profiles.get(scopeId, profile.id))! };
}
