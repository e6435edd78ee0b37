/** Records of a store as the processor writes them; callers add their own values. */
export const SCOPE = "scope";
export const REVISION = "5e".repeat(32);

export const templateOf = (embedding) => ({
  embedding,
  netSpeechSeconds: 9,
  snrDb: 20,
  bandwidthHz: 3400,
  revision: REVISION,
});

export const processedOf = (change) => ({
  scopeId: SCOPE,
  sessionId: "session",
  channel: null,
  mediaChannels: 1,
  mediaRateHz: 8000,
  printType: "text-dependent",
  source: "process-audio",
  validity: 1,
  measures: { rateHz: 8000, netSpeechSeconds: 3 },
  speakers: 1,
  voiceClass: 50,
  revision: REVISION,
  createdAt: 1,
  ...change,
});

export const mediaOf = (change) => ({
  scopeId: SCOPE,
  sessionId: "session",
  partOf: null,
  rateHz: 8000,
  channels: 1,
  encoding: "pcm16",
  createdAt: 1,
  ...change,
});

/** An untrained profile of a person with this name. */
export const profileOf = (id, externalId, change = {}) => ({
  id,
  scopeId: SCOPE,
  owner: { id: `owner-${id}`, scopeId: SCOPE, kind: "person", externalId },
  tag: "",
  printType: null,
  printVersion: 0,
  template: null,
  status: 1,
  createdAt: 1,
  ...change,
});

/** Starts a session with this id in its own engagement, unless it exists. */
export async function startSession(store, id, scopeId = SCOPE) {
  if (await store.sessions.get(scopeId, id)) return id;
  const engagement = { id: `engagement-${id}`, scopeId, externalId: "", customData: "", startedAt: 1, stoppedAt: null };
  // It may exist already, from a process that was killed.
  if (!(await store.engagements.get(scopeId, engagement.id))) await store.engagements.create(engagement);
  await store.sessions.create({
    id,
    scopeId,
    engagementId: engagement.id,
    type: 2,
    externalId: "",
    claimedPersonId: null,
    startedAt: Date.now(),
    stoppedAt: null,
  });
  return id;
}
