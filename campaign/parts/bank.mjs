/**
 * A service with tokens on a store in memory, in this process. Only the engine is a stand-in, which analyzes nothing. There are two scopes, each with
 * its own clients; the first has a person, a fraudster and everything that belongs to them.
 */
import { readRecording } from "../../dist/audio/index.js";
import { VoiceprintsProcessor } from "../../dist/processor/voiceprints-processor.js";
import { configSchema } from "../../dist/server/config.js";
import { tokenGuard } from "../../dist/server/guard.js";
import { jsonLog } from "../../dist/server/log.js";
import { Service } from "../../dist/server/service.js";
import { createMemoryStore } from "../../dist/store/memory.js";
import { createTokenApp } from "../../dist/token/app.js";
import { createTokenService } from "../../dist/token/service.js";
import { createVerifier } from "../../dist/token/verify.js";

export const REVISION = "5e".repeat(32);
export const [VICTIM, OTHER] = ["victim", "other"];
const ISSUER = "http://127.0.0.1:8080";

const fails = async () => {
  throw new Error("the engine of the campaign hears nothing");
};
const engine = {
  model: {
    calibrationModelId: "campaign",
    revision: REVISION,
    dimensions: 256,
    windowSeconds: 3,
    attacks: [],
  },
  analyze: fails,
  stream: fails,
  train: fails,
  score: fails,
  attack: fails,
  threshold: () => 0,
  gallery: () => ({ size: 0, set() {}, delete: () => false, has: () => false, top: () => [] }),
  async close() {},
};

export async function openBank() {
  const store = createMemoryStore();
  const errors = [];
  const log = jsonLog("error", (line) => errors.push(line));
  const processor = new VoiceprintsProcessor({ engine, store, readRecording });
  const tokens = createTokenService({ documents: store.documents, issuer: ISSUER });
  const verifier = createVerifier({ issuers: [tokens.runtimeIssuer] });
  const tokenApp = createTokenApp(tokens);
  const config = configSchema.parse({ port: 0, store: "memory", limits: { callsPerSecond: 0 } });
  const service = new Service(config, {
    operations: processor,
    guard: tokenGuard(verifier),
    log,
    version: "0.0.0",
    ready: async () => {},
    tokens: { owns: (path) => tokenApp.owns(path), fetch: (request, env) => tokenApp.fetch(request, env) },
  });
  await service.listen();
  return {
    store,
    processor,
    tokens,
    service,
    errors,
    clients: { [VICTIM]: await clientOf(tokens, VICTIM), [OTHER]: await clientOf(tokens, OTHER) },
    ids: await fill(store, VICTIM),
    async close() {
      const clean = await service.stop();
      await processor.close();
      return clean;
    },
  };
}

export async function clientOf(tokens, gkScope, scopes = ["bio", "asr"]) {
  const application = await tokens.applications.create({
    name: `Application of ${gkScope}`,
    environment: "production",
    geography: "local",
    scopes,
    gkScopes: [gkScope],
  });
  const { id } = application.clients[0];
  const secret = await tokens.applications.regenerateSecret(application.id, id);
  return { application, id, secret };
}

export const runtimeToken = async (tokens, { id, secret }, scope = "bio") =>
  (await tokens.clientCredentials({ client: { clientId: id, secret }, scope, address: "127.0.0.1" })).access_token;

/** Everything that was filled, to see whether it has changed. */
export async function recordsOf(store, scopeId, ids) {
  const profile = await store.profiles.get(scopeId, ids.gk_voiceprint_profile_id);
  return JSON.stringify([
    profile,
    await store.profiles.segments(scopeId, ids.gk_voiceprint_profile_id),
    await store.engagements.get(scopeId, ids.gk_engagement_id),
    await store.sessions.get(scopeId, ids.gk_session_id),
    await store.sessions.checks(scopeId, ids.gk_session_id),
    await store.media.get(scopeId, ids.gk_media_segment_id),
    await store.processed.get(scopeId, ids.gk_processed_audio_id),
    await store.groups.get(scopeId, ids.gk_group_id),
    await store.groups.get(scopeId, ids.watchlist_id),
    await store.jobs.get(scopeId, ids.gk_job_id),
  ]);
}

let made = 0;
const newId = () => `01900000-0000-7000-8000-${(++made).toString(16).padStart(12, "0")}`;

/** Ids of new records in a scope, by the names of the contract's fields. `names` are those of the person and the fraudster. */
export async function fill(store, scopeId, names = ["alice", "mallory"]) {
  const engagement = { id: newId(), scopeId, externalId: "", customData: "", startedAt: 1, stoppedAt: null };
  await store.engagements.create(engagement);
  const session = {
    id: newId(),
    scopeId,
    engagementId: engagement.id,
    type: 2,
    externalId: "",
    claimedPersonId: null,
    startedAt: Date.now(),
    stoppedAt: null,
  };
  await store.sessions.create(session);
  const media = {
    id: newId(),
    scopeId,
    sessionId: session.id,
    partOf: null,
    rateHz: 8000,
    channels: 1,
    encoding: "pcm16",
    createdAt: 1,
    audio: new Uint8Array(16_000),
  };
  await store.media.add(media);
  const embedding = new Float32Array(256).fill(1 / 16);
  const processed = {
    id: newId(),
    scopeId,
    sessionId: session.id,
    mediaSegmentId: media.id,
    channel: null,
    mediaChannels: 1,
    mediaRateHz: 8000,
    printType: "text-dependent",
    source: "process-audio",
    validity: 1,
    measures: {
      rateHz: 8000,
      grossSeconds: 4,
      netSpeechSeconds: 3,
      speechLevelDb: -26,
      snrDb: 20,
      saturatedPerMinute: 0,
      saturationRatio: 0,
      bandwidthHz: 3400,
    },
    speakers: 1,
    voiceClass: 50,
    revision: REVISION,
    createdAt: 1,
    voice: { windows: [], embedding },
  };
  await store.processed.add(processed);
  const profileOf = async (kind, externalId) => {
    const id = newId();
    const profile = await store.profiles.create({
      id,
      scopeId,
      owner: { id: newId(), scopeId, kind, externalId },
      tag: "",
      printType: null,
      printVersion: 0,
      template: null,
      status: 1,
      createdAt: 1,
    });
    await store.profiles.addSegment(scopeId, id, 0, { profileId: id, processed, addedAt: 1 });
    const template = { embedding, netSpeechSeconds: 9, snrDb: 20, bandwidthHz: 3400, revision: REVISION };
    await store.profiles.train(scopeId, id, 1, { template, status: 2, printVersion: 1 });
    return profile;
  };
  const [person, fraudster] = [await profileOf("person", names[0]), await profileOf("fraudster", names[1])];
  const groupOf = async (kind, profile) => {
    const id = newId();
    await store.groups.create({ id, scopeId, kind, tag: "", profileIds: [profile.id], ownerIds: [] });
    return id;
  };
  const job = newId();
  await store.jobs.create({
    id: job,
    scopeId,
    kind: "profile-status",
    state: 1,
    request: {},
    result: null,
    progress: 0,
    createdAt: 1,
  });
  return {
    gk_engagement_id: engagement.id,
    gk_session_id: session.id,
    gk_media_segment_id: media.id,
    gk_processed_audio_id: processed.id,
    gk_voiceprint_profile_id: person.id,
    gk_owner_id: person.owner.id,
    gk_group_id: await groupOf("group", person),
    group_id: await groupOf("group", person),
    watchlist_id: await groupOf("watchlist", fraudster),
    gk_job_id: job,
    person_id: names[0],
    fraudster_id: names[1],
    claimed_person_id: names[0],
  };
}
