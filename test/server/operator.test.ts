/** What the operator view is told, and who is told it. The view itself is tested in a browser (test/web). */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Decision, DecisionReason } from "../../src/contract/index.js";
import { keepLastEvaluation, type LastEvaluation } from "../../src/evaluate/last-evaluation.js";
import { LiveCalls } from "../../src/server/limits/live-calls.js";
import { WorkQueue } from "../../src/server/limits/work-queue.js";
import { jsonLog } from "../../src/server/log.js";
import { LoadHistory, Spreading } from "../../src/server/operator/load-history.js";
import { createOperatorApp } from "../../src/server/operator/operator-routes.js";
import { createMemoryStore } from "../../src/store/memory.js";
import { createTokenApp } from "../../src/token/app.js";
import { createTokenService } from "../../src/token/service.js";
import { countOfCall, fieldRates } from "../../src/voiceprint/field-rates.js";

const issuer = "https://box.example";
const revision = "model-2";
let folder: string;
let evaluationFile: string;
const logged: string[] = [];
const store = createMemoryStore();
const tokens = createTokenService({
  documents: store.documents,
  issuer,
  passwordCost: { n: 1024, r: 8, p: 1 },
});
const queue = new WorkQueue(2, 8);
const load = new LoadHistory(queue);
const rates = fieldRates("watchlist", [countOfCall(1000, 300), countOfCall(1000, 10), countOfCall(1000, 0)]);
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
  evaluationFile = join(folder, "data", "last-evaluation.json");
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
  const client = bank.clients[0]!.id;
  const secret = await tokens.applications.regenerateSecret(bank.id, client);
  authorizations.runtime = await authorization(client, secret, "bio");

  for (let i = 0; i < 7; i++) {
    const id = `profile-${i}`;
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
    profileIds: ["profile-6"],
    ownerIds: [],
  });
  await store.engagements.create({
    id: "engagement-1",
    scopeId: "default",
    externalId: "",
    customData: "",
    startedAt: 1,
    stoppedAt: null,
  });
  await store.sessions.create({
    id: "session-1",
    scopeId: "default",
    engagementId: "engagement-1",
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
      sessionId: "session-1",
      operation: "Verify",
      at: 10 + i,
      decision: Decision.AUTHENTIC,
      reason: DecisionReason.VOICEPRINT_MATCH,
      risk: 120,
      reliability: 90,
      evidence: { authentication: 7.5 },
      profileId: "profile-0",
    });
  }
  app = createOperatorApp({
    store,
    queue,
    load,
    fieldRates: async () => rates,
    liveCalls: new LiveCalls(10),
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
  });
});
afterAll(() => rm(folder, { recursive: true }));

async function ask(path: string, who = "owner") {
  const given = authorizations[who];
  const response = await app.request(`/operator/v1/${path}`, given ? { headers: { authorization: given } } : {});
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
}

describe("who is told", () => {
  const paths = [
    "box",
    "load",
    "decisions?scope=default",
    "profiles?scope=default",
    "watchlists?scope=default",
    "models?scope=default",
    "promises",
    "evaluation",
    "nothing",
  ];

  it.each(paths)("%s: owners alone", async (path) => {
    const nobody = await ask(path, "nobody");
    expect(nobody.status).toBe(401);
    expect(nobody.headers.get("www-authenticate")).toMatch(/^Bearer /);
    expect(await ask(path, "runtime")).toMatchObject({ status: 401, body: { error: "invalid_token" } });
    expect(await ask(path, "member")).toMatchObject({ status: 403, body: { error: "access_denied" } });
    const owner = await ask(path);
    expect(owner.status).toBe(path === "nothing" ? 404 : 200);
    expect(owner.headers.get("cache-control")).toBe("no-store");
  });

  it("of scopes that the box's applications are bound to", async () => {
    expect((await ask("box")).body).toEqual({
      user: "olga",
      version: "1.2.3",
      modelRevision: revision,
      calibrationRevision: "0123456789abcdef",
      scopes: ["default"],
    });
    for (const table of ["decisions", "profiles", "watchlists", "models"]) {
      expect((await ask(`${table}?scope=elsewhere`)).status).toBe(403);
      expect((await ask(table)).status).toBe(400);
    }
  });
});

describe("what is told", () => {
  it("promised rates: what was met, with an interval and a verdict", async () => {
    const { body } = await ask("promises");
    expect(body.rates.map(({ verdict }: { verdict: string }) => verdict)).toEqual(["exceeded", "holds", "undecided"]);
    expect(body.rates[0]).toMatchObject({ list: "watchlist", promised: 0.1, comparisons: 1000, met: { rate: 0.3 } });
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
      sessionId: "session-1",
      profileId: "profile-0",
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
    expect(seen).toEqual(Array.from({ length: 7 }, (_, i) => `profile-${i}`));
    const [current, old, untrained] = (await ask("profiles?scope=default")).body.rows;
    expect(current).toEqual({
      id: "profile-0",
      kind: "person",
      ownerId: "caller-0",
      tag: "",
      status: "OPTIMAL_TRAINED",
      obsolete: false,
      printVersion: 1,
      netSpeechSeconds: 8.5,
      createdAt: 1000,
    });
    expect(old).toMatchObject({ obsolete: true });
    expect(untrained).toMatchObject({ status: "NOT_TRAINED", obsolete: false, netSpeechSeconds: null });
  });

  it("watchlists with how many they hold", async () => {
    expect((await ask("watchlists?scope=default")).body).toEqual({
      rows: [{ id: "list-1", tag: "known callers", profiles: 1, owners: 0 }],
      next: null,
    });
    expect((await ask("watchlists?scope=default&after=list-1")).body).toEqual({ rows: [], next: null });
  });

  it("the queue and what was answered", async () => {
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
    expect((await ask(`load?since=${body.now + 60_000}`)).body.spans).toEqual([]);
    finish();
    await Promise.all(work);
  });

  it("no evaluation yet, then the last one, and 500 for what is none", async () => {
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
    await keepLastEvaluation(evaluationFile, evaluation);
    expect((await ask("evaluation")).body).toEqual({ evaluation });
    await writeFile(evaluationFile, '{"at":"yesterday"}');
    const broken = await ask("evaluation");
    expect(broken.status).toBe(500);
    expect(logged.join()).toContain("the operator view failed");
  });

  it.each([
    "profiles?scope=default&limit=0",
    "profiles?scope=default&limit=101",
    "decisions?scope=default&limit=x",
    "load?since=-1",
  ])("refuses %s", async (path) => {
    expect((await ask(path)).status).toBe(400);
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
    const odd = new Spreading();
    for (const value of [Number.NaN, -1, 0, Number.POSITIVE_INFINITY]) odd.add(value);
    expect(Number.isFinite(odd.quantile(0.95))).toBe(true);
  });

  it("is kept in spans, the oldest of which go; a clock set back breaks nothing", () => {
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
