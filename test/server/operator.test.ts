/** The data of the operator view, and who may read it. The view itself is tested in a browser (test/web). */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { v7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { readRecording } from "../../src/audio/index.js";
import { Decision, DecisionReason, ListenResponseSchema } from "../../src/contract/index.js";
import type { LastEvaluation } from "../../src/evaluate/last-evaluation.js";
import { VoiceprintsProcessor } from "../../src/processor/voiceprints-processor.js";
import { LiveCalls } from "../../src/server/limits/live-calls.js";
import { WorkQueue } from "../../src/server/limits/work-queue.js";
import { jsonLog } from "../../src/server/log.js";
import { LoadHistory, Spreading } from "../../src/server/operator/load-history.js";
import { createOperatorApp } from "../../src/server/operator/operator-routes.js";
import { decisionView } from "../../src/server/operator/sessions.js";
import { createMemoryStore } from "../../src/store/memory.js";
import { createTokenApp } from "../../src/token/app.js";
import type { AuditEvent } from "../../src/token/audit.js";
import { createTokenService } from "../../src/token/service.js";
import { attackHalfWidth, uncertainHalfWidth } from "../../src/voiceprint/decision.js";
import { countOfCall, fieldRates } from "../../src/voiceprint/field-rates.js";
import { fixtureEngine, take } from "../processor/fixture-engine.js";
import { openWorld } from "../processor/world.js";

const issuer = "https://box.example";
const revision = "model-2";
let folder: string;
let evaluationFile: string;
const logged: string[] = [];
const audited: AuditEvent[] = [];
/** Session ids as the box makes them: they begin with the time. */
const hourMs = 3_600_000;
const firstHour = Date.UTC(2026, 10, 16, 8);
const sessionId = (hour: number) => v7({ msecs: firstHour + hour * hourMs });
const sessionIds = [0, 1, 2, 3].map(sessionId);
const oldSession = v7({ msecs: 1 });
const engagementId = v7({ msecs: 1 });
const profileId = (i: number) => `00000000-0000-7000-8000-00000000000${i}`;
const store = createMemoryStore();
let lastMs = 0;
const tokens = createTokenService({
  documents: store.documents,
  issuer,
  // No millisecond twice: ids of the same one are in random order.
  clock: {
    now: () => {
      lastMs = Math.max(lastMs + 1, Date.now());
      return lastMs;
    },
  },
  passwordCost: { n: 1024, r: 8, p: 1 },
});
const queue = new WorkQueue(2, 8);
const load = new LoadHistory(queue);
const liveCalls = new LiveCalls(10);
const rates = fieldRates(
  "watchlist",
  [300, 10, 0].map((exceeded) => ({ ...countOfCall(1000, exceeded), calls: 500 })),
);
const models = [
  {
    revision,
    calibrationModelId: "vivavoce-2",
    persons: 5,
    fraudsters: 1,
    isOfNewPrints: true,
    isScored: true,
  },
];
let app: ReturnType<typeof createOperatorApp>;
const authorizations: Record<string, string> = {};

async function authorization(clientId: string, secret: string, scope: string): Promise<string> {
  const response = await tokens.clientCredentials({ client: { clientId, secret }, scope, address: "127.0.0.1" });
  return `Bearer ${response.access_token}`;
}

const template = (templateRevision: string) => ({
  revision: templateRevision,
  embedding: new Float32Array(4),
  netSpeechSeconds: 8.5,
  snrDb: 30,
  bandwidthHz: 7000,
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-operator-"));
  evaluationFile = join(folder, "last-evaluation.json");
  for (const [name, role] of [
    ["olga", "owner"],
    ["mia", "member"],
  ] as const) {
    const user = await tokens.users.create({ name, role, password: "correct horse battery" });
    const { credential, secret } = await tokens.credentials.create(user, { kind: "service", label: name });
    authorizations[role] = await authorization(credential.clientId, secret, "platform-api");
  }
  const bank = await tokens.applications.create({
    name: "Bank",
    environment: "production",
    geography: "eu",
    scopes: ["bio"],
    gkScopes: ["default"],
  });
  await tokens.applications.create({
    name: "Call centre",
    environment: "production",
    geography: "eu",
    gkScopes: ["large", "default"],
  });
  const client = bank.clients[0]!.id;
  const secret = await tokens.applications.regenerateSecret(bank.id, client);
  authorizations.runtime = await authorization(client, secret, "bio");

  for (let i = 0; i < 7; i++) {
    const id = profileId(i);
    const fraudster = i === 6;
    const owner = {
      id: `owner-${i}`,
      scopeId: "default",
      kind: fraudster ? ("fraudster" as const) : ("person" as const),
      externalId: `caller-${i}`,
    };
    await store.profiles.create({
      id,
      scopeId: "default",
      owner,
      tag: "",
      printType: null,
      printVersion: 0,
      template: null,
      status: 1,
      createdAt: 1000 + i,
    });
    if (i < 2) {
      const { generation } = (await store.profiles.get("default", id))!;
      const trained = { template: template(i === 0 ? revision : "model-1"), status: 3, printVersion: 1 };
      expect(await store.profiles.train("default", id, generation, trained)).toBe(true);
    }
  }
  await store.groups.create({
    id: "list-1",
    scopeId: "default",
    kind: "watchlist",
    tag: "known callers",
    profileIds: [profileId(6)],
    ownerIds: [],
  });
  await store.engagements.create({
    id: engagementId,
    scopeId: "default",
    externalId: "",
    customData: "",
    startedAt: 1,
    stoppedAt: null,
  });
  await store.sessions.create({
    id: oldSession,
    scopeId: "default",
    engagementId: engagementId,
    type: 2,
    externalId: "call of Ada",
    claimedPersonId: "ada",
    startedAt: 1,
    stoppedAt: null,
  });
  for (let i = 0; i < 3; i++) {
    await store.sessions.addCheck({
      id: `check-${i}`,
      scopeId: "default",
      sessionId: oldSession,
      operation: "Verify",
      at: 10 + i,
      decision: Decision.AUTHENTIC,
      reason: DecisionReason.VOICEPRINT_MATCH,
      risk: 120,
      reliability: 90,
      evidence: { authentication: 7.5 },
      profileId: profileId(0),
    });
  }
  await seedSessions();
  await seedLargeScope();
  app = createOperatorApp({
    store,
    operations: new VoiceprintsProcessor({ engine: fixtureEngine(), store, readRecording }),
    queue,
    load,
    fieldRates: async () => rates,
    liveCalls,
    toolingUser: createTokenApp(tokens).toolingUser,
    applications: tokens.applications,
    openScopes: [],
    version: "1.2.3",
    modelRevision: revision,
    printsByModel: async (scope) => (scope === "default" ? models : []),
    canBeScored: (one) => one === revision,
    calibrationRevision: "0123456789abcdef",
    evaluationFile,
    files: () => null,
    log: jsonLog("info", (line) => logged.push(line)),
    audit: (event) => audited.push(event),
  });
});
afterAll(() => rm(folder, { recursive: true }));

/** One session per hour: a match, an impostor, a synthetic voice, and one without a check. */
async function seedSessions(): Promise<void> {
  const judged = (part: string, ratio: number) => ({
    [part]: ratio,
    [`${part}Threshold`]: 5,
    [`${part}Reliability`]: 0.9,
  });
  const match = { decision: Decision.AUTHENTIC, reason: DecisionReason.VOICEPRINT_MATCH };
  const noMatch = { decision: Decision.NO_MATCH, reason: DecisionReason.VOICEPRINT_NO_MATCH };
  const fraud = { decision: Decision.FRAUD, reason: DecisionReason.FRAUDSTER_INDICATION };
  const stretch = { syntheticStretchStart: 1.5, syntheticStretchEnd: 4 };
  const checks = [
    [{ ...match, evidence: judged("authentication", 11) }],
    [{ ...noMatch, evidence: judged("authentication", -9) }],
    [{ ...fraud, evidence: { ...judged("authentication", 11), ...judged("synthetic", 9), ...stretch } }],
    [],
  ];
  for (const [i, id] of sessionIds.entries()) {
    await store.sessions.create({
      id,
      scopeId: "default",
      engagementId: engagementId,
      type: 2,
      externalId: `call ${i}`,
      claimedPersonId: i < 2 ? "caller-0" : "",
      startedAt: firstHour + i * hourMs,
      stoppedAt: i === 0 ? firstHour + 60_000 : null,
    });
    for (const check of checks[i]!)
      await store.sessions.addCheck({
        id: `check-of-${i}`,
        scopeId: "default",
        sessionId: id,
        operation: "AnalyzeAudio",
        at: 1,
        risk: 500,
        reliability: 90,
        profileId: i === 2 ? profileId(1) : profileId(0),
        ...check,
      });
  }
  const measures = {
    grossSeconds: 6,
    netSpeechSeconds: 4.5,
    snrDb: 25,
    speechLevelDb: -26,
    saturationRatio: 0,
    saturatedPerMinute: 0,
    bandwidthHz: 7000,
  };
  const media = {
    scopeId: "default",
    sessionId: sessionIds[2]!,
    partOf: null,
    rateHz: 8000,
    channels: 1,
    encoding: "wav" as const,
    audio: new Uint8Array(4),
  };
  await store.media.add({ ...media, id: "media-1", createdAt: 20 });
  await store.media.add({ ...media, id: "media-2", createdAt: 30 });
  await store.media.add({ ...media, id: "part-of-2", partOf: "media-2", createdAt: 31 });
  const processed = {
    scopeId: "default",
    sessionId: sessionIds[2]!,
    mediaSegmentId: "media-1",
    channel: null,
    mediaChannels: 1,
    mediaRateHz: 8000,
    printType: "text-independent" as const,
    validity: 1,
    measures: measures as never,
    speakers: 1,
    voiceClass: 40,
    revision,
    voice: { windows: [], embedding: new Float32Array(4) },
  };
  await store.processed.add({ ...processed, id: "heard-1", source: "check", createdAt: 21 });
  const enrolled = { ...processed, mediaSegmentId: "deleted", source: "process-audio" as const };
  await store.processed.add({ ...enrolled, id: "heard-2", createdAt: 22 });
}

/** A page of a search reads 2,000 profiles or 300 sessions; details show 100 checks and recordings. */
const large = { profiles: 2005, sessions: 305, checks: 101 };
const largeId = (i: number) => `00000000-0000-7000-8000-${String(100_000 + i).padStart(12, "0")}`;
const largeSessions = Array.from({ length: large.sessions }, (_, i) => v7({ msecs: firstHour + i }));
const detailed = largeSessions[0]!;

async function seedLargeScope(): Promise<void> {
  const scopeId = "large";
  const owner = (id: string) => ({ id, scopeId, kind: "person" as const, externalId: id });
  const profile = { scopeId, printType: null, printVersion: 0, template: null, status: 1, createdAt: 1 };
  for (let i = 0; i < large.profiles; i++)
    await store.profiles.create({ ...profile, id: largeId(i), owner: owner(`person-${i}`), tag: "" });
  for (const i of [3, 1, 2])
    await store.profiles.create({ ...profile, id: largeId(9000 + i), owner: owner("nora"), tag: `phone ${i}` });
  for (const id of ["large-1", "large-2"])
    await store.groups.create({ id, scopeId, kind: "watchlist", tag: "", profileIds: [], ownerIds: [] });
  await store.engagements.create({
    id: engagementId,
    scopeId,
    externalId: "",
    customData: "",
    startedAt: 1,
    stoppedAt: null,
  });
  const session = { scopeId, engagementId, type: 2, claimedPersonId: "", stoppedAt: null };
  for (let i = 0; i < large.sessions; i++)
    await store.sessions.create({
      ...session,
      id: largeSessions[i]!,
      externalId: `call-${i}.`,
      startedAt: firstHour + i,
    });
  for (let i = 0; i < large.checks; i++) {
    await store.sessions.addCheck({
      id: `large-${i}`,
      scopeId,
      sessionId: detailed,
      operation: "Verify",
      at: i,
      decision: Decision.FAILED,
      reason: DecisionReason.AUDIO_TOO_SHORT,
      risk: 500,
      reliability: 90,
      // The first one is of the call's other party.
      evidence: {
        authenticationFailed: DecisionReason.AUDIO_TOO_SHORT,
        ...(i === 0 && { secondParty: 1 }),
      },
      profileId: largeId(i === 0 ? 4 : 5),
    });
    const recording = { partOf: null, rateHz: 8000, channels: 1, encoding: "wav" as const, audio: new Uint8Array(4) };
    const at = large.checks - i;
    await store.media.add({ ...recording, id: `media-at-${at}`, scopeId, sessionId: detailed, createdAt: at });
  }
}

async function ask(path: string, who = "owner", init: RequestInit = {}) {
  const given = authorizations[who];
  const headers = { ...(given && { authorization: given }), "content-type": "application/json" };
  const response = await app.request(`/operator/v1/${path}`, { headers, ...init });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) };
}

describe("access", () => {
  const paths = [
    "box",
    "load",
    "calls",
    "decisions?scope=default",
    "profiles?scope=default",
    `profiles/${profileId(0)}?scope=default`,
    "sessions?scope=default",
    `sessions/${sessionIds[0]}?scope=default`,
    "watchlists?scope=default",
    "applications",
    "models?scope=default",
    "promises",
    "evaluation",
    "nothing",
  ];

  it.each(paths)("%s: owners only", async (path) => {
    const nobody = await ask(path, "nobody");
    expect(nobody.status).toBe(401);
    expect(nobody.headers.get("www-authenticate")).toMatch(/^Bearer /);
    expect(await ask(path, "runtime")).toMatchObject({ status: 401, body: { error: "invalid_token" } });
    expect(await ask(path, "member")).toMatchObject({ status: 403, body: { error: "access_denied" } });
    const owner = await ask(path);
    expect(owner.status).toBe(path === "nothing" ? 404 : 200);
    expect(owner.headers.get("cache-control")).toBe("no-store");
  });

  it("only to scopes that the box's applications are bound to", async () => {
    expect((await ask("box")).body).toEqual({
      user: "olga",
      version: "1.2.3",
      modelRevision: revision,
      calibrationRevision: "0123456789abcdef",
      scopes: ["default", "large"],
    });
    const details = [`profiles/${profileId(0)}`, `sessions/${sessionIds[0]}`];
    for (const table of ["decisions", "profiles", "sessions", "watchlists", "models", ...details]) {
      expect((await ask(`${table}?scope=elsewhere`)).status).toBe(403);
      expect((await ask(table)).status).toBe(400);
    }
  });
});

describe("data", () => {
  it("applications page by page, newest first; a search finds names, ids and scopes", async () => {
    const names = (body: { rows: { name: string }[] }) => body.rows.map(({ name }) => name);
    const first = (await ask("applications?limit=1")).body;
    expect(names(first)).toEqual(["Call centre"]);
    expect(first.rows[0].clients[0]).not.toHaveProperty("secretHash");
    const second = (await ask(`applications?limit=1&after=${first.next}`)).body;
    expect(names(second)).toEqual(["Bank"]);
    expect(second.next).toBeNull();
    for (const search of ["call", "LARGE", first.rows[0].id, first.rows[0].clients[0].id])
      expect(names((await ask(`applications?search=${encodeURIComponent(search)}`)).body)).toEqual(["Call centre"]);
    expect(names((await ask("applications?search=no%20such")).body)).toEqual([]);
  });

  it("asks for the applications once for many requests of a view, but never refuses a scope that was bound since", async () => {
    const read = vi.spyOn(tokens.applications, "list");
    await ask("box");
    for (let i = 0; i < 5; i++) expect((await ask("decisions?scope=default")).status).toBe(200);
    expect(read).toHaveBeenCalledTimes(1);
    const { id } = await tokens.applications.create({
      name: "New",
      environment: "production",
      geography: "eu",
      gkScopes: ["bound-since"],
    });
    expect((await ask("decisions?scope=bound-since")).status).toBe(200);
    await tokens.applications.delete(id);
    await ask("box");
    expect((await ask("decisions?scope=bound-since")).status).toBe(403);
    read.mockRestore();
  });

  it("promised rates: the measured rate, with an interval and a verdict", async () => {
    const { body } = await ask("promises");
    expect(body.rates.map(({ verdict }: { verdict: string }) => verdict)).toEqual(["exceeded", "holds", "undecided"]);
    expect(body.rates[0]).toMatchObject({ list: "watchlist", promised: 0.1, comparisons: 1000, met: { rate: 0.3 } });
  });

  it("live calls, and how many there may be at once", async () => {
    const entry = liveCalls.enter("call 7", "twilio", "bank", "", () => {});
    const { body } = await ask("calls");
    expect(body).toMatchObject({ capacity: 10, calls: [{ id: "call 7", from: "twilio", netSpeechSeconds: 0 }] });
    entry.leave();
    expect((await ask("calls")).body.calls).toEqual([]);
  });

  it("how far each live call is: seconds heard and spoken, the last score and decision; at most a hundred calls", async () => {
    const entries = Array.from({ length: 101 }, (_, i) => liveCalls.enter(`call ${i}`, "grpc", "bank", "", () => {}));
    const tell = (event: MessageInitShape<typeof ListenResponseSchema>["event"]) =>
      entries[0]!.observe(create(ListenResponseSchema, { event: event! }));
    const first = async () => (await ask("calls")).body.calls[0];
    expect(await first()).toMatchObject({ grossSeconds: 0, netSpeechSeconds: 0, score: null, decision: null });
    const grossAudio = { seconds: 4n, nanos: 500_000_000 };
    tell({ case: "progress", value: { grossAudio, netAudio: { seconds: 2n, nanos: 250_000_000 } } });
    expect(await first()).toMatchObject({ grossSeconds: 4.5, netSpeechSeconds: 2.25, score: null, decision: null });
    const uncertain = { decision: Decision.UNCERTAIN, biometricScore: 0.5, netAudio: { seconds: 3n } };
    tell({ case: "checkpoint", value: uncertain });
    expect(await first()).toMatchObject({ grossSeconds: 4.5, netSpeechSeconds: 3, score: 0.5, decision: "UNCERTAIN" });
    tell({ case: "checkpoint", value: { decision: Decision.AUTHENTIC } });
    expect(await first()).toMatchObject({ netSpeechSeconds: 0, score: 0.5, decision: "AUTHENTIC" });
    expect((await ask("calls")).body.calls).toHaveLength(100);
    for (const entry of entries) entry.leave();
  });

  it("how many prints each model made", async () => {
    expect((await ask("models?scope=default")).body).toEqual({ models });
  });

  it("decisions: newest first, no audio, no names, no scores", async () => {
    const { body } = await ask("decisions?scope=default&limit=2");
    expect(body.map(({ id }: { id: string }) => id)).toEqual(["check-2", "check-1"]);
    expect(body[0]).toEqual({
      id: "check-2",
      at: 12,
      operation: "Verify",
      decision: "AUTHENTIC",
      reason: "VOICEPRINT_MATCH",
      risk: 120,
      reliability: 90,
      sessionId: oldSession,
      profileId: profileId(0),
    });
  });

  it("profiles page by page, without their templates", async () => {
    const seen: string[] = [];
    for (let after = ""; ; ) {
      const { body } = await ask(`profiles?scope=default&limit=3&after=${after}`);
      seen.push(...body.rows.map(({ id }: { id: string }) => id));
      expect(JSON.stringify(body)).not.toContain("embedding");
      if (body.next === null) break;
      after = body.next;
    }
    expect(seen).toEqual(Array.from({ length: 7 }, (_, i) => profileId(i)));
    const [current, old, untrained] = (await ask("profiles?scope=default")).body.rows;
    expect(current).toEqual({
      id: profileId(0),
      kind: "person",
      ownerId: "caller-0",
      tag: "",
      state: "OPTIMAL_TRAINED",
      printVersion: 1,
      netSpeechSeconds: 8.5,
      createdAt: 1000,
    });
    expect(old).toMatchObject({ state: "OBSOLETE" });
    expect(untrained).toMatchObject({ state: "NOT_TRAINED", netSpeechSeconds: null });
  });

  const found = async (path: string): Promise<string[]> =>
    (await ask(path)).body.rows.map(({ id }: { id: string }) => id);

  it.each([
    [`search=${profileId(3)}`, [profileId(3)]],
    ["search=caller-4", [profileId(4)]],
    ["search=CALLER&limit=2", [profileId(0), profileId(1)]],
    ["search=nobody", []],
    ["state=OPTIMAL_TRAINED", [profileId(0)]],
    ["state=OBSOLETE", [profileId(1)]],
    ["kind=fraudster", [profileId(6)]],
    ["kind=person&search=caller-6", []],
  ])("profiles with %s", async (search, expected) => {
    expect(await found(`profiles?scope=default&${search}`)).toEqual(expected);
  });

  it("a search continues where a page ended", async () => {
    const first = (await ask("profiles?scope=default&search=caller&limit=4")).body;
    expect(first.next).toBe(profileId(3));
    const second = (await ask(`profiles?scope=default&search=caller&limit=4&after=${first.next}`)).body;
    expect(second.rows.map(({ id }: { id: string }) => id)).toEqual([profileId(4), profileId(5), profileId(6)]);
    expect(second.next).toBeNull();
  });

  it("pages have 25 rows unless fewer or more are asked for, up to 100", async () => {
    expect(await found("profiles?scope=large")).toHaveLength(25);
    expect(await found("profiles?scope=large&limit=")).toHaveLength(25);
    for (const limit of [1, 100]) expect(await found(`profiles?scope=large&limit=${limit}`)).toHaveLength(limit);
    const last = await ask(`profiles?scope=large&limit=3&after=${largeId(large.profiles - 1)}`);
    expect(last.body.rows).toHaveLength(3);
    expect(last.body.next).toBeNull();
  });

  it("a page that is filled by the last of the rows read so far has a next one", async () => {
    const { body } = await ask("profiles?scope=large&search=person&limit=100");
    expect(body.rows).toHaveLength(100);
    expect(body.next).toBe(largeId(99));
  });

  it("a search that reads many rows ends, and continues with the next page", async () => {
    const wanted = `person-${large.profiles - 1}`.toUpperCase();
    const first = (await ask(`profiles?scope=large&search=${wanted}`)).body;
    expect(first).toEqual({ rows: [], next: largeId(1999) });
    expect(await found(`profiles?scope=large&search=${wanted}&after=${first.next}`)).toEqual([
      largeId(large.profiles - 1),
    ]);
    const sessions = (await ask("sessions?scope=large&search=call-0.")).body;
    expect(sessions).toEqual({ rows: [], next: largeSessions[large.sessions - 300] });
    const { body } = await ask(`sessions?scope=large&search=call-0.&after=${sessions.next}`);
    expect(body).toMatchObject({ rows: [{ id: detailed }], next: null });
  });

  it("a session is found at once by its id, or by the time before which it began", async () => {
    for (const search of [`search=${detailed}`, `until=${firstHour + 1}`])
      expect((await ask(`sessions?scope=large&${search}`)).body).toMatchObject({
        rows: [{ id: detailed }],
        next: null,
      });
  });

  it("all profiles of a person by name, page by page, and spaces around the name do not matter", async () => {
    const ids = [1, 2, 3].map((i) => largeId(9000 + i));
    expect(await found("profiles?scope=large&search=%20nora%20")).toEqual(ids);
    const { body } = await ask("profiles?scope=large&search=nora&limit=2");
    expect(body.rows.map(({ tag }: { tag: string }) => tag)).toEqual(["phone 1", "phone 2"]);
    expect(body.next).toBe(ids[1]);
    expect(await found(`profiles?scope=large&search=nora&limit=2&after=${body.next}`)).toEqual([ids[2]]);
    expect(await found("profiles?scope=large&search=nora&state=NOT_TRAINED&kind=")).toEqual(ids);
    expect(await found("profiles?scope=large&search=nora&state=OBSOLETE")).toEqual([]);
  });

  it("of a session with many checks the last hundred, why each failed, and the first hundred recordings", async () => {
    const { body } = await ask(`sessions/${detailed}?scope=large`);
    expect(body).toMatchObject({ checkCount: 101, person: "person-5", matchedPerson: "" });
    expect(body.checks.map(({ at }: { at: number }) => at)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    expect(body.checks[0]).toMatchObject({
      decision: "FAILED",
      reason: "AUDIO_TOO_SHORT",
      parts: [{ name: "authentication", ratio: null, threshold: null, failure: "AUDIO_TOO_SHORT", strongest: null }],
    });
    expect(body.audio.map(({ at }: { at: number }) => at)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    expect(body.audio[0]).toMatchObject({ rateHz: 8000, channels: 1, grossSeconds: null, snrDb: null });
  });

  it("details of a profile: model, consent, recordings, lists; never the voice", async () => {
    const { body } = await ask(`profiles/${profileId(0)}?scope=default`);
    expect(body).toMatchObject({
      ownerId: "caller-0",
      state: "OPTIMAL_TRAINED",
      model: { revision, calibrationModelId: null },
      snrDb: 30,
      consent: null,
      enrolled: [],
      learned: [],
      lists: [],
    });
    expect(JSON.stringify(body)).not.toContain("embedding");
    const watched = (await ask(`profiles/${profileId(6)}?scope=default`)).body;
    expect(watched).toMatchObject({ model: null, lists: [{ id: "list-1", kind: "watchlist", tag: "known callers" }] });
    expect((await ask("profiles/nobody?scope=default")).status).toBe(404);
  });

  it("sessions: newest first, with the decision over all checks", async () => {
    const { body } = await ask("sessions?scope=default");
    const own = body.rows.filter(({ id }: { id: string }) => sessionIds.includes(id));
    expect(own.map(({ id }: { id: string }) => id)).toEqual([...sessionIds].reverse());
    expect(own.map(({ decision }: { decision: string }) => decision)).toEqual([
      "UNSPECIFIED",
      "FRAUD",
      "NO_MATCH",
      "AUTHENTIC",
    ]);
    expect(own[3]).toMatchObject({
      type: "IVR",
      externalId: "call 0",
      person: "caller-0",
      matchedPerson: "caller-0",
      reason: "VOICEPRINT_MATCH",
      checkCount: 1,
      stoppedAt: firstHour + 60_000,
    });
  });

  it.each([
    [`search=${sessionIds[1]}`, [1]],
    [`search=${sessionIds[1]}&decision=NO_MATCH&from=${firstHour + hourMs}&until=${firstHour + hourMs + 1}`, [1]],
    [`search=${sessionIds[1]}&decision=AUTHENTIC`, []],
    [`search=${sessionIds[1]}&from=${firstHour + hourMs + 1}`, []],
    [`search=${sessionIds[1]}&until=${firstHour + hourMs}`, []],
    ["search=call%202", [2]],
    ["search=caller-0", [1, 0]],
    [`search=${profileId(1)}`, [2]],
    ["decision=FRAUD", [2]],
    ["decision=AUTHENTIC&search=caller-1", []],
    [`from=2&until=${firstHour + 2 * hourMs}`, [1, 0]],
    [`from=${firstHour + hourMs}&until=${firstHour + 3 * hourMs}`, [2, 1]],
    [`from=${firstHour}&until=${firstHour + 4 * hourMs}&limit=3`, [3, 2, 1]],
  ])("sessions with %s", async (search, expected) => {
    expect(await found(`sessions?scope=default&${search}`)).toEqual(expected.map((i) => sessionIds[i]));
  });

  it("a page that ends with the last session has no next one", async () => {
    const { rows } = (await ask("sessions?scope=default")).body;
    expect((await ask(`sessions?scope=default&limit=${rows.length}`)).body.next).toBeNull();
    const shorter = await ask(`sessions?scope=default&limit=${rows.length - 1}`);
    expect(shorter.body.next).toBe(rows.at(-2).id);
  });

  it("decisions: with the profile of the fraudster who was recognized, not that of the claimed person", async () => {
    const world = await openWorld();
    const { context, processor } = world;
    const [claimed, fraudster] = [await world.trained(9), await world.trained(7, "fraudster")];
    const gkVoiceprintProfileIds = { uniqueIds: [claimed, fraudster] };
    const audio = await world.heard(take(7, 4));
    const { result } = await processor.analyzeAudio({ context, audio, gkVoiceprintProfileIds });
    const [check] = await world.store.sessions.checks(context.gkScopeId.value, context.gkSessionId.value);
    expect([result!.decision, check!.profileId]).toEqual([Decision.FRAUD, claimed.value]);
    expect(decisionView(check!)).toMatchObject({ decision: "FRAUD", profileId: fraudster.value });
  });

  it("details of a session: its checks with ratios and the strongest sign of an attack, and its audio", async () => {
    const { body } = await ask(`sessions/${sessionIds[2]}?scope=default`);
    expect(body).toMatchObject({ decision: "FRAUD", engagementId: engagementId });
    expect(body.checks).toHaveLength(1);
    // The upper end of the band without a decision, which is what the answers of checks call the threshold.
    const [person, attack] = [5 + uncertainHalfWidth(0.9), 5 + attackHalfWidth(0.9)];
    expect(body.checks[0].parts).toEqual([
      { name: "authentication", ratio: 11, threshold: person, failure: null, strongest: null },
      {
        name: "synthetic",
        ratio: 9,
        threshold: attack,
        failure: null,
        strongest: { startSeconds: 1.5, endSeconds: 4 },
      },
    ]);
    expect(body.audio).toMatchObject([
      { id: "heard-1", processedFor: "check", isKept: true, validity: "AUDIO_OK", netSpeechSeconds: 4.5 },
      { id: "heard-2", processedFor: "enrollment", isKept: false, grossSeconds: 6, snrDb: 25, rateHz: 8000 },
      { id: "media-2", processedFor: null, isKept: true, validity: null },
    ]);
    expect(JSON.stringify(body)).not.toMatch(/embedding|voiceClass/);
    expect((await ask("sessions/nobody?scope=default")).status).toBe(404);
  });

  it("watchlists with the number of their members", async () => {
    expect((await ask("watchlists?scope=default")).body).toEqual({
      rows: [{ id: "list-1", tag: "known callers", profiles: 1, owners: 0 }],
      next: null,
    });
    expect((await ask("watchlists?scope=default&after=list-1")).body).toEqual({ rows: [], next: null });
    const first = (await ask("watchlists?scope=large&limit=1")).body;
    expect(first).toMatchObject({ rows: [{ id: "large-1" }], next: "large-1" });
    const second = (await ask(`watchlists?scope=large&limit=1&after=${first.next}`)).body;
    expect(second).toMatchObject({ rows: [{ id: "large-2" }], next: null });
  });

  it("the queue and the answered calls", async () => {
    let finish = () => {};
    const done = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const work = [1, 2, 3].map(() => queue.run(new AbortController().signal, () => done));
    load.answered(0.2);
    load.worked(0.02);
    const { body } = await ask("load");
    expect(body).toMatchObject({ running: 2, waiting: 1, concurrent: 2, capacity: 8 });
    expect(body.spans.at(-1)).toMatchObject({ calls: 1, running: 2, waiting: 1 });
    expect(body.spans.at(-1).latency.median).toBeCloseTo(0.2, 1);
    for (let i = 0; i < 3; i++) load.answered(10);
    const { latency } = (await ask("load")).body.spans.at(-1);
    expect(latency.p95 / 10).toBeCloseTo(1, 1);
    expect(body.spans.at(-1).realTimeFactor.median / 0.02).toBeCloseTo(1, 1);
    expect((await ask("load?since=0")).body.spans).toHaveLength(body.spans.length);
    expect((await ask(`load?since=${body.now + 60_000}`)).body.spans).toEqual([]);
    finish();
    await Promise.all(work);
  });

  it("null without an evaluation, then the last one, and 500 for a file that is not an evaluation", async () => {
    expect((await ask("evaluation")).body).toEqual({ evaluation: null });
    const estimate = { value: 0.02, interval: { low: 0.01, high: 0.03 } };
    const evaluation: LastEvaluation = {
      at: 5,
      name: "dev",
      condition: "as recorded",
      modelRevision: revision,
      recordings: 10,
      speakers: 5,
      sameTrials: 10,
      differentTrials: 100,
      unscoredTrials: 0,
      equalErrorRate: estimate,
      cllr: estimate,
      operatingPoints: [{ falseMatchRate: 0.01, fnmr: { value: 0.03, interval: null }, resolved: true }],
      curve: [
        { fmr: 1, fnmr: 0 },
        { fmr: 0, fnmr: 1 },
      ],
    };
    await writeFile(evaluationFile, JSON.stringify(evaluation));
    expect((await ask("evaluation")).body).toEqual({ evaluation });
    await writeFile(evaluationFile, '{"at":"yesterday"}');
    const broken = await ask("evaluation");
    expect(broken.status).toBe(500);
    const failure = logged.map((line) => JSON.parse(line)).find(({ stack }) => stack !== undefined);
    expect(failure).toMatchObject({
      message: "a request of the operator view failed",
      stack: expect.stringContaining("last-evaluation"),
    });
  });

  it.each([
    "profiles?scope=default&limit=0",
    "profiles?scope=default&limit=101",
    "decisions?scope=default&limit=x",
    "load?since=-1",
    "profiles?scope=default&state=FINE",
    "profiles?scope=default&kind=agent",
    `profiles?scope=default&search=${"x".repeat(257)}`,
    "sessions?scope=default&decision=MAYBE",
    "sessions?scope=default&from=yesterday",
    "load?since=00000000000000001",
  ])("refuses %s", async (path) => {
    expect((await ask(path)).status).toBe(400);
  });
});

it.each([
  `profiles?scope=default&search=${"x".repeat(256)}`,
  "profiles?scope=default&limit=100",
  `load?since=${Number.MAX_SAFE_INTEGER}`,
  "load?since=",
])("takes %s", async (path) => {
  expect((await ask(path)).status).toBe(200);
});

it("/operator leads to the view; a file that it does not have, and its data if no page was built, are not found", async () => {
  const redirected = await app.request("/operator");
  expect([redirected.status, redirected.headers.get("location")]).toEqual([308, "/operator/"]);
  expect((await app.request("/operator/nothing.js")).status).toBe(404);
});

describe("changes", () => {
  const put = (state: string, reference = "") => ({ method: "PUT", body: JSON.stringify({ state, reference }) });

  it("owners record consent, with the operator's reference", async () => {
    const path = `profiles/${profileId(2)}/consent?scope=default`;
    expect((await ask(path, "nobody", put("given"))).status).toBe(401);
    expect((await ask(path, "member", put("given"))).status).toBe(403);
    expect((await ask(`profiles/${profileId(2)}/consent?scope=elsewhere`, "owner", put("given"))).status).toBe(403);
    expect((await ask(path, "owner", put("perhaps"))).status).toBe(400);
    expect((await ask(path, "owner", put("given", "x".repeat(257)))).status).toBe(400);
    expect((await ask(`profiles/${profileId(6)}/consent?scope=default`, "owner", put("given"))).status).toBe(400);
    expect((await ask(`profiles/${profileId(9)}/consent?scope=default`, "owner", put("given"))).status).toBe(404);
    expect((await ask(`profiles/${profileId(2)}?scope=default`)).body.consent).toBeNull();
    expect((await ask(path, "owner", put("withdrawn", "form 7"))).status).toBe(204);
    expect((await ask(`profiles/${profileId(2)}?scope=default`)).body).toMatchObject({
      state: "WITHDRAWN",
      consent: { state: "withdrawn", reference: "form 7" },
    });
    expect((await ask(path, "owner", put("given", "x".repeat(256)))).status).toBe(204);
    expect((await ask(path, "owner", put("given", "form 8"))).status).toBe(204);
    expect((await ask(`profiles/${profileId(2)}?scope=default`)).body).toMatchObject({
      state: "NOT_TRAINED",
      consent: { state: "given", reference: "form 8" },
    });
  });

  it("only owners erase a profile, and the log says who did", async () => {
    const [path, erase] = [`profiles/${profileId(5)}?scope=default`, { method: "DELETE" }];
    expect((await ask(path, "nobody", erase)).status).toBe(401);
    expect((await ask(path, "member", erase)).status).toBe(403);
    expect((await ask(`profiles/${profileId(5)}?scope=elsewhere`, "owner", erase)).status).toBe(403);
    expect((await ask(path)).status).toBe(200);
    expect((await ask(path, "owner", erase)).status).toBe(204);
    expect((await ask(path)).status).toBe(404);
    expect((await ask(path, "owner", erase)).status).toBe(404);
    expect(audited.at(-1)).toMatchObject({ route: "/operator/v1/profiles/:id", status: 404 });
    expect(audited.filter((event) => "method" in event && event.method === "GET")).toEqual([]);
    expect(audited).toContainEqual({
      event: "managed",
      user: "olga",
      method: "DELETE",
      route: `/operator/v1/profiles/${profileId(5)}`,
      status: 204,
    });
  });
});

describe("the last hour", () => {
  it("quantiles are within a twentieth of the sorted values'", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 2e-4, max: 1000, noNaN: true }), { minLength: 1, maxLength: 200 }),
        fc.constantFrom(0.5, 0.95),
        (values, share) => {
          const spreading = new Spreading();
          for (const value of values) spreading.add(value);
          const exact = values.sort((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)]!;
          expect(Math.abs(spreading.quantile(share)! / exact - 1)).toBeLessThan(0.0501);
        },
      ),
    );
    expect(new Spreading().spread).toBeNull();
    const tiny = new Spreading();
    for (const value of [0, 1e-5, 1e-4]) tiny.add(value);
    expect(tiny.quantile(1)! / 1e-4).toBeLessThan(1.05);
    const huge = new Spreading();
    huge.add(1e9);
    expect(huge.quantile(0.5)).toBeGreaterThan(2000);
    const measured = new Spreading();
    for (const value of [5, Number.NaN, Number.NaN, -1, -1]) measured.add(value);
    for (const share of [0.01, 0.99]) expect(measured.quantile(share)! / 5).toBeCloseTo(1, 1);
    const odd = new Spreading();
    for (const value of [Number.NaN, -1, 0, Number.POSITIVE_INFINITY]) odd.add(value);
    expect(Number.isFinite(odd.quantile(0.95))).toBe(true);
  });

  it("is kept in spans, the oldest of which are dropped; a clock that is set back does no harm", () => {
    let now = 1_000_000;
    const history = new LoadHistory({ running: 1, waiting: 4 }, () => now, 10_000, 3);
    for (let i = 0; i < 5; i++) {
      history.answered(0.1);
      now += 10_000;
    }
    expect(history.since(0).map(({ at, calls, waiting }) => [at, calls, waiting])).toEqual([
      [1_020_000, 1, 4],
      [1_030_000, 1, 4],
      [1_040_000, 1, 4],
    ]);
    now = 0;
    history.answered(0.1);
    expect(history.since(1_040_000)).toMatchObject([{ calls: 2 }]);
  });
});
