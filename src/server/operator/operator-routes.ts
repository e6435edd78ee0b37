import { Hono } from "hono";
import { Decision, DecisionReason, VoiceprintProfileStatus } from "../../contract/index.js";
import { readLastEvaluation } from "../../evaluate/last-evaluation.js";
import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import type { Check, Group, Profile, Store } from "../../store/port.js";
import { errorResponse, NO_STORE, OAuthError } from "../../token/errors.js";
import type { TokenService } from "../../token/service.js";
import type { ToolingUser } from "../../token/tooling-user.js";
import type { FieldRate } from "../../voiceprint/field-rates.js";
import type { LiveCalls } from "../limits/live-calls.js";
import type { WorkQueue } from "../limits/work-queue.js";
import type { Log } from "../log.js";
import type { LoadHistory } from "./load-history.js";
import type { DecisionView, OperatorAnswers, Page, ProfileView, WatchlistView } from "./view.js";

export interface OperatorParts {
  readonly store: Store;
  readonly queue: WorkQueue;
  readonly load: LoadHistory;
  readonly fieldRates: () => Promise<readonly FieldRate[]>;
  readonly liveCalls: LiveCalls;
  readonly toolingUser: ToolingUser;
  readonly applications: Pick<TokenService["applications"], "list">;
  /** Scopes that are used without an application: where tokens are off. */
  readonly openScopes: readonly string[];
  readonly version: string;
  readonly modelRevision: string;
  readonly calibrationRevision: string;
  readonly printsByModel: (scope: string) => Promise<readonly PrintsOfModel[]>;
  /** Whether prints of a model with this revision are scored here. */
  readonly canBeScored: (revision: string) => boolean;
  /** Where `vivavoce evaluate` leaves its figures. */
  readonly evaluationFile: string;
  /** The view's own files; anybody may have them. */
  readonly files: (request: Request) => Response | null;
  readonly log: Log;
}

type Env = { Variables: { user: string } };

const MOST_ROWS = 100;

/** Everything under /operator: the view's files for anybody, what they show for owners alone. */
export function createOperatorApp(parts: OperatorParts): Hono<Env> {
  const { store, queue, load } = parts;
  const app = new Hono<Env>();
  app.onError((error) => {
    if (error instanceof OAuthError) return errorResponse(error);
    parts.log.error("the operator view failed", { stack: error.stack ?? error.name });
    return errorResponse(new OAuthError("server_error", "the server failed"));
  });

  app.use("/operator/v1/*", async (c, next) => {
    const user = await parts.toolingUser(c.req.header("authorization"));
    if (user.role !== "owner") throw new OAuthError("access_denied", "only owners may see this");
    c.set("user", user.name);
    await next();
    for (const [name, value] of Object.entries(NO_STORE)) c.header(name, value);
  });

  async function scopes(): Promise<string[]> {
    const bound = (await parts.applications.list()).flatMap(({ clients }) =>
      clients.flatMap(({ gkScopes }) => gkScopes),
    );
    return [...new Set([...parts.openScopes, ...bound])].sort();
  }

  async function scopeOf(scope: string | undefined): Promise<string> {
    if (!scope) throw new OAuthError("invalid_request", "scope is missing");
    if (!(await scopes()).includes(scope))
      throw new OAuthError("access_denied", "no application of this box is bound to this scope");
    return scope;
  }

  app.get("/operator/v1/box", async (c) => {
    const { version, modelRevision, calibrationRevision } = parts;
    return c.json({
      user: c.get("user"),
      version,
      modelRevision,
      calibrationRevision,
      scopes: await scopes(),
    } satisfies OperatorAnswers["box"]);
  });

  app.get("/operator/v1/load", (c) => {
    const since = wholeNumber("since", c.req.query("since"), 0, 0, Number.MAX_SAFE_INTEGER);
    load.sample();
    const { running, waiting, concurrent, capacity } = queue;
    const spans = load.since(since);
    return c.json({
      now: load.now(),
      running,
      waiting,
      concurrent,
      capacity,
      spanMs: load.spanMs,
      spans,
    } satisfies OperatorAnswers["load"]);
  });

  app.get("/operator/v1/calls", (c) => {
    const { capacity } = parts.liveCalls;
    const calls = parts.liveCalls.list().slice(0, MOST_ROWS);
    return c.json({ now: load.now(), capacity, calls } satisfies OperatorAnswers["calls"]);
  });

  app.get("/operator/v1/decisions", async (c) => {
    const limit = limitOf(c.req.query("limit"));
    const checks = await store.sessions.recentChecks(await scopeOf(c.req.query("scope")), limit);
    return c.json(checks.map(decisionView) satisfies OperatorAnswers["decisions"]);
  });

  app.get("/operator/v1/profiles", async (c) => {
    const limit = limitOf(c.req.query("limit"));
    const scope = await scopeOf(c.req.query("scope"));
    const found = await store.profiles.list(scope, c.req.query("after") || null, limit + 1);
    const view = (profile: Profile) => profileView(profile, parts.canBeScored);
    return c.json(page(found, limit, view) satisfies OperatorAnswers["profiles"]);
  });

  app.get("/operator/v1/watchlists", async (c) => {
    const limit = limitOf(c.req.query("limit"));
    const after = c.req.query("after") ?? "";
    const all = await store.groups.list(await scopeOf(c.req.query("scope")), "watchlist");
    const found = all.filter(({ id }) => id > after).sort((one, other) => (one.id < other.id ? -1 : 1));
    return c.json(page(found, limit, watchlistView) satisfies OperatorAnswers["watchlists"]);
  });

  app.get("/operator/v1/evaluation", async (c) =>
    c.json({ evaluation: await readLastEvaluation(parts.evaluationFile) } satisfies OperatorAnswers["evaluation"]),
  );

  app.get("/operator/v1/models", async (c) => {
    const models = await parts.printsByModel(await scopeOf(c.req.query("scope")));
    return c.json({ models } satisfies OperatorAnswers["models"]);
  });

  app.get("/operator/v1/promises", async (c) =>
    c.json({ rates: await parts.fieldRates() } satisfies OperatorAnswers["promises"]),
  );

  app.all("/operator/v1/*", () => {
    throw new OAuthError("not_found", "not found");
  });
  app.get("/operator", (c) => c.redirect("/operator/", 308));
  app.all("*", (c) => parts.files(c.req.raw) ?? errorResponse(new OAuthError("not_found", "not found")));
  return app;
}

function wholeNumber(name: string, text: string | undefined, otherwise: number, least: number, most: number): number {
  if (text === undefined) return otherwise;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    throw new OAuthError("invalid_request", `${name} must be a whole number from ${least} to ${most}`);
  return value;
}

const limitOf = (text: string | undefined) => wholeNumber("limit", text, 25, 1, MOST_ROWS);

/** `found` holds one more than a page when there is a next one. */
function page<Found extends { readonly id: string }, Row>(
  found: readonly Found[],
  limit: number,
  view: (one: Found) => Row,
): Page<Row> {
  const shown = found.slice(0, limit);
  return { rows: shown.map(view), next: found.length > limit ? shown.at(-1)!.id : null };
}

const decisionView = (check: Check): DecisionView => ({
  id: check.id,
  at: check.at,
  operation: check.operation,
  decision: Decision[check.decision] ?? String(check.decision),
  reason: DecisionReason[check.reason] ?? String(check.reason),
  risk: check.risk,
  reliability: check.reliability,
  sessionId: check.sessionId,
  profileId: check.profileId,
});

const profileView = (profile: Profile, canBeScored: OperatorParts["canBeScored"]): ProfileView => ({
  id: profile.id,
  kind: profile.owner.kind,
  ownerId: profile.owner.externalId,
  tag: profile.tag,
  status: VoiceprintProfileStatus[profile.status] ?? String(profile.status),
  obsolete: profile.template !== null && !canBeScored(profile.template.revision),
  printVersion: profile.printVersion,
  netSpeechSeconds: profile.template?.netSpeechSeconds ?? null,
  createdAt: profile.createdAt,
});

const watchlistView = ({ id, tag, profileIds, ownerIds }: Group): WatchlistView => ({
  id,
  tag,
  profiles: profileIds.length,
  owners: ownerIds.length,
});
